"""`analyse`: the whole analysis of a model on a corpus as plain data, as an HTML page (`report.html`) and as text."""

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset

from ..data.texts import by_characters, join_tokens
from ..drawing import draw_entities_html, drawing_style
from ..drawing.predictions_page import render_html
from ..drawing.safe_text import LONGEST_LABEL, clean, shorten
from ..drawing.tables import Table
from ..files import SURROGATES
from ..model.decoding_triaffine import Threshold
from ..model.kinds_triaffine import Keep
from ..model.options_triaffine import PredictionOptions
from ..model.pipeline_triaffine import NestedNERPipeline
from . import scores as scoring
from .prediction import predict_words, unknown_labels, with_context
from .scores import Sentences, paired_sentences

MOST_EXAMPLES = 20
MOST_LABELS, WIDTH = 10, 100  # of the summary
CONFIDENCE = 0.95  # of the interval of a difference
Analysis = Mapping[str, Any]  # as `analyse` returns it


def analyse(
    models: Sequence[tuple[str, NestedNERPipeline]],
    corpus: Dataset,
    corpus_name: str,
    *,
    batch_size: int | None = PredictionOptions.batch_size,
    threshold: Threshold | None = None,
    overlap: str | Keep = PredictionOptions.overlap,
) -> dict[str, Any]:
    """Analyses a model on one split of a corpus, which reports call `corpus_name`; returns plain data.

    Args:
        models: the model to analyse and its name in the report, and perhaps one to compare it with.
        threshold, overlap: as of a pipeline.
    """
    (name, pipeline), *others = models
    config = pipeline.model.config

    def predict(pipeline: NestedNERPipeline) -> tuple[list[dict[str, Any]], list[list[Any]]]:
        records = with_context(corpus, pipeline.processor, config.auxiliary_labels)
        return records, predict_words(pipeline.model, pipeline.processor, records, batch_size, threshold, overlap)

    records, predictions = predict(pipeline)
    references = [record["entities"] for record in records]
    comparison = None
    for other_name, other in others:
        other_predictions = predict(other)[1]
        comparison = {
            "model": other_name,
            "scores": scoring.score_entities(other_predictions, references, config.entity_labels),
            "bootstrap": paired_bootstrap(predictions, other_predictions, references),
        }
    return {
        "model": name,
        "corpus": corpus_name,
        "sentences": len(records),
        "unknown_labels": unknown_labels(records, config),
        "scores": scoring.score_entities(predictions, references, config.entity_labels),
        "by_length": scoring.scores_by_length(predictions, references),
        "by_depth": scoring.scores_by_depth(predictions, references),
        "errors": scoring.confusion(predictions, references, config.entity_labels),
        "examples": scoring.error_examples(predictions, records),
        "comparison": comparison,
    }


def paired_bootstrap(
    predictions: Sentences, other_predictions: Sentences, references: Sentences, samples: int = 10_000, seed: int = 0
) -> dict[str, Any]:
    """Compares the micro-averaged F1 of two models on the same sentences.

    A sample draws as many sentences as the corpus has, with replacement, with both models' predictions for them; δ is
    the difference in F1 on the corpus, δ* that on a sample. Sentences of one document count as independent, and samples
    of few sentences hardly differ, so that p and the interval are then too small.

    Sampling, `wins` and the interval are those of Koehn (EMNLP 2004). The p-value is that of Berg-Kirkpatrick, Burkett
    and Klein (EMNLP 2012), which takes δ* − δ as the distribution of the difference of equally good models; here it is
    two-sided, and the corpus itself counts as a sample, so that p is never 0.

    Returns:
        `difference` (δ), `interval` (2.5 % and 97.5 % quantiles of δ*), `p_value`, `wins` (the share of samples with
        δ* > 0), `confidence` (of the interval, 0.95), `samples`, `seed`.
    """
    sides = zip(paired_sentences(predictions, references), paired_sentences(other_predictions, references), strict=True)
    # Correct predictions, and predictions plus gold entities: [sentences, models, 2].
    rows = [[(len(found & gold), len(found) + len(gold)) for found, gold in models] for models in sides]
    counts = np.array(rows, dtype=float)
    generator, share = np.random.default_rng(seed), np.full(len(counts), 1 / len(counts))
    times = (generator.multinomial(len(counts), share) for _ in range(samples))
    totals = np.stack([counts.sum(axis=0), *(np.tensordot(of_sample, counts, axes=1) for of_sample in times)])
    correct, entities = totals[..., 0], totals[..., 1]
    f1 = np.divide(2 * correct, entities, out=np.zeros(correct.shape), where=entities > 0)
    differences = f1[:, 0] - f1[:, 1]
    whole, drawn = differences[0], differences[1:]
    # Differences that are equal up to rounding count as equal.
    as_extreme = np.abs(drawn - whole) >= abs(whole) - 1e-12
    tail = (1 - CONFIDENCE) / 2
    return {
        "difference": float(whole),
        "interval": [float(value) for value in np.quantile(drawn, [tail, 1 - tail])],
        "p_value": (1 + int(as_extreme.sum())) / (1 + samples),
        "wins": float((drawn > 0).mean()),
        "confidence": CONFIDENCE,
        "samples": samples,
        "seed": seed,
    }


