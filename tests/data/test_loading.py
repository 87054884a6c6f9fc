"""`load_nested_ner`: the JSON forms, splits, detection, cache, streaming, and what each broken file is told."""

import gzip
import json
import logging
import pickle
import re

import pytest
from datasets import DatasetDict, IterableDatasetDict

from modeling_triaffine.data import FEATURES, CorpusError, load_nested_ner

RECORD = {
    "id": "a:0",
    "doc_id": "a",
    "sent_id": 0,
    "tokens": ["the", "mayor", "of", "Orsk"],
    "pos": ["DET", "NOUN", "ADP", "PROPN"],
    "entities": [{"start": 0, "end": 4, "type": "PER"}, {"start": 3, "end": 4, "type": "GPE"}],
}
PUBLISHED = {
    "tokens": ["Orsk", "slept"],
    "pos": ["NNP", "VBD"],
    "entities": [{"type": "GPE", "start": 0, "end": 1}],
    "ltokens": ["It", "rained", "."],
    "rtokens": [],
    "relations": {},
    "orig_id": "7",
}


def changed(**fields):
    return {**RECORD, **fields}


def without(name):
    return {key: value for key, value in RECORD.items() if key != name}


def entity(start, end, kind="PER"):
    return {"start": start, "end": end, "type": kind}


def write(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.fixture
def load(tmp_path):
    """`load_nested_ner` with a cache of its own."""

    def load(path, *arguments, **options):
        return load_nested_ner(path, *arguments, cache_dir=tmp_path / "cache", **options)

    return load


class TestJsonLines:
    def test_one_file_is_train_with_typed_columns(self, load, tmp_path):
        corpus = load(write(tmp_path / "corpus.jsonl", RECORD))
        assert isinstance(corpus, DatasetDict)
        assert list(corpus) == ["train"]
        assert corpus["train"].features == FEATURES
        assert corpus["train"][0] == {**RECORD, "left_tokens": None, "right_tokens": None}

    def test_missing_tags_are_no_tags(self, load, tmp_path):
        assert load(write(tmp_path / "a.jsonl", without("pos")))["train"][0]["pos"] == []

    def test_a_file_without_ids_is_one_document_in_order(self, load, tmp_path):
        bare = {"tokens": RECORD["tokens"], "entities": RECORD["entities"]}
        rows = load(write(tmp_path / "a.jsonl", bare, bare))["train"]
        assert [(row["id"], row["doc_id"], row["sent_id"]) for row in rows] == [
            ("a.jsonl:line 1", "a.jsonl", 0),
            ("a.jsonl:line 2", "a.jsonl", 1),
        ]

    def test_own_context_differs_from_none(self, load, tmp_path):
        file = write(tmp_path / "a.jsonl", changed(left_tokens=["so"]), changed(id="a:1", left_tokens=None))
        rows = load(file)["train"]
        assert [(row["left_tokens"], row["right_tokens"]) for row in rows] == [(["so"], []), (None, None)]

    def test_blank_lines_gzip_and_byte_order_mark(self, load, tmp_path):
        lines = json.dumps(RECORD) + "\n\n" + json.dumps(changed(id="a:1")) + "\n \n"
        (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode("utf-8-sig")))
        assert load(tmp_path / "a.jsonl.gz")["train"]["id"][:] == ["a:0", "a:1"]

    def test_two_types_on_one_span_are_both_kept(self, load, tmp_path):
        entities = [entity(0, 1, "PER"), entity(0, 1, "ORG")]
        assert load(write(tmp_path / "a.jsonl", changed(entities=entities)))["train"][0]["entities"] == entities

    def test_what_is_dropped_is_counted_and_reported_on_every_load(self, load, tmp_path, caplog):
        file = write(tmp_path / "a.jsonl", changed(entities=[entity(0, 1), entity(1, 2), entity(0, 1)], note="x"))
        for _ in range(2):  # the second comes from the cache
            caplog.clear()
            with caplog.at_level(logging.WARNING):
                rows = load(file)["train"]
            assert rows[0]["entities"] == [entity(0, 1), entity(1, 2)]
            assert rows.info.description == (
                "a.jsonl: sentences: 1; entities kept: 2 of 3; duplicate entities dropped: 1; field 'note' ignored: 1."
            )
            assert [record.getMessage() for record in caplog.records] == [rows.info.description]

    def test_a_clean_file_reports_nothing(self, load, tmp_path, caplog):
        load(write(tmp_path / "a.jsonl", RECORD))
        assert not caplog.records


