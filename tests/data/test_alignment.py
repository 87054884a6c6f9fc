"""Entities by characters and by words, and corpora cut anew."""

import re

import pytest
from datasets import Dataset, DatasetDict
from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine.data import FEATURES, align_entities, retokenize
from modeling_triaffine.data.alignment import split_words


def at_punctuation(text):
    return [word.span() for word in re.finditer(r"\w+|[^\w\s]", text)]


def entity(start, end, kind="X"):
    return {"start": start, "end": end, "type": kind}


def row(tokens, entities, **fields):
    record = {"id": "a:0", "doc_id": "a", "sent_id": 0, "tokens": tokens, "pos": [], "entities": entities}
    return {**record, "left_tokens": None, "right_tokens": None, **fields}


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


@given(st.text("ab -,", max_size=20), st.data())
def test_alignment_keeps_exactly_what_words_spell(text, data):
    words = at_punctuation(text)
    borders = st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).filter(lambda pair: pair[0] < pair[1])
    spans = data.draw(st.lists(borders, max_size=5)) if text else []
    aligned, lost = align_entities(text, [entity(*span) for span in spans], words)
    assert len(aligned) + len(lost) == len(spans)
    for found, span in zip(aligned, [s for s in spans if entity(*s) not in lost], strict=True):
        spelled = text[words[found["start"]][0] : words[found["end"] - 1][1]]
        assert spelled == text[span[0] : span[1]].strip()
    for missed in lost:
        inside = any(s < missed["start"] < e or s < missed["end"] < e for s, e in words)
        assert inside or not text[missed["start"] : missed["end"]].strip()


@pytest.mark.parametrize("words", [[], [(0, 0)], [(2, 3), (0, 1)], [(0, 2), (1, 3)], [(0, 18)], [(-1, 2)], ["a", "ab"]])
def test_words_of_a_splitter_are_checked(words):
    with pytest.raises(ValueError, match="The word splitter returned"):
        split_words(TEXT, lambda text: words)


class TestRetokenize:
    def test_entities_follow_and_losses_are_reported(self, caplog):
        entities = [entity(0, 1, "DNA"), entity(0, 2, "protein"), entity(1, 2, "DNA")]
        rows = [row(["IL-2", "gene"], entities, pos=["N", "N"]), row(["x"], [], id="a:1", left_tokens=["a-b"])]

        def glued(text):
            return [(0, len(text))] if text.startswith("IL") else at_punctuation(text)

        cut = retokenize(Dataset.from_list(rows, features=FEATURES), glued)
        assert cut.features == FEATURES
        assert cut[0] == row(["IL-2 gene"], [entity(0, 1, "protein")])
        assert cut[1] == row(["x"], [], id="a:1", left_tokens=["a", "-", "b"])
        assert caplog.messages == [cut.info.description]
        assert cut.info.description == (
            "dataset: sentences: 2; entities kept: 1 of 3; entities with a boundary inside a word dropped: 2 "
            "(DNA [IL-2] gene | DNA IL-2 [gene]), of which --word_splitter letters_and_digits would keep 2; "
            "part-of-speech tags of sentences dropped: 1; labels that lose more than 5 %: DNA 2 of 2 (all)."
        )

    def test_entities_on_the_same_new_words_are_one_and_white_space_has_none(self):
        entities = [entity(0, 1), entity(0, 2), entity(0, 2, "Y")]
        rows = [row(["a", "\u00a0"], entities, left_tokens=["\u00a0"], right_tokens=["b-c"])]
        assert list(retokenize(Dataset.from_list(rows, features=FEATURES), at_punctuation)) == [
            row(["a"], [entity(0, 1), entity(0, 1, "Y")], left_tokens=[], right_tokens=["b", "-", "c"])
        ]

    def test_of_splits_and_of_data_in_any_form(self):
        part = Dataset.from_list([row(["a-b"], [entity(0, 1)], pos=["X"])], features=FEATURES)
        cut = retokenize(
            DatasetDict(train=part, **{form: part.with_format(form) for form in ("numpy", "pandas", "torch")}),
            at_punctuation,
        )
        assert cut["train"][0] == row(["a", "-", "b"], [entity(0, 3)])
        assert all(list(rows) == list(cut["train"]) for rows in cut.values())
        report = "dataset: sentences: 1; entities kept: 1 of 1; part-of-speech tags of sentences dropped: 1."
        assert cut["train"].info.description == report

    def test_a_data_set_of_tokens_and_entities_alone_or_of_no_rows(self):
        cut = retokenize(Dataset.from_list([{"tokens": ["a-b"], "entities": [entity(0, 1)]}]), at_punctuation)
        assert list(cut) == [{"tokens": ["a", "-", "b"], "entities": [entity(0, 3)]}]
        assert len(retokenize(Dataset.from_list([row(["a"], [])], features=FEATURES).select([]), at_punctuation)) == 0
        with pytest.raises(ValueError, match=r"needs the columns \['entities'\]"):
            retokenize(Dataset.from_list([{"tokens": ["a"]}]), at_punctuation)
