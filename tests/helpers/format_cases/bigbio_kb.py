"""bigbio's records."""

import json

from ..corpora import BIGBIO_RECORD
from . import JSON_VALUES, FormatCase, after


def changed_bigbio(**fields):
    return {**BIGBIO_RECORD, **fields}


FILES = {"a.jsonl": json.dumps(BIGBIO_RECORD)}
BAD = {
    "another schema": ({"id": "1", "text": "a", "labels": []}, "'passages'", "'id', 'text', 'labels'"),
    "offsets": (changed_bigbio(entities=[{"type": "City", "offsets": [[0]]}]), "'entities[0].offsets[0]' is [0]"),
    "passages overlap": (
        changed_bigbio(
            passages=[{"text": [name], "offsets": [[start, start + 4]]} for name, start in (("aaaa", 0), ("b", 2))]
        ),
        "'passages[1]' begins at 2",
        "ends at 4",
    ),
    "passage far away": (changed_bigbio(passages=[{"text": ["a"], "offsets": [[10**12, 10**12 + 1]]}]), f"{10**12}"),
}
CASE = FormatCase(
    FILES,
    bad=BAD,
    put=after(BIGBIO_RECORD),
    place="line 2",
    anything=JSON_VALUES.map(json.dumps),
    nothing={"a.jsonl": json.dumps({**BIGBIO_RECORD, "entities": []})},
)
