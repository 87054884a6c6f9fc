"""A made-up run's summary, and cards taken apart: for the tests of both, and of the runs that write them."""

import re
from typing import Any

from huggingface_hub import ModelCard
from transformers import BertConfig

from modeling_triaffine import TriaffineConfig
from modeling_triaffine.evaluation.scores import PARTS, Counts, Scores, summary_metrics
from modeling_triaffine.publishing.run_summary import Epoch, Evaluation, Example, RunSummary

SENTENCE = "The IL-2 gene."
NESTED = [
    {"entity_group": "DNA", "score": 0.987654, "word": "IL-2 gene", "start": 4, "end": 13},
    {"entity_group": "protein", "score": 0.5, "word": "IL-2", "start": 4, "end": 8},
]


def make_config(*labels: str, **changes: Any) -> TriaffineConfig:
    names = [*(labels or ("protein", "cell_type", "DNA")), "None"]
    encoder = BertConfig(num_hidden_layers=6, hidden_size=384)
    choices = {"encoder_config": encoder, "id2label": dict(enumerate(names)), "triaffine_dim": 320}
    return TriaffineConfig(**{**choices, **changes})


def make_row(correct: int, predicted: int, gold: int) -> dict[str, Any]:
    return Counts(correct, predicted, correct, gold).scores()


def make_evaluation(*labels: str, **changes: Any) -> Evaluation:
    by_label = {label: make_row(1, 2, 4) for label in labels or ("protein", "cell_type", "DNA")}
    rows = {"": make_row(3, 4, 5), "flat": make_row(2, 3, 3), "nested": make_row(1, 1, 2)}
    scores = Scores.of({part: rows.get(part.key, make_row(1, 2, 3)) for part in PARTS}, by_label)
    facts: dict[str, Any] = {
        "split": "test",
        "sentences": 1854,
        "scores": scores,
        "by_length": {"1": make_row(2, 2, 3), "3-4": make_row(1, 2, 2)},
        "candidate_recall": {"found": 1990, "gold": 2000, "recall": 0.995},
    }
    return Evaluation(**{**facts, **changes})


def epoch_scores(*values: float) -> dict[str, float | None]:
    """The scores of an epoch by [`summary_metrics`]; those after the given ones equal the last."""
    names = list(summary_metrics())
    return dict(zip(names, [*values, *[values[-1]] * (len(names) - len(values))], strict=True))


def make_summary(**changes: Any) -> RunSummary:
    facts: dict[str, Any] = {
        "base_model": "tester/encoder",
        "dataset": "tester/genia",
        "language": "en",
        "license": "apache-2.0",
        "recipe": "genia",
        "settings": {
            "learning_rate": 3e-5,
            "num_train_epochs": 15.0,
            "max_subwords_per_batch": None,
            "cross_span": True,
        },
        "training_table": [
            Epoch(1.0, None, 0.25, scores=epoch_scores(0.5, 0.25, 1 / 3, 0.4, 0.2)),
            Epoch(1.5, 0.125, float("nan"), True, 15, epoch_scores(0.75, 0.6, 2 / 3, 0.7, 0.6)),
        ],
        "evaluation": make_evaluation(),
        "training_sentences": 15023,
        "label_counts": {"protein": 30000, "cell_type": 7, "DNA": 0},
        "examples": [Example(SENTENCE, NESTED), Example("Another.")],
        "hardware": {"processor": "Xeon(R)", "cores": 2, "gpu": "H200", "memory_gb": 25.3},
        "versions": {"modeling_triaffine": "0.1.0", "torch": "2.13.0"},
        "training_seconds": 3725.4,
        "processes": 2,
        "gpus": 2,
        "parameters": 1234567,
    }
    return RunSummary(**{**facts, **changes})


def find(pattern: str, text: str) -> re.Match[str]:
    match = re.search(pattern, text, re.DOTALL | re.MULTILINE)
    assert match, f"{pattern} not found in:\n{text}"
    return match


def section(card: ModelCard, name: str, level: str = "##") -> str:
    return find(rf"^{level} {name}\n\n(.*?)(?=\n\n#{{2,{len(level)}}} |\Z)", card.text)[1]


def cells(table: str) -> list[list[str]]:
    """The body of a Markdown table as GitHub splits it: at every "|" that no backslash precedes."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]
