"""Explains the scores of a span by the model's own attention and contributions.

`explaining.py` returns plain data from the tensors of `contributions.py`; `tables.py` shows it as text and as a page.
"""

from .explaining import Explanation, explain
from .tables import explanation_page, format_explanation

__all__ = ["Explanation", "explain", "explanation_page", "format_explanation"]
