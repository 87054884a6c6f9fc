"""Documents in passages with offsets in the whole, as in BioC and bigbio's records.

What lies between two passages is not given, and is filled with spaces, so that every offset stays valid. No sentence
crosses the border of a passage.
"""

from collections.abc import Sequence
from typing import NamedTuple

from .documents import Annotation, Document
from .record_checker import RecordChecker

MAX_GAP = 100_000
"""Characters between two passages: a larger offset is a mistake, and not filled with spaces."""


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

    Raises:
        CorpusError: passages overlap, or are far apart; the message names the passage.
    """
    for annotation in annotations:
        if not annotation.fragments:
            check.drop("entities without offsets dropped", example=f"{annotation.where}: {annotation.name}")
    placed = [annotation for annotation in annotations if annotation.fragments]
    text = ""
    borders = []
    for passage in sorted(passages):
        gap = passage.offset - len(text)
        if not 0 <= gap <= MAX_GAP:
            problem = (
                f"field '{passage.name}' begins at {passage.offset}, but the passage before it ends at {len(text)}"
            )
            raise check.error(where, problem, "Offsets count characters from the beginning of the document")
        borders += [len(text), passage.offset]
        text += " " * gap + passage.text
    return Document(id=doc_id, text=text, annotations=placed, where=where, borders=sorted({*borders}))
