"""The effect of the number of candidates m on a trained model: recall of the candidate filter, and scores, by m."""

from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor

from ..data.statistics import Span
from ..model.decoding_triaffine import find_entities
from ..model.modeling_triaffine import TriaffineForNestedNER
from ..model.processing_triaffine import TriaffineProcessor
from .prediction import Entities, read_records
from .scoring import candidate_recall, score_entities

DEFAULT_COUNTS = tuple(range(5, 105, 5))


def sweep_candidates(
    model: TriaffineForNestedNER,
    processor: TriaffineProcessor,
    records: Sequence[dict[str, Any]],
    counts: Sequence[int] = DEFAULT_COUNTS,
    batch_size: int = 32,
) -> list[dict[str, Any]]:
    """Evaluates a model with other numbers of candidates, without retraining (the paper's analysis of m).

    Each batch is encoded once; the head runs once for each m. The model is not changed.

    Args:
        records: sentences with `tokens`, `entities`, and `pos`, `left_tokens`, `right_tokens` if the model reads them.
        counts: the values of m.
        batch_size: as in [`predict_words`].

    Returns:
        For each m, in ascending order: `max_candidates`, `candidates` (see [`candidate_recall`]) and `scores` (see
        [`score_entities`]).

    Raises:
        ValueError: the model has no cross-span stage, there is no m, or an m is below 1.
    """
    if not model.config.cross_span:
        raise ValueError("The model has no cross-span stage (`cross_span` is false), and so no candidates.")
    if min(counts, default=0) < 1:
        raise ValueError(f"`counts` must be numbers of candidates, each at least 1, got {list(counts)}.")
    tried, config = sorted(set(counts)), model.head.config
    kept = config.max_candidates

    def read(inputs: dict[str, Tensor]) -> Iterable[tuple[tuple[list[Span], Entities], ...]]:
        packed_words = inputs.pop("packed_words")
        hidden = model.represent_words(**inputs)
        by_count = []
        for count in tried:
            config.max_candidates = count
            output = model.head(hidden, inputs["num_words"], None, packed_words)
            by_count.append(zip(candidate_spans(output), find_entities(output, model.config), strict=True))
        return zip(*by_count, strict=True)

    try:
        found = read_records(model, processor, records, read, batch_size, doing="Trying candidates")
    finally:
        config.max_candidates = kept
    references = [record["entities"] for record in records]
    return [
        {
            "max_candidates": count,
            "candidates": candidate_recall([of_sentence[place][0] for of_sentence in found], references),
            "scores": score_entities([of_sentence[place][1] for of_sentence in found], references),
        }
        for place, count in enumerate(tried)
    ]


def candidate_spans(output: Any) -> list[list[Span]]:
    """The candidates of each sentence as (start, end exclusive), from the output of a model with a cross-span stage."""
    return [
        [(i, j + 1) for (i, j), is_span in zip(spans, mask, strict=True) if is_span]
        for spans, mask in zip(output.candidates.tolist(), output.candidate_mask.tolist(), strict=True)
    ]
