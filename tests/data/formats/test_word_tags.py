"""JSON of words with tags, or with entities by words."""

import pytest

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
