"""Facts of a run for its summary, taken from plain data: the log, the training records, this machine.

What of them is put together for which run is decided in `training/summary.py`.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any

from ..data.alignment import detokenize
from ..data.statistics import nested_spans
from ..machine import describe_machine
from ..version import __version__
from .revision import source_revision
from .run_summary import Epoch, Label

SPELLINGS = 3  # shown of each label
LONGEST_SPELLING = 60  # characters
LONGEST_SENTENCE = 70  # characters; longer ones do not fit into a line with their entities drawn under them
SOFTWARE = ("torch", "transformers", "accelerate", "datasets", "tokenizers")


def read_training_table(log_history: Iterable[Mapping[str, Any]], kept_step: int) -> list[Epoch]:
    """The evaluations of a training, one an epoch, from the Trainer's log.

    Where validation came several times in an epoch, its last one stands for it, or that of the weights that were kept.

    Args:
        log_history: `trainer.state.log_history` of a training with the metric of `NestedNERTrainer`.
        kept_step: the update whose weights the training ended with.
    """
    rows: dict[int, Epoch] = {}
    losses: list[float] = []  # logged since the evaluation before
    for entry in log_history:
        if "loss" in entry:
            losses.append(entry["loss"])
        if "eval_loss" not in entry:
            continue
        scores = {name: entry.get(f"eval_{name}") for name in ("precision", "recall", "f1", "flat_f1", "nested_f1")}
        row = Epoch(
            epoch=entry["epoch"],
            training_loss=sum(losses) / len(losses) if losses else None,
            validation_loss=entry["eval_loss"],
            kept=entry["step"] == kept_step,
            **scores,
        )
        number = math.ceil(row.epoch)
        if number not in rows or not rows[number].kept:
            rows[number] = row
        losses = []
    return list(rows.values())


def describe_labels(
    records: Iterable[Mapping[str, Any]], names: Iterable[str], spellings: int = SPELLINGS
) -> dict[str, Label]:
    """How often each label occurs in the records, and its commonest spellings; long ones only where all are.

    Args:
        records: sentences with `tokens` and `entities`.
        names: the labels, in the order wanted.
        spellings: how many to show; 0 where the corpus' text must not be published.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        for entity in record["entities"]:
            counts[entity["type"]][detokenize(record["tokens"][entity["start"] : entity["end"]])] += 1
    return {name: Label(counts[name].total(), _commonest(counts[name], spellings)) for name in names}


def choose_sentences(records: Sequence[Mapping[str, Any]], count: int) -> list[str]:
    """So many sentences as running text: such that fit into a line, and of these the ones with most nesting."""

    def merit(record: Mapping[str, Any]) -> tuple[bool, int, int]:
        nested = nested_spans((entity["start"], entity["end"]) for entity in record["entities"])
        return len(detokenize(record["tokens"])) <= LONGEST_SENTENCE, len(nested), len(record["entities"])

    return [detokenize(record["tokens"]) for record in sorted(records, key=merit, reverse=True)[:count]]


def describe_hardware() -> dict[str, str | int | float]:
    """This machine without its software."""
    machine = describe_machine()
    return {name: value for name, value in machine.items() if name not in ("python", *SOFTWARE)}


def describe_versions() -> dict[str, str]:
    """The software that trained, this package the first."""
    versions = {name: metadata.version(name) for name in SOFTWARE}
    own = {"modeling_triaffine": __version__, **source_revision()}
    return {**own, "python": str(describe_machine()["python"]), **versions}


def _commonest(spelled: Counter[str], number: int) -> list[str]:
    ordered = sorted(spelled, key=lambda spelling: (len(spelling) > LONGEST_SPELLING, -spelled[spelling]))
    return ordered[:number]
