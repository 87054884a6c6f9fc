"""Why a span was scored as it was, from the model's own attention.

`explaining.py` says it in data: from a text and a span to words, candidates and labels; `contributions.py` holds the
tensors beneath. `tables.py` puts the data in tables and writes them as text, `plotting.py` draws them with matplotlib
(the extra `plot`).
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
