"""Words with spans whose last word is part of them."""

import json

from ..corpora import DOCUMENT, TOKENS
from . import JSON_VALUES, FormatCase, after

FILES = {"a.jsonl": json.dumps(DOCUMENT)}
BAD = {
    "no words": ({"ner": []}, "'sentence' is missing"),
    "span": ({"tokenized_text": TOKENS, "ner": [[0, 1]]}, "'ner[0]' is [0, 1]"),
    "outside": ({"tokenized_text": TOKENS, "ner": [[5, 6, "City"]]}, "'ner[0]'", "5 to 6", "0 to 5"),
    "index": ({"sentence": TOKENS, "ner": [{"index": ["0"], "type": "City"}]}, "'ner[0].index[0]' is '0'"),
    "lists": ({"sentences": [TOKENS], "ner": []}, "0 lists for 1"),
    "of another sentence": (
        {"sentences": [TOKENS, TOKENS], "ner": [[], [[3, 3, "City"]]]},
        *("'ner[1][0]'", "3 to 3", "6 to 11"),
    ),
}
CASE = FormatCase(FILES, bad=BAD, put=after(DOCUMENT), place="line 2", anything=JSON_VALUES.map(json.dumps))
