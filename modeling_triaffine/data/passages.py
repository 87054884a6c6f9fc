"""Documents of passages, whose offsets count through the whole document: the common part of BioC and bigbio's records.

A passage says where in the document it begins; what lies between two passages is not given, and is filled with spaces,
so that every offset stays valid. No sentence crosses the border of a passage.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .documents import AnnotatedText, Annotation
from .schema import RecordChecker

MAX_GAP = 100_000
"""Characters between two passages: a larger offset is a mistake, and not filled with spaces."""


class Passage(NamedTuple):
    """A part of a document: the offset of its first character in the document, its text, and its name for messages."""

    offset: int
    text: str
    name: str


def document_of_passages(
    doc_id: str, passages: Sequence[Passage], annotations: Sequence[Annotation], where: str, check: RecordChecker
) -> AnnotatedText:
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
    return AnnotatedText(doc_id=doc_id, text=text, annotations=placed, where=where, borders=sorted({*borders}))


def check_fields(fields: Mapping[str, Any], needed: Sequence[str], form: str, where: str, check: RecordChecker) -> None:
    """Raises CorpusError, which names the fields there are, unless all that a record of this form needs are there."""
    if missing := [name for name in needed if name not in fields]:
        found = ", ".join(map(repr, list(fields)[:10])) or "none"
        problem = f"field '{missing[0]}' is missing, so this is not {form}; its fields are {found}"
        raise check.error(where, problem, "Give files of this form, or name another format")


def objects(
    fields: Mapping[str, Any], name: str, where: str, check: RecordChecker, parent: str = ""
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The objects in the list `name`, each with its name for messages; none if the list is missing or null."""
    full_name = f"{parent}.{name}" if parent else name
    values = [] if fields.get(name) is None else check.typed(fields, name, list, where, parent)
    for index, raw in enumerate(values):
        yield check.mapping(raw, where, f"field '{full_name}[{index}]'", "See docs/corpora.md"), f"{full_name}[{index}]"
