"""Explains the scores of a span by the model's own attention and contributions. Not here: evaluating a model.

`explaining.py` returns it as plain data, on the tensors of `contributions.py`. `tables.py` selects what is shown and
formats it as text, `plotting.py` draws it with matplotlib (the extra `plot`).
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
