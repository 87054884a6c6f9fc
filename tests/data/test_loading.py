"""`load_nested_ner`: formats given by name, reports, cache and streaming."""

import importlib
import json
import logging
import pickle
import sys

import pytest
from datasets import Dataset

from modeling_triaffine.data import FEATURES, FORMATS, CorpusError, load_texts, retokenize
from modeling_triaffine.data import load_nested_ner as load
from tests.helpers.corpora import NESTED, PUBLISHED, RECORD, TEXT, changed, write_files
from tests.helpers.corpora import write_json as write
from tests.helpers.format_cases import CASES, SAMPLES

SPLITTER = """
import re

def split(text):
    return [match.span() for match in re.finditer(r"%s", text)]

class Splitter:
    def __call__(self, text):
        return split(text)
"""


def entity(start, end, kind="Person"):
    return {"start": start, "end": end, "type": kind}


class TestOptions:
    def test_format_given(self, tmp_path):
        assert len(load(write(tmp_path / "a.json", RECORD), "json_lines")["train"]) == 1
        (tmp_path / "list.JSON").write_text(json.dumps([PUBLISHED]))
        assert load(tmp_path / "list.JSON")["train"]["id"][:] == ["list:0"]
        with pytest.raises(ValueError, match=r"'conll'.*\['ace', .*'brat', .*'conllu'"):
            load(tmp_path / "a.json", "conll")

    @pytest.mark.parametrize(
        ("format", "option"),
        [
            ("json_lines", {"word_splitter": lambda text: [(0, len(text))]}),
            ("conllu", {"columns": {"tokens": 0}}),
            ("genia", {"sentence_splitter": "none"}),
        ],
    )
    def test_options_that_a_format_does_not_have(self, tmp_path, format, option):
        file = write_files(tmp_path, SAMPLES[format])
        with pytest.raises(CorpusError, match=f"{file.name}: .*'{format}'.*{next(iter(option))}"):
            load(file, **option)

    def test_the_name_of_a_word_splitter_is_no_word_splitter(self, tmp_path):
        with pytest.raises(TypeError, match=r"`word_splitter` is 'whitespace'\. Give a function"):
            load(write(tmp_path / "a.jsonl", RECORD), word_splitter="whitespace")

    @pytest.mark.parametrize("columns", ["tokens", [0, 1]])
    @pytest.mark.parametrize("format", [None, "iob2"])
    def test_columns_are_a_mapping(self, tmp_path, format, columns):
        with pytest.raises(TypeError, match=r"`columns` is .* Give a mapping, such as {'tokens': 0"):
            load(write_files(tmp_path, SAMPLES["iob2"]), format, columns=columns)

    @pytest.mark.parametrize(("format", "content"), [("json_lines", "\n"), ("published_json", "[]")])
    def test_files_without_a_sentence(self, tmp_path, format, content):
        with pytest.raises(CorpusError, match=r"a\.json"):
            load(write_files(tmp_path, {"a.json": content}), format)


class TestReport:
    def test_of_every_load(self, tmp_path, caplog):
        file = write(tmp_path / "a.jsonl", changed(entities=[entity(0, 1), entity(1, 2), entity(0, 1)], note="x"))
        for _ in range(2):  # the second one from the cache
            caplog.clear()
            with caplog.at_level(logging.WARNING):
                rows = load(file)["train"]
            assert rows.features == FEATURES
            assert rows[0]["entities"] == [entity(0, 1), entity(1, 2)]
            assert rows.info.description == (
                "a.jsonl: sentences: 1; entities kept: 2 of 3; duplicate entities dropped: 1; field 'note' ignored: 1."
            )
            assert caplog.messages == [rows.info.description]

    def test_of_texts_whose_offsets_nothing_checks(self, tmp_path, caplog):
        file = write(tmp_path / "a.jsonl", {"text": "😀 in Orsk.", "entities": [[6, 10, "City"]]})
        for offsets, start in ((None, 6), ("utf16", 5)):
            caplog.clear()
            (text,) = load_texts(file, offsets=offsets)["train"]
            assert text["entities"][0]["start"] == start
            assert ("--offsets utf16" in caplog.text) == (offsets is None)

    def test_of_a_clean_file_is_empty(self, tmp_path, caplog):
        load(write(tmp_path / "a.jsonl", RECORD))
        assert not caplog.records


class TestCache:
    def test_a_changed_file_is_read_again(self, tmp_path):
        file = write(tmp_path / "a.jsonl", RECORD)
        first = load(file)["train"]
        assert load(file)["train"].cache_files == first.cache_files
        write(file, changed(tokens=["Here", *RECORD["tokens"][1:]]))
        assert load(file)["train"][0]["tokens"][0] == "Here"

    def test_labels_are_checked_in_spite_of_it(self, tmp_path):
        file = write(tmp_path / "a.jsonl", RECORD)
        load(file)
        with pytest.raises(CorpusError, match="'Person'"):
            load(file, labels=["City"])

    @pytest.mark.parametrize("function", ["split", "Splitter()"])
    def test_an_edited_word_splitter_splits_again(self, tmp_path, monkeypatch, function):
        """Pickled, it is its name alone."""
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        file = write(tmp_path / "a.json", {"text": "CD28-mediated signal", "entities": []})

        def tokens_with(pattern: str) -> tuple[list[str], str]:
            (tmp_path / "splitter_of_mine.py").write_text(SPLITTER % pattern)
            monkeypatch.delitem(sys.modules, "splitter_of_mine", raising=False)
            importlib.invalidate_caches()
            splitter = eval(function, vars(importlib.import_module("splitter_of_mine")))
            cut = retokenize(Dataset.from_dict({"tokens": [["CD28-mediated"]], "entities": [[]]}), splitter)
            return load(file, word_splitter=splitter)["train"][0]["tokens"], cut._fingerprint

        words, fingerprint = tokens_with(r"\S+")
        assert words == ["CD28-mediated", "signal"]
        assert tokens_with(r"\S+") == (words, fingerprint)
        words, other = tokens_with(r"\w+|-")
        assert words == ["CD28", "-", "mediated", "signal"]
        assert other != fingerprint


