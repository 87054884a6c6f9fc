"""Sentences → batches: which sentences run together, and how their arrays are padded.

A sentence is a feature, a dict of arrays from `processing_triaffine.py`.
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
            batch[name] = stack_arrays([np.asarray(feature[name]) for feature in features], fill, least=1)
    return batch


def _packed_words(num_words: np.ndarray) -> np.ndarray:
    """Index b·N + k of every word k of every sentence b, ordered by k, then b; N = the longest sentence's words."""
    longest = max(1, int(num_words.max()))
    position, sentence = np.nonzero(np.arange(longest)[:, None] < num_words)
    return sentence * longest + position


def stack_arrays(arrays: list[np.ndarray], fill: int, least: int = 0) -> Tensor:
    """Arrays of one or two dimensions, padded to the longest in each, or to `least`: [B, ...]."""
    shape = [max(least, *(array.shape[axis] for array in arrays)) for axis in range(arrays[0].ndim)]
    stacked = np.full((len(arrays), *shape), fill, dtype=np.int64)
    for row, array in zip(stacked, arrays, strict=True):
        row[tuple(slice(0, size) for size in array.shape)] = array
    return torch.from_numpy(stacked)
