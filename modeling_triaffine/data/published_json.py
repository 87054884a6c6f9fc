"""The JSON of the published experiments: one list of records with `tokens`, `pos`, `entities`, `ltokens`, `rtokens`.

The form in which the triaffine experiments and related work (locate-and-label and its successors) keep ACE, KBP and
GENIA. A record brings its own context; it has no dependable id, so ids are made from the file's name and the record's
number, and each record is a document of its own.
"""

from collections.abc import Iterator
from pathlib import Path

from .reading import CorpusFormat, json_list
from .schema import Record, RecordChecker

CONTEXT_NAMES = {"ltokens": "left_tokens", "rtokens": "right_tokens"}
NOT_FOR_NER = ("relations", "org_id", "orig_id")
"""Fields of that form that say nothing about entities. `orig_id` numbers sentences in one corpus and documents in
another, so no document is made from it."""


def read_published_json(path: Path, check: RecordChecker) -> Iterator[Record]:
    """The file's sentences. The list is parsed as a whole, so memory grows with the file.

    Raises:
        CorpusError: names the record (counted from 0) and the field of what cannot be read.
    """
    name = path.name.partition(".")[0]
    for number, (raw, where) in enumerate(json_list(path, check)):
        identifier = f"{name}:{number}"
        if isinstance(raw, dict):
            kept = {CONTEXT_NAMES.get(key, key): value for key, value in raw.items() if key not in NOT_FOR_NER}
            raw = {**kept, "id": identifier, "doc_id": identifier, "sent_id": 0}
        yield check(raw, where)


PUBLISHED_JSON = CorpusFormat(
    name="published_json",
    description="one JSON list of records with `ltokens` and `rtokens`, as in the published experiments",
    suffixes=(".json",),
    recognizes=lambda head: head.startswith("["),
    read=read_published_json,
)
