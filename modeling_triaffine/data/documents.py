"""Texts annotated by characters → sentences of words: what brat and the exports of annotation tools have in common.

A reader of such a format makes an `AnnotatedText` of every document, as its file has it; `sentences_of` checks the
annotations against the text, cuts it as raw text is cut for prediction (`text_triaffine.py`) and lets the entities
follow. What cannot follow is dropped, counted, and shown with the text around it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from ..model.text_triaffine import DEFAULT_WORD_SPLITTER, split_text
from ..model.text_triaffine import sentence_splitter as named_sentence_splitter
from ..model.text_triaffine import word_splitter as named_word_splitter
from .alignment import LOST_IN_A_WORD, WordSplitter, align_entities, split_words
from .schema import CorpusError, Entity, Record, RecordChecker

DEFAULT_SENTENCE_SPLITTER = "punctuation"
MAX_SENTENCE_WORDS = 256
"""Longer sentences are cut into pieces of so many words, as `TriaffineProcessor` does by default with raw text."""

BYTE_ORDER_MARK = "\ufeff"
SHOWN_AROUND = 20  # characters of text that examples show on either side
SHOWN_INSIDE = 40
# White space is no difference between a text and what a tool notes of it; some note a line end as backslash and n.
_NOT_COMPARED = re.compile(r"\s+|\\[nrt]")

Offsets = tuple[int, int]
"""(start, end) in characters, end exclusive."""


@dataclass(frozen=True)
class Annotation:
    """An entity as an annotation tool wrote it.

    Args:
        name: what it is called in its file, for messages: "T3", "entities[2]".
        fragments: its parts, in characters of the text; one, unless it is discontinuous.
        type: the entity's type.
        spelled: its text as the tool noted it, against which the offsets are checked; None where it did not.
        where: its place in the file, for messages: "line 7".
    """

    name: str
    fragments: tuple[Offsets, ...]
    type: str
    spelled: str | None
    where: str


@dataclass(frozen=True)
class AnnotatedText:
    """A document as its file has it.

    Args:
        doc_id: its name.
        text: as written.
        annotations: the entities.
        where: its place in the corpus, for messages.
        borders: positions in the text that no sentence runs over, in order.
    """

    doc_id: str
    text: str
    annotations: Sequence[Annotation]
    where: str
    borders: Sequence[int] = ()


def sentences_of(
    document: AnnotatedText,
    check: RecordChecker,
    word_splitter: WordSplitter | None = None,
    sentence_splitter: str = DEFAULT_SENTENCE_SPLITTER,
) -> Iterator[Record]:
    """The sentences of a document, with the entities that their words can express.

    Counted and dropped are entities that begin or end inside a word, that run over the end of a sentence, that are
    discontinuous (fragments with nothing but white space between them are not) or white space only.

    Args:
        document: as its file has it.
        check: checks the records, and counts.
        word_splitter: text → [(start, end)] in characters; None is the pipeline's own.
        sentence_splitter: "punctuation", "lines" or "none".

    Raises:
        CorpusError: an annotation lies outside the text, or its text is not what the tool noted.
    """
    check.check_encodable(document.text, "text", document.where)
    document = _counted_in_characters(document, check)
    words_by_sentence = _cut(document, word_splitter, sentence_splitter)
    if not words_by_sentence:
        check.note("texts without a word ignored", example=document.where)
    entities = _aligned(document, words_by_sentence, check)
    for number, (words, inside) in enumerate(zip(words_by_sentence, entities, strict=True)):
        raw = {
            "id": f"{document.doc_id}:{number}",
            "doc_id": document.doc_id,
            "sent_id": number,
            "tokens": [document.text[start:end] for start, end in words],
            "entities": inside,
        }
        yield check(raw, f"{document.where}, sentence {number}")


def in_context(text: str, start: int, end: int) -> str:
    """The characters `start` to `end` in brackets, in the text around them, on one line.

    >>> in_context("It rained on the mayor of Orsk", 26, 29)
    '…ned on the mayor of [Ors]k'
    """
    before = ("…" if start > SHOWN_AROUND else "") + text[max(0, start - SHOWN_AROUND) : start]
    after = text[end : end + SHOWN_AROUND] + ("…" if end + SHOWN_AROUND < len(text) else "")
    inside = text[start:end]
    if len(inside) > SHOWN_INSIDE:
        inside = f"{inside[: SHOWN_INSIDE // 2]}…{inside[-SHOWN_INSIDE // 2 :]}"
    return re.sub(r"\s", " ", f"{before}[{inside}]{after}").strip()


def _cut(document: AnnotatedText, word_splitter: WordSplitter | None, sentence_splitter: str) -> list[list[Offsets]]:
    """The words of every sentence, in characters of the text."""
    split_into_words = word_splitter or named_word_splitter(DEFAULT_WORD_SPLITTER)
    split_into_sentences = named_sentence_splitter(sentence_splitter)

    def words(text: str) -> list[Offsets]:
        return split_words(text, split_into_words)

    return [
        [(first + start, first + end) for start, end in sentence.offsets]
        for first, last in pairwise((0, *document.borders, len(document.text)))
        for sentence in split_text(document.text[first:last], split_into_sentences, words, MAX_SENTENCE_WORDS)
    ]


def _aligned(
    document: AnnotatedText, words_by_sentence: Sequence[Sequence[Offsets]], check: RecordChecker
) -> list[list[Entity]]:
    """The entities of every sentence, by its words; the others are dropped."""
    words = [word for sentence in words_by_sentence for word in sentence]
    aligned, lost = align_entities(document.text, list(_contiguous(document, check)), words)
    for entity in lost:
        check.drop(LOST_IN_A_WORD, example=_example(document, entity))
    first_words = list(accumulate(map(len, words_by_sentence), initial=0))
    entities: list[list[Entity]] = [[] for _ in words_by_sentence]
    for entity in aligned:
        sentence = bisect_right(first_words, entity["start"]) - 1
        start, end = entity["start"] - first_words[sentence], entity["end"] - first_words[sentence]
        if end <= len(words_by_sentence[sentence]):
            entities[sentence].append(Entity(start=start, end=end, type=entity["type"]))
        else:
            start, end = words[entity["start"]][0], words[entity["end"] - 1][1]
            example = _example(document, Entity(start=start, end=end, type=entity["type"]))
            check.drop("entities lost, over the end of a sentence", example=example)
    return entities


def _contiguous(document: AnnotatedText, check: RecordChecker) -> Iterator[Entity]:
    """The entities that are one stretch of text, by characters; the others are dropped."""
    for annotation in document.annotations:
        parts = _joined(document.text, annotation.fragments)
        entity = Entity(start=parts[0][0], end=parts[-1][1], type=annotation.type)
        if len(parts) > 1:
            check.drop("discontinuous entities dropped", example=_example(document, entity))
        elif not document.text[entity["start"] : entity["end"]].strip():
            check.drop("entities of white space dropped", example=f"{annotation.where}: {annotation.name}")
        else:
            yield entity


def _joined(text: str, fragments: Sequence[Offsets]) -> list[Offsets]:
    """The fragments in order, those joined that only white space separates: brat ends one at every line end."""
    parts: list[Offsets] = []
    for start, end in sorted(fragments):
        if parts and not text[parts[-1][1] : start].strip():
            parts[-1] = (parts[-1][0], max(end, parts[-1][1]))
        else:
            parts.append((start, end))
    return parts


def _example(document: AnnotatedText, entity: Entity) -> str:
    shown = in_context(document.text, entity["start"], entity["end"])
    return f"{document.where}: {entity['type']} {shown}"


def _counted_in_characters(document: AnnotatedText, check: RecordChecker) -> AnnotatedText:
    """The document with offsets that count characters of its text, whatever its tool counted.

    If something is wrong with the offsets as they stand, and if under another way of counting all of them spell what
    the tool noted, that way is taken.
    """
    readings = _readings(document)
    as_it_stands = next(readings)
    problem = _problem(as_it_stands, check)
    if problem is None:
        return as_it_stands
    if all(annotation.spelled for annotation in document.annotations):
        for reading in readings:
            if _problem(reading, check) is None:
                check.note("texts annotated with other counts of characters, converted", example=document.where)
                return reading
    raise problem


def _problem(document: AnnotatedText, check: RecordChecker) -> CorpusError | None:
    """The first annotation that lies outside the text, or is there not what its tool noted."""
    for annotation in document.annotations:
        try:
            for start, end in annotation.fragments:
                raw = {"start": start, "end": end, "type": annotation.type}
                check.entity(raw, annotation.name, len(document.text), annotation.where, "characters")
        except CorpusError as error:
            return error
        found = " ".join(document.text[start:end] for start, end in annotation.fragments)
        if annotation.spelled is not None and _bare(found) != _bare(annotation.spelled):
            start, end = annotation.fragments[0][0], annotation.fragments[-1][1]
            problem = (
                f"'{annotation.name}' is noted as {annotation.spelled!r}, but from {start} to {end} the text is "
                f"'{in_context(document.text, start, end)}'"
            )
            return check.error(annotation.where, problem, "Give the text that was annotated, unchanged")
    return None


def _readings(document: AnnotatedText) -> Iterator[AnnotatedText]:
    """The document under each way in which tools count the characters of a text; first as it stands.

    A byte order mark, a line end of two characters and (in JavaScript) a character beyond U+FFFF count one or two, or
    none.
    """
    text = document.text
    texts = [" " + text[1:], text[1:]] if text.startswith(BYTE_ORDER_MARK) else [text]
    texts += [other.replace("\r\n", "\n") for other in texts if "\r\n" in other]
    for other in texts:
        yield replace(document, text=other)
    for other in texts:
        yield _from_utf16(replace(document, text=other))


def _from_utf16(document: AnnotatedText) -> AnnotatedText:
    """The document with offsets in UTF-16 units turned into characters; those beyond the end stay beyond it."""
    characters = [n for n, character in enumerate(document.text) for _ in range(1 + (ord(character) > 0xFFFF))]
    characters += [len(document.text), len(document.text) + 1]

    def position(offset: int) -> int:
        return characters[min(offset, len(characters) - 1)]

    annotations = [
        replace(annotation, fragments=tuple((position(start), position(end)) for start, end in annotation.fragments))
        for annotation in document.annotations
    ]
    return replace(document, annotations=annotations)


def _bare(text: str) -> str:
    return _NOT_COMPARED.sub("", text)
