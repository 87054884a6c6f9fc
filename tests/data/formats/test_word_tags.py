"""JSON of words with tags, or with entities by words."""

import pytest

from modeling_triaffine.commands.convert import parse_columns
from modeling_triaffine.data import CorpusError, load_nested_ner
from tests.helpers.corpora import read, spelled, write_json


@pytest.mark.parametrize(
    "value",
    [
        {"tokens": ["In", "Orsk"], "ner_tags": ["O", "B-City"]},
        {"words": ["In", "Orsk"], "tags": ["O", "B-City"], "id": 3},
        {"words": ["In", "Orsk"], "ner": ["O", "City"]},
        {"tokens": ["In", "Orsk"], "text": "In Orsk", "labels": ["O", "City-B"]},
        {"tokens": ["In", "Orsk"], "entity_mentions": [{"start": 1, "end": 2, "entity_type": "City", "text": "Orsk"}]},
    ],
)
def test_common_forms_of_words(tmp_path, value):
    (record,), _ = read(write_json(tmp_path / "a.jsonl", value))
    assert record["tokens"] == ["In", "Orsk"]
    assert spelled(record) == [("Orsk", "City")]


OUTER, INNER = ["B-Person", "I-Person", "I-Person"], ["O", "O", "B-City"]
NESTED = [("mayor of Orsk", "Person"), ("Orsk", "City")]
LEVELS = {"tokens": ["mayor", "of", "Orsk"], "ner_tags": OUTER, "nested_ner_tags": INNER}
NAMES = ["O", "B-Person", "I-Person", "B-City"]


def test_the_inner_level_of_germeval_and_finer(tmp_path):
    (record,), check = read(write_json(tmp_path / "a.jsonl", LEVELS))
    assert spelled(record) == NESTED
    assert not check.counts
    (record,), _ = read(write_json(tmp_path / "a.jsonl", {**LEVELS, "nested_ner_tags": None}))
    assert spelled(record) == NESTED[:1]
    numbers = {**LEVELS, "ner_tags": [1, 2, 2], "nested_ner_tags": [0, 0, 3]}
    (record,), _ = read(write_json(tmp_path / "a.jsonl", numbers), columns={"names": NAMES})
    assert spelled(record) == NESTED
    (record,), check = read(
        write_json(tmp_path / "a.jsonl", LEVELS), format="word_tags", columns={"entities": "ner_tags"}
    )
    assert spelled(record) == NESTED[:1]
    assert check.counts == {"field 'nested_ner_tags' ignored": 1}


@pytest.mark.parametrize(
    "columns",
    [{"tokens": "tokens", "entities": ["outer", "inner"]}, parse_columns(["tokens=tokens", "entities=outer,inner"])],
)
def test_columns_may_name_several_fields(tmp_path, columns):
    path = write_json(tmp_path / "a.jsonl", {"tokens": LEVELS["tokens"], "outer": OUTER, "inner": INNER})
    assert spelled(load_nested_ner(path, columns=columns)["train"][0]) == NESTED
    write_json(path, {"tokens": LEVELS["tokens"], "outer": OUTER})
    with pytest.raises(CorpusError, match="line 1: field 'inner' is missing"):
        load_nested_ner(path, columns=columns)


@pytest.mark.parametrize(
    "columns", [{"tokens": 0, "names": NAMES}, {"tokens": "a", "entities": [1, 2]}, {"entities": []}]
)
def test_columns_that_are_no_names(tmp_path, columns):
    with pytest.raises(ValueError, match=r"`columns` is .* Name a field for tokens, and one or a list for entities"):
        load_nested_ner(write_json(tmp_path / "a.jsonl", LEVELS), "word_tags", columns=columns)


PAIR = {"tokens": ["Orsk", "mayor"], "ner_tags": [["B-City", "O"], ["B-Person", "I-Person"]]}
OF_LEVELS = {"tokens": LEVELS["tokens"], "ner_tags": [OUTER, INNER]}
OF_TOKENS = {"tokens": LEVELS["tokens"], "ner_tags": [["B-Person"], ["I-Person"], ["I-Person", "B-City"]]}


def test_lists_of_levels_and_of_tokens(tmp_path):
    """Sentences of one form tell how those are read that may be of either."""
    pairs = {"levels": [("Orsk", "City"), ("Orsk mayor", "Person")], "tokens": [("Orsk", "City"), ("mayor", "Person")]}
    for form, value in (("levels", OF_LEVELS), ("tokens", OF_TOKENS)):
        records, _ = read(write_json(tmp_path / "a.jsonl", PAIR, value))
        assert [sorted(spelled(record)) for record in records] == [pairs[form], sorted(NESTED)]
    numbers = {**OF_LEVELS, "ner_tags": [[1, 2, 2], [0, 0, 3]]}
    (record,), _ = read(write_json(tmp_path / "a.jsonl", numbers), columns={"names": NAMES})
    assert spelled(record) == NESTED


def test_lists_that_may_be_of_either(tmp_path):
    outside = {"tokens": ["in", "it"], "ner_tags": [["O", "O"], ["O", "O"]]}
    records, _ = read(write_json(tmp_path / "a.jsonl", outside))
    assert records[0]["entities"] == []
    with pytest.raises(
        CorpusError, match=r"line 2: field 'ner_tags' has 2 lists of 2 tags, .* levels or .* tokens\. Give each level a"
    ):
        read(write_json(tmp_path / "a.jsonl", outside, PAIR))


def test_sentences_of_one_document(tmp_path):
    """As OneIE writes them; its fields are also those of this project's own lines."""
    mention = {"id": "m", "start": 1, "end": 2, "entity_type": "City", "mention_type": "NAM", "text": "Orsk"}
    record = {"doc_id": "d", "tokens": ["In", "Orsk"], "entity_mentions": [mention], "pieces": ["In", "Orsk"]}
    lines = [{**record, "sent_id": f"d-{number}"} for number in range(2)]
    records, _ = read(write_json(tmp_path / "a.jsonl", *lines))
    assert [(one["doc_id"], one["sent_id"]) for one in records] == [("d", 0), ("d", 1)]
    assert [spelled(one) for one in records] == [[("Orsk", "City")]] * 2


def test_numbers_of_tags_need_names(tmp_path):
    file = write_json(tmp_path / "a.jsonl", {"tokens": ["In", "Orsk"], "ner_tags": [0, 1]})
    with pytest.raises(
        CorpusError, match=r"'ner_tags' has numbers, up to 1\. .*triaffine-ner convert --columns names=O,B-City"
    ):
        read(file)
    (entity,) = load_nested_ner(file, columns={"names": ["O", "B-City"]})["train"]["entities"][0]
    assert entity == {"start": 1, "end": 2, "type": "City"}
    with pytest.raises(CorpusError, match=r"the number 1, but the 1 names given are for 0 to 0\. Name all tags"):
        load_nested_ner(file, columns={"names": ["O"]})
