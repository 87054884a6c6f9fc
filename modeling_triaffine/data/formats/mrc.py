"""Reads the questions and answers of machine reading comprehension (Li et al., ACL 2020), JSON of words.

    {"context": "the mayor of Orsk", "entity_label": "City", "span_position": ["3;3"], "qas_id": "0.1", "query": "…"}

Each record has the entities of one type in a sentence, and the records of a sentence follow each other. The last word
of a span is part of it.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from ..corpus_format import CorpusFormat, Keys
from ..documents import Document, Sentence, document_of_words
from ..json_records import JsonObject, json_values
from ..reading import document_name
from ..record_checker import RecordChecker
from ..schema import Entity
from .word_spans import entities_of_words

QUESTION_FIELDS = ("context", "entity_label", "span_position")
# Fields that repeat these, or say nothing about entities.
OTHER_QUESTION_FIELDS = ("qas_id", "query", "impossible", "start_position", "end_position")


def read_mrc(path: Path, check: RecordChecker) -> Iterator[Document]:
    """Reads one sentence from the records of all its types; a CorpusError names the record and the field."""
    file_name = document_name(path, check)
    questions = _questions(path, check)
    for number, (_, of_sentence) in enumerate(groupby(questions, key=lambda question: question[0])):
        records = [record for _, record in of_sentence]
        with check.record():
            words = records[0].value("context", str).split()
            identifier = f"{file_name}:{number}"
            entities = [entity for record in records for entity in _of_question(record, len(words))]
            fields = {"id": identifier, "tokens": words, "entities": entities}
            yield document_of_words(identifier, [Sentence(fields, records[0].where)])


def _questions(path: Path, check: RecordChecker) -> Iterator[tuple[tuple[str, str], JsonObject]]:
    """The records with what those of a sentence have in common: its words, and the number before the point of `qas_id`.

    A `qas_id` without a point numbers the records, and says nothing about sentences.
    """
    for raw, where in json_values(path, check):
        with check.record():
            record = JsonObject(raw, where, check)
            record.require(QUESTION_FIELDS, "a question about a sentence")
            record.note_other_fields((*QUESTION_FIELDS, *OTHER_QUESTION_FIELDS))
            number, point, _ = str(record.fields.get("qas_id")).partition(".")
            yield (number if point else "", record.value("context", str)), record


def _of_question(record: JsonObject, num_words: int) -> list[Entity]:
    kind = record.value("entity_label", str)
    spans: list[object] = []
    for span in record.value("span_position", list):
        ends = span.split(";") if isinstance(span, str) else span
        is_span = isinstance(ends, list) and all(re.fullmatch(r"\d{1,9}", str(end)) for end in ends)
        spans.append([*map(int, ends), kind] if is_span else span)
    return entities_of_words(record, spans, "span_position", num_words, form='"first word;last word"')


MRC = CorpusFormat(
    name="mrc",
    description="questions and answers of machine reading comprehension, one record for each type in a sentence",
    read=read_mrc,
    keeps_text=False,
    keys=(Keys.of("context query"),),
    tools="models of machine reading comprehension (mrc-ner.train)",
    example='{"context": "The mayor slept .", "entity_label": "Person", "span_position": ["0;1"], "query": "…"}',
)
