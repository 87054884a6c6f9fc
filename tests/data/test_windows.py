"""Sentences of given words in windows: what each has, and how predictions in them become those of the sentence."""

import pickle

import pytest
from datasets import Dataset

from modeling_triaffine.data.collator import Windows
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
    assert sorted(spans(long)) == sorted({*ENTITIES} - {(0, 9)})
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
    # One of the entities is in no window.
    scored = score_spans(everywhere, processor, [LONG])
    assert sum(scored.entities) == len(ENTITIES)
    assert scored.gold.sum() == len(ENTITIES) - 1
    # A span counts in the window in which it is predicted.
    [found] = predict_words(everywhere, processor, [LONG], threshold=0.0)
    probabilities = scored.probabilities(1.0).amax(-1).tolist()
    assert sorted(probabilities) == pytest.approx(sorted(entity["score"] for entity in found), abs=1e-6)
