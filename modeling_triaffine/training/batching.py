"""Which sentences go into which batch, in training and in evaluation, and how a batch of records is encoded.

Sentences of like length are batched together, because the head's work grows with the padded length. No order here is
drawn from a global random generator: a training that is resumed must see the very batches it would have seen.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch.utils.data import Sampler

# Sentences are sorted by length within pools of this many batches: large enough that batches need little padding,
# small enough that who is batched with whom changes from epoch to epoch.
BATCHES_IN_POOL = 50


class ShuffledLengthSampler(Sampler[int]):
    """Row numbers in an order fixed by (seed, epoch) alone, rows of like length next to each other.

    Consecutive runs of `batch_size` rows form the batches: within a random pool of rows they are sorted by length, and
    the batches are shuffled again. The batch with the longest row comes first, so that memory that does not suffice is
    noticed at once; an incomplete batch comes last.

    Args:
        lengths: length of each row, in any unit.
        batch_size: rows in a batch, over all processes: they take turns, and so get sentences of like length.
        seed: with the epoch, all that the order depends on.
        group_by_length: False gives plainly shuffled rows.
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int, group_by_length: bool = True):
        self.lengths = np.asarray(lengths)
        self.batch_size = batch_size
        self.seed = seed
        self.group_by_length = group_by_length
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        random = np.random.default_rng([self.seed, self.epoch])
        rows = random.permutation(len(self.lengths))
        if self.group_by_length:
            rows = self._group(rows, random)
        return iter(rows.tolist())

    def _group(self, rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
        pools = _cut(rows, BATCHES_IN_POOL * self.batch_size)
        by_length = [pool[np.argsort(-self.lengths[pool], kind="stable")] for pool in pools]
        batches = _cut(np.concatenate([rows[:0], *by_length]), self.batch_size)
        incomplete = [batches.pop()] if batches and len(batches[-1]) < self.batch_size else []
        random.shuffle(batches)
        batches.sort(key=lambda batch: self.lengths[batch].max() < self.lengths.max())
        return np.concatenate([rows[:0], *batches, *incomplete])


class EvaluationBatchSampler(Sampler[list[int]]):
    """Batches of row numbers for one process, longest rows first; over all processes every row counts once.

    All processes have the same number of batches, as sharded models need. Where the batches do not come out even, a
    process runs a batch again that counts elsewhere: `rows_that_count` is then empty for it.

    Args:
        lengths: length of each row.
        batch_size: rows in a batch of one process.
        num_processes, process_index: how many processes share the rows, and which one this is.
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, num_processes: int = 1, process_index: int = 0):
        rows = np.argsort(-np.asarray(lengths), kind="stable").tolist()
        batches = [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]
        turns = [batches[start : start + num_processes] for start in range(0, len(batches), num_processes)]
        self.batches = [turn[process_index] if process_index < len(turn) else turn[0] for turn in turns]
        self.rows_that_count = [turn[process_index] if process_index < len(turn) else [] for turn in turns]

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.batches)


@dataclass
class RecordCollator:
    """Encodes a batch of records when it is needed, so that no encoded copy of the corpus fills the memory.

    Args:
        processor: a `TriaffineProcessor`.
        collator: makes the batch of encoded sentences, usually a `DataCollatorForNestedNER`.
    """

    processor: Any
    collator: Callable[[list[dict[str, Any]]], dict[str, Any]]

    def __call__(self, records: list[dict[str, Any]]) -> dict[str, Any]:
        optional = {
            name: [record.get(name) or [] for record in records] for name in ("pos", "left_tokens", "right_tokens")
        }
        features = self.processor.encode([record["tokens"] for record in records], **optional)
        for feature, record in zip(features, records, strict=True):
            if "entities" in record:
                feature["entities"] = record["entities"]
        return self.collator(features)


def _cut(rows: np.ndarray, size: int) -> list[np.ndarray]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]
