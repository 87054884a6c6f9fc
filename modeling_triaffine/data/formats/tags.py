"""Tags of words: the ways in which corpora write them, and the entities that they mean.

Orsk	B-City        IOB2, BIOES, BILOU, BMES; several of one word joined by |
Orsk	B_City        with an underscore, perhaps before I alone; b-City in small letters; City-B with the prefix last
Orsk	B             without types: every entity is of the type "entity"
Orsk	City          without B and I: adjacent words of one type are one entity
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..record_checker import RecordChecker
from ..schema import Entity

OUTSIDE = "O"
INSIDE, LAST, SINGLE = "IM", "EL", "SU"
"""Prefixes of tags beside B: of words inside an entity, of its last word, and of its only word."""
TYPELESS = "entity"
"""The type of entities whose tags have none."""
BETWEEN_TAGS = re.compile(r"\|(?=[BIMELSU]-|O(?:\||\Z))")
"""The separator that joins the tags of one word."""
RULE = (
    "A tag is O, or B-, I- and a type (IOB2), also with E-, S- (BIOES), L-, U- (BILOU) or M- (BMES); B_, b- and the "
    "prefix behind the type, as in LOC-B, are read, too, and types without any prefix"
)
MAX_TYPES = 200
"""Different values of a column beyond which they are not types."""

Tag = tuple[str, str]
"""(prefix, type); the prefix is one of B and the above, or empty if the corpus writes none."""


@dataclass(frozen=True)
class TagScheme:
    """One way of writing tags.

    Args:
        form: of a tag that is not O, with the groups `prefix` and `type`, if it has them.
        evidence: one of these prefixes occurs where the scheme is used; empty if it has none.
        note: what is counted for each entity, if that is to be said.
    """

    form: re.Pattern[str]
    evidence: str = ""
    note: str = ""

    def read(self, cell: str) -> list[Tag] | None:
        """The tags of a word, without O; None if it is no cell of this scheme. A type is empty after a bare I."""
        tags: list[Tag] = []
        for tag in BETWEEN_TAGS.split(cell.strip(" ")):
            if tag.upper() != OUTSIDE:
                found = self.form.fullmatch(tag)
                if found is None:
                    return None
                parts = found.groupdict()
                tags.append((parts.get("prefix", "").upper(), parts.get("type", TYPELESS) or ""))
        return tags

    def fits(self, cell: str) -> bool:
        return self.read(cell) is not None

    def describes(self, values: Collection[str]) -> bool:
        """True if all values of a column are tags of this scheme, and show that it is used."""
        if not all(map(self.fits, values)):
            return False
        return not self.evidence or any(
            prefix in self.evidence for value in values for prefix, _ in self.read(value) or ()
        )


STANDARD = TagScheme(re.compile(r"(?P<prefix>[BIMELSU])-(?P<type>.+)", re.DOTALL))
WITHOUT_PREFIXES = TagScheme(
    re.compile(r"(?P<type>(?![BI][-_])[^\W\d_][^\s|]*)"),  # B-LOC is not a type
    note="entities of tags without B and I, with adjacent words of one type read as one entity",
)
WITH_PREFIXES = (
    STANDARD,
    TagScheme(re.compile(r"(?P<prefix>[BIMELSU])(?:_(?P<type>.+)|(?<=I))"), "BISU"),
    TagScheme(re.compile(r"(?P<prefix>[bimelsu])[-_](?P<type>.+)"), "BISU"),
    TagScheme(re.compile(r"(?P<type>.+)[-_](?P<prefix>[BIMELSU])"), "BSU"),
    TagScheme(re.compile(r"(?P<type>.+)[-_](?P<prefix>[bimelsu])"), "B"),
    TagScheme(re.compile("(?P<prefix>[BIMELSU])"), "BI", f"entities of tags without types, read as {TYPELESS!r}"),
)


def scheme_of(values: Iterable[str]) -> TagScheme | None:
    """The scheme of all these tags; None if they are not tags of one scheme.

    >>> scheme_of(["B-LOC", "O"]) is STANDARD, scheme_of(["LOC", "O"]) is WITHOUT_PREFIXES, scheme_of(["LOC", "B-LOC"])
    (True, True, None)
    """
    values = {value.strip(" ") for value in values}
    found = next((scheme for scheme in WITH_PREFIXES if values and scheme.describes(values)), None)
    are_types = OUTSIDE in values and 1 < len(values) <= MAX_TYPES and WITHOUT_PREFIXES.describes(values)
    if found is None and are_types and "B" not in "".join(map(prefixes_of, values)):
        return WITHOUT_PREFIXES
    return found


def prefixes_of(value: str) -> str:
    """The prefixes that a value has in the schemes with prefixes."""
    return "".join(prefix for scheme in WITH_PREFIXES for prefix, _ in scheme.read(value) or ())


def decode_tags(tags_of_words: Iterable[Sequence[Tag]], check: RecordChecker, note: str = "") -> Iterator[Entity]:
    """The entities of words with any number of tags each; a tag continues the earliest of the entities of its type.

    A tag that continues no entity begins one and is counted, unless the corpus writes no prefixes.

    Args:
        note: what is counted for each entity; empty for nothing.
    """
    going_on: list[tuple[int, str]] = []
    for position, tags in enumerate([*tags_of_words, ()]):
        tagged: list[tuple[int, str]] = []
        finished: list[tuple[int, str]] = []
        for prefix, kind in tags:
            if kind == OUTSIDE:
                check.note(f"tags {prefix}-{OUTSIDE} read as {OUTSIDE}")
                continue
            kind = kind or (going_on[-1][1] if going_on else TYPELESS)
            continues = prefix in INSIDE + LAST  # as no prefix does
            known = min((entity for entity in going_on if continues and entity[1] == kind), default=None)
            if known is not None:
                going_on.remove(known)
            elif continues and prefix:
                check.note(f"tags {prefix}- that begin an entity read as {'B' if prefix in INSIDE else 'S'}-")
            (finished if prefix and prefix in LAST + SINGLE else tagged).append(known or (position, kind))
        entities = [Entity(start=start, end=position, type=kind) for start, kind in going_on]
        entities += [Entity(start=start, end=position + 1, type=kind) for start, kind in finished]
        if note and entities:
            check.note(note, len(entities))
        yield from entities
        going_on = tagged
