"""Texts annotated by characters → sentences of words: the common part of ACE, brat and exports of annotation tools.

A reader of such a format yields an `AnnotatedText` for every document; `sentences_of` checks the annotations against
the text, splits it as raw text is split for prediction (`text_triaffine.py`) and aligns the entities with the words.
Entities that cannot be aligned are dropped, counted and shown in context.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..model.text_triaffine import DEFAULT_WORD_SPLITTER, INVISIBLE_SPACES, Offsets, split_text, whole_text
from ..model.text_triaffine import sentence_splitter as named_sentence_splitter
from ..model.text_triaffine import word_splitter as named_word_splitter
from .alignment import LOST_ACROSS_SENTENCES, LOST_IN_A_WORD, WordSplitter, align_entities, by_sentence, split_words
from .corpus_format import TEXT_OPTIONS, CorpusFormat
from .reading import BYTE_ORDER_MARK
from .schema import CorpusError, Document, Entity, Record, RecordChecker

DEFAULT_SENTENCE_SPLITTER = "punctuation"
MAX_SENTENCE_WORDS = 256
"""Longer sentences are cut into pieces of this many words, as `TriaffineProcessor` does by default with raw text."""

LOST_ACROSS_CUTS = f"entities across sentences, cut after {MAX_SENTENCE_WORDS} words, dropped"
"""What is said in place of [`LOST_ACROSS_SENTENCES`] of texts that are one sentence each, and none but these cuts."""

SHOWN_AROUND = 20  # characters of context on either side of an example
SHOWN_INSIDE = 40
JOINERS = "\u200c\u200d"  # parts of ordinary words, in Persian or Hindi, and of emoji
# Not compared between a tool's quote and the text: white space, for which some tools write backslash and n, and marks
# of the byte order.
_NOT_COMPARED = re.compile(rf"[\s{BYTE_ORDER_MARK}]+|\\[nrt]")


@dataclass(frozen=True)
class Annotation:
    """An entity as an annotation tool wrote it; `name` ("T3") and `where` ("line 7") are for messages.

    A discontinuous entity has several fragments. Offsets are checked against the `quote`, the entity's text as the tool
    has it; None if it quotes nothing.
    """

    name: str
    fragments: tuple[Offsets, ...]
    type: str
    quote: str | None
    where: str


@dataclass(frozen=True)
class AnnotatedText:
    """A document as its file has it; no sentence crosses the `borders`, positions in the text in their order.

    `where` is its place in the corpus, for messages. With `has_sentences`, what is between two borders is one sentence.
    A corpus with words of its own gives those of every sentence, and perhaps their parts of speech.
    """

    doc_id: str
    text: str
    annotations: Sequence[Annotation]
    where: str
    borders: Sequence[int] = ()
    has_sentences: bool = False
    words: Sequence[Sequence[Offsets]] | None = None
    pos: Sequence[Sequence[str]] = ()


def format_of_texts(
    read: Callable[..., Iterator[AnnotatedText]], options: tuple[str, ...] = (), **fields: Any
) -> CorpusFormat:
    """A format of annotated texts, from its reader and the other `fields` of [`CorpusFormat`].

    Args:
        read: `read(path, check, **options)` yields annotated texts.
        options: of `read`; the format also takes `word_splitter` and `sentence_splitter`, see [`sentences_of`].
    """

    def read_sentences(
        path: Path,
        check: RecordChecker,
        word_splitter: WordSplitter | None = None,
        sentence_splitter: str = DEFAULT_SENTENCE_SPLITTER,
        **given: Any,
    ) -> Iterator[Record]:
        for document in read(path, check, **given):
            yield from sentences_of(document, check, word_splitter, sentence_splitter)

    def read_texts(path: Path, check: RecordChecker) -> Iterator[Document]:
        return (document_of(document, check) for document in read(path, check))

    return CorpusFormat(read=read_sentences, options=(*TEXT_OPTIONS, *options), read_texts=read_texts, **fields)


def document_of(document: AnnotatedText, check: RecordChecker) -> Document:
    """The text as written with its contiguous entities, whatever words it will be cut into.

    Raises:
        CorpusError: an annotation is outside of the text, or its text differs from the tool's quote.
    """
    document = _counted_in_characters(document, check)
    entities = [without_space(document.text, entity) for entity in _contiguous(document, check)]
    return Document(doc_id=document.doc_id, text=document.text, entities=entities)


def sentences_of(
    document: AnnotatedText,
    check: RecordChecker,
    word_splitter: WordSplitter | None = None,
    sentence_splitter: str = DEFAULT_SENTENCE_SPLITTER,
) -> Iterator[Record]:
    """The sentences of a document, with the entities that align with their words.

    Entities are dropped and counted if they begin or end inside a word, cross the end of a sentence, are discontinuous
    (fragments separated by white space alone are joined) or consist of white space.

    Args:
        word_splitter: text → [(start, end)] in characters; None is the pipeline's own.
        sentence_splitter: "punctuation", "lines" or "none", for documents without sentences; those of more than
            `MAX_SENTENCE_WORDS` words are cut in any case.

    Raises:
        CorpusError: an annotation is outside of the text, or its text differs from the tool's quote.
    """
    document = _counted_in_characters(document, check)
    words_by_sentence = document.words
    if words_by_sentence is None:
        words_by_sentence = _split(document, word_splitter, sentence_splitter)
    if not words_by_sentence:
        check.note("texts without a word ignored", example=document.where)
    cut_alone = sentence_splitter == "none" and not document.has_sentences
    across = LOST_ACROSS_CUTS if cut_alone else LOST_ACROSS_SENTENCES
    entities = _aligned(document, words_by_sentence, check, across)
    for number, (words, inside) in enumerate(zip(words_by_sentence, entities, strict=True)):
        raw = {
            "id": f"{document.doc_id}:{number}",
            "doc_id": document.doc_id,
            "sent_id": number,
            "tokens": [document.text[start:end] for start, end in words],
            "pos": document.pos[number] if document.pos else [],
            "entities": inside,
        }
        yield check(raw, f"{document.where}, sentence {number}")


def in_context(text: str, start: int, end: int) -> str:
    """The characters `start` to `end` in brackets with some context, on one line; invisible characters are escaped.

    >>> in_context("It rained on the mayor of Orsk", 26, 29)
    '…ned on the mayor of [Ors]k'
    """
    before = ("…" if start > SHOWN_AROUND else "") + text[max(0, start - SHOWN_AROUND) : start]
    after = text[end : end + SHOWN_AROUND] + ("…" if end + SHOWN_AROUND < len(text) else "")
    inside = text[start:end]
    if len(inside) > SHOWN_INSIDE:
        inside = f"{inside[: SHOWN_INSIDE // 2]}…{inside[-SHOWN_INSIDE // 2 :]}"
    shown = re.sub(r"\s", " ", f"{before}[{inside}]{after}").strip()
    return "".join(c if c.isprintable() or c in JOINERS else c.encode("unicode_escape").decode() for c in shown)


def _split(document: AnnotatedText, word_splitter: WordSplitter | None, sentence_splitter: str) -> list[list[Offsets]]:
    words = partial(split_words, word_splitter=word_splitter or named_word_splitter(DEFAULT_WORD_SPLITTER))
    sentences = whole_text if document.has_sentences else named_sentence_splitter(sentence_splitter)
    whole = (
        [(first + start, first + end) for start, end in sentence]
        for first, last in pairwise((0, *document.borders, len(document.text)))
        for sentence in split_text(document.text[first:last], sentences, words)
    )
    size = MAX_SENTENCE_WORDS
    return [sentence[first : first + size] for sentence in whole for first in range(0, len(sentence), size)]


def _aligned(
    document: AnnotatedText, words_by_sentence: Sequence[Sequence[Offsets]], check: RecordChecker, across: str
) -> list[list[Entity]]:
    """The entities of every sentence, by words; `across` is said of those that cross the end of one."""
    words = [word for sentence in words_by_sentence for word in sentence]
    aligned, lost = align_entities(document.text, list(_contiguous(document, check)), words)
    for entity in lost:
        check.drop(LOST_IN_A_WORD, example=_example(document, entity))
    entities, crossing = by_sentence(aligned, list(map(len, words_by_sentence)))
    for entity in crossing:
        start, end = words[entity["start"]][0], words[entity["end"] - 1][1]
        example = _example(document, Entity(start=start, end=end, type=entity["type"]))
        check.drop(across, example=example)
    return entities


def _contiguous(document: AnnotatedText, check: RecordChecker) -> Iterator[Entity]:
    for annotation in document.annotations:
        parts = _joined(document.text, annotation.fragments)
        entity = Entity(start=parts[0][0], end=parts[-1][1], type=annotation.type)
        if len(parts) > 1:
            check.drop("discontinuous entities dropped", example=_example(document, entity))
        elif not document.text[entity["start"] : entity["end"]].translate(INVISIBLE_SPACES).strip():
            check.drop("entities of white space dropped", example=f"{annotation.where}: {annotation.name}")
        else:
            yield entity


def without_space(text: str, entity: Entity) -> Entity:
    """The entity without white space at its boundaries, as the pipeline returns entities."""
    inside = text[entity["start"] : entity["end"]].translate(INVISIBLE_SPACES)
    start = entity["start"] + len(inside) - len(inside.lstrip())
    return Entity(start=start, end=start + len(inside.strip()), type=entity["type"])


def _joined(text: str, fragments: Sequence[Offsets]) -> list[Offsets]:
    """The fragments in order, joined if white space alone separates them: brat starts a new one on every line."""
    parts: list[Offsets] = []
    for start, end in sorted(fragments):
        if parts and not text[parts[-1][1] : start].translate(INVISIBLE_SPACES).strip():
            parts[-1] = (parts[-1][0], max(end, parts[-1][1]))
        else:
            parts.append((start, end))
    return parts


def _example(document: AnnotatedText, entity: Entity) -> str:
    shown = in_context(document.text, entity["start"], entity["end"])
    return f"{document.where}: {entity['type']} {shown}"


def _counted_in_characters(document: AnnotatedText, check: RecordChecker) -> AnnotatedText:
    """The document with offsets that count characters of its text, whatever its tool counted.

    If the offsets are wrong as they stand, and another way of counting makes all of them match the tool's quotes, that
    way is used.
    """
    check.check_encodable(document.text, "text", document.where)
    candidates = _ways_of_counting(document)
    as_it_stands = next(candidates)
    problem = _problem(as_it_stands, check)
    if problem is None:
        return as_it_stands
    if all(annotation.quote for annotation in document.annotations):
        for candidate in candidates:
            if _problem(candidate, check) is None:
                check.note("texts with other character counts converted", example=document.where)
                return candidate
    raise problem


def _problem(document: AnnotatedText, check: RecordChecker) -> CorpusError | None:
    """The error of the first annotation that is outside of the text or differs from its tool's quote, if any."""
    for annotation in document.annotations:
        try:
            for start, end in annotation.fragments:
                raw = {"start": start, "end": end, "type": annotation.type}
                check.entity(raw, annotation.name, len(document.text), annotation.where, "characters")
        except CorpusError as error:
            return error
        found = " ".join(document.text[start:end] for start, end in annotation.fragments)
        if annotation.quote is not None and _bare(found) != _bare(annotation.quote):
            start, end = annotation.fragments[0][0], annotation.fragments[-1][1]
            problem = (
                f"field '{annotation.name}' quotes {annotation.quote!r}, but from {start} to {end} the text is "
                f"'{in_context(document.text, start, end)}'"
            )
            return check.error(annotation.where, problem, "Give the text as it was annotated")
    return None


def _ways_of_counting(document: AnnotatedText) -> Iterator[AnnotatedText]:
    """The document under each way in which tools count characters; first as it stands.

    They differ in whether a byte order mark counts, and whether a line end of two characters and (in JavaScript) a
    character beyond U+FFFF count as one or two.
    """
    text = document.text
    texts = [" " + text[1:], text[1:]] if text.startswith(BYTE_ORDER_MARK) else [text]
    texts += [other.replace("\r\n", "\n") for other in texts if "\r\n" in other]
    for other in texts:
        yield replace(document, text=other)
    for other in texts:
        yield _from_utf16(replace(document, text=other))


def _from_utf16(document: AnnotatedText) -> AnnotatedText:
    """The document with offsets converted from UTF-16 units to characters; those beyond the end stay beyond it."""
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
