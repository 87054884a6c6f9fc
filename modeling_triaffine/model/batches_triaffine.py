"""Sentences → batches: how sub-words are laid out for the encoder, which sentences run together, how they are padded.

A sentence is a feature, a dict of arrays. All functions are of arrays; `processing_triaffine.py` calls them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor
from transformers.utils import logging

from .triaffine_blocks import pack_words

logger = logging.get_logger(__name__)

Feature = dict[str, Any]
Sentence = TypeVar("Sentence")
# Number of batches whose sentences are sorted by length together, so that batches need little padding.
BATCHES_AT_ONCE = 16
# Default numbers of sentences of average length in a batch, on a CPU and on a GPU.
SENTENCES, SENTENCES_ON_GPU = 32, 512
# Bounds of the sub-words of a batch on a GPU, where launching takes as long for few as for many; and the memory that
# each needs, about the same in the widest layers of an encoder of 1024 units and in the scores of spans.
MOST_SUBWORDS, LEAST_SUBWORDS, BYTES_OF_SUBWORD = 2**14, 2**10, 2**16
# Arrays of a feature with a number for each sub-word, and those with one or several for each word.
OF_SUBWORDS = ("input_ids", "attention_mask", "token_type_ids", "word_index")
OF_WORDS = ("word_ids", "pos_ids", "char_ids")
INPUT_NAMES = (*OF_SUBWORDS, *OF_WORDS, "num_words")  # what the model reads of a batch, beside labels


class Subwords(NamedTuple):
    """Sub-words of B sentences, one after the other: id and word of each [S], and how many each sentence has [B]."""

    ids: np.ndarray
    word_index: np.ndarray
    sizes: np.ndarray


def lay_out(
    sentences: Subwords, sides: tuple[Subwords, Subwords] | None, width: int, start_id: int, separator_id: int
) -> list[Feature]:
    """Lays out each sentence as [CLS] left [SEP] sentence [SEP] right [SEP], or in windows if it alone is too long.

    Args:
        sentences: their sub-words; words are counted within each sentence.
        sides: the context of the sentences, before and after them, if any; at most `width` sub-words each.
        width: sub-words that the encoder reads at once, special tokens included.
        start_id, separator_id: of [CLS] and [SEP].
    """
    sizes = sentences.sizes
    from_left = from_right = np.zeros_like(sizes)
    if sides is not None:
        left, right = sides
        from_left, from_right = _share_context(width - sizes - 2, left.sizes, right.sizes)
    first = 1 + from_left + (from_left > 0)
    totals = first + sizes + 1 + from_right + (from_right > 0)
    ends = totals.cumsum()
    starts = ends - totals
    # Positions that are not overwritten are separators.
    input_ids = np.full(ends[-1], separator_id, dtype=np.int64)
    input_ids[starts] = start_id
    word_index, segments = np.full_like(input_ids, -1), np.zeros_like(input_ids)
    places = ranges(starts + first, sizes)
    input_ids[places], word_index[places] = sentences.ids, sentences.word_index
    if sides is not None:
        input_ids[ranges(starts + 1, from_left)] = left.ids[ranges(left.sizes.cumsum() - from_left, from_left)]
        after = starts + first + sizes + 1
        input_ids[ranges(after, from_right)] = right.ids[ranges(right.sizes.cumsum() - right.sizes, from_right)]
        segments[ranges(starts, np.where(from_left > 0, first - 1, 0))] = 1
        segments[ranges(after, ends - after)] = 1
    mask = np.ones_like(input_ids)
    features = [
        {
            "input_ids": input_ids[start:end],
            "attention_mask": mask[start:end],
            "token_type_ids": segments[start:end],
            "word_index": word_index[start:end],
        }
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    own_ends = sizes.cumsum()
    for row in np.flatnonzero(sizes > width - 2):
        own = slice(own_ends[row] - sizes[row], own_ends[row])
        features[row] = _windows(sentences.ids[own], sentences.word_index[own], width - 2, start_id, separator_id)
    return features


def ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The numbers start, start + 1, …, start + size - 1 of each range, one range after the other."""
    ends = sizes.cumsum()
    return (starts - ends + sizes).repeat(sizes) + np.arange(ends[-1])


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
    return {
        "input_ids": input_ids,
        "attention_mask": np.ones_like(input_ids),
        "token_type_ids": np.zeros_like(input_ids),
        "word_index": np.concatenate(row_index),
    }


