"""The published experiments' list."""

import json

from ..corpora import PUBLISHED
from . import JSON_VALUES, FormatCase

FILES = {"a.json": json.dumps([PUBLISHED])}
CASE = FormatCase(
    FILES, anything=JSON_VALUES.map(json.dumps), nothing={"a.json": json.dumps([{**PUBLISHED, "entities": []}])}
)
