"""Entities by characters and by words; and splitters that a user gives."""

import pytest

from modeling_triaffine.data import align_entities
from modeling_triaffine.data.texts import split_words
from modeling_triaffine.model.text_triaffine import sentences_by
from tests.helpers.corpora import entity
from tests.helpers.tiny import tiny_processor

TEXT = "a (CD28)-like one"
WORDS = [(0, 1), (3, 7), (9, 13), (14, 17)]  # brackets and hyphen belong to no word


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (3, 7, (1, 2)),
        (2, 8, (1, 2)),  # what no word covers is no obstacle
        (1, 9, (1, 2)),
        (0, 17, (0, 4)),
        (3, 13, (1, 3)),
        (4, 7, None),  # begins inside a word
        (3, 6, None),  # ends inside one
        (10, 12, None),  # lies inside one
        (7, 9, None),  # covers none
        (1, 2, None),  # white space
    ],
)
def test_borders(start, end, expected):
    aligned, lost = align_entities(TEXT, [entity(start, end)], WORDS)
    assert aligned == ([entity(*expected)] if expected else [])
    assert lost == ([] if expected else [entity(start, end)])


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (2, 2), (3, 1), (0, 99)])
def test_outside_the_text(start, end):
    with pytest.raises(ValueError, match="17 characters"):
        align_entities(TEXT, [entity(start, end)], WORDS)


@pytest.mark.parametrize(
    "words", [[(0, 0)], [(2, 3), (0, 1)], [(0, 2), (1, 3)], [(0, 18)], [(-1, 2)], ["a"], [(None, 2)]]
)
def test_words_of_a_splitter_are_checked(words):
    with pytest.raises(ValueError, match="The word splitter returned"):
        split_words(TEXT, lambda text: words)
    with pytest.raises(ValueError, match="The word splitter returned no word"):
        split_words(TEXT, lambda text: [])
    with pytest.raises(ValueError, match="sentence 1"):
        list(sentences_by(lambda text: [[(0, 1)], words], "a b c"))


def test_long_sentences_of_a_splitter_are_windowed(encoder):
    processor = tiny_processor(encoder, max_sentence_words=16)
    processor.text_splitter = lambda text: [[(0, 4)], [(n, n + 1) for n in range(5, 22)]]
    assert [len(part.words) for part in processor.read_text("x" * 22)] == [1, 4, 4, 4, 4, 4, 2]
