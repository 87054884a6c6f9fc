"""`analyse`: the complete analysis of a model on a corpus as plain data; `report.py` writes it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from datasets import Dataset

from ..model.model_triaffine import TriaffineForNestedNER
from ..model.options_triaffine import PredictionOptions
from ..model.processing_triaffine import TriaffineProcessor
from .cases import Case, make_cases
from .error_analysis import SentenceErrors, confusion, sentences_with_errors
from .prediction import DEFAULT_COUNTS, predict_words, sweep_candidates, unknown_labels, with_context
from .scores import Scores, row_with_nulls
from .scoring import score_entities, scores_by_depth, scores_by_length
from .significance import paired_bootstrap

Rows = dict[str, dict[str, Any]]


class NamedModel(NamedTuple):
    """A trained model, its processor, and its display name."""

    name: str
    model: TriaffineForNestedNER
    processor: TriaffineProcessor


@dataclass(frozen=True)
class Comparison:
    """Another model on the same sentences; `bootstrap`: [`paired_bootstrap`] of the analysed model minus this one."""

    model: str
    unknown_labels: list[str]
    scores: Scores
    bootstrap: dict[str, Any]


@dataclass(frozen=True)
class Analysis:
    """The analysis of a model on a corpus.

    Attributes:
        model, corpus: display names; sentences: their number.
        unknown_labels: entity types of the corpus that are not labels of the model.
        scores: [`score_entities`]; by_length: [`scores_by_length`]; by_depth: [`scores_by_depth`]; errors:
            [`confusion`]; sentences_with_errors: [`sentences_with_errors`].
        max_candidates: the model's own m; candidates: [`sweep_candidates`]. Both None without a cross-span stage.
        comparison: None without another model.
        cases: those of the selected sentences.
    """

    model: str
    corpus: str
    sentences: int
    unknown_labels: list[str]
    scores: Scores
    by_length: Rows
    by_depth: Rows
    errors: dict[str, Any]
    sentences_with_errors: list[SentenceErrors]
    max_candidates: int | None
    candidates: list[dict[str, Any]] | None
    comparison: Comparison | None
    cases: list[Case]

    def to_dict(self) -> dict[str, Any]:
        """Nested dicts, lists, strings and numbers, ready for JSON; ratios of scores that are undefined are None."""
        by_length, by_depth = (
            {name: row_with_nulls(row) for name, row in rows.items()} for rows in (self.by_length, self.by_depth)
        )
        data = {**asdict(self), "by_length": by_length, "by_depth": by_depth}
        for scored in (data, data["comparison"], *(data["candidates"] or ())):
            if scored is not None:
                scored["scores"] = scored["scores"].with_nulls()
        for kept in (one["candidates"] for one in data["candidates"] or () if not one["candidates"]["gold"]):
            kept["recall"] = None
        return data


def analyse(
    subject: NamedModel,
    corpus: Dataset,
    corpus_name: str,
    *,
    counts: Sequence[int] | None = None,
    other: NamedModel | None = None,
    sentences: Sequence[str] = (),
    batch_size: int = PredictionOptions.batch_size,
) -> Analysis:
    """Analyses a model on one split of a corpus, which reports call `corpus_name`.

    Args:
        counts: numbers of candidates to try, see [`sweep_candidates`]; None: 5, 10, …, 100 if the model has a
            cross-span stage.
        other: a model to compare with.
        sentences: ids of the sentences to include as cases.

    Raises:
        ValueError: an id is unknown, or `counts` are passed for a model without cross-span stage.
    """
    _, model, processor = subject
    config = model.config
    records = with_context(corpus, processor)
    chosen = _find_sentences(records, sentences)
    if counts is None:
        counts = DEFAULT_COUNTS if config.cross_span else ()
    candidates = sweep_candidates(model, processor, records, counts, batch_size) if counts else None
    predictions = predict_words(model, processor, records, batch_size)
    references = [record["entities"] for record in records]
    labels = config.entity_labels
    comparison = None
    if other is not None:
        others = predict_words(other.model, other.processor, with_context(corpus, other.processor), batch_size)
        bootstrap = paired_bootstrap(predictions, others, references)
        unknown = unknown_labels(records, other.model.config)
        comparison = Comparison(other.name, unknown, score_entities(others, references, labels), bootstrap)
    return Analysis(
        model=subject.name,
        corpus=corpus_name,
        sentences=len(records),
        unknown_labels=unknown_labels(records, config),
        scores=score_entities(predictions, references, labels),
        by_length=scores_by_length(predictions, references),
        by_depth=scores_by_depth(predictions, references),
        errors=confusion(predictions, references, labels),
        sentences_with_errors=sentences_with_errors(predictions, records),
        max_candidates=config.max_candidates if config.cross_span else None,
        candidates=candidates,
        comparison=comparison,
        cases=make_cases(model, processor, chosen),
    )


def _find_sentences(records: Sequence[dict[str, Any]], ids: Sequence[str]) -> list[dict[str, Any]]:
    by_id = {record["id"]: record for record in records}
    unknown = [name for name in ids if name not in by_id]
    if unknown:
        known = ", ".join(repr(name) for name in list(by_id)[:3])
        raise ValueError(
            f"The split has no sentence {', '.join(map(repr, unknown))}; its {len(by_id)} ids begin with {known}."
        )
    return [by_id[name] for name in dict.fromkeys(ids)]
