"""Columns of tags with the text of the sentence."""

from ..corpora import COLUMNS, TEXT
from . import LINES, FormatCase

CASE = FormatCase({"a.conll": f"# text = {TEXT}\n{COLUMNS}"}, anything=LINES)
