"""Scores of nested entities and what they are made of. `scoring.py` and `breakdowns.py` are plain Python.

Not imported here: `metric.py` needs `evaluate`, and what runs a model needs torch.
"""

from .breakdowns import candidate_recall, confusion, scores_by_depth, scores_by_length
from .scoring import Counts, EntityCounts, count_entities, format_scores, score_entities

__all__ = [
    "Counts",
    "EntityCounts",
    "candidate_recall",
    "confusion",
    "count_entities",
    "format_scores",
    "score_entities",
    "scores_by_depth",
    "scores_by_length",
]
