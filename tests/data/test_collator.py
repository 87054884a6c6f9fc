"""Sentences of given words in windows, and the label matrix of a batch."""

import pickle

import pytest
import torch
from datasets import Dataset
from torch.utils.data import DataLoader

from modeling_triaffine import DataCollatorForNestedNER
from modeling_triaffine.data.collator import Windows, encode_records
from modeling_triaffine.evaluation.calibration import score_spans
from modeling_triaffine.evaluation.prediction import predict_words
from modeling_triaffine.model.pipeline_triaffine import NestedNERPipeline
from tests.helpers.tiny import tiny_model, tiny_processor

WORDS = [chr(97 + n % 26) for n in range(40)]
# The windows of eight words share two. One entity is longer than a window, the others in one or two of them.
ENTITIES = [(0, 8), (0, 9), (6, 7), (5, 7), (7, 8), (6, 9), (38, 40)]
LONG = {
    "id": "long",
    "tokens": WORDS,
    "pos": [word.upper() for word in WORDS],
    "entities": [{"start": start, "end": end, "type": "DNA"} for start, end in ENTITIES],
    "left_tokens": ["left"],
    "right_tokens": ["right"],
}
SHORT = {**LONG, "id": "short", "tokens": WORDS[:32], "pos": WORDS[:32], "entities": LONG["entities"][:2]}


def spans(entities):
    return [(entity["start"], entity["end"]) for entity in entities]


def windows_of(encoder, records=(SHORT, LONG), **options):
    return Windows(records, tiny_processor(encoder, max_sentence_words=32, max_subwords=16, **options))


def test_a_long_sentence_is_read_in_windows_and_another_as_it_is(encoder):
    windows = windows_of(encoder)
    whole, *parts = windows
    assert whole is SHORT
    starts = [0, 6, 12, 18, 24, 30, 36]
    assert [part["tokens"] for part in parts] == [WORDS[start : start + 8] for start in starts]
    assert all(part["pos"] == [word.upper() for word in part["tokens"]] for part in parts)
    assert [spans(part["entities"]) for part in parts] == [
        [(0, 8), (5, 7), (6, 7), (7, 8)],
        [(0, 1), (0, 3), (1, 2)],
        *[[]] * 4,
        [(2, 4)],
    ]
    assert list(pickle.loads(pickle.dumps(windows))) == [whole, *parts]
    of_rows = windows_of(encoder, Dataset.from_list([SHORT, LONG]))
    assert [window["tokens"] for window in of_rows] == [window["tokens"] for window in windows]


def test_an_entity_in_two_windows_counts_once_and_one_in_none_does_not(encoder):
    windows = windows_of(encoder)
    whole, long = windows.join(window["entities"] for window in windows)
    assert whole == SHORT["entities"]
    assert spans(long) == sorted({*ENTITIES} - {(0, 9)}, key=lambda span: (span[0], -span[1]))
    assert windows.join_spans(spans(window["entities"]) for window in windows)[1] == spans(long)


@pytest.mark.parametrize(
    ("context", "left", "right"),
    [
        ("none", [["left"], [], []], [[], [], ["right"]]),
        ("previous_sentence", [["left"], WORDS[:6], WORDS[20:36]], [[], [], ["right"]]),
        ("document", [["left"], ["left", *WORDS[:6]], WORDS[20:36]], [WORDS[8:24], WORDS[14:30], ["right"]]),
    ],
)
def test_the_context_of_a_window_is_what_stands_around_it(encoder, context, left, right):
    parts = [windows_of(encoder, context=context)[number] for number in (1, 2, 7)]
    assert [part["left_tokens"] for part in parts] == left
    assert [part["right_tokens"] for part in parts] == right


