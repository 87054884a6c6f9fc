"""JSON of texts with spans: Doccano, Prodigy, scripts, and fields named by `columns`."""

import pytest
from datasets import Dataset

from modeling_triaffine.commands.convert import parse_columns
from modeling_triaffine.data import CorpusError, adapt_dataset, load_nested_ner
from tests.helpers.corpora import (
    NESTED,
    read,
    region,
    spelled,
    write_json,
)


@pytest.mark.parametrize(
    "span", [[{"begin": 4, "end": 9}, {"begin": 13, "end": 17}], [[4, 9], [13, 17]], [{"start": 13, "end": 17}, [4, 9]]]
)
def test_fragments_of_pubannotation(tmp_path, span):
    denotations = [{"span": span, "obj": "Role"}, {"span": [{"begin": 13, "end": 17}], "obj": "City"}]
    (record,), check = read(write_json(tmp_path / "a.json", {"text": TEXT[:24], "denotations": denotations}))
    assert spelled(record) == [("Orsk", "City")]
    assert check.counts == {"discontinuous entities dropped": 1}


TEXT = "The mayor of Orsk slept. He woke."


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
            {
                "entities": [
                    {"start_idx": 0, "end_idx": 16, "type": "Person", "entity": "The mayor of Orsk"},
                    {"start_idx": 13, "end_idx": 16, "type": "City"},
                ]
            },  # CMeEE
            {
                "denotations": [
                    {"id": "T1", "span": {"begin": 0, "end": 17}, "obj": "Person"},
                    {"id": "T2", "span": {"begin": 13, "end": 17}, "obj": "City"},
                ]
            },  # PubAnnotation
            {"entities": objects()},
            {"entities": objects(label="type")},
            {"entities": objects(label="entity_group")},  # the pipeline, and `predict`
            {"spans": objects(token_start=0, token_end=3), "answer": "accept", "_task_hash": 5},  # Prodigy
            {
                "label": [{"start": 13, "end": 17, "text": "Orsk", "labels": ["City"]}, *objects()]
            },  # Label Studio, JSON-MIN
            {"sentence": TEXT, "text": None, "annotations": [[0, 17, "Person"], [13, 17, "City"]], "id": "x"},
            {"entities": objects(), "label": None},
            {"spans": objects(), "label": "news"},
            {"labels": objects(), "label": []},
        ],
    )
    def test_spans_of_every_kind(self, tmp_path, fields):
        for lines in (True, False):
            record = {name: value for name, value in {"text": TEXT, **fields}.items() if name != "text" or value}
            records, check = read(write_json(tmp_path / "a.json", record, as_list=not lines))
            assert [" ".join(record["tokens"]) for record in records] == ["The mayor of Orsk slept .", "He woke ."]
            assert sorted(spelled(records[0])) == sorted(NESTED)
            assert check.entities_kept + check.entities_dropped == len(
                next(v for v in fields.values() if v and isinstance(v, list))
            )
            assert set(check.counts) <= {"duplicate entities dropped", "field 'label' ignored"}

    def test_ids_are_those_given_or_counted(self, tmp_path):
        texts = [{"text": "a", "entities": []}, {"text": "He ran. See", "entities": [], "id": 7}]
        records, _ = read(write_json(tmp_path / "my.data.jsonl", *texts))
        assert [(record["id"], record["doc_id"]) for record in records] == [
            ("my.data:0:0", "my.data:0"),
            ("7:0", "7"),
            ("7:1", "7"),
        ]

    def test_some_texts_may_be_without_spans(self, tmp_path):
        """As Prodigy and Label Studio (JSON-MIN) export texts in which nothing was marked."""
        texts = {"text": "a"}, {"text": "b", "label": [[0, 1, "B"]]}, {"text": "c", "label": None}
        records, check = read(write_json(tmp_path / "a.json", *texts, as_list=True))
        assert [spelled(record) for record in records] == [[], [("b", "B")], []]
        assert check.counts == {"texts without a field of spans, read as texts without entities": 2}

    def test_of_the_annotations_of_a_task_the_latest_is_read(self, tmp_path):
        """Label Studio's JSON-MIN has a record for each of them, usually the latest first."""

        def annotation(task, number, day, *spans):
            fields = {"annotator": number, "annotation_id": number, "lead_time": 1.5}
            fields["created_at"] = fields["updated_at"] = f"2026-11-{day}T10:00:00.000000Z"
            return {"text": "a b", "id": task, **fields, **({"label": [*spans]} if spans else {})}

        first, second = ({"start": at, "end": at + 1, "text": "a b"[at], "labels": ["A"]} for at in (0, 2))
        texts = [annotation(7, 2, 21, second), annotation(7, 1, 20, first)]  # as exported
        texts += [annotation(8, 3, 20, first), annotation(8, 4, 22, second), annotation(8, 5, 21)]
        texts += [{"text": "a b", "id": 9, "label": []}]  # of another tool
        records, check = read(write_json(tmp_path / "a.json", *texts, as_list=True))
        assert [(record["doc_id"], spelled(record)) for record in records] == [
            ("9", []),
            ("7", [("b", "A")]),
            ("8", [("b", "A")]),
        ]
        assert check.counts["further annotations of a task ignored"] == 3

    def test_a_document_without_a_field_of_spans_has_none(self, tmp_path):
        write_json(
            tmp_path / "a.json", {"text": "Orsk", "denotations": [{"span": {"begin": 0, "end": 4}, "obj": "City"}]}
        )
        write_json(tmp_path / "b.json", {"text": "It rained.", "sourcedb": "PubMed"})
        assert list(map(len, load_nested_ner(tmp_path)["train"]["entities"])) == [1, 0]

    @pytest.mark.parametrize("names", [["a.json"], ["a.json", "b.json"]])
    def test_texts_of_which_none_has_a_field_of_spans_are_an_error(self, tmp_path, names):
        for name in names:
            write_json(tmp_path / name, {"text": "Orsk", "tracks": [{"denotations": []}]})
        with pytest.raises(CorpusError, match=r"no text has a field of spans.* without entities"):
            load_nested_ner(tmp_path, "text_spans")

    def test_of_the_responses_of_argilla_the_first_with_spans_is_read(self, tmp_path):
        first, second = ([{"start": 13, "end": 17, "label": kind}] for kind in ("City", "Place"))
        topic = {"topic": [{"value": "news"}], "tags": [{"value": ["a"]}]}
        ner = {"ner": [{"value": None}, {"value": first}, {"value": second}]}
        texts = [{"fields": {"text": TEXT[:24]}, "responses": responses} for responses in (topic | ner, topic)]
        (record,), check = read(write_json(tmp_path / "a.jsonl", *texts))
        assert spelled(record) == [("Orsk", "City")]
        assert check.counts["further annotations of a task ignored"] == 1
        assert check.counts["texts without a response ignored"] == 1
        with pytest.raises(CorpusError, match="'responses' has spans of 'ner' and 'more'"):
            read(write_json(tmp_path / "b.jsonl", {**texts[0], "responses": {**ner, "more": ner["ner"]}}))

    def test_one_span_with_several_types(self, tmp_path):
        span = {"start": 0, "end": 1, "labels": ["A", "B"]}
        (record,), _ = read(write_json(tmp_path / "a.jsonl", {"text": "a", "entities": [span]}))
        assert spelled(record) == [("a", "A"), ("a", "B")]

    def test_what_is_not_used_is_counted(self, tmp_path):
        texts = [
            {
                "text": "a",
                "spans": [{"start": 0, "end": 1, "label": "A", "colour": "red"}],
                "meta": {"page": 1},
                "tokens": ["a"],
            },
            {"text": "b", "spans": [], "answer": "reject", "_input_hash": 1},
            {"text": "c", "spans": [{"start": 0, "end": 1, "labels": []}], "_input_hash": 1},
            {"text": "c", "spans": [], "_input_hash": 1},  # by another annotator
        ]
        _, check = read(write_json(tmp_path / "a.jsonl", *texts))
        assert check.counts == {
            "field 'meta' ignored": 1,
            "field 'tokens' ignored": 1,
            "span field 'colour' ignored": 1,
            "entities without a type dropped": 1,
            "repeated texts read, with the _input_hash of an earlier text": 1,
            "texts with the answer 'reject' ignored": 1,
        }
        assert (check.sentences, check.entities_kept, check.entities_dropped) == (3, 1, 1)

    @pytest.mark.parametrize("quote", ["entity", "text"])
    def test_the_quote_of_a_span_that_ends_with_its_last_character(self, tmp_path, quote):
        """Its length tells versions of CMeEE apart."""
        for end in (3, 4):
            span = {"start_idx": 0, "end_idx": end, "type": "City", quote: "Orsk"}
            path = write_json(tmp_path / "a.jsonl", {"text": "Orsk slept", "entities": [span]})
            assert spelled(read(path)[0][0]) == [("Orsk", "City")]
        write_json(tmp_path / "a.jsonl", {"text": "Orsk slept", "entities": [{**span, "end_idx": 5}]})
        with pytest.raises(CorpusError, match=r"'entities\[0\]' quotes 'Orsk'"):
            read(path)

    def test_columns_say_whether_an_end_is_that_of_the_last_character(self, tmp_path):
        for inclusive, end in ((False, 4), (True, 3), (None, 3)):
            path = write_json(
                tmp_path / "a.jsonl",
                {"text": "Orsk slept", "entities": [{"start_idx": 0, "end_idx": end, "type": "City"}]},
            )
            columns = {"text": "text", "entities": "entities"} | (
                {} if inclusive is None else {"inclusive_end": inclusive}
            )
            assert spelled(read(path, columns=columns)[0][0]) == [("Orsk", "City")]


