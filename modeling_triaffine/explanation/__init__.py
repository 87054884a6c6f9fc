"""Explains the scores of a span by the model's own attention and contributions.

`explaining.py` returns plain data from the tensors of `contributions.py`. `tables.py` selects rows and formats them as
text, `plotting.py` draws them with matplotlib (the extra `plot`).
"""

from .explaining import Candidate, Explanation, LabelExplanation, StageScore, TextSpan, explain
from .plotting import plot_explanation
from .tables import format_explanation

__all__ = [
    "Candidate",
    "Explanation",
    "LabelExplanation",
    "StageScore",
    "TextSpan",
    "explain",
    "format_explanation",
    "plot_explanation",
]
