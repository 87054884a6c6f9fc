"""UIMA CAS in JSON."""

from ..corpora import cas_json
from . import FormatCase

CASE = FormatCase({"a.json": cas_json((0, 17, "Person"), (13, 17, "City"))}, needs="cassis")
