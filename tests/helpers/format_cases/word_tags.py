"""Words with tags, or with entities by words."""

import json

from ..corpora import TOKENS
from . import JSON_VALUES, FormatCase, after

SENTENCE = {
    "tokens": TOKENS,
    "entity_mentions": [
        {"start": 0, "end": 4, "entity_type": "Person"},
        {"start": 3, "end": 4, "entity_type": "City"},
    ],
}
BAD = {
    "no tags": ({"tokens": ["a"]}, "'ner_tags'"),
    "numbers": ({"tokens": ["a"], "tags": [7]}, "'tags' has numbers, up to 7", "names=O,"),
    "fewer tags": ({"tokens": ["a", "b"], "ner_tags": ["O"]}, "1 tags for 2 tokens"),
    "spans": ({"tokens": ["a", "b", "c"], "ner": [[0, 2, "PER"]]}, "'ner' has 'PER'"),
    "no type": ({"tokens": ["a"], "entity_mentions": [{"start": 0, "end": 1}]}, "entity_mentions[0].label"),
}
CASE = FormatCase(
    {"a.jsonl": json.dumps(SENTENCE)},
    bad=BAD,
    put=after(SENTENCE),
    place="line 2",
    anything=JSON_VALUES.map(json.dumps),
)
