"""Words with spans whose last word is part of them."""

import json

from ..corpora import DOCUMENT, TOKENS
from . import JSON_VALUES, FormatCase, after

FILES = {"a.jsonl": json.dumps(DOCUMENT)}
BAD = {
    "not an object": ([1], "[1] (list)", "tokenized_text"),
    "no words": ({"ner": []}, "'sentence' is missing"),
    "no spans": ({"sentence": TOKENS}, "'ner' is missing"),
    "words": ({"tokenized_text": "Orsk", "ner": []}, "'tokenized_text' is 'Orsk'"),
    "empty": ({"tokenized_text": [], "ner": []}, "'tokens' is empty"),
    "span": ({"tokenized_text": TOKENS, "ner": [[0, 1]]}, "'ner[0]' is [0, 1]"),
    "word": ({"tokenized_text": TOKENS, "ner": [[True, 1, "City"]]}, "'ner[0][0]' is True (bool)"),
    "outside": ({"tokenized_text": TOKENS, "ner": [[5, 6, "City"]]}, "'ner[0]'", "5 to 6", "0 to 5"),
    "reversed": ({"tokenized_text": TOKENS, "ner": [[3, 2, "City"]]}, "'ner[0]'", "3 to 2"),
    "index": ({"sentence": TOKENS, "ner": [{"index": ["0"], "type": "City"}]}, "'ner[0].index[0]' is '0'"),
    "type": ({"sentence": TOKENS, "ner": [{"index": [0]}]}, "'ner[0].type' is missing"),
    "lists": ({"sentences": [TOKENS], "ner": []}, "0 lists for 1"),
    "flat": ({"sentences": TOKENS, "ner": [[]] * 6}, "'sentences[0]' is 'The'"),
    "of another sentence": (
        {"sentences": [TOKENS, TOKENS], "ner": [[], [[3, 3, "City"]]]},
        *("'ner[1][0]'", "3 to 3", "6 to 11"),
    ),
}
CASE = FormatCase(FILES, bad=BAD, put=after(DOCUMENT), place="line 2", anything=JSON_VALUES.map(json.dumps))
