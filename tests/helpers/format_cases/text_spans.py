"""Texts with spans by characters."""

import json

from ..corpora import TEXT, TEXT_RECORD
from . import JSON_VALUES, FormatCase, after

FILES = {"a.jsonl": json.dumps(TEXT_RECORD)}
BAD = {
    "no text": ({"entities": []}, "'text'"),
    "spans twice": ({"text": "a", "entities": [3], "label": [3]}, "'entities' and 'label'"),
    "two values": ({"text": "a", "label": [[0, 1]]}, "'label[0].label' is missing"),
    "start true": ({"text": "a", "label": [[True, 1, "A"]]}, "'label[0].start' is True (bool)"),
    "outside": ({"text": "a", "label": [[0, 2, "City"]]}, "'label[0]' runs from 0 to 2", "1 characters"),
}
CASE = FormatCase(
    FILES,
    bad=BAD,
    put=after({**TEXT_RECORD, "id": "x"}),
    place="line 2",
    anything=JSON_VALUES.map(json.dumps),
    nothing={"a.jsonl": json.dumps({"text": TEXT, "label": []})},
)