TEXTS = {
    "start_position": {"text": TEXT, "entities": objects("start_position", "end_position", "entity_type")},
    "full_text": {"full_text": TEXT, "spans": objects("start_position", "end_position", "entity_type")},
    "content": {"content": TEXT, "entities": objects()},
    "data": {"data": TEXT, "label": [[0, 17, "Person"], [13, 17, "City"]]},
    "span and name": {
        "text": TEXT,
        "entities": [{"span": [0, 17], "name": "Person"}, {"span": [13, 17], "name": "City"}],
    },
    "span and entity_type": {
        "text": TEXT,
        "entities": [{"span": [0, 17], "entity_type": "Person"}, {"span": [13, 17], "entity_type": "City"}],
    },
    "points": {
        "content": TEXT,
        "annotation": [
            {"label": ["Person"], "points": [{"start": 0, "end": 16, "text": "The mayor of Orsk"}]},
            {"label": ["City"], "points": [{"start": 13, "end": 16, "text": "Orsk"}]},
        ],
        "extras": None,
    },
    "label, text and inclusive spans": {
        "text": TEXT,
        "label": {"Person": {"The mayor of Orsk": [[0, 16]]}, "City": {"Orsk": [[13, 16]]}},
    },
    "label and spans": {"text": TEXT, "labels": {"Person": [[0, 17]], "City": [[13, 17]]}},
    "Argilla 2": {
        "id": "7",
        "fields": {"text": TEXT},
        "responses": {"ner": [{"value": objects(), "user_id": "u"}]},
        "suggestions": {"ner": {"value": objects(label="type")}},
    },
    "completions": {
        "id": 1,
        "data": {"text": TEXT},
        "completions": [{"id": 1, "result": [region(0, 17, "Person"), region(13, 17, "City")]}],
    },
    "HyperText": {
        "id": 2,
        "data": {"text": TEXT},
        "annotations": [
            {
                "result": [
                    {
                        "type": "hypertextlabels",
                        "value": {"globalOffsets": {"start": start, "end": 17}, "hypertextlabels": [kind]},
                    }
                    for start, kind in ((0, "Person"), (13, "City"))
                ]
            }
        ],
    },
    "ner-annotator": {"classes": [], "annotations": [[TEXT, {"entities": [[0, 17, "Person"], [13, 17, "City"]]}]]},
    "sentences of characters": {
        "sentences": [TEXT[:24], TEXT[25:]],
        "ners": [[[0, 16, "Person"], [13, 16, "City"]], []],
    },
}


