"""Scores of nested entities. `scoring.py` is plain Python; `metric.py` (not imported here) needs `evaluate`."""

from .scoring import Counts, EntityCounts, count_entities, format_scores, score_entities

__all__ = ["Counts", "EntityCounts", "count_entities", "format_scores", "score_entities"]
