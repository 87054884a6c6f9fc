"""Reads the questions and answers that models of machine reading comprehension are trained on (Li et al., ACL 2020).

    {"context": "the mayor of Orsk", "entity_label": "City", "span_position": ["3;3"], "qas_id": "0.1", "query": "…"}

Each record has the entities of one type in a sentence, whose words are separated by spaces. The records of a sentence
follow each other. The last word of a span is part of it.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from ..parsing import shown
from .corpus_format import CorpusFormat
from .json_forms import json_values, record_keys
from .json_objects import JsonObject
from .reading import stem
from .schema import Entity, Record, RecordChecker

FIELDS = ("context", "entity_label", "span_position")
# Fields that repeat these, or say nothing about entities.
OTHERS = {"qas_id", "query", "impossible", "start_position", "end_position"}


def read_mrc(path: Path, check: RecordChecker) -> Iterator[Record]:
    """Reads one sentence from the records of all its types; a CorpusError names the record and the field."""
    records = (JsonObject(raw, where, check) for raw, where in json_values(path, check))
    for number, (_, of_sentence) in enumerate(groupby(records, _sentence)):
        first, *others = of_sentence
        words = first.value("context", str).split()
        identifier = f"{stem(path)}:{number}"
        entities = [entity for record in (first, *others) for entity in _entities(record, len(words))]
        raw = {"id": identifier, "doc_id": identifier, "sent_id": 0, "tokens": words, "entities": entities}
        yield check(raw, first.where)


def _sentence(record: JsonObject) -> tuple[str, str]:
    """What records of the same sentence have in common: the words, and the number before the point of `qas_id`.

    A `qas_id` without a point numbers the records, and says nothing about sentences.
    """
    record.require(FIELDS, "a question about a sentence")
    for ignored in record.fields.keys() - OTHERS - {*FIELDS}:
        record.check.note(f"field '{ignored}' ignored")
    number, point, _ = str(record.fields.get("qas_id")).partition(".")
    return number if point else "", record.value("context", str)


def _entities(record: JsonObject, words: int) -> Iterator[Entity]:
    kind = record.value("entity_label", str)
    for index, span in enumerate(record.value("span_position", list)):
        ends = span.split(";") if isinstance(span, str) else span
        if not (isinstance(ends, list) and len(ends) == 2 and all(re.fullmatch(r"\d{1,9}", str(end)) for end in ends)):
            problem = f"is {shown(span)}"
            raise record.error(f"span_position[{index}]", problem, 'A span is "first word;last word"')
        start, last = map(int, ends)
        if not start <= last < words:
            problem = f"runs from word {start} to {last}, its sentence from 0 to {words - 1}"
            raise record.error(f"span_position[{index}]", problem, "Words count from 0, and the last one is part of it")
        yield Entity(start=start, end=last + 1, type=kind)


MRC = CorpusFormat(
    name="mrc",
    description="questions and answers of machine reading comprehension, one record for each type in a sentence",
    suffixes=(".json", ".jsonl"),
    recognizes=lambda head: {"context", "query"} <= record_keys(head),
    read=read_mrc,
)
