"""Questions and answers of machine reading comprehension."""

import json

from ..corpora import QUESTIONS
from . import JSON_VALUES, FormatCase, after

FILES = {"a.json": json.dumps(QUESTIONS, indent=2)}
BAD = {
    "no answers": ({"context": "Orsk", "entity_label": "City", "query": "?"}, "'span_position' is missing"),
    "span": ({**QUESTIONS[0], "span_position": ["3-3"]}, "'span_position[0]' is '3-3'"),
    "huge": ({**QUESTIONS[0], "span_position": [f"3;{'9' * 5000}"]}, "'span_position[0]' is '3;9999"),
}
CASE = FormatCase(FILES, bad=BAD, put=after(QUESTIONS[0]), place="line 2", anything=JSON_VALUES.map(json.dumps))
