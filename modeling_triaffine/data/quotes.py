"""Offsets of documents in characters: found out from the text that a tool quotes, or as named, and checked."""

import re
from collections.abc import Sequence
from dataclasses import replace

from ..model.text_triaffine import Offsets
from .documents import Document, in_context, joined
from .look_alikes import difference
from .offsets import BYTE_ORDER_MARK, COUNTS, in_characters, positions, possible_counts, remedy_of_counts
from .record_checker import RecordChecker
from .schema import CorpusError

OMITTED = re.compile(r"\[(?:\.\.\.|…)\]|\.\.\.|…")
"""Between the parts of a discontinuous entity, in what some tools quote."""
NOT_COMPARED = re.compile(rf"[\s{BYTE_ORDER_MARK}]+|\\[nrt]")
"""White space, for which some tools write backslash and n, and marks of the byte order."""


def counted_in_characters(document: Document, check: RecordChecker) -> Document:
    """The document with offsets that count characters of its text, whatever its tool counted.

    If no count is named, the offsets are wrong as they stand, and another count makes all of them match the tool's
    quotes, that is used. Annotations without characters are left out and counted.
    """
    document = _with_characters(document, check)
    if document.text is None:
        return document
    check.typed({"text": document.text}, "text", str, document.where)
    if check.offsets is not None:
        return _counted_as_named(document, check.offsets, check)
    quoted = [bool(annotation.quote) for annotation in document.annotations]
    if not any(quoted):
        spans = (offsets for annotation in document.annotations for offsets in annotation.fragments)
        check.unchecked_offsets.add(document.text, spans)
    if _problem(document, check) is None:
        return document
    fitting = _in_another_count(document, check)
    if fitting and all(quoted):
        check.note("texts with other character counts converted", example=document.where)
        return fitting[1]
    problem = _problem(document, check, quotes_of_parts=False)
    if problem is None:
        return document
    if fitting:
        count = fitting[0]
        more = f"All offsets of this text would fit if they counted {COUNTS[count]}: {remedy_of_counts(count)}"
        problem = CorpusError(f"{problem} {more}.")
    raise problem


def _counted_as_named(document: Document, count: str, check: RecordChecker) -> Document:
    """The document with offsets in characters, which are in `count`; CorpusError if they do not fit."""
    converted = _converted(document, count)
    if converted is None:
        problem = f"an offset is inside of a character, if it counts {COUNTS[count]}"
        raise check.error(document.where, problem, "Name another count (--offsets, offsets=), or none")
    if wrong := _problem(converted, check, quotes_of_parts=False):
        raise wrong
    return converted


def _in_another_count(document: Document, check: RecordChecker) -> tuple[str, Document] | None:
    """The first count, beside that of characters, in which all offsets fit, and the document with it converted."""
    _, *others = possible_counts(document.text or "")
    for count, mark_counts in others:
        converted = _converted(document, count, mark_counts)
        if converted is not None and _problem(converted, check) is None:
            return count, converted
    return None


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
        if not quotes_of_parts and len(joined(text, annotation.fragments)) > 1:
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
        return bool(found & {_bare(quote), _bare(OMITTED.sub("", quote))})
    return _bare(quote) in found


def _bare(text: str) -> str:
    return NOT_COMPARED.sub("", text)
