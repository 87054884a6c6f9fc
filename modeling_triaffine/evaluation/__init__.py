"""Scores of nested entities, their breakdowns, error analysis, and reports; neither training nor explanations of spans.

Imports only modules in plain Python; `metric.py` needs `evaluate`, and the modules that run a model need torch.
"""

from .scores import (
    Counts,
    Scores,
    candidate_recall,
    confusion,
    format_scores,
    score_entities,
    scores_by_depth,
    scores_by_length,
)

__all__ = [
    "Counts",
    "Scores",
    "candidate_recall",
    "confusion",
    "format_scores",
    "score_entities",
    "scores_by_depth",
    "scores_by_length",
]
