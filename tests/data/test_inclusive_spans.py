"""JSON of words with inclusive spans: GLiNER, W2NER, DyGIE++ and PURE; questions and answers of MRC."""

import pytest

from modeling_triaffine.data import load_nested_ner
from tests.helpers.corpora import (
    DOCUMENT,
    NESTED,
    QUESTIONS,
    RECORD,
    TOKENS,
    read,
    spelled,
    write_files,
    write_json,
)
from tests.helpers.format_cases import SAMPLES

SPANS = DOCUMENT["ner"][0]
RECORDS = {
    "GLiNER": {"tokenized_text": TOKENS, "ner": SPANS},
    "W2NER": {"sentence": TOKENS, "ner": [{"index": [*range(s, e + 1)], "type": kind} for s, e, kind in SPANS]},
    "DyGIE++": DOCUMENT,
}


@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize("form", RECORDS)
def test_entities_end_with_the_last_word_of_their_span(tmp_path, form, as_list):
    (record,), check = read(write_json(tmp_path / "a.json", RECORDS[form], as_list=as_list))
    assert record["tokens"] == TOKENS
    assert sorted(spelled(record), reverse=True) == NESTED
    assert not check.counts


def test_words_of_a_document_are_counted_on(tmp_path):
    document = {
        "doc_key": "news-1",
        "sentences": [["He", "slept"], ["in", "Orsk"]],
        "ner": [[[0, 0, "Person"]], [[3, 3, "City"]]],
        "relations": [[], []],
    }
    others = [{**document, "doc_key": key} for key in (7, None)]
    records, check = read(write_json(tmp_path / "a.jsonl", document, *others))
    assert [(record["id"], record["doc_id"], record["sent_id"]) for record in records] == [
        ("news-1:0", "news-1", 0),
        ("news-1:1", "news-1", 1),
        ("7:0", "7", 0),
        ("7:1", "7", 1),
        ("a:2:0", "a:2", 0),
        ("a:2:1", "a:2", 1),
    ]
    assert [spelled(record) for record in records[:2]] == [[("He", "Person")], [("Orsk", "City")]]
    assert check.counts == {"field 'relations' ignored": 3}


def test_words_of_biaffine_ner_are_counted_in_each_sentence(tmp_path):
    document = {"doc_key": "a", "sentences": [["He", "slept"], ["in", "Orsk"]], "ners": [[], [[1, 1, "City"]]]}
    records, check = read(write_json(tmp_path / "a.jsonl", document))
    assert [spelled(record) for record in records] == [[], [("Orsk", "City")]]
    assert not check.counts


def test_records_of_tokens_may_have_the_sentence_as_text(tmp_path):
    (record,), check = read(write_json(tmp_path / "a.jsonl", {"sentence": "The mayor of Orsk slept.", **RECORD}))
    assert record["tokens"] == TOKENS
    assert check.counts == {"field 'sentence' ignored": 1}


def test_discontinuous_entities_are_dropped_and_counted(tmp_path):
    entities = [{"index": [0, 3], "type": "Person"}, {"index": [3], "type": "City"}]
    (record,), check = read(write_json(tmp_path / "a.jsonl", {"sentence": TOKENS, "ner": entities, "word": [1]}))
    assert spelled(record) == [("Orsk", "City")]
    assert check.entities_dropped == check.counts["discontinuous entities dropped"] == 1
    assert "line 1: ner[0]" in check.report()
    assert "field 'word' ignored: 1" in check.report()


# ---- Questions and answers ----

OTHER = {"context": "It rained .", "query": "?", "entity_label": "City", "span_position": []}


def test_records_of_a_sentence_are_one_sentence(tmp_path):
    again = [{**question, "qas_id": question["qas_id"].replace("0.", "1.")} for question in QUESTIONS]
    records, check = read(write_json(tmp_path / "a.json", *QUESTIONS, *again, OTHER, as_list=True))
    assert [record["tokens"] for record in records] == [TOKENS, TOKENS, ["It", "rained", "."]]
    assert [sorted(spelled(record), reverse=True) for record in records] == [NESTED, NESTED, []]
    assert [record["id"] for record in records] == ["a:0", "a:1", "a:2"]
    assert not check.counts


def test_spans_may_be_lists_and_sentences_without_numbers(tmp_path):
    questions = [
        {**question, "qas_id": None, "span_position": [list(map(int, s.split(";"))) for s in question["span_position"]]}
        for question in QUESTIONS
    ]
    (record,), _ = read(write_json(tmp_path / "a.jsonl", *questions))
    assert sorted(spelled(record), reverse=True) == NESTED


def test_numbers_of_records_are_not_those_of_sentences(tmp_path):
    questions = [{**question, "qas_id": number} for number, question in enumerate(QUESTIONS)]
    records, _ = read(write_json(tmp_path / "a.jsonl", *questions, {**OTHER, "qas_id": "9"}))
    assert [sorted(spelled(record), reverse=True) for record in records] == [NESTED, []]


def test_files_as_they_are_distributed(tmp_path):
    content = SAMPLES["mrc"]["a.json"]
    write_files(tmp_path / "in", {f"mrc-ner.{split}": content for split in ("train", "dev", "test")})
    corpus = load_nested_ner(tmp_path / "in", format="mrc")
    assert {name: len(split) for name, split in corpus.items()} == {"train": 1, "validation": 1, "test": 1}
