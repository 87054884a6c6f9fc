"""Offsets of documents in characters: found out from the text that a tool quotes, or as named, and checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..model.text_triaffine import Offsets
from .documents import Document, in_context, joined
from .look_alikes import difference
from .offsets import BYTE_ORDER_MARK, CHARACTERS, COUNTS, in_characters, positions, possible_counts, remedy_of_counts
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
    quoted = [bool(annotation.quote) for annotation in document.annotations]
    if not any(quoted) and check.offsets is None:
        spans = (offsets for annotation in document.annotations for offsets in annotation.fragments)
        check.unchecked_offsets.add(document.text, spans)
    (named, mark_counts), *others = [(check.offsets, True)] if check.offsets else possible_counts(document.text)
    as_named = _converted(document, named, mark_counts)
    if as_named is None:
        remedy = "Name another count (--offsets, offsets=), or none"
        raise check.error(document.where, f"an offset is inside of a character, if it counts {COUNTS[named]}", remedy)
    if _problem(as_named, check) is None:
        return as_named
    candidates = ((count, _converted(document, count, marks)) for count, marks in others)
    fitting = ((count, one) for count, one in candidates if one is not None and _problem(one, check) is None)
    count, converted = next(fitting, ("", None))
    if converted is not None and all(quoted):
        check.note("texts with other character counts converted", example=document.where)
        return converted
    problem = _problem(as_named, check, quotes_of_parts=False)
    if problem is not None and converted is not None and not any(quoted):
        more = f"All offsets of this text would fit if they counted {COUNTS[count]}: {remedy_of_counts(count)}"
        problem = CorpusError(f"{problem} {more}.")
    if problem is not None:
        raise problem
    return as_named


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


def _converted(document: Document, count: str, mark_counts: bool) -> Document | None:
    """The document with offsets in characters, which were in `count`; None if one is inside of a character."""
    if count == CHARACTERS and mark_counts:
        return document
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
