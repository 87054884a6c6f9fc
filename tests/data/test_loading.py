"""`load_nested_ner`: options, reports, bad records, and what reading costs."""

import json
from pathlib import Path

import pytest

from modeling_triaffine.data import FEATURES, FORMATS, CorpusError, load_texts, register_format
from modeling_triaffine.data import load_nested_ner as load
from modeling_triaffine.data.schema import Text
from modeling_triaffine.model.text_triaffine import word_splitter
from tests.helpers.corpora import TEXT, changed, entity, json_lines, spelled, write_files
from tests.helpers.corpora import write_json as write
from tests.helpers.format_cases import SAMPLES

CITY = entity(0, 1, "City")
GOOD = {"tokens": ["Orsk", "slept"], "entities": [CITY]}
OUTSIDE = {"tokens": ["Orsk"], "entities": [CITY, {"start": 0, "end": 9, "type": "City"}]}


class TestOptions:
    @pytest.mark.parametrize(
        ("format", "options", "problem"),
        [
            ("conllu", {"columns": {"tokens": 0}}, "the format 'conllu' has no columns"),
            ("text_spans", {"offsets": "utf32"}, "`offsets` is 'utf32'. Give one of characters, utf16, bytes"),
            ("text_spans", {"sentence_splitter": "x"}, "`sentence_splitter` is 'x'; choose one of"),
            ("json_lines", {"format": "conll"}, r"There is no format 'conll'. Choose ace, .*brat"),
            ("json_lines", {"word_splitter": "whitespace"}, r"`word_splitter` is .*\. Give a "),
            ("json_lines", {"columns": [0, 1]}, r"`columns` is .*\. Give a "),
        ],
    )
    def test_wrong_values(self, tmp_path, format, options, problem):
        with pytest.raises((TypeError, ValueError), match=problem):
            load(write_files(tmp_path, SAMPLES[format]), **options)

    def test_words_may_be_split_again(self, tmp_path):
        """Those of a corpus of words alone are its text, joined by spaces."""
        record = {
            "tokens": ["CD28-mediated", "signal"],
            "entities": [entity(0, 1)],
            "left_tokens": ["IL-2"],
            "pos": ["A", "N"],
        }
        path = write(tmp_path / "a.jsonl", record)
        row = load(path, word_splitter=word_splitter("punctuation"))["train"][0]
        assert row["tokens"] == ["CD28", "-", "mediated", "signal"]
        assert (row["entities"], row["left_tokens"], row["pos"]) == ([entity(0, 3)], ["IL", "-", "2"], [])
        (text,) = load_texts(path)["train"]
        assert (text["text"], text["entities"]) == ("CD28-mediated signal", [entity(0, 13)])


class TestReport:
    def test_of_sentences(self, tmp_path, caplog):
        file = write(tmp_path / "a.jsonl", changed(entities=[entity(0, 1), entity(1, 2), entity(0, 1)], note="x"))
        rows = load(file)["train"]
        assert rows.features == FEATURES
        assert rows[0]["entities"] == [entity(0, 1), entity(1, 2)]
        assert rows.info.description == (
            "a.jsonl: sentences: 1; entities kept: 2 of 3; duplicate entities dropped: 1; field 'note' ignored: 1."
        )
        assert caplog.messages == [rows.info.description]

    def test_of_texts(self, tmp_path, caplog):
        """White space at an entity's boundaries is none of it, as in the pipeline's output."""
        write_files(tmp_path, {"a.txt": TEXT, "a.ann": "T1\tX 0 3;13 17\tThe Orsk\nT2\tCity 12 18\t Orsk \n"})
        (text,) = load_texts(tmp_path)["train"]
        assert text["entities"] == [entity(13, 17, "City")]
        assert caplog.messages == [
            f"{tmp_path.name}: discontinuous entities dropped: 1 (a.ann, line 1: X [The mayor of Orsk] slept.)."
        ]

    def test_errors_end_with_the_form_that_a_file_was_taken_for(self, tmp_path):
        path = write_files(tmp_path, {"a.json": '{"text": "a", "label": [[0, 9, "X"]]}'})
        for format, how in ((None, "--format (format=) names another"), ("text_spans", "as named")):
            with pytest.raises(CorpusError) as error:
                load(path, format)
            assert f"Read as 'text_spans' ({FORMATS['text_spans'].description}); {how}." in str(error.value)


def test_a_format_of_a_script_is_recognized_and_named_where_it_fails(tmp_path, command, monkeypatch):
    monkeypatch.setattr(FORMATS, "data", {**FORMATS.data})

    def read(path, check):
        for number, line in enumerate(path.read_text().splitlines()[1:], start=2):
            with check.record():
                if "]" not in line:
                    raise check.error(f"line {number}", "nothing closes", "Close it")
                text = line.replace("[", "").replace("]", "")
                found = check.entity(text, [(line.index("["), line.index("]") - 1)], "City")
                yield Text(doc_id=str(number), text=text, entities=[found] if found else [])

    known = type(FORMATS["brat"])("ours", "ours", read, recognizes=lambda head: head.startswith("#ours"))
    register_format(known)
    register_format(known)  # again, as cells of a notebook
    with pytest.raises(ValueError, match="There is a format 'brat' already"):
        register_format(FORMATS["brat"])
    path = write_files(tmp_path, {"train.txt": "#ours\nIn [Orsk].\n"})
    assert spelled(load(path)["train"][0]) == [("Orsk", "City")]
    assert spelled(load(tmp_path)["train"][0]) == [("Orsk", "City")]
    assert command("statistics", tmp_path, "--format", "ours", "--json").code == 0
    path.write_text("#ours\nIn [Orsk.\n")
    with pytest.raises(CorpusError, match=r"train\.txt, line 2: nothing closes\. Close it\. Read as 'ours'"):
        load(path)