@pytest.mark.parametrize("value", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("as_list", [True, False])
def test_common_forms_of_texts(tmp_path, value, as_list):
    records, _ = read(write_json(tmp_path / "a.json", value, as_list=as_list))
    assert [spelled(record) for record in records] == [NESTED, []]


ODD = {"doc": {"body": TEXT}, "marks": [{"a": 0, "z": 16, "k": "Person"}, {"a": 13, "z": 16, "k": "City"}]}


NAMES = {"text": "doc.body", "entities": "marks", "start": "a", "end": "z", "type": "k", "inclusive_end": True}


def test_any_form_of_texts_by_the_names_of_its_fields(tmp_path):
    file = write_json(tmp_path / "a.jsonl", ODD)
    expected = [NESTED, []]
    assert [spelled(record) for record in load_nested_ner(file, columns=NAMES)["train"]] == expected
    assert [spelled(record) for record in adapt_dataset(Dataset.from_list([ODD]), NAMES)] == expected
    given = ["text=doc.body", "entities=marks", "start=a", "end=z", "type=k", "inclusive_end=true"]
    assert parse_columns(given) == NAMES
    for value in ("1,2", "ture"):
        with pytest.raises(ValueError, match=f"inclusive_end is '{value}'. Give true or false"):
            parse_columns([f"inclusive_end={value}"])
    assert parse_columns(["inclusive_end=F"]) == {"inclusive_end": False}
    with pytest.raises(ValueError, match="entities is given more than once"):
        parse_columns(["entities=1", "entities=2"])
    with pytest.raises(ValueError, match=r"`columns`: text is 2; give the name of a field"):
        load_nested_ner(file, columns={"text": 2, "entities": "marks"})
    with pytest.raises(ValueError, match=r"`columns` names \['marks', 'text'\]"):
        load_nested_ner(file, columns={"text": "doc.body", "marks": "marks"})


def test_an_unknown_form_ends_with_its_keys_and_the_option(tmp_path):
    with pytest.raises(CorpusError) as caught:
        read(write_json(tmp_path / "a.jsonl", ODD))
    message = str(caught.value)
    assert "the keys of its first record are 'doc', 'marks'. " in message
    assert "triaffine-ner convert --columns 'text=… entities=…" in message
    assert "Doccano" not in message


def test_pairs_as_for_spacy_2(tmp_path):
    pair = [TEXT, {"entities": [[0, 17, "Person"], [13, 17, "City"]]}]
    rows = load_nested_ner(write_json(tmp_path / "a.json", pair, pair, as_list=True))["train"]
    assert [spelled(row) for row in rows] == [NESTED, []] * 2


@pytest.mark.parametrize("quote", ["text", "word", "entity_text", "mention", "value", "entity", "entity_value"])
def test_any_field_that_quotes_is_checked(tmp_path, quote):
    spans = [
        {"start": 2, "end": 4, "label": "LOC", quote: "北京"},
        {"start": 1, "end": 3, "label": "LOC", quote: "北京"},
    ]
    path = write_json(tmp_path / "a.jsonl", {"text": "我在北京大学学习", "entities": spans})
    with pytest.raises(CorpusError, match=r"'entities\[1\]' quotes '北京', but from 1 to 3 the text is '我\[在北\]京"):
        load_nested_ner(path)
    (row,) = load_nested_ner(path, max_bad_records=1)["train"]
    assert row["entities"] == [{"start": 2, "end": 4, "type": "LOC"}]
