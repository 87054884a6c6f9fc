"""The label matrix of a batch."""

import pytest
import torch
from datasets import Dataset
from torch.utils.data import DataLoader

from modeling_triaffine import DataCollatorForNestedNER
from modeling_triaffine.data.collator import encode_records
from tests.helpers.tiny import tiny_model, tiny_processor

LABEL2ID = {"DNA": 0, "protein": 1, "None": 2}
OUTERMOST = {"flat_annotation": "outermost"}


@pytest.fixture
def collate(encoder, request):
    processor = tiny_processor(encoder)
    collator = DataCollatorForNestedNER(processor, LABEL2ID, **getattr(request, "param", {}))

    def run(*sentences):
        features = processor.encode([words for words, _ in sentences])
        for feature, (_, entities) in zip(features, sentences, strict=True):
            if entities is not None:
                feature["entities"] = [dict(zip(("start", "end", "type"), entity, strict=True)) for entity in entities]
        return collator(features)

    run.collator, run.encode = collator, processor.encode
    return run


LEFT_OUT = [[2, 2, 2, 2, 2], [-100, -100, -100, 0, 2], *[[-100, -100, -100, -100, 2]] * 3]
WITHOUT, NO_LABEL = [[2, 2, *[-100] * 3], [-100, 2, *[-100] * 3], *[[-100] * 5] * 3], [-100, -100]
CASES = {
    "nested": (
        *({}, [("abc", [(0, 2, "DNA"), (1, 2, "protein")]), ("a", [])]),
        [[[2, 0, 2], [-100, 1, 2], [-100, -100, 2]], [[2, -100, -100], [-100, -100, -100], [-100, -100, -100]]],
    ),
    "a sentence without words": (
        {},
        [("", []), ("ab", [(1, 2, "DNA")])],
        [[[-100, -100], [-100, -100]], [[2, 2], [-100, 0]]],
    ),
    "no words at all": ({}, [("", [])], [[[-100]]]),
    "the last type of a span in the order of labels": ({}, [("a", [(0, 1, "DNA"), (0, 1, "protein")])], [[[1]]]),
    "in another order": ({}, [("a", [(0, 1, "protein"), (0, 1, "DNA")])], [[[1]]]),
    "flat annotation leaves out what may be nested": (
        *(OUTERMOST, [("abcde", [(1, 4, "DNA")]), ("ab", [])], [LEFT_OUT, WITHOUT]),
    ),
    "and keeps nested entities that are annotated": (
        *(OUTERMOST, [("abc", [(0, 3, "DNA"), (1, 2, "protein")])]),
        [[[-100, -100, 0], [-100, 1, -100], [-100, -100, -100]]],
    ),
    "several types on a span": (
        *(OUTERMOST | {"multi_label": True}, [("ab", [(0, 2, "protein"), (0, 2, "DNA"), (1, 2, "protein")])]),
        [[[NO_LABEL, [1, 1]], [NO_LABEL, [0, 1]]]],
    ),
}


@pytest.mark.parametrize(("collate", "sentences", "labels"), CASES.values(), ids=CASES, indirect=["collate"])
def test_label_matrix(collate, sentences, labels):
    assert collate(*((list(words), entities) for words, entities in sentences))["labels"].tolist() == labels


@pytest.mark.parametrize(
    ("entity", "problem"),
    [
        *(({"start": 0, "end": 1, "type": name}, f"type '{name}'.*DNA, protein") for name in ("RNA", "None")),
        # An entity outside of its sentence is no label of padding, or of what is no span.
        *(
            ({"start": start, "end": end, "type": "DNA"}, f"Sentence 1 .* from {start} to {end}, but 2 words")
            for start, end in [(0, 0), (1, 1), (-1, 1), (1, 3), (2, 1)]
        ),
    ],
)
def test_wrong_entities(collate, entity, problem):
    first, second = collate.encode([["a", "b", "c"], ["a", "b"]])
    with pytest.raises(ValueError, match=problem):
        collate.collator([{**first, "entities": []}, {**second, "entities": [entity]}])
    with pytest.raises(ValueError, match="flat_annotation is 'nonesuch'"):
        DataCollatorForNestedNER(collate.collator.processor, LABEL2ID, "nonesuch")


def test_sentences_without_entities(collate):
    """Null is none given: no labels, or if others have some, an error."""
    assert "labels" not in collate((["a"], None))
    features = [{**feature, "id": name} for feature, name in zip(collate.encode([["a"], ["b"]]), "xy", strict=True)]
    assert "labels" not in collate.collator([{**feature, "entities": None} for feature in features])
    for given in ([[], None], [None, []]):
        with pytest.raises(ValueError, match=f"Sentence {'xy'[given.index(None)]} has no `entities`"):
            collate.collator([{**one, "entities": entities} for one, entities in zip(features, given, strict=True)])


def test_encoded_data_sets_of_tensors_have_the_same_labels(encoder):
    processor = tiny_processor(encoder)
    collator = DataCollatorForNestedNER(processor, LABEL2ID)
    entities = [{"start": 0, "end": 2, "type": "DNA"}, {"start": 0, "end": 2, "type": "protein"}]
    rows = Dataset.from_list(encode_records(processor, [{"tokens": ["a", "b"], "entities": entities}]))
    for form in (None, "torch"):
        (batch,) = DataLoader(rows.with_format(form), collate_fn=collator)
        assert batch["labels"].tolist() == [[[2, 1], [-100, 2]]]


def test_what_the_model_reads_is_not_replaced_by_a_field_of_the_record(encoder):
    record = {"tokens": ["a", "b"], "num_words": 1, "packed_words": [9], "input_ids": [7], "char_ids": [7], "id": "x"}
    processor = tiny_processor(encoder)
    (feature,), (expected,) = encode_records(processor, [record]), processor.encode([record["tokens"]])
    assert feature.keys() - expected.keys() == {"tokens", "id"}
    assert feature["num_words"] == 2
    assert feature["input_ids"].tolist() == expected["input_ids"].tolist()


def test_records_are_encoded_and_batches_refused(collate, encoder):
    assert collate.collator([{"tokens": ["gene"], "entities": []}])["labels"].tolist() == [[[2]]]
    with pytest.raises(ValueError, match="these are batches"):
        collate.collator([{**tiny_processor(encoder)(words=["gene"]), "entities": []}])
    rows = Dataset.from_list([{"tokens": ["gene", "binds"], "entities": []}])
    rows = rows.map(lambda row: collate.encode([row["tokens"]])[0])
    assert collate.collator(list(rows))["num_words"].tolist() == [2]


@pytest.mark.parametrize("multi_label", [False, True])
def test_the_loss_of_sentences_without_entities_falls(encoder, multi_label):
    model = tiny_model(encoder, seed=1, multi_label=multi_label)
    collate = DataCollatorForNestedNER(tiny_processor(encoder), model.config.label2id, multi_label=multi_label)
    batch = collate([{**one, "entities": []} for one in collate.processor.encode([["The", "gene"], ["It", "binds"]])])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        model(**batch).loss.backward()
        losses.append(model(**batch).loss.item())
        optimizer.step()
    assert losses[-1] < losses[0] / 2