def _share_context(room: np.ndarray, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many `left` and `right` context sub-words fit into the `room`, shared evenly; each side needs a [SEP]."""
    wants_left, wants_right = (side + (side > 0) for side in (left, right))
    takes_left = np.minimum(wants_left, np.maximum(room // 2, room - wants_right))
    takes_right = np.minimum(wants_right, room - takes_left)
    return np.maximum(0, takes_left - 1), np.maximum(0, takes_right - 1)


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


def feature_size(feature: Feature) -> tuple[int, int]:
    """Numbers of sub-words, context included, and of words of a sentence."""
    return len(feature["input_ids"]), int(feature["num_words"])


def batches_by_length(
    sizes: Sequence[tuple[int, int]], batch_size: int | None = None, max_subwords: int | None = None
) -> list[list[int]]:
    """Groups sentences of similar length into batches, longest first; returns their row numbers.

    Batches of about equally many sub-words need less padding than of equally many sentences. One limit must be given.

    Args:
        sizes: [`feature_size`] of each sentence. Sentences of equal size stay in order.
        batch_size: most sentences of a batch, whose sub-words are at most those of so many sentences of average length.
        max_subwords: most sub-words of a batch, padding included; a longer sentence is a batch of its own.
    """
    rows = sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True)
    limits = [] if max_subwords is None else [max_subwords]
    if batch_size is not None:
        limits.append(-(-batch_size * sum(subwords for subwords, _ in sizes) // max(1, len(sizes))))
    most = min(limits)
    batches = []
    first = 0
    while first < len(rows):
        longest, _ = sizes[rows[first]]
        count = max(1, most // max(1, longest))
        last = first + (count if batch_size is None else min(count, batch_size))
        batches.append(rows[first:last])
        first = last
    return batches


@dataclass
class BatchReader:
    """Runs sentences of similar length together on a device, and gives each its result, in the order of sentences."""

    pad: Callable[[Sequence[Feature]], dict[str, Tensor]]
    # `start` begins a batch, from its tensors on the device; `finish` makes results of its sentences of what `start`
    # returned. On a GPU, the host finishes a batch while the next one runs.
    start: Callable[[dict[str, Tensor]], Any]
    finish: Callable[[Any], Iterable[Any]]
    device: torch.device
    # Sentences of average length; batches of long ones have fewer. By default 32, or as many as fit on a GPU.
    batch_size: int | None = None
    # Batches run before the first result; later twice as many each time, up to `BATCHES_AT_ONCE`, unless batches have
    # one sentence.
    batches: int = BATCHES_AT_ONCE
    max_subwords: int | None = None  # of a batch on a GPU, padding included; halved where memory runs out
    inside: Callable[[], AbstractContextManager[Any]] = nullcontext  # the context in which the model runs

    def __post_init__(self) -> None:
        is_gpu = self.device.type == "cuda"
        if is_gpu and self.max_subwords is None:
            cached = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
            self.max_subwords = subwords_that_fit(torch.cuda.mem_get_info(self.device)[0] + cached)
        self.batch_size = self.batch_size or (SENTENCES_ON_GPU if is_gpu else SENTENCES)

    def read(
        self, sentences: Iterable[Sentence], encode: Callable[[list[Sentence]], Sequence[Feature]]
    ) -> Iterator[tuple[Sentence, Any]]:
        """Each sentence with its result. Sentences are read as they are needed, and many are encoded together."""
        assert self.batch_size is not None
        sentences, batches = iter(sentences), self.batches
        while pool := list(islice(sentences, self.batch_size * batches)):
            batches = min(batches * min(self.batch_size, 2), BATCHES_AT_ONCE)
            with self.inside(), torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext():
                results = self._run(encode(pool))
            yield from zip(pool, results, strict=True)

    def _run(self, features: Sequence[Feature]) -> list[Any]:
        """The results of the features, in their order. If memory runs out, what remains is run in smaller batches."""
        sizes = [feature_size(feature) for feature in features]
        results: list[Any] = [None] * len(features)
        started: list[tuple[list[int], Any]] = []

        def finish() -> None:
            rows, pending = started.pop(0)
            for row, result in zip(rows, self.finish(pending), strict=True):
                results[row] = result

        waiting = list(range(len(features)))
        while waiting:
            batches = batches_by_length([sizes[row] for row in waiting], self.batch_size, self.max_subwords)
            rest: list[int] = []
            for number, places in enumerate(batches):
                rows = [waiting[place] for place in places]
                try:
                    inputs = self._to_device(self.pad([features[row] for row in rows]))
                    started.append((rows, self.start(inputs)))
                except torch.OutOfMemoryError:
                    if len(rows) == 1:
                        raise
                    self.max_subwords = max(sizes[row][0] for row in rows) * len(rows) // 2
                    logger.warning(f"Memory ran out; batches have at most {self.max_subwords} sub-words from here on.")
                    rest = sorted(waiting[place] for others in batches[number:] for place in others)
                    break
                if len(started) > 1:
                    finish()
            waiting = rest
        while started:
            finish()
        return results

    def _to_device(self, batch: dict[str, Tensor]) -> dict[str, Any]:
        """The batch on the device, with `max_words` (N) and on a GPU `packed_words`, which the host knows at once."""
        longest = {"max_words": max(1, int(batch["num_words"].max()))}
        if self.device.type != "cuda":
            return {name: values.to(self.device) for name, values in batch.items()} | longest
        batch["packed_words"], _ = pack_words(batch["num_words"], longest["max_words"])
        return {n: values.pin_memory().to(self.device, non_blocking=True) for n, values in batch.items()} | longest


def subwords_that_fit(free_bytes: int) -> int:
    """Most sub-words of a batch in prediction, which may take half of the free memory."""
    return int(min(MOST_SUBWORDS, max(LEAST_SUBWORDS, free_bytes // 2 // BYTES_OF_SUBWORD)))


def pad_features(features: Sequence[Feature], padding_id: int) -> dict[str, Tensor]:
    """One batch of tensors, with a row for each feature, padded to the longest; other fields are left out.

    A feature may itself be such a row, which `Dataset.map` keeps and by which accelerate divides batches.
    """
    num_words = np.array([feature["num_words"] for feature in features], dtype=np.int64)
    num_subwords = np.array([len(feature["input_ids"]) for feature in features], dtype=np.int64)
    fills = {"input_ids": padding_id, "word_index": -1}
    batch = {"num_words": num_words}
    for names, sizes in ((OF_SUBWORDS, num_subwords), (OF_WORDS, num_words)):
        # The model reads a batch of empty sentences as one padding word each.
        is_real = np.arange(max(1, sizes.max())) < sizes[:, None]
        for name in names:
            if name in features[0]:
                arrays = [feature[name][:size] for feature, size in zip(features, sizes, strict=True)]
                if name == "char_ids":
                    batch[name] = _stack_tables(arrays)
                else:
                    batch[name] = np.full(is_real.shape, fills.get(name, 0), dtype=np.int64)
                    batch[name][is_real] = np.concatenate(arrays)
    return {name: torch.from_numpy(values) for name, values in batch.items()}


def _stack_tables(arrays: list[Any]) -> np.ndarray:
    """Tables, padded with 0 to the longest in each dimension, and at least to 1: [B, rows, columns]."""
    tables = [np.asarray(array).reshape(len(array), -1 if len(array) else 0) for array in arrays]
    shape = [max(1, *(table.shape[axis] for table in tables)) for axis in (0, 1)]
    stacked = np.zeros((len(tables), *shape), dtype=np.int64)
    for row, table in zip(stacked, tables, strict=True):
        row[: len(table), : table.shape[1]] = table
    return stacked