class TestPublishedJson:
    def test_context_is_mapped_and_each_record_is_a_document(self, load, tmp_path, caplog):
        (tmp_path / "dev.json").write_text(json.dumps([PUBLISHED, {**PUBLISHED, "pos": None}]))
        rows = load(tmp_path)["validation"]
        assert rows[0] == {
            "id": "dev:0",
            "doc_id": "dev:0",
            "sent_id": 0,
            "tokens": ["Orsk", "slept"],
            "pos": ["NNP", "VBD"],
            "entities": [{"start": 0, "end": 1, "type": "GPE"}],
            "left_tokens": ["It", "rained", "."],
            "right_tokens": [],
        }
        assert rows[1]["doc_id"] == "dev:1"
        assert not caplog.records

    def test_errors_name_the_record(self, load, tmp_path):
        (tmp_path / "train.json").write_text(json.dumps([PUBLISHED, {**PUBLISHED, "tokens": "Orsk"}]))
        with pytest.raises(CorpusError, match=r"train\.json, record 1: field 'tokens' is 'Orsk'"):
            load(tmp_path)

    def test_a_list_cut_in_half(self, load, tmp_path):
        (tmp_path / "train.json").write_text(json.dumps([PUBLISHED], indent=1)[:-30])
        with pytest.raises(CorpusError, match=r"train\.json: broken JSON, .* at line \d+"):
            load(tmp_path)


class TestSplits:
    @pytest.mark.parametrize("name", ["dev", "val", "valid", "validation", "eval", "Dev"])
    def test_of_a_folder(self, load, tmp_path, name):
        write(tmp_path / f"{name}.jsonl", RECORD)
        write(tmp_path / "test.jsonl", RECORD)
        write(tmp_path / "train.jsonl", RECORD, changed(id="a:1"))
        (tmp_path / "README.md").write_text("not a split")
        corpus = load(tmp_path)
        assert {split: len(rows) for split, rows in corpus.items()} == {"train": 2, "validation": 1, "test": 1}
        assert list(corpus) == ["train", "validation", "test"]
        assert all(str(rows.split) == split for split, rows in corpus.items())

    def test_of_a_mapping(self, load, tmp_path):
        file = write(tmp_path / "a.jsonl", RECORD)
        assert list(load({"dev": file, "held_out": str(file)})) == ["validation", "held_out"]

    def test_one_split_twice(self, load, tmp_path):
        file = write(tmp_path / "dev.jsonl", RECORD)
        with pytest.raises(ValueError, match="Two files are given for the split 'validation'"):
            load({"dev": file, "valid": file})
        write(tmp_path / "valid.jsonl", RECORD)
        with pytest.raises(CorpusError, match=r"both dev\.jsonl and valid\.jsonl could be its validation split"):
            load(tmp_path)

    def test_folder_without_splits(self, load, tmp_path):
        write(tmp_path / "corpus.jsonl", RECORD)
        with pytest.raises(FileNotFoundError, match=r"no file is named train.*It holds \['corpus\.jsonl'\]"):
            load(tmp_path)

    def test_files_of_any_ending_where_the_format_is_named(self, load, tmp_path):
        for name in ("train", "valid", "test"):
            (tmp_path / f"{name}.txt").write_text(f"{name}\tB-X\nslept\tO\n")
        (tmp_path / "README").touch()
        corpus = load(tmp_path, "iob2")
        assert {split: rows["tokens"][:] for split, rows in corpus.items()} == {
            "train": [["train", "slept"]], "validation": [["valid", "slept"]], "test": [["test", "slept"]]
        }  # fmt: skip
        with pytest.raises(FileNotFoundError, match="say which format it is: then any ending will do"):
            load(tmp_path)
        (tmp_path / "train.conll").write_text("known\tB-X\n")
        assert list(load(tmp_path, "iob2")) == ["train"], "the format's own endings come first"

    def test_files_that_are_not_read_are_told(self, load, tmp_path, caplog):
        for name in ("train.jsonl", "training.2.jsonl", "held_out.jsonl.gz", ".train.jsonl"):
            write(tmp_path / name, RECORD)
        (tmp_path / "labels.json").write_text("{}")
        assert list(load(tmp_path)) == ["train"]
        (tmp_path / "dev.conll").write_text("Orsk\tB-X\n")
        assert list(load(tmp_path, "json_lines")) == ["train"]
        told = f"{tmp_path}: not read, being called otherwise or ending otherwise than its splits: "
        assert caplog.messages == [
            f"{told}2 (held_out.jsonl.gz, training.2.jsonl).",
            f"{told}3 (dev.conll, held_out.jsonl.gz, training.2.jsonl).",
        ]

    def test_missing_file(self, load, tmp_path):
        for path in (tmp_path / "nowhere.jsonl", {"train": tmp_path / "nowhere.jsonl"}):
            with pytest.raises(FileNotFoundError, match=r"nowhere\.jsonl: no such file"):
                load(path)

    def test_folder_as_a_split(self, load, tmp_path):
        with pytest.raises(CorpusError, match="is a folder, and not one of documents"):
            load({"train": tmp_path})


