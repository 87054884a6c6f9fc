"""Documents → records: cut into sentences of the wanted words, with the entities that align with them.

Texts are split as raw text is split for prediction (`text_triaffine.py`), unless the words of the corpus are wanted.
Entities that cannot be aligned are dropped, counted and shown in context.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from ..model.options_triaffine import ProcessorOptions
from ..model.text_triaffine import DEFAULT_WORD_SPLITTER, INVISIBLE_SPACES, Offsets, Splitter, split_text, whole_text
from ..model.text_triaffine import sentence_splitter as named_sentence_splitter
from ..model.text_triaffine import word_splitter as named_word_splitter
from .alignment import (
    LOST_ACROSS_SENTENCES,
    LOST_IN_A_WORD,
    WordSplitter,
    align_entities,
    by_sentence,
    kept_by,
    split_words,
)
from .documents import Document, Sentence, entity_count, example_of, joined
from .offsets import BYTE_ORDER_MARK
from .quotes import counted_in_characters
from .record_checker import RecordChecker
from .schema import Entity, Record, Text

DEFAULT_SENTENCE_SPLITTER = ProcessorOptions.sentence_splitter


def text_of(document: Document, check: RecordChecker, trim: bool = True) -> Text:
    """The text as written with its contiguous entities, whatever words it will be cut into.

    Args:
        trim: take entities without white space at their boundaries.

    Raises:
        CorpusError: an annotation is outside of the text, or its text differs from the tool's quote.
    """
    document = counted_in_characters(document, check)
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
    document = _without_mark(counted_in_characters(document, check))
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
        with check.record(entity_count(raw.get("entities"))):
            yield check(raw, sentence.where)


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
    document: Document, found: Iterable[Entity], words_by_sentence: Sequence[Sequence[Offsets]], check: RecordChecker
) -> list[list[Entity]]:
    """The entities `found` of every sentence, by words."""
    words = [word for sentence in words_by_sentence for word in sentence]
    aligned, lost = align_entities(document.text or "", found, words)
    for entity in lost:
        keeping = kept_by(document.text or "", entity)
        check.drop(LOST_IN_A_WORD, 1, example_of(document, entity), entity["type"], keeping)
    entities, crossing = by_sentence(aligned, list(map(len, words_by_sentence)))
    for entity in crossing:
        start, end = words[entity["start"]][0], words[entity["end"] - 1][1]
        example = example_of(document, Entity(start=start, end=end, type=entity["type"]))
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
        parts = joined(text, annotation.fragments)
        entity = Entity(start=parts[0][0], end=parts[-1][1], type=annotation.type)
        if len(parts) > 1:
            check.drop("discontinuous entities dropped", 1, example_of(document, entity), entity["type"])
        elif not text[entity["start"] : entity["end"]].translate(INVISIBLE_SPACES).strip():
            check.drop("entities of white space alone dropped", example=f"{annotation.where}: {annotation.name}")
        else:
            yield entity


def without_space(text: str, entity: Entity) -> Entity:
    """The entity without white space at its boundaries, as the pipeline returns entities."""
    inside = text[entity["start"] : entity["end"]].translate(INVISIBLE_SPACES)
    start = entity["start"] + len(inside) - len(inside.lstrip())
    return Entity(start=start, end=start + len(inside.strip()), type=entity["type"])


def _without_mark(document: Document) -> Document:
    """The document with a space for a byte order mark, which is no part of the first word."""
    if document.text and document.text.startswith(BYTE_ORDER_MARK):
        return replace(document, text=f" {document.text[1:]}")
    return document
