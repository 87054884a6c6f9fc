"""Reads JSON of words with spans whose last word is part of them, as other models for nested entities are trained on.

    {"tokenized_text": ["the", "mayor", "of", "Orsk"], "ner": [[0, 3, "Person"], [3, 3, "City"]]}
    {"sentence": ["the", "mayor", "of", "Orsk"], "ner": [{"index": [0, 1, 2, 3], "type": "Person"}]}
    {"doc_key": "news-1", "sentences": [["He", "slept"], ["in", "Orsk"]], "ner": [[], [[3, 3, "City"]]]}

The first form is GLiNER's, the second W2NER's, whose entities list their words, the third DyGIE++'s and PURE's: a
document, whose words are numbered through its sentences; in `ners`, of biaffine-ner, through each sentence, and where
the sentences are texts, by their characters. Records
come as JSON lines or as one JSON list. Other fields (relations, clusters) are ignored and counted.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ...parsing import shown
from ..corpus_format import CorpusFormat, Keys
from ..documents import Annotation, Document, Sentence, document_of_words
from ..json_records import JsonObject, json_values
from ..reading import document_name
from ..schema import Entity, RecordChecker

SPANS, SPANS_OF_SENTENCES = "ner", "ners"


def read_inclusive_spans(path: Path, check: RecordChecker) -> Iterator[Document]:
    """Reads sentences and documents; a CorpusError names the line or record and the field."""
    for number, (raw, where) in enumerate(json_values(path, check)):
        with check.record():
            record = JsonObject(raw, where, check, remedy=f"A record has the fields {', '.join(WORDS)} and {SPANS}")
            words = next((field for field in WORDS if field in record.fields), SENTENCE)
            record.note_other_fields(words, SPANS, SPANS_OF_SENTENCES, "doc_key")
            key = record.fields.get("doc_key")
            doc_id = f"{document_name(path, check)}:{number}" if key is None else str(key)
            if (
                words == SENTENCES
                and SPANS_OF_SENTENCES in record.fields
                and all(isinstance(one, str) for one in record.value(SENTENCES, list))
            ):
                yield _of_characters(record, doc_id)
                continue
            sentences = []
            for sent_id, (tokens, entities) in enumerate(WORDS[words](record)):
                if not tokens:
                    field = f"{words}[{sent_id}]" if words == SENTENCES else words
                    raise record.error(field, "is empty", "Remove it: a sentence needs at least one word")
                sentences.append(Sentence({"tokens": tokens, "entities": entities}, where))
            yield document_of_words(doc_id, sentences, where)


def _of_gliner(record: JsonObject) -> Iterator[tuple[list[Any], list[Entity]]]:
    tokens = record.value(TOKENIZED_TEXT, list)
    yield tokens, entities_of_words(record, record.value(SPANS, list), SPANS, 0, len(tokens))


def _of_w2ner(record: JsonObject) -> Iterator[tuple[list[Any], list[Entity]]]:
    tokens = record.value(SENTENCE, list)
    spans = []
    for entity in record.objects(SPANS):
        words, kind = entity.value("index", list), entity.value("type", str)
        if not words or not all(type(word) is int for word in words):
            raise entity.error("index", f"is {shown(words)}", "It lists the words of the entity, counted from 0")
        if words == list(range(words[0], words[0] + len(words))):
            spans.append([words[0], words[-1], kind])
        else:
            record.check.drop("discontinuous entities dropped", example=f"{entity.where}: {entity.name}")
    yield tokens, entities_of_words(record, spans, SPANS, 0, len(tokens))


def _of_documents(record: JsonObject) -> Iterator[tuple[list[Any], list[Entity]]]:
    name = SPANS_OF_SENTENCES if SPANS_OF_SENTENCES in record.fields else SPANS
    sentences, spans = record.value(SENTENCES, list), record.value(name, list)
    if len(sentences) != len(spans):
        raise record.error(name, f"has {len(spans)} lists for {len(sentences)} sentences", "Give one for each sentence")
    first = 0
    for number, (tokens, of_sentence) in enumerate(zip(sentences, spans, strict=True)):
        for field, value in ((SENTENCES, tokens), (name, of_sentence)):
            if not isinstance(value, list):
                raise record.error(f"{field}[{number}]", f"is {shown(value)}", "It must be a list")
        yield tokens, entities_of_words(record, of_sentence, f"{name}[{number}]", first, len(tokens))
        first += len(tokens) if name == SPANS else 0


def _of_characters(record: JsonObject, doc_id: str) -> Document:
    """A document whose sentences are texts, with inclusive spans by the characters of each."""
    name = SPANS_OF_SENTENCES
    sentences, spans = record.value(SENTENCES, list), record.value(name, list)
    if len(sentences) != len(spans) or not all(isinstance(one, list) for one in spans):
        raise record.error(name, f"is {shown(spans)}", f"Give a list for each of the {len(sentences)} sentences")
    annotations, borders, first = [], [], 0
    for number, (text, of_sentence) in enumerate(zip(sentences, spans, strict=True)):
        field = f"{name}[{number}]"
        for entity in entities_of_words(record, of_sentence, field, 0, len(text), "[first character, last one, type]"):
            fragment = (first + entity["start"], first + entity["end"])
            annotations.append(Annotation(field, (fragment,), entity["type"], None, record.where))
        borders.append(first)
        first += len(text) + 1
    return Document(doc_id, record.where, "\n".join(sentences), annotations, borders[1:], has_sentences=True)


def entities_of_words(
    record: JsonObject, spans: list[Any], name: str, first: int, count: int, form: str = "[first word, last word, type]"
) -> list[Entity]:
    """The entities of a sentence of `count` words, the first of which has the number `first`."""
    entities = []
    for index, span in enumerate(spans):
        if not isinstance(span, list) or [type(part) for part in span] != [int, int, str]:
            raise record.error(f"{name}[{index}]", f"is {shown(span)}", f"A span is {form}")
        start, last, kind = span
        if not first <= start <= last < first + count:
            problem = f"runs from word {start} to {last}, its sentence from {first} to {first + count - 1}"
            rule = "Words count from 0, and the last one is part of the span"
            raise record.error(f"{name}[{index}]", problem, rule)
        entities.append(Entity(start=start - first, end=last - first + 1, type=kind))
    return entities


TOKENIZED_TEXT, SENTENCE, SENTENCES = "tokenized_text", "sentence", "sentences"
WORDS: dict[str, Callable[[JsonObject], Iterator[tuple[list[Any], list[Entity]]]]] = {
    TOKENIZED_TEXT: _of_gliner,
    SENTENCE: _of_w2ner,
    SENTENCES: _of_documents,
}
"""Field of the words → reader of the sentences in a record of this form."""

INCLUSIVE_SPANS = CorpusFormat(
    name="inclusive_spans",
    description="JSON of words with inclusive spans in `ner`: GLiNER, W2NER, DyGIE++, PURE",
    read=read_inclusive_spans,
    keeps_text=False,
    marks_sentences=True,
    has_own_words=True,
    suffixes=(".json", ".jsonl", ".ndjson"),
    keys=(
        Keys.of(f"{TOKENIZED_TEXT} {SPANS}"),
        Keys.of(f"{SENTENCE} {SPANS}"),
        Keys.of(f"{SENTENCES} {SPANS}"),
        Keys.of(f"{SENTENCES} {SPANS_OF_SENTENCES}"),
    ),
    tools="GLiNER, W2NER, DyGIE++, PURE, biaffine-ner",
    example='{"tokenized_text": ["the", "mayor", "of", "Orsk"], "ner": [[0, 3, "Person"], [3, 3, "City"]]}',
)
