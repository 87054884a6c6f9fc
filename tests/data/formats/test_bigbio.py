"""bigbio's records of passages, in files and data sets."""

import pytest
from datasets import Dataset, DatasetDict

from modeling_triaffine.data import CorpusError, adapt_dataset
from tests.helpers.corpora import (
    BIGBIO_RECORD,
    NESTED,
    bigbio_entity,
    read,
    spelled,
    write_json,
)


def passage(start, text):
    return {"id": "8", "type": "x", "text": [text], "offsets": [[start, start + len(text)]]}


TWO_PASSAGES = {
    **BIGBIO_RECORD,
    "passages": [passage(30, "He saw CD28-positive cells"), passage(0, "It rained in Orsk")],
    "entities": [
        bigbio_entity("City", (13, 17), text=["Orsk"]),
        bigbio_entity("Cell", (37, 50), (51, 56), text=["CD28-positive", "cells"]),
        bigbio_entity("Protein", (37, 39), text=["CD"]),
        bigbio_entity("Split", (30, 32), (51, 56), text=["He", "cells"]),
        bigbio_entity("Crossing", (13, 32)),
        bigbio_entity("Topic"),
    ],
    "relations": [{"id": "r"}, {"id": "s"}],
}


def test_passages_are_placed_by_their_offsets_and_what_is_dropped_is_counted(tmp_path):
    records, check = read(write_json(tmp_path / "a.jsonl", TWO_PASSAGES))
    assert [" ".join(record["tokens"]) for record in records] == ["It rained in Orsk", "He saw CD28 - positive cells"]
    assert [spelled(record) for record in records] == [[("Orsk", "City")], [("CD28 - positive cells", "Cell")]]
    assert check.counts == {
        "entities with a boundary inside a word dropped": 1,
        "discontinuous entities dropped": 1,
        "entities across sentences dropped": 1,
        "entities without offsets dropped": 1,
        "relations ignored": 2,
    }
    assert (check.entities_kept, check.entities_dropped) == (2, 4)


def test_rows_of_a_data_set_with_the_columns_of_bigbio():
    rows = Dataset.from_list([BIGBIO_RECORD, {**BIGBIO_RECORD, "id": "2", "document_id": "b"}])
    adapted = adapt_dataset(DatasetDict({"train": rows}), "bigbio_kb")["train"]
    assert [(row["id"], spelled(row)) for row in adapted] == [("a:0", NESTED), ("b:0", NESTED)]
    with pytest.raises(CorpusError, match=r"'passages'.*'tokens'"):
        adapt_dataset(Dataset.from_list([{"tokens": ["a"]}]), "bigbio_kb")
    with pytest.raises(ValueError, match=r"'bigbio_ner'.*'bigbio_kb'"):
        adapt_dataset(rows, "bigbio_ner")
