"""Context made from a document's neighbours."""

import pytest
from datasets import Dataset, DatasetDict

from modeling_triaffine.data import FEATURES, add_context


def sentence(doc_id, sent_id, tokens, left=None, right=None):
    values = (f"{doc_id}:{sent_id}", doc_id, sent_id, tokens.split(), [], [], left, right)
    return dict(zip(FEATURES, values, strict=True))


def corpus(*sentences):
    return Dataset.from_list(list(sentences), features=FEATURES)


# Two documents, interleaved and out of order.
MIXED = corpus(
    sentence("x", 1, "c d e"),
    sentence("y", 0, "m"),
    sentence("x", 0, "a b"),
    sentence("y", 1, "n o"),
    sentence("x", 2, "f"),
)


def contexts(dataset):
    return [(" ".join(row["left_tokens"]), " ".join(row["right_tokens"])) for row in dataset]


@pytest.mark.parametrize(
    ("context", "max_tokens", "expected"),
    [
        ("none", 9, [("", "")] * 5),
        ("previous_sentence", 9, [("a b", ""), ("", ""), ("", ""), ("m", ""), ("c d e", "")]),
        ("previous_sentence", 2, [("a b", ""), ("", ""), ("", ""), ("m", ""), ("d e", "")]),
        ("document", 9, [("a b", "f"), ("", "n o"), ("", "c d e f"), ("m", ""), ("a b c d e", "")]),
        ("document", 2, [("a b", "f"), ("", "n o"), ("", "c d"), ("m", ""), ("d e", "")]),
        ("document", 0, [("", "")] * 5),
    ],
)
def test_neighbours_of_the_document(context, max_tokens, expected):
    filled = add_context(MIXED, context, max_tokens)
    assert contexts(filled) == expected
    assert filled.features == FEATURES
    kept = ["id", "tokens", "entities"]
    assert filled.select_columns(kept)[:] == MIXED.select_columns(kept)[:]


@pytest.mark.parametrize("context", ["none", "previous_sentence", "document"])
def test_own_context_stays(context):
    own = corpus(sentence("x", 0, "a"), sentence("x", 1, "b", left=[], right=["z"]))
    assert contexts(add_context(own, context, 9))[1] == ("", "z")


def test_splits_have_no_common_neighbours():
    splits = DatasetDict(train=corpus(sentence("x", 0, "a")), validation=corpus(sentence("x", 1, "b")))
    filled = add_context(splits, "document", 9)
    assert contexts(filled["train"]) + contexts(filled["validation"]) == [("", ""), ("", "")]


def test_any_format_and_the_columns_alone_are_read():
    rows = MIXED.select_columns(["tokens", "doc_id", "sent_id"])
    assert contexts(add_context(rows.with_format("numpy"), "document", 2)) == contexts(
        add_context(MIXED, "document", 2)
    )
    assert contexts(add_context(rows.select_columns("tokens"), "none", 9)) == [("", "")] * 5


def test_sentences_without_a_document_are_no_neighbours_and_those_without_numbers_keep_their_order():
    rows = MIXED.map(lambda row: {"doc_id": None if row["doc_id"] == "x" else "y"}, features=FEATURES)
    assert contexts(add_context(rows, "document", 9)) == [("", ""), ("", "n o"), ("", ""), ("m", ""), ("", "")]
    rows = MIXED.map(lambda row: {"sent_id": None}, features=FEATURES)
    assert contexts(add_context(rows, "document", 9))[2] == ("c d e", "f")


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"needs the columns \['doc_id', 'sent_id'\]"):
        add_context(MIXED.select_columns("tokens"), "document", 9)
    with pytest.raises(ValueError, match="`context` is 'nonesuch'"):
        add_context(MIXED, "nonesuch", 9)
    with pytest.raises(TypeError, match="type IterableDataset"):
        add_context(MIXED.to_iterable_dataset(), "document", 9)
