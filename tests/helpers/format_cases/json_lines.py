"""Sentences of words, one a line."""

import json

from ..corpora import RECORD
from . import JSON_VALUES, FormatCase, after


def changed(**fields):
    return {**RECORD, "id": "a:1", **fields}


def without(name):
    return {key: value for key, value in changed().items() if key != name}


def entity(start, end, kind="City"):
    return {"entities": [{"start": start, "end": end, "type": kind}]}


FILES = {"a.jsonl": json.dumps(RECORD)}
BAD = {
    "not an object": ([1], "[1] (list)"),
    "missing tokens": (without("tokens"), "'tokens'"),
    "sent_id true": (changed(sent_id=True), "'sent_id' is True (bool)"),
    "null token": (changed(tokens=["a", None]), "'tokens[1]' is null"),
    "half a surrogate": (changed(tokens=["a", "\ud800"], pos=[], entities=[]), "'tokens[1]' is '\\ud800'"),
    "tags": (changed(pos=["DET"]), "'pos' has 1 tags for 6 tokens"),
    "entity past the end": (changed(**entity(2, 7)), "'entities[0]' runs from 2 to 7"),
    "white space around a label": (changed(**entity(0, 1, " City")), "'entities[0].type' is ' City'"),
    "unknown label": (changed(**entity(0, 1, "X")), "'entities[0].type' is 'X'", "'City', 'Person'"),
    "duplicate id": (RECORD, "'id': 'a:0'", "line 1"),
    "context": (changed(left_tokens="so"), "'left_tokens' is 'so' (str)"),
}
CASE = FormatCase(
    FILES,
    bad=BAD,
    put=after(RECORD),
    place="line 2",
    anything=JSON_VALUES.map(lambda values: "\n".join(map(json.dumps, values))),
    nothing={"a.jsonl": json.dumps({**RECORD, "entities": []})},
)