def write_report(analysis: Analysis, folder: Path) -> None:
    """Writes `report.html` and `report.json`, with null for undefined ratios, into an existing folder."""
    data = json.dumps(scoring.with_nulls(analysis), ensure_ascii=False, indent=2)
    for name, text in (("report.html", html_report(analysis)), ("report.json", data)):
        (folder / name).write_text(f"{text}\n", encoding="utf-8", errors=SURROGATES)


def html_report(analysis: Analysis) -> str:
    """The report as one page with embedded styles and figures, which loads nothing."""
    scores, comparison = analysis["scores"], analysis["comparison"]
    whole, *parts = ((part.title, row) for part, row in scores.by_part().items())
    rows = {
        "label": [whole, *scores["by_label"].items()],
        "words": [*analysis["by_length"].items()],
        "depth": [*analysis["by_depth"].items()],
    }
    return render_html(
        "evaluation/report.html",
        analysis=analysis,
        title=f"Analysis of {analysis['model']}",
        introduction=_introduction(analysis),
        totals=list(zip(scoring.RATIOS.values(), scoring.percentages(scores), strict=True)),
        score_tables={name: scoring.score_table(name, rows[name]) for name in rows},
        bars={name: [(title, *scoring.defined_ratios(row)) for title, row in rows[name]] for name in rows},
        parts=(scoring.PARTS_TITLE, scoring.PARTS_NOTE, scoring.score_table("", parts)),
        error_tables=list(_error_tables(analysis["errors"])),
        examples=[_draw_example(example, list(scores["by_label"])) for example in analysis["examples"][:MOST_EXAMPLES]],
        difference=comparison and _difference(comparison),
        other_scores=comparison and scoring.score_table("", comparison["scores"].rows()),
        drawing_style=drawing_style(len(scores["by_label"])),
        shorten=lambda name: shorten(name, LONGEST_LABEL),
    )


def summarize(analysis: Analysis) -> str:
    """The scores of all entities, parts and the most frequent labels, and the kinds of errors, in at most 30 lines."""
    scores, errors = analysis["scores"], analysis["errors"]
    labels = sorted(scores["by_label"], key=lambda label: -scores["by_label"][label]["gold"])
    left_out = {f"  {label}" for label in labels[MOST_LABELS:]}
    notes = _introduction(analysis)
    if left_out:
        notes.append(f"The {MOST_LABELS} labels with the most entities are shown, of {len(labels)}.")
    counts = {kind: sum(row[kind] for row in errors["by_gold_label"].values()) for kind in scoring.GOLD_OUTCOMES}
    counts[scoring.SPURIOUS] = sum(row[scoring.SPURIOUS] for row in errors["by_predicted_label"].values())
    kinds = (f"{kind.replace('_', ' ')} {count:,}" for kind, count in counts.items() if kind != scoring.CORRECT)
    notes.append(f"Errors: {', '.join(kinds)}.")
    if analysis["comparison"] is not None:
        notes.append(_difference(analysis["comparison"]))
    lines = (textwrap.fill(textwrap.shorten(clean(note), 3 * WIDTH, placeholder=" …"), WIDTH) for note in notes)
    table = scoring.score_table("", [(name, row) for name, row in scores.rows() if name not in left_out])
    return "\n".join([table.text(), "", *lines])


def _introduction(analysis: Analysis) -> list[str]:
    scores, unknown = analysis["scores"], ", ".join(analysis["unknown_labels"])
    paragraphs = [
        f"The model finds {scores['found']} of the {scores['gold']} entities in {analysis['sentences']} sentences of "
        f"{analysis['corpus']}; {scores['correct']} of its {scores['predicted']} predictions are correct.",
        unknown and f"The model cannot find entities of types that are not among its labels: {unknown}.",
        scoring.unannotated_note(scores),
    ]
    return list(filter(None, paragraphs))


def _error_tables(errors: Mapping[str, Any]) -> Iterator[Table]:
    for caption, side, key, outcomes in (
        ("Gold entities by outcome", "gold", "by_gold_label", scoring.GOLD_OUTCOMES),
        ("Predictions by outcome", "predicted", "by_predicted_label", scoring.PREDICTED_OUTCOMES),
    ):
        rows = [[label, *row.values(), sum(row.values())] for label, row in errors[key].items()]
        yield Table([f"{side} label", *(outcome.replace("_", " ") for outcome in outcomes), "all"], rows, caption)
    caption = "Gold entities whose span was predicted, by gold and predicted label"
    rows = [[gold, *row.values()] for gold, row in errors["types"].items()]
    yield Table(["gold label", *errors["types"]], rows, caption)


def _draw_example(example: Mapping[str, Any], labels: Sequence[str]) -> tuple[str, dict[str, str]]:
    text, words = join_tokens(example["tokens"])
    drawn = {}
    for side in ("gold", "predicted"):
        drawn[side.title()] = draw_entities_html(text, by_characters(example[side], words), labels, embedded=True)
    return example["id"], drawn


def _difference(comparison: Mapping[str, Any]) -> str:
    found = comparison["bootstrap"]
    values = (found["difference"], *found["interval"])
    difference, low, high = (f"{100 * value:+.2f}".replace("-", "−") for value in values)
    return (
        f"The model's F1 differs from that of {comparison['model']} by {difference} points "
        f"({found['confidence']:.0%} interval {low} to {high}, p = {found['p_value']:.4f})."
    )
