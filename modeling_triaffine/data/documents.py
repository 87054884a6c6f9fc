"""`Document`, what every reader yields, and how it is cut into sentences of words.

A text annotated by characters (brat, exports of tools), sentences of words (columns, JSON of words), or a text with
words of its own (GENIA, CoNLL-U, DocBin) are all documents. `sentences_of` checks the annotations against the text,
splits it as raw text is split for prediction (`text_triaffine.py`), unless the words of the corpus are wanted, and
aligns the entities with the words. Entities that cannot be aligned are dropped, counted and shown in context.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

from ..model.text_triaffine import (
    DEFAULT_WORD_SPLITTER,
    INVISIBLE_SPACES,
    Offsets,
    Splitter,
    split_text,
    whole_text,
)
from ..model.text_triaffine import sentence_splitter as named_sentence_splitter
from ..model.text_triaffine import word_splitter as named_word_splitter
from ..parsing import difference
from .alignment import (
    LOST_ACROSS_SENTENCES,
    LOST_IN_A_WORD,
    WordSplitter,
    align_entities,
    by_sentence,
    kept_by,
    split_words,
)
from .counting import BYTE_ORDER_MARK, COUNTS, in_characters, positions, possible_counts, remedy_of_counts
from .record_checker import RecordChecker
from .schema import CorpusError, Entity, Record, Text

DEFAULT_SENTENCE_SPLITTER = "punctuation"
SHOWN_AROUND = 20  # characters of context on either side of an example
SHOWN_INSIDE = 40
JOINERS = "\u200c\u200d"  # parts of ordinary words, in Persian or Hindi, and of emoji
# Not compared between a tool's quote and the text: white space, for which some tools write backslash and n, and marks
# of the byte order.
_OMITTED = re.compile(r"\[(?:\.\.\.|…)\]|\.\.\.|…")
_NOT_COMPARED = re.compile(rf"[\s{BYTE_ORDER_MARK}]+|\\[nrt]")


@dataclass(frozen=True)
class Annotation:
    """An entity as an annotation tool wrote it; `name` ("T3") and `where` ("line 7") are for messages.

    A discontinuous entity has several fragments. Offsets are checked against the `quote`, the entity's text as the tool
    has it; None if it quotes nothing.

    Examples:
        >>> from modeling_triaffine.data import Annotation
        >>> Annotation("T1", ((13, 17),), "City", quote="Orsk", where="line 1").type
        'City'
    """

    name: str
    fragments: tuple[Offsets, ...]
    type: str
    quote: str | None
    where: str


@dataclass(frozen=True)
class Sentence:
    """Words that the corpus cut itself: a sentence, or all words of a document whose sentences it does not mark.

    Args:
        fields: of `FEATURES`, as found: `tokens` and `entities` by words, perhaps `pos`, `id`, `sent_id` and context.
            They are checked where the sentence is taken ([`sentences_of`]).
        where: its place in the file, for messages: "line 3".
        offsets: the characters of each word in the text of the document, if that has one. The words of a contraction
            have theirs in common.

    Examples:
        >>> from modeling_triaffine.data import Sentence
        >>> Sentence({"tokens": ["Orsk"], "entities": [{"start": 0, "end": 1, "type": "City"}]}, "line 3").where
        'line 3'
    """

    fields: Mapping[str, Any]
    where: str
    offsets: Sequence[Offsets] = ()


@dataclass(frozen=True)
class Document:
    """A document as its file has it, or a part of one: the parts follow each other.

    Args:
        id: its name.
        where: its place in the corpus, for messages.
        text: as written; None if the corpus has words alone.
        annotations: entities by characters of the text.
        borders: positions in the text that no sentence crosses, in their order.
        has_sentences: the corpus marks sentences: the given ones, or otherwise what is between two borders.
        sentences: with the words of the corpus; None if it has no words of its own.
        split: the split that it belongs to, if its file contains several.

    Examples:
        >>> from modeling_triaffine.data import Annotation, Document
        >>> orsk = Annotation("T1", ((13, 17),), "City", quote="Orsk", where="line 1")
        >>> Document("news-1", "news-1.ann", "The mayor of Orsk slept.", [orsk]).text[13:17]
        'Orsk'
    """

    id: str
    where: str
    text: str | None = None
    annotations: Sequence[Annotation] = ()
    borders: Sequence[int] = ()
    has_sentences: bool = False
    sentences: Sequence[Sentence] | None = None
    split: str | None = None


def document_of_words(id: str, sentences: Iterable[Sentence], where: str = "") -> Document:
    """A document of sentences of words, without a text."""
    sentences = list(sentences)
    return Document(id, where or sentences[0].where, has_sentences=True, sentences=sentences)


def document_of_sentences(
    id: str, sentences: Iterable[tuple[str, str, Sentence]], split: str | None = None
) -> Document:
    """A document of sentences with texts of their own, which are joined.

    Args:
        sentences: what separates each from the one before, its text, and its words with `offsets` in that text.
    """
    pieces: list[str] = []
    placed: list[Sentence] = []
    length = 0
    for gap, text, sentence in sentences:
        pieces += [gap, text] if length else [text]
        first = length + len(gap) if length else 0
        placed.append(replace(sentence, offsets=[(first + start, first + end) for start, end in sentence.offsets]))
        length = first + len(text)
    where = placed[0].where if placed else ""
    return Document(id, where, "".join(pieces), has_sentences=True, sentences=placed, split=split)


def text_of(document: Document, check: RecordChecker, trim: bool = True) -> Text:
    """The text as written with its contiguous entities, whatever words it will be cut into.

    Args:
        trim: take entities without white space at their boundaries.

    Raises:
        CorpusError: an annotation is outside of the text, or its text differs from the tool's quote.
    """
    document = _counted_in_characters(document, check)
    text = document.text or ""
    entities = [without_space(text, entity) if trim else entity for entity in _by_characters(document, check)]
    borders = [border for border in document.borders if 0 < border < len(text)]
    return Text(doc_id=document.id, text=text, entities=entities, borders=borders)


def sentences_of(
    document: Document,
    check: RecordChecker,
    word_splitter: WordSplitter | None = None,
    sentence_splitter: str = DEFAULT_SENTENCE_SPLITTER,
) -> Iterator[Record]:
    """The sentences of a document, with the entities that align with their words.

    Entities are dropped and counted if they begin or end inside a word, cross the end of a sentence, are discontinuous
    (fragments separated by white space alone are joined) or consist of white space.

    Args:
        word_splitter: text → [(start, end)] in characters, for a document with a text; None takes the words of the
            corpus, or if it has none, those of the pipeline's own splitter.
        sentence_splitter: "punctuation", "lines" or "none", for texts without sentences. Sentences of any length stay
            whole: the model reads long ones in windows.

    Raises:
        CorpusError: an annotation is outside of the text, or its text differs from the tool's quote; a sentence is
            invalid.
    """
    document = _without_mark(_counted_in_characters(document, check))
    in_own_words = document.sentences is not None and (word_splitter is None or document.text is None)
    if in_own_words:
        sentences = _given_sentences(document, sentence_splitter)
        found = _contiguous(document, check)
    else:
        sentences = _cut_sentences(document, word_splitter, sentence_splitter)
        found = _by_characters(document, check)
    if not sentences:
        check.note("texts without words ignored", example=document.where)
    entities = _aligned(document, found, [sentence.offsets for sentence in sentences], check)
    for number, (sentence, inside) in enumerate(zip(sentences, entities, strict=True)):
        raw = {"id": f"{document.id}:{number}", "doc_id": document.id, "sent_id": number, **sentence.fields}
        if inside or not in_own_words:
            raw["entities"] = [*raw.get("entities", ()), *inside]
        with check.record(_size(raw.get("entities"))):
            yield check(raw, sentence.where)


def num_entities(document: Document) -> int:
    """How many entities a document has, also those that no record can have; of what is invalid, none."""
    of_words = sum(_size(sentence.fields.get("entities")) for sentence in document.sentences or ())
    return len(document.annotations) + of_words


def _size(entities: object) -> int:
    return len(entities) if isinstance(entities, Sequence) and not isinstance(entities, str) else 0


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


def _given_sentences(document: Document, sentence_splitter: str) -> Sequence[Sentence]:
    """The sentences in the words of the corpus; where it marks none, those of its text."""
    given = document.sentences or ()
    if document.has_sentences or document.text is None:
        return given
    borders = list(named_sentence_splitter(sentence_splitter)(document.text))
    found: list[Sentence] = []
    for whole in given:
        starts = [start for start, _ in whole.offsets]
        for start, end in borders:
            inside = range(bisect_left(starts, start), bisect_left(starts, end))
            if inside:
                found.append(_words_of(whole, inside, f"{document.where}, sentence {len(found)}"))
    return found


def _words_of(whole: Sentence, words: Sequence[int], where: str) -> Sentence:
    """The sentence of some of these words, with their parts of speech if all have one."""
    columns = {
        name: [whole.fields[name][word] for word in words] for name in ("tokens", "pos") if whole.fields.get(name)
    }
    if not all(columns.get("pos", ())):
        columns["pos"] = []
    return Sentence({**columns, "entities": []}, where, [whole.offsets[word] for word in words])


def _cut_sentences(
    document: Document, word_splitter: WordSplitter | None, sentence_splitter: str
) -> Sequence[Sentence]:
    """The sentences of a text in the words of a splitter; those of the corpus, if it marks any."""
    text = document.text or ""
    words = partial(split_words, word_splitter=word_splitter or named_word_splitter(DEFAULT_WORD_SPLITTER))
    if document.sentences is not None and document.has_sentences:
        return [_cut_again(sentence, text, words) for sentence in document.sentences]
    sentences = whole_text if document.has_sentences else named_sentence_splitter(sentence_splitter)
    cut = (
        [(first + start, first + end) for start, end in sentence]
        for first, last in pairwise((0, *document.borders, len(text)))
        for sentence in split_text(text[first:last], sentences, words)
    )
    return [
        Sentence(
            {"tokens": [text[start:end] for start, end in offsets]}, f"{document.where}, sentence {number}", offsets
        )
        for number, offsets in enumerate(filter(None, cut))
    ]


def _cut_again(sentence: Sentence, text: str, words: Splitter) -> Sentence:
    """A sentence of the corpus in other words, to which its parts of speech do not belong."""
    first, last = (sentence.offsets[0][0], sentence.offsets[-1][1]) if sentence.offsets else (0, 0)
    offsets = [(first + start, first + end) for start, end in words(text[first:last])]
    fields = {name: value for name, value in sentence.fields.items() if name not in ("pos", "entities")}
    return replace(sentence, fields={**fields, "tokens": [text[start:end] for start, end in offsets]}, offsets=offsets)


def _aligned(
    document: Document,
    found: Iterable[Entity],
    words_by_sentence: Sequence[Sequence[Offsets]],
    check: RecordChecker,
) -> list[list[Entity]]:
    """The entities `found` of every sentence, by words."""
    words = [word for sentence in words_by_sentence for word in sentence]
    aligned, lost = align_entities(document.text or "", found, words)
    for entity in lost:
        keeping = kept_by(document.text or "", entity)
        check.drop(LOST_IN_A_WORD, 1, _example(document, entity), entity["type"], keeping)
    entities, crossing = by_sentence(aligned, list(map(len, words_by_sentence)))
    for entity in crossing:
        start, end = words[entity["start"]][0], words[entity["end"] - 1][1]
        example = _example(document, Entity(start=start, end=end, type=entity["type"]))
        check.drop(LOST_ACROSS_SENTENCES, 1, example, entity["type"])
    return entities


def _by_characters(document: Document, check: RecordChecker) -> Iterator[Entity]:
    """All contiguous entities by characters, also those that the corpus has by its words."""
    yield from _contiguous(document, check)
    for sentence in document.sentences or ():
        for entity in sentence.fields.get("entities", ()):
            start, end = sentence.offsets[entity["start"]][0], sentence.offsets[entity["end"] - 1][1]
            yield Entity(start=start, end=end, type=entity["type"])


def _contiguous(document: Document, check: RecordChecker) -> Iterator[Entity]:
    text = document.text or ""
    for annotation in document.annotations:
        parts = _joined(text, annotation.fragments)
        entity = Entity(start=parts[0][0], end=parts[-1][1], type=annotation.type)
        if len(parts) > 1:
            check.drop("discontinuous entities dropped", 1, _example(document, entity), entity["type"])
        elif not text[entity["start"] : entity["end"]].translate(INVISIBLE_SPACES).strip():
            check.drop("entities of white space alone dropped", example=f"{annotation.where}: {annotation.name}")
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


def _example(document: Document, entity: Entity) -> str:
    shown = in_context(document.text or "", entity["start"], entity["end"])
    return f"{document.where}: {entity['type']} {shown}"


def _counted_in_characters(document: Document, check: RecordChecker) -> Document:
    """The document with offsets that count characters of its text, whatever its tool counted.

    If none is named, the offsets are wrong as they stand, and another count makes all of them match the tool's quotes,
    that is used. Annotations without characters are left out and counted.
    """
    document = _with_characters(document, check)
    if document.text is None:
        return document
    check.typed({"text": document.text}, "text", str, document.where)
    if check.offsets is not None:
        return _named_count(document, check, check.offsets)
    quoted = any(annotation.quote for annotation in document.annotations)
    problem = _problem(document, check)
    if not quoted:
        spans = (offsets for annotation in document.annotations for offsets in annotation.fragments)
        check.unchecked_offsets.add(document.text, spans)
        if problem is not None:
            raise _with_counts_that_fit(problem, document, check)
    if problem is None:
        return document
    if all(annotation.quote for annotation in document.annotations):
        for count, mark_counts in possible_counts(document.text):
            converted = _converted(document, count, mark_counts)
            if converted is not None and _problem(converted, check) is None:
                check.note("texts with other character counts converted", example=document.where)
                return converted
    if (problem := _problem(document, check, quotes_of_parts=False)) is not None:
        raise problem
    return document


def _with_characters(document: Document, check: RecordChecker) -> Document:
    """The document without annotations, and fragments of annotations, that end where they start."""
    annotations = []
    for annotation in document.annotations:
        fragments = tuple((start, end) for start, end in annotation.fragments if start != end)
        if fragments:
            annotations.append(replace(annotation, fragments=fragments))
        else:
            check.drop("entities without characters dropped", 1, f"{annotation.where}: {annotation.name}")
    return replace(document, annotations=annotations)


def _named_count(document: Document, check: RecordChecker, count: str) -> Document:
    """The document with offsets in characters, which are in the count that is named; a CorpusError unless they fit."""
    converted = _converted(document, count)
    if converted is None:
        remedy = "Name another count (--offsets, offsets=), or none"
        raise check.error(document.where, f"an offset is inside of a character, if it counts {COUNTS[count]}", remedy)
    if (problem := _problem(converted, check, quotes_of_parts=False)) is not None:
        raise problem
    return converted


def _with_counts_that_fit(problem: CorpusError, document: Document, check: RecordChecker) -> CorpusError:
    """The error, with the counts under which all offsets are inside of the text."""
    for count, _ in possible_counts(document.text or ""):
        converted = _converted(document, count)
        if converted is not None and _problem(converted, check) is None:
            more = f"All offsets of this text would fit if they counted {COUNTS[count]}: {remedy_of_counts(count)}"
            return CorpusError(f"{problem} {more}.")
    return problem


def _converted(document: Document, count: str, mark_counts: bool = True) -> Document | None:
    """The document with offsets in characters, which were in `count`; None if one is inside of a character."""
    at = positions(document.text or "", count, mark_counts)
    annotations = []
    for annotation in document.annotations:
        fragments = [in_characters(offsets, at) for offsets in annotation.fragments]
        if None in fragments:
            return None
        annotations.append(replace(annotation, fragments=tuple(filter(None, fragments))))
    return replace(document, annotations=annotations)


def _without_mark(document: Document) -> Document:
    """The document with a space for a byte order mark, which is no part of the first word."""
    marked = document.text is not None and document.text.startswith(BYTE_ORDER_MARK)
    return replace(document, text=f" {(document.text or '')[1:]}") if marked else document


def _problem(document: Document, check: RecordChecker, quotes_of_parts: bool = True) -> CorpusError | None:
    """The error of the first annotation that is outside of the text or differs from its tool's quote, if any.

    Args:
        quotes_of_parts: also look at the quotes of discontinuous entities, which are dropped, whatever they quote.
    """
    text = document.text or ""
    for annotation in document.annotations:
        try:
            for start, end in annotation.fragments:
                raw = {"start": start, "end": end, "type": annotation.type}
                check.entity(raw, annotation.name, len(text), annotation.where, "characters")
        except CorpusError as error:
            return error
        if not quotes_of_parts and len(_joined(text, annotation.fragments)) > 1:
            continue
        if annotation.quote is not None and not _quotes(annotation.quote, text, annotation.fragments):
            start, end = annotation.fragments[0][0], annotation.fragments[-1][1]
            problem = (
                f"field '{annotation.name}' quotes {annotation.quote!r}, but from {start} to {end} the text is "
                f"'{in_context(text, start, end)}'"
            )
            inside = text[min(annotation.fragments)[0] : max(last for _, last in annotation.fragments)]
            problem += f". {alike}" if (alike := difference(annotation.quote, inside)) else ""
            return check.error(annotation.where, problem, "Give the text as it was annotated")
    return None


def _quotes(quote: str, text: str, fragments: Sequence[Offsets]) -> bool:
    """Whether a quote is the text of the fragments; of several, perhaps with marks between, or with all between."""
    found = {_bare("".join(text[start:end] for start, end in fragments))}
    if len(fragments) > 1:
        found.add(_bare(text[min(fragments)[0] : max(end for _, end in fragments)]))
        return bool(found & {_bare(quote), _bare(_OMITTED.sub("", quote))})
    return _bare(quote) in found


def _bare(text: str) -> str:
    return _NOT_COMPARED.sub("", text)