@pytest.mark.parametrize("record", [{"satz": "Orsk"}, {"classes": ["B-City"], "tokens": ["Orsk"]}])
def test_a_record_of_another_form_is_shown_by_its_fields(tmp_path, record):
    names = ", ".join(map(repr, record))
    for place, as_list in (("line 1", False), ("record 0", True)):
        path = write(tmp_path / "a.json", record, as_list=as_list)
        with pytest.raises(CorpusError, match=f"no known form; the keys .* are {names}\\. .*--columns text=… "):
            load(path)
        facts = f"{place}: .* missing, .* fields are {names}\\. .*'text'.*adapt_dataset"
        with pytest.raises(CorpusError, match=facts):
            load(path, "published_json" if as_list else "json_lines")


@pytest.mark.parametrize("pairs", [[["Orsk", {"entities": []}]], {"annotations": [['a "b"', {"entities": []}]]}])
def test_pairs_of_spacy_2_are_to_be_written_as_objects(tmp_path, pairs):
    (path := tmp_path / "a.json").write_text(json.dumps(pairs))
    with pytest.raises(CorpusError, match=r'no known form; .* as an object, \{"text": text, \*\*annotations\}'):
        load(path)


@pytest.mark.parametrize(
    ("name", "content", "named", "how"),
    [
        ("a.json", '{"text": "a", "label": [[0, 9, "X"]]}', None, "'text_spans' .* for the keys 'text' of its first"),
        ("a.txt", "a B-X\nc O\nd O\nb\n", None, "'iob2' .* for its first lines"),
        ("a.conllu", "1\ta\n", None, r"'conllu' .* for its name; --format \(format=\) names another"),
        ("in/a.ann", "T1\tX\n", None, "'brat' .* for the names of its files"),
        ("a.txt", "a B-X\nb\n", "iob2", "'iob2' .* as named"),
    ],
)
def test_errors_end_with_the_form_that_a_file_was_taken_for(tmp_path, name, content, named, how):
    path = write_files(tmp_path, {"in/a.txt": "a", name: content})
    for read in (load, load_texts) if "text" in content else (load,):
        with pytest.raises(CorpusError, match=rf"\. Read as {how}[^.]*\.$"):
            read(path.parent if name.startswith("in/") else path, named)


class TestStreaming:
    def test_reads_no_further_than_it_is_asked(self, tmp_path):
        file = write(tmp_path / "a.jsonl", RECORD, changed(id="a:1"), {"id": "b"})
        rows = iter(load(file, streaming=True)["train"])
        assert [next(rows)["id"], next(rows)["id"]] == ["a:0", "a:1"]
        with pytest.raises(CorpusError, match="line 3: field 'tokens' is missing"):
            next(rows)

    def test_reports_at_the_end(self, tmp_path, caplog):
        rows = load(write(tmp_path / "a.jsonl", changed(entities=[entity(0, 1)] * 3)), streaming=True)["train"]
        assert not caplog.records
        assert len(list(rows)) == 1
        assert caplog.messages == ["a.jsonl: sentences: 1; entities kept: 1 of 3; duplicate entities dropped: 2."]

    def test_survives_a_worker(self, tmp_path):
        rows = load(write(tmp_path / "a.jsonl", RECORD), streaming=True)["train"]
        assert next(iter(pickle.loads(pickle.dumps(rows))))["id"] == "a:0"


@pytest.mark.parametrize("format", [name for name in CASES if FORMATS[name].keeps_text and name != "genia"])
def test_texts_of_every_format_that_has_them(tmp_path, format):
    path = write_files(tmp_path, CASES[format].sample())
    (document,) = load_texts(path, format)["train"]
    assert document["text"].strip().replace(" .", ".") == TEXT
    found = [(document["text"][one["start"] : one["end"]], one["type"]) for one in document["entities"]]
    assert sorted(found, reverse=True) == NESTED


def test_what_texts_cannot_hold_is_reported(tmp_path, caplog):
    """White space at an entity's boundaries is none of it, as in the pipeline's output."""
    write_files(tmp_path, {"a.txt": TEXT, "a.ann": "T1\tX 0 3;13 17\tThe Orsk\nT2\tCity 12 18\t Orsk \n"})
    (document,) = load_texts(tmp_path)["train"]
    assert document["entities"] == [{"start": 13, "end": 17, "type": "City"}]
    report = f"{tmp_path.name}: discontinuous entities dropped: 1 (a.ann: X [The mayor of Orsk] slept.)."
    assert caplog.messages == [report]


def test_a_corpus_of_words_alone_has_no_texts(tmp_path):
    path = write_files(tmp_path, {"a.jsonl": json.dumps({"tokens": ["a"], "entities": []})})
    with pytest.raises(CorpusError, match=r"a\.jsonl.*'json_lines'.*genia"):
        load_texts(path)


def test_a_cache_that_cannot_be_written_is_named(tmp_path):
    write_files(tmp_path, {"a.jsonl": json.dumps({"tokens": ["a"], "entities": []}), "file": ""})
    with pytest.raises(OSError, match=r"cannot be written to .*file/cache \(.*HF_DATASETS_CACHE to another folder"):
        load(tmp_path / "a.jsonl", cache_dir=tmp_path / "file" / "cache")
