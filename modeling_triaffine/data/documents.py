"""`Document`, what every reader yields: a text with annotations by characters, sentences of words, or both.

A text annotated by characters (brat, exports of tools), sentences of words (columns, JSON of words), or a text with
words of its own (GENIA, CoNLL-U, DocBin) are all documents; so are passages with offsets in the whole (BioC, bigbio).
`cutting.py` makes records of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

from ..model.text_triaffine import Offsets
from .offsets import positions
from .record_checker import RecordChecker
from .schema import Text
from .texts import WrittenSentence as NewSentence
from .texts import text_of_sentences

MAX_GAP = 100_000
"""Characters between two passages: a larger offset is a mistake, and not filled with spaces."""


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


class WrittenSentence(NamedTuple):
    """A sentence of a corpus that has its words and its text.

    Args:
        gap: what separates it from the text before.
        text: as written.
        words: with `offsets` in that text.
    """

    gap: str
    text: str
    words: Sentence

    @property
    def doc_id(self) -> str:
        return str(self.words.fields["doc_id"])


def document_of_sentences(id: str, sentences: Iterable[WrittenSentence], split: str | None = None) -> Document:
    """A document of sentences with texts of their own, which are joined."""
    pieces: list[str] = []
    placed = []
    length = 0
    for sentence in sentences:
        gap = sentence.gap if length else ""
        first = length + len(gap)
        offsets = [(first + start, first + end) for start, end in sentence.words.offsets]
        placed.append(replace(sentence.words, offsets=offsets))
        pieces += [gap, sentence.text]
        length = first + len(sentence.text)
    return Document(id, placed[0].where, "".join(pieces), has_sentences=True, sentences=placed, split=split)


class Passage(NamedTuple):
    """A part of a document: the offset of its first character in the document, its text, and its name for messages."""

    offset: int
    text: str
    name: str


def document_of_passages(
    doc_id: str, passages: Sequence[Passage], annotations: Sequence[Annotation], where: str, check: RecordChecker
) -> Document:
    """The document whose passages are these, in any order. Annotations without offsets, of the whole document or of
    something outside of it, are dropped and counted.
    """
    for annotation in annotations:
        if not annotation.fragments:
            check.drop("entities without offsets dropped", example=f"{annotation.where}: {annotation.name}")
    placed = [annotation for annotation in annotations if annotation.fragments]
    text = ""
    borders = []
    passages = sorted(passages)
    for passage, gap in zip(passages, _gaps(passages, check.offsets), strict=True):
        if not 0 <= gap <= MAX_GAP:
            problem = (
                f"field '{passage.name}' begins at {passage.offset}, but the passage before it ends at "
                f"{passage.offset - gap}"
            )
            raise check.error(where, problem, "Offsets count characters from the beginning of the document")
        borders += [len(text), len(text) + gap]
        text += " " * gap + passage.text
    return Document(id=doc_id, text=text, annotations=placed, where=where, borders=sorted({*borders}))


def _gaps(passages: Sequence[Passage], unit: str) -> list[int]:
    """What is between each passage and the one before."""
    ends = [passage.offset + positions(passage.text, unit)[-1] for passage in passages]
    return [passage.offset - end for passage, end in zip(passages, [0, *ends], strict=False)]


def as_texts(found: Iterable[Any], check: RecordChecker) -> Iterator[Text]:
    """Bridge for readers that still yield documents: as texts."""
    for one in found:
        if not isinstance(one, Document):
            yield one
        elif one.sentences is None or (
            not any("tokens" in s.fields and s.fields.get("entities") for s in one.sentences)
            and one.text is not None
            and one.annotations
        ):
            text = one.text or ""
            entities = (check.entity(text, a.fragments, a.type, a.quote, a.where, a.name) for a in one.annotations)
            with check.record():
                yielded = Text(doc_id=one.id, text=text, entities=[e for e in entities if e], where=one.where)
                borders = [border for border in one.borders if 0 < border < len(text)]
                if one.has_sentences and one.sentences is None:
                    yielded["sentences"] = list(pairwise((0, *borders, len(text))))
                elif borders:
                    yielded["borders"] = borders
                if one.sentences is not None:
                    _own_words(yielded, one)
                yield yielded
        else:
            sentences: list[NewSentence] = []
            last = 0
            for number, s in enumerate(one.sentences):
                with check.record():
                    raw = {"id": f"{one.id}:{number}", "doc_id": one.id, "sent_id": number, **s.fields}
                    record = check(raw, s.where)
                    if one.text is None:
                        sentences.append(NewSentence(record))
                    else:
                        start, end = s.offsets[0][0], s.offsets[-1][1]
                        offsets = [(a - start, b - start) for a, b in s.offsets]
                        sentences.append(NewSentence(record, one.text[start:end], offsets, one.text[last:start]))
                        last = end
            if sentences:
                yield text_of_sentences(sentences, one.where, one.split)


def _own_words(text: Text, document: Document) -> None:
    words = [word for s in document.sentences or () for word in s.offsets]
    text["words"] = words
    pos = [tag for s in document.sentences or () for tag in s.fields.get("pos") or [""] * len(s.offsets)]
    if any(pos):
        text["pos"] = pos
    if document.has_sentences:
        text["sentences"] = [(s.offsets[0][0], s.offsets[-1][1]) for s in document.sentences or () if s.offsets]
