"""Reads JSON of words with spans whose last word is part of them, as other models for nested entities are trained on.

    {"tokenized_text": ["the", "mayor", "of", "Orsk"], "ner": [[0, 3, "Person"], [3, 3, "City"]]}
    {"sentence": ["the", "mayor", "of", "Orsk"], "ner": [{"index": [0, 1, 2, 3], "type": "Person"}]}
    {"doc_key": "news-1", "sentences": [["He", "slept"], ["in", "Orsk"]], "ner": [[], [[3, 3, "City"]]]}

The first form is GLiNER's, the second W2NER's, whose entities list their words, the third DyGIE++'s and PURE's: a
document, whose words are numbered through its sentences; in `ners`, of biaffine-ner, through each sentence, and where
the sentences are texts, by their characters. Records
come as JSON lines or as one JSON list. Other fields (relations, clusters) are ignored and counted.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...parsing import shown
from ..corpus_format import CorpusFormat, Keys
from ..documents import Annotation, Document, Sentence, document_of_words
from ..json_records import JsonObject, TypedSpan, json_reader
from ..schema import Entity

SPANS, SPANS_OF_SENTENCES = "ner", "ners"
TOKENIZED_TEXT, SENTENCE, SENTENCES = "tokenized_text", "sentence", "sentences"
OF_TEXTS = (
    "If its spans count characters, as in RuNNE, convert it with its fields named: triaffine-ner convert "
    f"--columns text={SENTENCES} entities={SPANS_OF_SENTENCES} inclusive_end=true "
    f"(columns={{'text': '{SENTENCES}', 'entities': '{SPANS_OF_SENTENCES}', 'inclusive_end': True}} in Python)"
)
"""What to do with a text in place of sentences."""


def _document(record: JsonObject, default_id: str) -> Document:
    words = next((field for field in WORDS if field in record.fields), SENTENCE)
    record.note_other_fields((words, SPANS, SPANS_OF_SENTENCES, "doc_key"))
    key = record.fields.get("doc_key")
    doc_id = default_id if key is None else str(key)
    may_be_of_characters = words == SENTENCES and SPANS_OF_SENTENCES in record.fields
    if may_be_of_characters and isinstance(record.fields[words], str):
        raise record.error(words, f"is one text, {shown(record.fields[words])}", OF_TEXTS)
    first = next(iter(record.value(words, list)), None)
    if may_be_of_characters and isinstance(first, str):
        return _of_characters(record, doc_id)
    return document_of_words(doc_id, WORDS[words](record), record.where)


def _of_gliner(record: JsonObject) -> Iterator[Sentence]:
    tokens = record.value(TOKENIZED_TEXT, list)
    entities = entities_of_words(record, record.value(SPANS, list), SPANS, len(tokens))
    yield Sentence({"tokens": tokens, "entities": entities}, record.where)


def _of_w2ner(record: JsonObject) -> Iterator[Sentence]:
    tokens = record.value(SENTENCE, list)
    spans = []
    for entity in record.objects(SPANS):
        words = entity.value("index", list[int], "It lists the words of the entity, counted from 0")
        kind = entity.value("type", str)
        if words and words == list(range(words[0], words[0] + len(words))):
            spans.append([words[0], words[-1], kind])
        else:
            record.check.drop("discontinuous entities dropped", example=f"{entity.where}: {entity.name}")
    entities = entities_of_words(record, spans, SPANS, len(tokens))
    yield Sentence({"tokens": tokens, "entities": entities}, record.where)


def _of_documents(record: JsonObject) -> Iterator[Sentence]:
    name = SPANS_OF_SENTENCES if SPANS_OF_SENTENCES in record.fields else SPANS
    first = 0
    for number, (tokens, spans) in enumerate(_with_spans(record, record.value(SENTENCES, list[list[Any]]), name)):
        entities = entities_of_words(record, spans, f"{name}[{number}]", len(tokens), first)
        yield Sentence({"tokens": tokens, "entities": entities}, f"{record.where}, {SENTENCES}[{number}]")
        first += len(tokens) if name == SPANS else 0


def _of_characters(record: JsonObject, doc_id: str) -> Document:
    """A document whose sentences are texts, with inclusive spans by the characters of each."""
    sentences = record.value(SENTENCES, list[str])
    annotations, borders, first = [], [], 0
    for number, (text, spans) in enumerate(_with_spans(record, sentences, SPANS_OF_SENTENCES)):
        name = f"{SPANS_OF_SENTENCES}[{number}]"
        for entity in entities_of_words(record, spans, name, len(text), form="[first character, last one, type]"):
            fragment = (first + entity["start"], first + entity["end"])
            annotations.append(Annotation(name, (fragment,), entity["type"], None, record.where))
        borders.append(first)
        first += len(text) + 1
    return Document(doc_id, record.where, "\n".join(sentences), annotations, borders[1:], has_sentences=True)


def _with_spans(record: JsonObject, sentences: Sequence[Any], name: str) -> Iterator[tuple[Any, list[Any]]]:
    """Each sentence of a document with its list of spans."""
    spans = record.value(name, list[list[Any]])
    if len(sentences) != len(spans):
        raise record.error(name, f"has {len(spans)} lists for {len(sentences)} sentences", "Give one for each sentence")
    return zip(sentences, spans, strict=True)


def entities_of_words(
    record: JsonObject,
    spans: Sequence[object],
    name: str,
    num_words: int,
    first: int = 0,
    form: str = "[first word, last word, type]",
) -> list[Entity]:
    """The entities of a sentence of `num_words` words, the first of which has the number `first`."""
    entities = []
    checked = record.check.typed({name: spans}, name, list[TypedSpan], record.where, record.name, f"A span is {form}")
    for index, (start, last, kind) in enumerate(checked):
        if not first <= start <= last < first + num_words:
            problem = f"runs from word {start} to {last}, its sentence from {first} to {first + num_words - 1}"
            rule = "Words count from 0, and the last one is part of the span"
            raise record.error(f"{name}[{index}]", problem, rule)
        entities.append(Entity(start=start - first, end=last - first + 1, type=kind))
    return entities


WORDS: dict[str, Callable[[JsonObject], Iterator[Sentence]]] = {
    TOKENIZED_TEXT: _of_gliner,
    SENTENCE: _of_w2ner,
    SENTENCES: _of_documents,
}
"""Field of the words → reader of the sentences in a record of this form."""

INCLUSIVE_SPANS = CorpusFormat(
    name="inclusive_spans",
    description="JSON of words with inclusive spans in `ner`: GLiNER, W2NER, DyGIE++, PURE",
    read=json_reader(_document, f"{', '.join(WORDS)} and {SPANS}"),
    keeps_text=False,
    keys=(
        *(Keys.of(f"{words} {SPANS}") for words in WORDS),
        Keys.of(f"doc_key {SENTENCES}"),
        Keys.of(f"{SENTENCES} {SPANS_OF_SENTENCES}"),
    ),
    tools="GLiNER, W2NER, DyGIE++, PURE, biaffine-ner",
    example='{"tokenized_text": ["the", "mayor", "of", "Orsk"], "ner": [[0, 3, "Person"], [3, 3, "City"]]}',
)
