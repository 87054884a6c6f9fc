"""Sentences → batches: how sub-words are laid out for the encoder, which sentences run together, how they are padded.

A sentence is a feature, a dict of arrays. All functions are of arrays; `processing_triaffine.py` calls them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

Feature = dict[str, Any]
Sentence = TypeVar("Sentence")
Result = TypeVar("Result")
# Sentences of this many batches are sorted by length together, so that batches need little padding.
BATCHES_AT_ONCE = 16
# Value that fills each array of a feature up to the longest of the batch; input_ids take the tokenizer's padding id.
PADDING_VALUES = {
    "input_ids": None,
    "attention_mask": 0,
    "token_type_ids": 0,
    "word_index": -1,
    "word_ids": 0,
    "pos_ids": 0,
    "char_ids": 0,
}
# What the model reads of a batch, beside labels.
INPUT_NAMES = (*PADDING_VALUES, "num_words", "packed_words")


def lay_out(
    subwords: np.ndarray,
    index: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    width: int,
    start_id: int,
    separator_id: int,
) -> Feature:
    """[CLS] left [SEP] sentence [SEP] right [SEP], or windows when the sentence alone is too long.

    Args:
        subwords, index [S]: sub-word ids of the sentence and the word of each, rising.
        left, right: sub-word ids of the context before and after it.
        width: sub-words that the encoder reads at once, special tokens included.
        start_id, separator_id: of [CLS] and [SEP].
    """
    room = width - len(subwords) - 2
    if room < 0:
        return _windows(subwords, index, width - 2, start_id, separator_id)
    from_left, from_right = _share_context(room, len(left), len(right))
    first = 1 + from_left + (from_left > 0)
    last = first + len(subwords)
    # Positions that are not overwritten are separators.
    input_ids = np.full(last + 1 + from_right + (from_right > 0), separator_id, dtype=np.int64)
    input_ids[0] = start_id
    input_ids[1 : 1 + from_left] = left[len(left) - from_left :]
    input_ids[first:last] = subwords
    input_ids[last + 1 : last + 1 + from_right] = right[:from_right]
    word_index = np.full_like(input_ids, -1)
    word_index[first:last] = index
    segments = np.ones_like(input_ids)
    segments[first - 1 if from_left else 0 : last + 1] = 0
    return _feature(input_ids, word_index, segments)


def _windows(subwords: np.ndarray, index: np.ndarray, size: int, start_id: int, separator_id: int) -> Feature:
    """A long sentence as windows of `size` sub-words and two specials, one after the other, that overlap by half."""
    starts = np.append(np.arange(0, len(subwords) - size, size // 2), len(subwords) - size)
    chosen = _central_window(index, starts, size)
    rows, row_index = [], []
    for window, start in enumerate(starts):
        part = slice(start, start + size)
        rows.append(np.concatenate([[start_id], subwords[part], [separator_id]]))
        row_index.append(np.concatenate([[-1], np.where(chosen[part] == window, index[part], -1), [-1]]))
    input_ids = np.concatenate(rows)
    return _feature(input_ids, np.concatenate(row_index), np.zeros_like(input_ids))


def _share_context(room: int, left: int, right: int) -> tuple[int, int]:
    """How many of `left` and `right` context sub-words fit, shared evenly, with a [SEP] on each side."""
    wants_left, wants_right = (side + 1 if side else 0 for side in (left, right))
    takes_left = min(wants_left, max(room // 2, room - wants_right))
    takes_right = min(wants_right, room - takes_left)
    return max(0, takes_left - 1), max(0, takes_right - 1)


def _central_window(index: np.ndarray, starts: np.ndarray, size: int) -> np.ndarray:
    """For each sub-word the window from which its word is read: the one with the nearest centre.

    A word longer than any window is read from several, each sub-word from its own nearest.
    """
    first = np.searchsorted(index, index, side="left")
    last = np.searchsorted(index, index, side="right") - 1
    centres = starts + (size - 1) / 2
    by_word = _nearest(centres, (first + last) / 2)
    by_subword = _nearest(centres, np.arange(len(index)).astype(float))
    holds = (starts[by_word] <= first) & (last < starts[by_word] + size)
    return np.where(holds, by_word, by_subword)


def _nearest(centres: np.ndarray, positions: np.ndarray) -> np.ndarray:
    right = np.searchsorted(centres, positions).clip(1, len(centres) - 1)
    return np.where(positions - centres[right - 1] <= centres[right] - positions, right - 1, right)


def _feature(input_ids: np.ndarray, word_index: np.ndarray, segments: np.ndarray) -> Feature:
    return {
        "input_ids": input_ids,
        "attention_mask": np.ones_like(input_ids),
        "token_type_ids": segments,
        "word_index": word_index,
    }


def feature_size(feature: Feature) -> tuple[int, int]:
    """Numbers of sub-words, context included, and of words of a sentence."""
    return len(feature["input_ids"]), int(feature["num_words"])


def batches_by_length(
    sizes: Sequence[tuple[int, int]], batch_size: int | None = None, max_subwords: int | None = None
) -> list[list[int]]:
    """Groups sentences of similar length into batches, longest first; returns their row numbers.

    Batches of about equally many sub-words need less padding and memory than batches of equally many sentences.

    Args:
        sizes: [`feature_size`] of each sentence. Sentences of equal size stay in order.
        batch_size: most sentences of a batch; None: no limit.
        max_subwords: most sub-words of a batch, padding included; a longer sentence is a batch of its own. None: as
            many as `batch_size` sentences of average length have.
    """
    rows = sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True)
    if max_subwords is None:
        assert batch_size is not None
        max_subwords = -(-batch_size * sum(subwords for subwords, _ in sizes) // max(1, len(sizes)))
    batches = []
    first = 0
    while first < len(rows):
        longest, _ = sizes[rows[first]]
        count = max(1, max_subwords // max(1, longest))
        last = first + (count if batch_size is None else min(count, batch_size))
        batches.append(rows[first:last])
        first = last
    return batches


def run_by_length(
    sentences: Iterable[tuple[Sentence, Feature]],
    run: Callable[[list[Feature]], Iterable[Result]],
    batch_size: int,
    batches: int = BATCHES_AT_ONCE,
) -> Iterator[tuple[Sentence, Result]]:
    """Runs sentences of similar length together, and yields each with its result, in the order of `sentences`.

    Args:
        sentences: anything that identifies a sentence, and its feature. They are read as they are needed.
        run: computes the results of the sentences of a batch, from their features.
        batch_size: sentences of average length in a batch; batches of long sentences have fewer.
        batches: how many are run before the first result; later twice as many each time, up to `BATCHES_AT_ONCE`,
            unless batches have one sentence.
    """
    sentences = iter(sentences)
    while pool := list(islice(sentences, batch_size * batches)):
        batches = min(batches * min(batch_size, 2), BATCHES_AT_ONCE)
        results: dict[int, Result] = {}
        for rows in batches_by_length([feature_size(feature) for _, feature in pool], batch_size):
            results.update(zip(rows, run([pool[row][1] for row in rows]), strict=True))
        for row, (sentence, _) in enumerate(pool):
            yield sentence, results[row]


def pad_features(features: Sequence[Feature], padding_id: int) -> dict[str, Tensor]:
    """One batch, as `TriaffineProcessor.pad` describes it; `padding_id` is the tokenizer's."""
    num_words = np.array([feature["num_words"] for feature in features], dtype=np.int64)
    batch = {"num_words": torch.from_numpy(num_words), "packed_words": torch.from_numpy(_packed_words(num_words))}
    for name, value in PADDING_VALUES.items():
        if name in features[0]:
            fill = padding_id if value is None else value
            # The model reads a batch of empty sentences as one padding word each.
            batch[name] = _stack_arrays([np.asarray(feature[name]) for feature in features], fill)
    return batch


def _packed_words(num_words: np.ndarray) -> np.ndarray:
    """Index b·N + k of every word k of every sentence b, ordered by k, then b; N = the longest sentence's words."""
    longest = max(1, int(num_words.max()))
    position, sentence = np.nonzero(np.arange(longest)[:, None] < num_words)
    return sentence * longest + position


def _stack_arrays(arrays: list[np.ndarray], fill: int) -> Tensor:
    """Arrays of one or two dimensions, padded to the longest in each, and at least to 1: [B, ...]."""
    shape = [max(1, *(array.shape[axis] for array in arrays)) for axis in range(arrays[0].ndim)]
    stacked = np.full((len(arrays), *shape), fill, dtype=np.int64)
    for row, array in zip(stacked, arrays, strict=True):
        row[tuple(slice(0, size) for size in array.shape)] = array
    return torch.from_numpy(stacked)
