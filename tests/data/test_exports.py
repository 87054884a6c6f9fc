"""Exports of annotation tools as JSON: texts with spans (Doccano, Prodigy, scripts) and Label Studio's tasks."""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modeling_triaffine.data import CorpusError, RecordChecker, load_nested_ner
from modeling_triaffine.data.label_studio import LABEL_STUDIO
from modeling_triaffine.data.reading import record_keys
from modeling_triaffine.data.text_spans import TEXT_SPANS
from tests.helpers.corpora import read, spelled

TEXT = "The mayor of Orsk slept. He woke."
NESTED = [("The mayor of Orsk", "Person"), ("Orsk", "City")]


def write(path, *values, lines=True):
    content = "".join(f"{json.dumps(value)}\n" for value in values) if lines else json.dumps(values, indent=1)
    path.write_text(content, encoding="utf-8")
    return path


def objects(start="start", end="end", label="label", **fields):
    spans = [(0, 17, "Person"), (13, 17, "City")]
    return [{start: first, end: last, label: kind, **fields} for first, last, kind in spans]


class TestTextSpans:
    @pytest.mark.parametrize(
        "fields",
        [
            {"label": [[0, 17, "Person"], [13, 17, "City"]], "id": 3, "Comments": []},  # Doccano
            {"labels": [[0, 17, "Person"], [13, 17, "City"]]},  # Doccano 1.0
            {"entities": objects("start_offset", "end_offset", id=1), "relations": []},  # Doccano with relations
            {"entities": objects()},
            {"entities": objects(label="type")},
            {"spans": objects(token_start=0, token_end=3), "answer": "accept", "_task_hash": 5},  # Prodigy
            {
                "label": [{"start": 13, "end": 17, "text": "Orsk", "labels": ["City"]}, *objects()]
            },  # Label Studio, JSON-MIN
            {"entities": objects(), "label": None},
            {"spans": objects(), "label": "news"},
        ],
    )
    def test_spans_of_every_kind(self, tmp_path, fields):
        for lines in (True, False):
            records, check = read(write(tmp_path / "a.json", {"text": TEXT, **fields}, lines=lines))
            assert [" ".join(record["tokens"]) for record in records] == ["The mayor of Orsk slept .", "He woke ."]
            assert sorted(spelled(records[0])) == sorted(NESTED)
            assert check.entities_kept + check.entities_dropped == len(
                next(v for v in fields.values() if isinstance(v, list))
            )
            assert set(check.counts) <= {"duplicate entities dropped", "field 'label' ignored"}

    def test_ids_are_those_given_or_counted(self, tmp_path):
        texts = [{"text": "a", "entities": []}, {"text": "He ran. See", "entities": [], "id": 7}]
        records, _ = read(write(tmp_path / "my.data.jsonl", *texts))
        assert [(record["id"], record["doc_id"]) for record in records] == [
            ("my:0:0", "my:0"),
            ("7:0", "7"),
            ("7:1", "7"),
        ]

    def test_one_span_with_several_types(self, tmp_path):
        span = {"start": 0, "end": 1, "labels": ["A", "B"]}
        (record,), _ = read(write(tmp_path / "a.jsonl", {"text": "a", "entities": [span]}))
        assert spelled(record) == [("a", "A"), ("a", "B")]

    def test_what_is_not_used_is_counted(self, tmp_path):
        texts = [
            {
                "text": "a",
                "spans": [{"start": 0, "end": 1, "label": "A", "colour": "red"}],
                "meta": {"page": 1},
                "tokens": ["a"],
            },
            {"text": "b", "spans": [], "answer": "reject"},
            {"text": "c", "spans": [{"start": 0, "end": 1, "labels": []}]},
        ]
        _, check = read(write(tmp_path / "a.jsonl", *texts))
        assert check.report() == (
            "a.jsonl: sentences: 2; entities kept: 1 of 2; field 'meta' ignored: 1; field 'tokens' ignored: 1; "
            "span field 'colour' ignored: 1; spans without a type dropped: 1 (line 3: spans[0]); "
            "texts with the answer 'reject' ignored: 1."
        )

    def test_misaligned_offsets_are_reported_with_the_text_around(self, tmp_path):
        _, check = read(write(tmp_path / "a.jsonl", {"text": "CD28-mediated", "label": [[0, 2, "protein"]]}))
        assert "entities lost, a border inside a word: 1 (line 1: protein [CD]28-mediated)" in check.report()

    def test_offsets_of_javascript(self, tmp_path):
        span = {"start": 3, "end": 7, "label": "City", "text": "Orsk"}
        (record,), _ = read(write(tmp_path / "a.jsonl", {"text": "😀 Orsk", "entities": [span]}))
        assert spelled(record) == [("Orsk", "City")]