class TestDetection:
    def test_by_content_where_the_name_says_nothing(self, load, tmp_path):
        assert load(write(tmp_path / "corpus.txt", RECORD))["train"]["id"][:] == ["a:0"]
        (tmp_path / "corpus").write_text(json.dumps([PUBLISHED]))
        assert load(tmp_path / "corpus")["train"]["id"][:] == ["corpus:0"]

    def test_by_content_where_the_name_leaves_a_choice(self, load, tmp_path):
        assert load(write(tmp_path / "lines.json", RECORD))["train"]["id"][:] == ["a:0"]
        (tmp_path / "list.JSON").write_text(json.dumps([PUBLISHED]))
        assert load(tmp_path / "list.JSON")["train"]["id"][:] == ["list:0"]

    def test_by_name_before_content(self, load, tmp_path):
        (tmp_path / "a.xml").write_text("neither\n")
        with pytest.raises(CorpusError, match=r"a\.xml, line 1: broken XML"):
            load(tmp_path / "a.xml")

    def test_format_given(self, load, tmp_path):
        assert len(load(write(tmp_path / "a.json", RECORD), "json_lines")["train"]) == 1
        with pytest.raises(ValueError, match=r"There is no format 'conll'\. Choose one of \['ace', 'brat', 'conllu'"):
            load(tmp_path / "a.json", "conll")

    def test_unknown(self, load, tmp_path):
        (tmp_path / "a.txt").write_text("The mayor of Orsk slept.\n")
        with pytest.raises(CorpusError, match=r"a\.txt: its format cannot be told.*Say which one.*'json_lines'"):
            load(tmp_path / "a.txt")


def bad(**fields):
    return changed(id="a:1", **fields)


def lacking(name):
    return {key: value for key, value in bad().items() if key != name}


BROKEN = {
    "not an object": ([1], "the record should be an object, found [1] (list)"),
    "missing tokens": (lacking("tokens"), "field 'tokens' is missing"),
    "missing entities": (lacking("entities"), "field 'entities' is missing"),
    "id a number": (changed(id=3), "field 'id' is 3 (int)"),
    "sent_id a string": (bad(sent_id="0"), "field 'sent_id' is '0' (str)"),
    "sent_id true": (bad(sent_id=True), "field 'sent_id' is True (bool)"),
    "no tokens": (bad(tokens=[], pos=[], entities=[]), "field 'tokens' is empty"),
    "null token": (bad(tokens=["a", None]), "field 'tokens[1]' is null"),
    "empty token": (bad(tokens=["a", ""]), "field 'tokens[1]' is ''"),
    "half a surrogate": (bad(tokens=["a", "\ud800"], pos=[], entities=[]), "field 'tokens' holds '\\ud800'"),
    "tags": (bad(pos=["DET"]), "field 'pos' has 1 tags for 4 tokens"),
    "entity no object": (bad(entities=[[0, 1, "PER"]]), "field 'entities[0]' should be an object"),
    "entity without type": (bad(entities=[{"start": 0, "end": 1}]), "field 'entities[0].type' is missing"),
    "entity past the end": (bad(entities=[entity(0, 1), entity(2, 5)]), "field 'entities[1]' runs from 2 to 5"),
    "entity backwards": (bad(entities=[entity(3, 2)]), "field 'entities[0]' runs from 3 to 2"),
    "entity empty": (bad(entities=[entity(2, 2)]), "field 'entities[0]' runs from 2 to 2"),
    "entity negative": (bad(entities=[entity(-1, 2)]), "field 'entities[0]' runs from -1 to 2"),
    "unknown label": (bad(entities=[entity(0, 1, "X")]), "field 'entities[0].type' is 'X', which is not among"),
    "duplicate id": (RECORD, "field 'id': 'a:0' was used before, at line 1"),
    "context": (bad(left_tokens="so"), "field 'left_tokens' is 'so' (str)"),
}


