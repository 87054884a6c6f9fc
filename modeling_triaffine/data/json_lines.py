"""JSON lines, this project's own form: one sentence a line with the fields of `schema.FEATURES`.

    {"id": "a:0", "doc_id": "a", "sent_id": 0, "tokens": ["IL-2", "gene"], "pos": [],
     "entities": [{"start": 0, "end": 2, "type": "DNA"}]}

(on one line). Only `tokens` and `entities` must be there: a file without ids is one document, its sentences in order.
Optional `left_tokens` and `right_tokens` are the corpus' own context.
"""

from collections.abc import Iterator
from pathlib import Path

from .reading import CorpusFormat, json_lines
from .schema import Record, RecordChecker


def read_json_lines(path: Path, check: RecordChecker) -> Iterator[Record]:
    """The file's sentences, read line by line.

    Raises:
        CorpusError: names the line and the field of what cannot be read.
    """
    for number, (raw, where) in enumerate(json_lines(path, check)):
        if isinstance(raw, dict):
            raw = {"id": f"{path.name}:{where}", "doc_id": path.name, "sent_id": number, **raw}
        yield check(raw, where)


JSON_LINES = CorpusFormat(
    name="json_lines",
    description="one JSON object a line",
    suffixes=(".jsonl", ".ndjson", ".json"),
    recognizes=lambda head: head.startswith("{"),
    read=read_json_lines,
)
