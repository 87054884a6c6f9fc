"""Statistics of a corpus: those reported in papers, and those needed to choose a configuration."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np

from ..model.options_triaffine import ModelOptions
from ..nesting import nested_spans, nesting_depths


def corpus_statistics(records: Iterable[Any], max_candidates: int = ModelOptions.max_candidates) -> dict[str, Any]:
    """Counts over the sentences of one or several splits.

    Args:
        records: sentences with `tokens`, `entities` and optionally `pos`; of a `DatasetDict`, all splits.
        max_candidates: the model's m, which bounds the entity spans that it can find in a sentence.

    Returns:
        - `sentences`, `tokens`, `entities`, `nested_entities` (that contain another one or are contained in one; a span
          with two types is not nested), `inner_entities` (that are contained in one), `entities_by_type`,
          `sentences_with_pos`;
        - `most_entities`, `longest_sentence` (words), `nesting_depth` (the deepest);
        - distributions, value → how often: `sentence_lengths` and `entity_lengths` (words), `entities_per_sentence`,
          `entity_depths`;
        - `spans_above_max_candidates` (out of reach) and `needed_candidates` (for all to be in reach).

    Examples:
        >>> from modeling_triaffine.data import corpus_statistics
        >>> person, city = {"start": 0, "end": 4, "type": "Person"}, {"start": 3, "end": 4, "type": "City"}
        >>> corpus_statistics([{"tokens": ["The", "mayor", "of", "Orsk"], "entities": [person, city]}])["nesting_depth"]
        2
    """
    totals, types = Counter[str](), Counter[str]()
    names = ("sentence_lengths", "entity_lengths", "entities_per_sentence", "entity_depths")
    sentence_lengths, entity_lengths, entities_per_sentence, entity_depths = counts = [Counter[int]() for _ in names]
    needed = 0
    for record in chain.from_iterable(records.values()) if isinstance(records, Mapping) else records:
        spans = [(entity["start"], entity["end"]) for entity in record["entities"]]
        depths, nested = nesting_depths(spans), nested_spans(spans)
        totals["nested_entities"] += sum(span in nested for span in spans)
        totals["inner_entities"] += sum(depths[span] > 1 for span in spans)
        totals["sentences_with_pos"] += bool(record.get("pos"))
        totals["spans_above_max_candidates"] += max(len(depths) - max_candidates, 0)
        needed = max(needed, len(depths))
        types.update(entity["type"] for entity in record["entities"])
        sentence_lengths[len(record["tokens"])] += 1
        entity_lengths.update(end - start for start, end in spans)
        entities_per_sentence[len(spans)] += 1
        entity_depths.update(depths[span] for span in spans)
    return {
        "sentences": sentence_lengths.total(),
        "tokens": sum(length * count for length, count in sentence_lengths.items()),
        "entities": types.total(),
        "nested_entities": totals["nested_entities"],
        "inner_entities": totals["inner_entities"],
        "entities_by_type": dict(sorted(types.items())),
        "sentences_with_pos": totals["sentences_with_pos"],
        "most_entities": max(entities_per_sentence, default=0),
        "longest_sentence": max(sentence_lengths, default=0),
        "nesting_depth": max(entity_depths, default=0),
        **{name: dict(sorted(distribution.items())) for name, distribution in zip(names, counts, strict=True)},
        "spans_above_max_candidates": totals["spans_above_max_candidates"],
        "needed_candidates": needed,
    }


def repeated_sentences(splits: Mapping[str, Iterable[Mapping[str, Any]]]) -> str:
    """Reports in one line repeated sentences, and those of `train` in other splits; empty without any."""
    of_train = {tuple(record["tokens"]) for record in splits.get("train", ())}
    repeated, shared = [], []
    for split, records in splits.items():
        first: dict[tuple[str, ...], set[tuple[int, int, str]]] = {}
        total = equal = differing = in_train = 0
        for record in records:
            words = tuple(record["tokens"])
            entities = {(entity["start"], entity["end"], entity["type"]) for entity in record["entities"]}
            total += 1
            equal += words in first
            differing += first.setdefault(words, entities) != entities
            in_train += split != "train" and words in of_train
        if equal:
            repeated.append(f"{equal:,} in {split}, {differing:,} of them with other entities")
        if in_train:
            shared.append(f"of {split} in train: {in_train:,} of {total:,}")
    lines = [f"equal sentences: {', '.join(repeated)}", *shared] if repeated else shared
    return "; ".join(lines)


def quantile(distribution: Mapping[int, int], share: float) -> int:
    """The smallest value that at least a `share` of the cases does not exceed; 0 for an empty distribution."""
    if not distribution:
        return 0
    return int(np.quantile([*distribution], share, weights=[*distribution.values()], method="inverted_cdf"))