class TestErrors:
    @pytest.mark.parametrize(("record", "problem"), BROKEN.values(), ids=BROKEN)
    def test_a_bad_record_is_told_where_and_what(self, load, tmp_path, record, problem):
        file = write(tmp_path / "a.jsonl", RECORD, record)
        with pytest.raises(CorpusError) as caught:
            load(file, labels={"PER", "GPE"})
        message = str(caught.value)
        assert message.startswith(f"{file}, line 2: {problem}")
        assert re.search(r"\. [A-Z].*\.$", message)  # what to do
        assert "\n" not in message
        assert caught.value.__suppress_context__

    @pytest.mark.parametrize("line", ['{"id": "a:1", "tok', "{'id': 1}", "nonsense"])
    def test_broken_line(self, load, tmp_path, line):
        file = write(tmp_path / "a.jsonl", RECORD)
        file.write_text(file.read_text() + line)
        with pytest.raises(CorpusError, match=r"a\.jsonl, line 2: broken JSON"):
            load(file)

    def test_not_utf8(self, load, tmp_path):
        (tmp_path / "a.jsonl").write_bytes(json.dumps(RECORD).encode() + b'\n{"id": "\xe9"}\n')
        with pytest.raises(CorpusError, match=r"line 2: byte 9 is not utf-8\. Save the file as UTF-8"):
            load(tmp_path / "a.jsonl")

    @pytest.mark.parametrize(("name", "content"), [("a.jsonl", ""), ("a.json", " \n"), ("a.xml", ""), ("a", "")])
    def test_empty_file(self, load, tmp_path, name, content):
        (tmp_path / name).write_text(content)
        with pytest.raises(CorpusError, match="the file is empty"):
            load(tmp_path / name)

    def test_no_sentence(self, load, tmp_path):
        (tmp_path / "a.json").write_text("[]")
        with pytest.raises(CorpusError, match="there is no sentence in it"):
            load(tmp_path / "a.json")

    def test_gzip_cut_off(self, load, tmp_path):
        packed = gzip.compress("".join(json.dumps(changed(id=str(i))) + "\n" for i in range(500)).encode())
        (tmp_path / "a.jsonl.gz").write_bytes(packed[: len(packed) // 2])
        with pytest.raises(CorpusError, match=r"a\.jsonl\.gz: the gzip data is damaged or cut off"):
            load(tmp_path / "a.jsonl.gz")

    def test_word_splitter_needs_text(self, load, tmp_path):
        with pytest.raises(CorpusError, match=r"keeps no text that a word_splitter could cut.*`retokenize`"):
            load(write(tmp_path / "a.jsonl", RECORD), word_splitter=lambda text: [(0, len(text))])


class TestCache:
    def test_a_changed_file_is_read_again(self, load, tmp_path):
        file = write(tmp_path / "a.jsonl", RECORD)
        first = load(file)["train"]
        assert load(file)["train"].cache_files == first.cache_files
        write(file, changed(tokens=["The", "mayor", "of", "Orsk"]))
        assert load(file)["train"][0]["tokens"][0] == "The"

    def test_labels_are_checked_in_spite_of_it(self, load, tmp_path):
        file = write(tmp_path / "a.jsonl", RECORD)
        load(file)
        with pytest.raises(CorpusError, match="'PER', which is not among the labels"):
            load(file, labels=["GPE"])


class TestStreaming:
    def test_equals_loading(self, load, tmp_path):
        write(tmp_path / "train.jsonl", RECORD, changed(id="a:1", sent_id=1))
        write(tmp_path / "dev.jsonl", changed(left_tokens=[]))
        streamed, loaded = load(tmp_path, streaming=True), load(tmp_path)
        assert isinstance(streamed, IterableDatasetDict)
        assert {split: list(rows) for split, rows in streamed.items()} == {s: list(rows) for s, rows in loaded.items()}
        assert streamed["train"].features == FEATURES

    def test_reads_no_further_than_it_is_asked(self, load, tmp_path):
        file = write(tmp_path / "a.jsonl", RECORD, changed(id="a:1"), without("tokens"))
        rows = iter(load(file, streaming=True)["train"])
        assert [next(rows)["id"], next(rows)["id"]] == ["a:0", "a:1"]
        with pytest.raises(CorpusError, match="line 3: field 'tokens' is missing"):
            next(rows)

    def test_reports_at_the_end(self, load, tmp_path, caplog):
        rows = load(write(tmp_path / "a.jsonl", changed(entities=[entity(0, 1)] * 3)), streaming=True)["train"]
        assert not caplog.records
        assert len(list(rows)) == 1
        assert caplog.messages == ["a.jsonl: sentences: 1; entities kept: 1 of 3; duplicate entities dropped: 2."]

    def test_survives_a_worker(self, load, tmp_path):
        rows = load(write(tmp_path / "a.jsonl", RECORD), streaming=True)["train"]
        assert next(iter(pickle.loads(pickle.dumps(rows))))["id"] == "a:0"
