"""`Document`, what every reader yields: a text with annotations by characters, sentences of words, or both.

A text annotated by characters (brat, exports of tools), sentences of words (columns, JSON of words), or a text with
words of its own (GENIA, CoNLL-U, DocBin) are all documents; so are passages with offsets in the whole (BioC, bigbio).
`cutting.py` makes records of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..model.text_triaffine import INVISIBLE_SPACES, Offsets
from ..parsing import JOINERS
from .offsets import positions, possible_counts

if TYPE_CHECKING:
    from .record_checker import RecordChecker
    from .schema import Entity

SHOWN_AROUND = 20  # characters of context on either side of an example
SHOWN_INSIDE = 40
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


def _gaps(passages: Sequence[Passage], named: str | None) -> list[int]:
    """What is between each passage and the one before, in the count that is `named`, or else in characters.

    If another count than that of characters leaves at most one character between all passages, it is taken.
    """
    text = "".join(passage.text for passage in passages)
    counts = [named] if named else [count for count, mark_counts in possible_counts(text) if mark_counts]
    found = []
    for count in counts:
        ends = [passage.offset + positions(passage.text, count)[-1] for passage in passages]
        found.append([passage.offset - end for passage, end in zip(passages, [0, *ends], strict=False)])
    return next((gaps for gaps in found if {*gaps} <= {0, 1}), found[0])


def num_entities(document: Document) -> int:
    """How many entities a document has, also those that no record can have; of what is invalid, none."""
    of_words = sum(entity_count(sentence.fields.get("entities")) for sentence in document.sentences or ())
    return len(document.annotations) + of_words


def entity_count(entities: object) -> int:
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


def joined(text: str, fragments: Sequence[Offsets]) -> list[Offsets]:
    """The fragments in order, joined if white space alone separates them: brat starts a new one on every line."""
    parts: list[Offsets] = []
    for start, end in sorted(fragments):
        if parts and not text[parts[-1][1] : start].translate(INVISIBLE_SPACES).strip():
            parts[-1] = (parts[-1][0], max(end, parts[-1][1]))
        else:
            parts.append((start, end))
    return parts


def example_of(document: Document, entity: Entity) -> str:
    shown = in_context(document.text or "", entity["start"], entity["end"])
    return f"{document.where}: {entity['type']} {shown}"


def numbered(documents: Iterator[Document], check: RecordChecker) -> Iterator[Document]:
    """The documents, those with the id of an earlier one numbered, as exports have the pages of one document.

    Where the sentences have ids of their own, documents of one id are parts of one.
    """
    ids: set[str] = set()
    last: Counter[str] = Counter()  # the number of the last document of an id, so that many take no longer
    for document in documents:
        if any("id" in sentence.fields for sentence in document.sentences or ()):
            yield document
            continue
        name = document.id
        while name in ids:
            last[document.id] = max(last[document.id], 1) + 1
            name = f"{document.id}#{last[document.id]}"
        ids.add(name)
        if name != document.id:
            check.note("documents with the id of an earlier one, numbered", example=f"{document.where}: {name}")
            document = replace(document, id=name)
        yield document