@pytest.mark.parametrize("context", ["none", "document", "previous_sentence"])
def test_given_words_are_read_as_the_same_words_of_raw_text(encoder, context):
    model = tiny_model(encoder, context=context, cross_span=False, max_subwords=64)
    processor = tiny_processor(encoder, max_sentence_words=32, max_subwords=64, context=context)
    found = NestedNERPipeline(model=model, processor=processor)(" ".join(WORDS), threshold=0.0)
    [given] = predict_words(model, processor, [{"tokens": WORDS}], threshold=0.0)
    assert [(2 * entity["start"], 2 * entity["end"] - 1, entity["type"]) for entity in given] == [
        (entity["start"], entity["end"], entity["entity_group"]) for entity in found
    ]
    assert [entity["score"] for entity in given] == pytest.approx([entity["score"] for entity in found], abs=1e-5)


def test_each_window_has_candidates_of_its_own(encoder):
    model, processor = tiny_model(encoder, max_candidates=2), tiny_processor(encoder, max_sentence_words=32)
    everywhere = tiny_model(encoder, cross_span=False)
    [found] = predict_words(model, processor, [LONG], threshold=0.0)
    assert 2 < len({(entity["start"], entity["end"]) for entity in found}) <= 2 * 7
    scored = score_spans(everywhere, processor, [LONG])
    assert sum(scored.entities) == len(ENTITIES)
    assert scored.gold.sum() == len(ENTITIES) - 1  # one of them is in no window
    [found] = predict_words(everywhere, processor, [LONG], threshold=0.0)
    probabilities = scored.probabilities(1.0).amax(-1).tolist()  # a span counts in the window that predicts it
    assert sorted(probabilities) == pytest.approx(sorted(entity["score"] for entity in found), abs=1e-6)


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
    "a sentence without words": ({}, [("", []), ("ab", [(1, 2, "DNA")])], [[[-100] * 2] * 2, [[2, 2], [-100, 0]]]),
    "no words at all": ({}, [("", [])], [[[-100]]]),
    "the last type of a span in the order of labels": ({}, [("a", [(0, 1, "DNA"), (0, 1, "protein")])], [[[1]]]),
    "in another order": ({}, [("a", [(0, 1, "protein"), (0, 1, "DNA")])], [[[1]]]),
    "no auxiliary one": ({"auxiliary_labels": ["protein"]}, [("a", [(0, 1, "DNA"), (0, 1, "protein")])], [[[0]]]),
    "flat annotation leaves out the inside": (OUTERMOST, [("abcde", [(1, 4, "DNA")]), ("ab", [])], [LEFT_OUT, WITHOUT]),
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
        *(({"start": 0, "end": 1, "type": name}, f"type '{name}', but .*DNA, protein") for name in ("RNA", "None")),
        *(  # an entity outside of its sentence is no label of padding, or of what is no span
            ({"start": start, "end": end, "type": "DNA"}, f"Sentence 1 .* from {start} to {end} .*but 2 words")
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
    record = {"tokens": ["a", "b"], "num_words": 1, "input_ids": [7], "char_ids": [7], "id": "x"}
    processor = tiny_processor(encoder)
    (feature,), (expected,) = encode_records(processor, [record]), processor.encode([record["tokens"]])
    assert feature.keys() - expected.keys() == {"tokens", "id"}
    assert feature["num_words"] == 2
    assert feature["input_ids"].tolist() == expected["input_ids"].tolist()


def test_records_are_encoded_and_batches_refused(collate, encoder):
    assert collate.collator([{"tokens": ["gene"], "entities": []}])["labels"].tolist() == [[[2]]]
    with pytest.raises(ValueError, match="these are batches"):
        collate.collator([{**tiny_processor(encoder)(words=["gene"]), "entities": []}])
    rows = Dataset.from_list([{"tokens": ["gene", "binds"], "entities": []}, {"tokens": [], "entities": []}])
    collate.collator.processor.build_vocabularies(rows, ["chars"])
    rows = rows.map(lambda row: collate.encode([row["tokens"]])[0])
    assert collate.collator(list(rows))["char_ids"].shape == (2, 2, 5)


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
