"""Explains the scores of a span by the model's own attention and contributions.

`explaining.py` returns plain data, `tables.py` shows it as text.
"""

from .explaining import Explanation, explain
from .tables import format_explanation

__all__ = ["Explanation", "explain", "format_explanation"]
