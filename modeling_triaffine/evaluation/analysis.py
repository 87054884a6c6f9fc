"""`analyse`: the complete analysis of a model on a corpus as plain data, which `report.py` shows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from datasets import Dataset

from ..model.decoding_triaffine import Threshold
from ..model.kinds_triaffine import Keep
from ..model.model_triaffine import TriaffineForNestedNER
from ..model.options_triaffine import PredictionOptions
from ..model.processing_triaffine import TriaffineProcessor
from .error_analysis import confusion, error_examples
from .prediction import DEFAULT_COUNTS, predict_words, sweep_candidates, unknown_labels, with_context
from .scores import row_with_nulls
from .scoring import score_entities, scores_by_depth, scores_by_length
from .significance import paired_bootstrap


class NamedModel(NamedTuple):
    """A trained model, its processor, and its display name."""

    name: str
    model: TriaffineForNestedNER
    processor: TriaffineProcessor


def analyse(
    subject: NamedModel,
    corpus: Dataset,
    corpus_name: str,
    *,
    counts: Sequence[int] | None = None,
    other: NamedModel | None = None,
    batch_size: int | None = PredictionOptions.batch_size,
    threshold: Threshold | None = None,
    overlap: str | Keep = PredictionOptions.overlap,
) -> dict[str, Any]:
    """Analyses a model on one split of a corpus, which reports call `corpus_name`.

    Args:
        counts: numbers of candidates to try, see [`sweep_candidates`]; None: 5, 10, …, 100 if the model has a
            cross-span stage.
        other: a model to compare with.
        threshold, overlap: as of a pipeline; the numbers of candidates are tried without.

    Returns:
        Data ready for JSON, in which ratios that are undefined are None. `candidates` is None without a cross-span
        stage, `comparison` without another model.
    """
    config = subject.model.config

    def predict(named: NamedModel) -> tuple[list[dict[str, Any]], list[list[Any]]]:
        records = with_context(corpus, named.processor, config.auxiliary_labels)
        return records, predict_words(named.model, named.processor, records, batch_size, threshold, overlap)

    records, predictions = predict(subject)
    references = [record["entities"] for record in records]
    if counts is None and config.cross_span:
        counts = DEFAULT_COUNTS
    candidates = None
    if counts:
        tried = sweep_candidates(subject.model, subject.processor, records, counts, batch_size)
        candidates = [{**row, "scores": row["scores"].with_nulls()} for row in tried]
    comparison = None
    if other is not None:
        others = predict(other)[1]
        comparison = {
            "model": other.name,
            "unknown_labels": unknown_labels(records, other.model.config),
            "scores": score_entities(others, references, config.entity_labels).with_nulls(),
            "bootstrap": paired_bootstrap(predictions, others, references),
        }
    by_length, by_depth = (
        {name: row_with_nulls(row) for name, row in rows(predictions, references).items()}
        for rows in (scores_by_length, scores_by_depth)
    )
    return {
        "model": subject.name,
        "corpus": corpus_name,
        "sentences": len(records),
        "unknown_labels": unknown_labels(records, config),
        "scores": score_entities(predictions, references, config.entity_labels).with_nulls(),
        "by_length": by_length,
        "by_depth": by_depth,
        "errors": confusion(predictions, references, config.entity_labels),
        "examples": error_examples(predictions, records),
        "max_candidates": config.max_candidates if config.cross_span else None,
        "candidates": candidates,
        "comparison": comparison,
    }
