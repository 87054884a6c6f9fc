"""The sections of a model card that say what was measured: scores and training. Without a run they say so."""

import math
from collections.abc import Mapping
from typing import Any

from .card_sections import NOT_TRAINED
from .markdown import code_table, inline_code, table
from .run_summary import COUNTS, RATIOS, Epoch, Evaluation, RunSummary

# Facts of `describe_machine` by the names under which a card shows them.
HARDWARE = {
    "date": "Date",
    "processor": "Processor",
    "cores": "Cores",
    "torch_threads": "Threads",
    "memory_gb": "Memory in GB",
    "gpu": "GPU",
}
ALL = "**all**"
SCORE_COLUMNS = ("Precision", "Recall", "F1", "Correct", "Predicted", "Gold")

SCORING = """\
{where}. Precision, recall and F1 in percent. A predicted entity is correct if a gold entity has the same first word, \
last word and label."""

NESTING = """\
*Nested* entities contain another one or lie inside one, *flat* are all others: seen among the predictions for \
precision, and among the gold entities for recall, so that in these rows recall need not be correct / gold."""

LENGTHS = "By the number of words: of the predicted entity for precision, of the gold entity for recall."

CANDIDATES = """\
The model scores every span of a sentence, keeps the {m} likeliest, the candidates, and looks at these again, beside \
each other. A gold entity that is not among them is lost whatever follows, so their share is the most that recall can \
be: **{recall} %** of the gold entities ({found} of {gold}) are among the candidates."""

NO_CANDIDATES = "This model filters no candidates: every span of a sentence keeps its score."

EPOCHS = """\
The training loss is the mean of what was logged during the epoch; validation loss and scores, in percent, are those \
on the validation data at its end. In bold: the weights that were kept."""


def describe_scores(config: Any, summary: RunSummary) -> str:
    evaluation = summary.evaluation
    if evaluation is None and summary.is_trained:
        return "Trained, but not scored: there are no numbers to show."
    if evaluation is None:
        return f"{NOT_TRAINED}: there are no numbers to show."
    scores = evaluation.scores
    parts = [
        SCORING.format(where=_describe_split(evaluation, summary.dataset)),
        _score_table("Label", {ALL: scores, **_coded(scores["by_label"])}),
        f"### Flat and nested\n\n{NESTING}",
        _score_table("Entities", {ALL: scores, "flat": scores["flat"], "nested": scores["nested"]}),
        f"### By length\n\n{LENGTHS}",
        _score_table("Words", {ALL: scores, **_coded(evaluation.by_length)}),
        f"### Candidate recall\n\n{_describe_candidates(config, evaluation)}",
    ]
    return "\n\n".join(parts)


def describe_training(summary: RunSummary) -> str:
    parts = [
        f"### Epochs\n\n{_describe_epochs(summary)}",
        f"### Hyper-parameters\n\n{_describe_settings(summary)}",
        f"### Hardware and versions\n\n{_describe_machine(summary)}",
    ]
    return "\n\n".join(parts)


def _describe_split(evaluation: Evaluation, dataset: str | None) -> str:
    of_dataset = f" of {inline_code(dataset)}" if dataset else ""
    return f"On the {evaluation.sentences:,} sentences of the {inline_code(evaluation.split)} split{of_dataset}"


def _score_table(first: str, rows: Mapping[str, Mapping[str, Any]]) -> str:
    return table(
        (first, *SCORE_COLUMNS),
        [
            (name, *(_percent(row[ratio]) for ratio in RATIOS), *(f"{row[count]:,}" for count in COUNTS))
            for name, row in rows.items()
        ],
        numbers=True,
    )


def _coded(rows: Mapping[str, Any]) -> dict[str, Any]:
    return {inline_code(name): row for name, row in rows.items()}


def _describe_candidates(config: Any, evaluation: Evaluation) -> str:
    recall = evaluation.candidate_recall
    if recall is None:
        return "Not measured." if config.cross_span else NO_CANDIDATES
    counts = {"found": f"{recall['found']:,}", "gold": f"{recall['gold']:,}"}
    return CANDIDATES.format(m=config.max_candidates, recall=_percent(recall["recall"]), **counts)


def _describe_epochs(summary: RunSummary) -> str:
    if not summary.is_trained:
        return f"{NOT_TRAINED}."
    if not summary.training_table:
        return "Trained without validation: there is no table to show."
    header = ("Epoch", "Training loss", "Validation loss", "Precision", "Recall", "F1", "Flat F1", "Nested F1")
    return f"{table(header, map(_epoch_row, summary.training_table), numbers=True)}\n\n{EPOCHS}"


def _epoch_row(row: Epoch) -> list[str]:
    scores = (row.precision, row.recall, row.f1, row.flat_f1, row.nested_f1)
    cells = [f"{row.epoch:g}", *map(_loss, (row.training_loss, row.validation_loss)), *map(_percent, scores)]
    return [f"**{cell}**" for cell in cells] if row.kept else cells


def _describe_settings(summary: RunSummary) -> str:
    recipe = {"recipe": summary.recipe} if summary.recipe else {}
    settings = recipe | {name: _setting(value) for name, value in summary.settings.items() if value is not None}
    if not settings:
        return "None are known." if summary.is_trained else f"{NOT_TRAINED}."
    return code_table(("Setting", "Value"), settings)


def _describe_machine(summary: RunSummary) -> str:
    if not summary.is_trained:
        return f"{NOT_TRAINED}."
    rows = [
        ("Training time", _describe_time(summary)),
        ("Processes", _describe_processes(summary)),
        *((HARDWARE.get(name, inline_code(name)), inline_code(value)) for name, value in summary.hardware.items()),
        *((inline_code(name), inline_code(version)) for name, version in summary.versions.items()),
    ]
    return table(("What", "In this run"), rows)


def _describe_time(summary: RunSummary) -> str:
    time = _duration(summary.training_seconds or 0.0)
    return f"{time} since the interrupted run was taken up again" if summary.resumed else time


def _describe_processes(summary: RunSummary) -> str:
    return f"{summary.processes}, {f'on {summary.gpus} GPU' if summary.gpus else 'on the CPU'}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    named = [(hours, "h"), (minutes, "min"), (rest, "s")]
    return " ".join(f"{count} {unit}" for count, unit in named if count) or "under 1 s"


def _setting(value: Any) -> Any:
    return f"{value:g}" if isinstance(value, float) else value


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f}"


def _loss(value: float | None) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:.4f}"
