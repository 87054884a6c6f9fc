"""Questions and answers of machine reading comprehension."""

from modeling_triaffine.data import load_nested_ner
from tests.helpers.corpora import (
    NESTED,
    QUESTIONS,
    TOKENS,
    read,
    spelled,
    write_files,
    write_json,
)
from tests.helpers.format_cases import SAMPLES

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
