"""Explains the scores of a span by the model's own attention and contributions, as plain data and as text."""

from .explaining import Explanation, explain, format_explanation

__all__ = ["Explanation", "explain", "format_explanation"]
