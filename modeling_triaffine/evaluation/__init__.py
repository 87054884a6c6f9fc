"""Scores of nested entities, their breakdowns, error analysis, and reports; neither training nor explanations of spans.

Imports only modules in plain Python; `metric.py` needs `evaluate`, and the modules that run a model need torch.
"""

from .breakdowns import candidate_recall, scores_by_depth, scores_by_length
from .error_analysis import confusion
from .scoring import Counts, format_scores, score_entities

__all__ = [
    "Counts",
    "candidate_recall",
    "confusion",
    "format_scores",
    "score_entities",
    "scores_by_depth",
    "scores_by_length",
]
