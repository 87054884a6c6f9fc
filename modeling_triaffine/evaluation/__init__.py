"""Scores of nested entities, their breakdowns, error analysis, and reports; neither training nor explanations of spans.

Imports only modules in plain Python; `metric.py` needs `evaluate`, and the modules that run a model need torch.
"""

from typing import TYPE_CHECKING

from ..lazy import on_first_use

if TYPE_CHECKING:
    from .scores import Counts as Counts
    from .scores import Scores as Scores
    from .scores import candidate_recall as candidate_recall
    from .scores import confusion as confusion
    from .scores import format_scores as format_scores
    from .scores import score_entities as score_entities
    from .scores import scores_by_depth as scores_by_depth
    from .scores import scores_by_length as scores_by_length

__getattr__, __dir__, __all__ = on_first_use(__name__)
