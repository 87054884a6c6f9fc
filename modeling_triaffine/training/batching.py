"""Records → batches of a training: how sentences are encoded, and which of them these have.

Sentences of similar length are batched together to reduce padding. No order is drawn from a global random generator: a
resumed training sees the batches of an uninterrupted one.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import islice
from typing import Any

import datasets
import numpy as np
from torch.utils.data import Dataset, Sampler
from tqdm import tqdm

from ..data.collator import Windows, encode_words, with_fields
from ..model.batches_triaffine import batches_by_length, feature_size
from ..model.processing_triaffine import TriaffineProcessor

# Sentences are sorted by length within pools of this many batches: large enough for little padding, small enough for
# other batches in every epoch.
BATCHES_IN_POOL = 50
RECORDS_AT_ONCE = 1000

ORDERS = ("group_by_length", "random", "sequential")
Size = tuple[int, int]  # (sub-words that the encoder reads, context included; words) of a sentence
Records = datasets.Dataset | Sequence[Mapping[str, Any]] | Dataset[Any]  # what a trainer takes as a data set


class EncodedRecords(Sequence[Any]):
    """Records in windows, encoded once and kept in memory: about 2 kB for a sentence of 40 sub-words."""

    def __init__(self, processor: TriaffineProcessor, records: Sequence[Mapping[str, Any]], show_progress: bool):
        self.windows = Windows(records, processor)
        self._features: list[dict[str, Any]] = []
        waiting = iter(tqdm(self.windows, desc="Encoding sentences", leave=False, disable=not show_progress))
        while chunk := list(islice(waiting, RECORDS_AT_ONCE)):
            self._features += encode_words(processor, chunk)
        self.sizes: list[Size] = [feature_size(feature) for feature in self._features]

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, row: Any) -> Any:
        # A collator may write into the arrays that it is given.
        feature = {name: copy(value) for name, value in self._features[row].items()}
        return with_fields(feature, self.windows[row])


@dataclass(eq=False, repr=False)
class TrainingBatchSampler(Sampler[list[int]]):
    """Batches of row numbers for all processes, of rows of similar length, in an order fixed by (seed, epoch).

    Each `num_processes` consecutive batches are a turn, one batch of similar length per process, as accelerate
    distributes them. All epochs have the same number of turns, so the number of updates is known before training.

    Grouped by length, rows are sorted within random pools; with `max_subwords`, all rows are sorted, those of the same
    length in random order. Then the turns are shuffled, except for two: the turn with the longest row comes first, to
    notice at once if memory does not suffice, and an incomplete turn comes last.
    """

    sizes: Sequence[Size]  # of each row
    rows_in_batch: int  # not `batch_size`: accelerate would take batches of another size for incomplete, and fill them
    seed: int
    max_subwords: int | None = None  # in a batch, padding included, in place of `rows_in_batch`; a longer row is alone
    num_processes: int = 1
    order: str = "group_by_length"  # one of `ORDERS`: similar lengths together, shuffled, or rows as they are
    drop_last: bool = False  # leave out an incomplete turn; otherwise its rows are spread over the processes
    epoch: int = 0

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise ValueError(f"train_sampling_strategy is {self.order!r}; choose one of {', '.join(ORDERS)}.")
        self.num_turns = len(self._turns())
        if self.drop_last and not self.num_turns:
            raise ValueError("dataloader_drop_last leaves out the only batch, which is not full; use smaller batches.")

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return self.num_turns * self.num_processes

    def __iter__(self) -> Iterator[list[int]]:
        return (batch for turn in self._turns() for batch in turn)

    def _turns(self) -> list[list[list[int]]]:
        random = np.random.default_rng([self.seed, self.epoch])
        rows = [*range(len(self.sizes))] if self.order == "sequential" else random.permutation(len(self.sizes)).tolist()
        turns = _cut(self._batches(rows), self.num_processes)
        incomplete = [turns.pop()] if turns and self._is_incomplete(turns[-1]) else []
        if self.order == "group_by_length":
            random.shuffle(turns)
            longest = max(self.sizes, default=(0, 0))
            turns.sort(key=lambda turn: max(self.sizes[row] for batch in turn for row in batch) < longest)
        return turns if self.drop_last else [*turns, *(_spread(turn, self.num_processes) for turn in incomplete)]

    def _batches(self, rows: list[int]) -> list[list[int]]:
        if self.max_subwords is not None:
            found = batches_by_length([self.sizes[row] for row in rows], max_subwords=self.max_subwords)
            return [[rows[place] for place in batch] for batch in found]
        if self.order == "group_by_length":
            pools = _cut(rows, BATCHES_IN_POOL * self.rows_in_batch * self.num_processes)
            rows = [row for pool in pools for row in sorted(pool, key=self.sizes.__getitem__, reverse=True)]
        return _cut(rows, self.rows_in_batch)

    def _is_incomplete(self, turn: list[list[int]]) -> bool:
        if self.max_subwords is not None:
            return len(turn) < self.num_processes
        return sum(map(len, turn)) < self.rows_in_batch * self.num_processes


def _cut(items: list[Any], size: int) -> list[list[Any]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _spread(batches: list[list[int]], count: int) -> list[list[int]]:
    """The rows in `count` batches: the largest are halved; with fewer rows than `count`, the first is repeated."""
    while len(batches) < count:
        largest = max(batches, key=len)
        if len(largest) == 1:
            return batches + [batches[0]] * (count - len(batches))
        half = len(largest) // 2
        batches = [batch for batch in batches if batch is not largest] + [largest[:half], largest[half:]]
    return batches