BROKEN = {
    "no text": ({"entities": []}, "field 'text' is missing"),
    "text null": ({"text": None, "entities": []}, "field 'text' is null"),
    "no object": (["a", []], "the record should be an object, found ['a', []] (list)"),
    "no spans": ({"text": "a"}, "field 'entities' is missing"),
    "spans no list": ({"text": "a", "entities": {}}, "field 'entities' is {} (dict)"),
    "spans twice": ({"text": "a", "entities": [], "label": []}, "there are spans in the fields 'entities' and 'label'"),
    "span a number": ({"text": "a", "label": [3]}, "field 'label[0]' should be an object, found 3 (int)"),
    "two values": ({"text": "a", "label": [[0, 1]]}, "field 'label[0]' has 2 values"),
    "start a string": ({"text": "a", "label": [["0", 1, "A"]]}, "field 'label[0].start' is '0' (str)"),
    "end missing": ({"text": "a", "spans": [{"start": 0, "label": "A"}]}, "field 'spans[0].end' is missing"),
    "start true": ({"text": "a", "label": [[True, 1, "A"]]}, "field 'label[0].start' is True (bool)"),
    "type a number": ({"text": "a", "label": [[0, 1, 5]]}, "field 'label[0].label' is 5 (int)"),
    "types numbers": (
        {"text": "a", "spans": [{"start": 0, "end": 1, "labels": [5]}]},
        "field 'spans[0].type' is 5 (int)",
    ),
    "type None": ({"text": "a", "label": [[0, 1, "None"]]}, "field 'label[0].type' is 'None', the name for what is no"),
    "outside": ({"text": "a", "label": [[0, 2, "A"]]}, "field 'label[0]' runs from 0 to 2, the text has 1 characters"),
    "negative": ({"text": "a", "label": [[-1, 1, "A"]]}, "field 'label[0]' runs from -1 to 1"),
    "other text": (
        {"text": "ab", "spans": [{"start": 0, "end": 1, "label": "A", "text": "b"}]},
        "'spans[0]' is noted as 'b', but from 0 to 1 the text is '[a]b'",
    ),
    "surrogate": ({"text": "\ud800", "label": []}, "field 'text' holds '\\ud800', half of a surrogate pair"),
    "id twice": ({"text": "a", "label": [], "id": "x"}, "field 'id': 'x:0' was used before, at line 1, sentence 0"),
}


@pytest.mark.parametrize(("value", "problem"), BROKEN.values(), ids=BROKEN)
def test_errors_of_text_spans_name_line_and_field(tmp_path, value, problem):
    file = write(tmp_path / "a.jsonl", {"text": "a", "label": [], "id": "x"}, value)
    with pytest.raises(CorpusError) as caught:
        read(file)
    assert str(caught.value).startswith(f"{file}, line 2")
    assert problem in str(caught.value)


