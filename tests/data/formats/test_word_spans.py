"""JSON of words with inclusive spans: GLiNER, W2NER, DyGIE++ and PURE."""

import ast
import re

import pytest

from modeling_triaffine.commands.convert import parse_columns
from modeling_triaffine.data import CorpusError
from tests.helpers.corpora import (
    DOCUMENT,
    NESTED,
    RECORD,
    TOKENS,
    read,
    spelled,
    write_json,
)

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


def test_a_text_in_place_of_sentences_is_converted_as_the_error_says(tmp_path):
    """As RuNNE has it."""
    path = write_json(tmp_path / "a.jsonl", {"id": 0, "sentences": "Orsk slept.", "ners": [[0, 3, "City"]]})
    with pytest.raises(CorpusError) as caught:
        read(path)
    given = re.search(r"--columns '((?:\w+=\w+ ?)+)' \(columns=(.*) in Python\)", str(caught.value))
    assert parse_columns(given[1].split()) == ast.literal_eval(given[2])
    (record,), _ = read(path, "text_spans", columns=ast.literal_eval(given[2]))
    assert spelled(record) == [("Orsk", "City")]


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
