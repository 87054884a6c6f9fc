"""The label matrix of a batch."""

import pytest

from modeling_triaffine import DataCollatorForNestedNER
from tests.helpers.tiny import tiny_processor

LABEL2ID = {"DNA": 0, "protein": 1, "None": 2}


@pytest.fixture
def collate(encoder):
    processor = tiny_processor(encoder)
    collator = DataCollatorForNestedNER(processor, LABEL2ID)

    def run(*sentences):
        features = processor.encode([words for words, _ in sentences])
        for feature, (_, entities) in zip(features, sentences, strict=True):
            if entities is not None:
                feature["entities"] = [dict(zip(("start", "end", "type"), entity, strict=True)) for entity in entities]
        return collator(features)

    run.collator = collator
    return run


def test_label_matrix(collate):
    batch = collate((["a", "b", "c"], [(0, 2, "DNA"), (1, 2, "protein")]), (["a"], []))
    assert batch["labels"].tolist() == [
        [[2, 0, 2], [-100, 1, 2], [-100, -100, 2]],
        [[2, -100, -100], [-100, -100, -100], [-100, -100, -100]],
    ]


def test_empty_sentences_have_no_spans(collate):
    assert collate(([], []), (["a", "b"], [(1, 2, "DNA")]))["labels"].tolist() == [
        [[-100, -100], [-100, -100]],
        [[2, 2], [-100, 0]],
    ]
    assert collate(([], []))["labels"].tolist() == [[[-100]]]


def test_of_two_types_on_one_span_the_last_in_label_order_stays(collate):
    for entities in ([(0, 1, "DNA"), (0, 1, "protein")], [(0, 1, "protein"), (0, 1, "DNA")]):
        assert collate((["a"], entities))["labels"].tolist() == [[[1]]]
    assert collate.collator.lost == 2
    collate((["a"], [(0, 1, "DNA"), (0, 1, "protein"), (0, 1, "DNA")]))
    assert collate.collator.lost == 3
    collate((["a"], [(0, 1, "DNA"), (0, 1, "DNA")]))
    assert collate.collator.lost == 3


def test_unknown_label_is_told(collate):
    for name in ("RNA", "None"):
        with pytest.raises(ValueError, match=f"type '{name}'.*DNA, protein"):
            collate((["a"], [(0, 1, name)]))


def test_without_entities_there_are_no_labels(collate):
    assert "labels" not in collate((["a"], None))