def test_a_number_that_python_does_not_read(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a", "label": [[0, ' + "9" * 5000 + ', "A"]]}')
    with pytest.raises(CorpusError, match=r"a\.jsonl, line 1: a number of thousands of digits"):
        read(tmp_path / "a.jsonl", "text_spans")


def region(start, end, *labels, **fields):
    return {"type": "labels", "value": {"start": start, "end": end, "labels": list(labels)}, **fields}


def task(*regions, **fields):
    return {"id": 5, "annotations": [{"result": list(regions)}], "data": {"text": TEXT}, **fields}


class TestLabelStudio:
    def test_regions_become_entities(self, tmp_path):
        records, check = read(
            write(tmp_path / "a.json", task(region(0, 17, "Person"), region(13, 17, "City", "Goal")), lines=False)
        )
        assert spelled(records[0]) == [*NESTED, ("Orsk", "Goal")]
        assert [(record["id"], record["doc_id"]) for record in records] == [("5:0", "5"), ("5:1", "5")]
        assert not check.report()

    def test_the_text_that_was_noted_tells_how_offsets_count(self, tmp_path):
        regions = [{"type": "labels", "value": {"start": 3, "end": 12, "text": "Orsk\\nCity", "labels": ["X"]}}]
        (record,), check = read(write(tmp_path / "a.json", task(*regions, data={"text": "😀 Orsk\nCity"}), lines=False))
        assert spelled(record) == [("Orsk City", "X")]
        assert "other counts of characters, converted: 1" in check.report()

    def test_a_text_of_another_name(self, tmp_path):
        records, _ = read(write(tmp_path / "a.json", task(data={"body": "One.", "year": 1}), lines=False))
        assert records[0]["tokens"] == ["One", "."]

    @pytest.mark.parametrize(
        ("made", "taken"),
        [
            ([{"created_at": "2024-01-01"}, {"created_at": "2024-02-01"}, {"created_at": "2023-12-01"}], 1),
            ([{"created_at": "2024-01-01", "ground_truth": True}, {"created_at": "2024-02-01"}], 0),
            ([{}, {}], 1),
            ([{}, {"was_cancelled": True}], 0),
        ],
    )
    def test_one_of_several_annotations_is_taken(self, tmp_path, made, taken):
        annotations = [{**fields, "result": [region(13, 17, f"X{n}")]} for n, fields in enumerate(made)]
        records, check = read(write(tmp_path / "a.json", task(annotations=annotations), lines=False))
        assert spelled(records[0]) == [("Orsk", f"X{taken}")]
        assert sum(check.counts.values()) == len(made) - 1

    def test_what_is_not_used_is_counted(self, tmp_path):
        regions = [
            region(0, 17, "Person"),
            region(0, 3),
            {"type": "choices"},
            {"type": "relation"},
            {"type": "choices"},
        ]
        tasks = [task(*regions, predictions=[{}, {}]), {"id": 6, "annotations": [], "data": {"text": "b"}}]
        _, check = read(write(tmp_path / "a.json", *tasks, lines=False))
        assert check.report() == (
            "a.json: sentences: 2; entities kept: 1 of 2; predictions ignored: 2; regions without a label dropped: 1 "
            "(record 0 (task 5): result[1]); results of type 'choices' ignored: 2; results of type 'relation' "
            "ignored: 1; tasks without an annotation ignored: 1 (record 1 (task 6))."
        )

    @pytest.mark.parametrize(
        ("value", "problem"),
        [
            (3, "record 0: the task should be an object, found 3 (int)"),
            ({"id": 5, "data": {}}, "(task 5): field 'annotations' is missing"),
            (task(data=None), "(task 5): field 'data' should be an object, found null"),
            (task(data={"n": 1}), "(task 5): field 'data' has no string in it"),
            (task(data={"a": "x", "b": "y"}), "(task 5): field 'data' has several strings, 'a', 'b'"),
            (task(annotations=[3]), "field 'annotations[0]' should be an object"),
            (task(annotations=[{}]), "field 'result' is missing"),
            (task(3), "field 'result[0]' should be an object"),
            (task({"type": "labels"}), "field 'result[0].value' should be an object, found null"),
            (task(region("/p[1]", 3, "X")), "field 'result[0].value.start' is '/p[1]' (str)"),
            (task(region(0.5, 3, "X")), "field 'result[0].value.start' is 0.5 (float)"),
            (task(region(0, 99, "X")), "field 'result[0]' runs from 0 to 99, the text has 33 characters"),
            (task(region(0, 3, None)), "field 'result[0].type' is null"),
        ],
    )
    def test_errors_name_task_and_field(self, tmp_path, value, problem):
        file = write(tmp_path / "a.json", value, lines=False)
        with pytest.raises(CorpusError) as caught:
            read(file, "label_studio")
        assert str(caught.value).startswith(f"{file}, record 0")
        assert problem in str(caught.value)


class TestLoading:
    @pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.txt", "a.json.gz"])
    @pytest.mark.parametrize("values", [[{"text": TEXT, "label": [[13, 17, "City"]]}], [task(region(13, 17, "City"))]])
    def test_told_by_content(self, tmp_path, name, values):
        for lines in (True, False):
            file = write(tmp_path / name, *values, lines=lines)
            if name.endswith(".gz"):
                file.write_bytes(gzip.compress(file.read_bytes()))
            rows = load_nested_ner(file, cache_dir=tmp_path / f"cache-{lines}", sentence_splitter="none")["train"]
            assert [spelled(row) for row in rows] == [[("Orsk", "City")]]

    def test_streams_alike(self, tmp_path):
        write(tmp_path / "train.jsonl", {"text": TEXT, "label": [[13, 17, "City"]]}, {"text": "x", "label": []})
        write(tmp_path / "dev.json", task(region(13, 17, "City")), lines=False)
        loaded = load_nested_ner(tmp_path, cache_dir=tmp_path / "cache")
        streamed = load_nested_ner(tmp_path, streaming=True)
        assert {split: list(rows) for split, rows in streamed.items()} == {s: list(rows) for s, rows in loaded.items()}

    def test_lines_are_read_no_further_than_asked(self, tmp_path):
        file = write(tmp_path / "a.jsonl", {"text": "a", "label": []}, {"text": 3})
        rows = iter(load_nested_ner(file, streaming=True)["train"])
        assert next(rows)["tokens"] == ["a"]
        with pytest.raises(CorpusError, match="line 2: field 'text' is 3"):
            next(rows)


@pytest.mark.parametrize(
    ("head", "keys"),
    [
        ('{"a": 1, "b": {"c": 2}, "d": ["e", {"f": 1}], "g": "h: {"}\n{"i": 1}', {"a", "b", "d", "g"}),
        ('[{"a": "b\\": c", "d": [', {"a", "d"}),
        ('{"a": 1, "b": "cut {off: ', {"a", "b"}),
        ('{"a": 1, "b\\', {"a"}),
        ('[[1, 2], {"a": 1}]', {"a"}),
        ("[]", set()),
        ("no JSON", set()),
    ],
)
def test_keys_of_json_that_may_be_cut_off(head, keys):
    assert record_keys(head) == keys


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.text(st.sampled_from('ab .\n"\ud800😀'), max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["text", "label", "entities", "start", "end", "type"]), inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["data", "annotations", "result", "value", "labels", "text"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.lists(JSON, max_size=3), st.booleans())
def test_whatever_json_it_is(tmp_path_factory, values, lines):
    """It is read, or told to be broken."""
    file = write(tmp_path_factory.mktemp("json") / "a.json", *values, lines=lines)
    for known in (TEXT_SPANS, LABEL_STUDIO):
        check = RecordChecker(file)
        try:
            records = list(known.read(file, check))
        except CorpusError:
            continue
        assert check.sentences == len(records)