# ---- What reading costs ----


@pytest.mark.parametrize(
    "record",
    [
        {"text": "Ivan came to Orsk. " * 250, "entities": [[19 * n, 19 * n + 4, "PER"] for n in range(250)]},
        {
            "tokens": ["Ivan", "came"] * 250,
            "entity_mentions": [{"start": n, "end": n + 1, "type": "X"} for n in range(250)],
        },
    ],
    ids=["text_spans", "word_tags"],
)
def test_a_file_is_opened_as_often_however_many_entities_it_has(tmp_path, monkeypatch, record):
    path = write(tmp_path / "a.jsonl", *[record] * 4)
    opened = []
    real = Path.open
    monkeypatch.setattr(Path, "open", lambda self, *rest, **more: [opened.append(self), real(self, *rest, **more)][1])
    assert sum(map(len, load(path)["train"]["entities"])) == 1000
    assert opened.count(path) == 2  # to detect its format, and to read it


# ---- Bad records ----


def brat(**spans):
    texts = {f"c/{name}.txt": "Orsk slept." for name in spans}
    return texts | {f"c/{name}.ann": f"T1\tCity {span}\tOrsk\nT2\tPlace 0 4\tOrsk\n" for name, span in spans.items()}


QUOTED = {"start": 8, "end": 11, "label": "PER", "text": "Anna"}
BAD = {
    "a line that is no JSON": ({"a.jsonl": json_lines(GOOD, '{"tokens": ["Orsk"', GOOD)}, "a.jsonl", "line 2: ", 2, 2),
    "a record without a field": ({"a.jsonl": json_lines(GOOD, {"tokens": ["a"]}, GOOD)}, "a.jsonl", "line 2: ", 2, 2),
    "an entity outside": ({"a.json": json.dumps([GOOD, OUTSIDE, GOOD])}, "a.json", "record 1: ", 2, 2),
    "a sentence of columns": (
        {"a.tsv": "Orsk\tX\tB-City\n\nOrsk\tX\tB-City\nslept\tO\n\nOrsk\tX\tB-City\n"},
        *("a.tsv", "line 4: ", 2, 2),
    ),
    "bytes that are no UTF-8": (
        {"a.tsv": b"Orsk\tB-City\n\nOrsk\tB-City\nslept\xff\tO\n.\tO\n\nOrsk\tB-City\n"},
        *("a.tsv", "line 4: byte 6 is not valid utf-8", 2, 2),
    ),
    "a document": (brat(a="0 4", b="x", c="0 4"), "c", "b.ann, line 1: ", 2, 4),
    "an entity of a document": (brat(a="0 4", b="1 5", c="0 4"), "c", "b.ann, line 1: field 'T1' quotes 'Orsk'", 3, 5),
    "a quote": (
        {"a.jsonl": json_lines({"text": "Ion saw Ana.", "entities": [[0, 3, "PER"], QUOTED]})},
        *("a.jsonl", r"quotes 'Anna', but from 8 to 11 the text is 'Ion saw \[Ana\].'", 1, 1),
    ),
    "offsets outside of a text": (
        {"a.jsonl": json_lines(*({"text": "Orsk slept.", "label": [[0, end, "City"]]} for end in (4, 99, 4)))},
        *("a.jsonl", "line 2: field 'label.0.' runs from 0 to 99, the text has 11 characters", 3, 2),
    ),
}


@pytest.mark.parametrize(("files", "name", "place", "kept", "entities"), BAD.values(), ids=BAD)
def test_a_bad_record_or_entity_is_dropped_named_and_counted(tmp_path, caplog, files, name, place, kept, entities):
    write_files(tmp_path, files)
    with pytest.raises(CorpusError, match=f"{place}.*--max_bad_records"):
        load(tmp_path / name)
    corpus = load(tmp_path / name, max_bad_records=1)["train"]
    assert (len(corpus), sum(map(len, corpus["entities"]))) == (kept, entities)
    assert caplog.messages == [corpus.info.description]
    assert "bad " in corpus.info.description
    assert len(load_texts(tmp_path / name, max_bad_records=1)["train"]) >= kept


def test_one_more_is_an_error_that_counts_those_before(tmp_path):
    path = write_files(tmp_path, {"a.jsonl": json_lines(GOOD, "{", OUTSIDE, {"tokens": []}, GOOD)})
    with pytest.raises(CorpusError, match=r"line 4: .* 2 were dropped before\. .* --max_bad_records"):
        load(path, max_bad_records=2)
    report = load(path, max_bad_records=3)["train"].info.description
    assert all(f"line {number}: " in report for number in (2, 3, 4))


def test_what_is_no_record_stays_an_error(tmp_path):
    write_files(tmp_path, {"a.json": f"[{json.dumps(GOOD)}, ", "a.xml": "<collection><document>"})
    for name in ("a.json", "a.xml"):
        with pytest.raises(CorpusError, match=f"{name}: invalid|{name}, line 1: invalid"):
            load(tmp_path / name, max_bad_records=9)
    path = write_files(tmp_path, {"b.jsonl": json_lines(OUTSIDE)})
    with pytest.raises(CorpusError, match=r"no sentences\. .*bad records dropped: 1 \(.*line 1: "):
        load(path, max_bad_records=1)
