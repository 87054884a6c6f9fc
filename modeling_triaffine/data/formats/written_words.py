"""The text of a sentence whose words a corpus lists with what is known of the space after them, as CoNLL-U does."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from ...model.text_triaffine import Offsets
from ..record_checker import RecordChecker

NO_SPACE = "SpaceAfter=No"


class Row(NamedTuple):
    """A line of a sentence: its id ("3", a multi-word token "3-4" or an empty node "3.1"), form and other fields."""

    id: str
    form: str
    no_space_after: bool


def is_word(number: str) -> bool:
    """Whether this is the id of a syntactic word, not of a multi-word token or an empty node."""
    return number.isdecimal()


def written_text(rows: Sequence[Row], comment: str, check: RecordChecker, where: str) -> tuple[str, list[Offsets]]:
    """A sentence as written and the characters of each of its words, (start, end).

    The text is the `comment`, if the forms occur in it in their order with nothing but white space between them,
    otherwise, which is counted, the forms, with a space after each that has no `SpaceAfter=No`. The words of a
    multi-word token have its characters in common, unless their forms joined are the token's.
    """
    surfaces: list[tuple[str, str, list[str]]] = []  # form, space after it, forms of the words in it
    covered = -1
    for row in rows:
        _, _, last = row.id.partition("-")
        if is_word(row.id) and int(row.id) <= covered:
            surfaces[-1][2].append(row.form)
        elif is_word(row.id) or last:
            covered = int(last) if last else covered
            surfaces.append((row.form, "" if row.no_space_after else " ", [] if last else [row.form]))
    forms = [form for form, _, _ in surfaces]
    starts = _places(forms, comment)
    text = comment
    if starts is None:
        if comment:
            check.note("texts that differ from their words, made of the words", example=where)
        *starts, _ = accumulate((len(form) + len(space) for form, space, _ in surfaces), initial=0)
        text = "".join(form + space for form, space, _ in surfaces).rstrip()
    words: list[Offsets] = []
    for start, (form, _, inside) in zip(starts, surfaces, strict=True):
        cuts = list(accumulate(map(len, inside), initial=start))
        apart = "".join(inside) == form
        words += pairwise(cuts) if apart else [(start, start + len(form))] * len(inside)
    return text, words


def _places(forms: Sequence[str], text: str) -> list[int] | None:
    """Where the forms begin in the text; None if it has other characters besides them and white space."""
    starts, end = [], 0
    for form in forms:
        start = text.find(form, end)
        if start < 0 or text[end:start].strip():
            return None
        starts.append(start)
        end = start + len(form)
    return None if text[end:].strip() else starts
