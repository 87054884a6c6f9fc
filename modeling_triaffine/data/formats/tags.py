"""Tags of words: the ways in which corpora write them, and the entities that they mean.

Orsk	B-City        IOB2, BIOES, BILOU, BMES; several of one word joined by |
Orsk	B_City        with an underscore, perhaps before I alone; b-City in small letters; City-B with the prefix last
Orsk	B             without types: every entity is of the type "entity"
Orsk	City          without B and I: adjacent words of one type are one entity
Orsk	(City*        brackets, as in CoNLL-2012
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..record_checker import RecordChecker
from ..schema import Entity

OUTSIDE = "O"
INSIDE, LAST, SINGLE = "IM", "EL", "SU"
"""Prefixes of tags beside B: of words inside an entity, of its last word, and of its only word."""
NO_PREFIX = ""
TYPELESS = "entity"
"""The type of entities whose tags have none."""
STANDARD_TAG = re.compile(r"(?:O\|)*(?:O|[BIMELSU]-.+)", re.DOTALL)
"""One tag, or several of one word, joined by |."""
BETWEEN_TAGS = re.compile(r"\|(?=[BIMELSU]-|O(?:\||\Z))")
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
        joined: a word may have several tags, joined by |.
        note: what is counted for each entity, if that is to be said.
    """

    form: re.Pattern[str]
    evidence: str = ""
    joined: bool = False
    note: str = ""

    def read(self, cell: str) -> list[Tag] | None:
        """The tags of a word, without O; None if it is no cell of this scheme. A type is empty after a bare I."""
        cell = cell.strip(" ")
        if self.joined and not STANDARD_TAG.fullmatch(cell):
            return None
        tags: list[Tag] = []
        for tag in BETWEEN_TAGS.split(cell) if self.joined else [cell]:
            if tag.upper() == OUTSIDE:
                continue
            found = self.form.fullmatch(tag)
            if found is None:
                return None
            parts = found.groupdict()
            tags.append((parts.get("prefix", NO_PREFIX).upper(), parts.get("type", TYPELESS) or ""))
        return tags

    def fits(self, cell: str) -> bool:
        return self.read(cell) is not None

    def describes(self, values: Collection[str]) -> bool:
        """All values of a column are tags of this scheme, and show that it is used."""
        if not all(map(self.fits, values)):
            return False
        prefixes = {prefix for value in values for prefix, _ in self.read(value) or ()}
        return not self.evidence or bool(prefixes & {*self.evidence})


STANDARD = TagScheme(re.compile(r"(?P<prefix>[BIMELSU])-(?P<type>.+)", re.DOTALL), joined=True)
WITHOUT_TYPES = TagScheme(
    re.compile(r"(?P<prefix>[BIMELSU])"), "BI", note=f"entities of tags without types, read as {TYPELESS!r}"
)
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
    WITHOUT_TYPES,
)


def part_of_tag(prefix: str, is_first: bool, is_last: bool) -> str:
    """The prefix of a tag for one of the words that the tag is of.

    >>> part_of_tag("S", True, False), part_of_tag("B", False, True), part_of_tag("E", False, True)
    ('B', 'I', 'E')
    """
    begins = is_first and prefix not in INSIDE + LAST
    ends = is_last and prefix in LAST + SINGLE
    if begins:
        return "S" if ends else "B"
    return "E" if ends else "I"


def scheme_of(values: Iterable[str]) -> TagScheme | None:
    """The scheme of all these tags; None if they are not tags of one scheme.

    >>> scheme_of(["B-LOC", "O"]) is STANDARD, scheme_of(["LOC", "O"]) is WITHOUT_PREFIXES, scheme_of(["LOC", "B-LOC"])
    (True, True, None)
    """
    values = {value.strip(" ") for value in values}
    for scheme in WITH_PREFIXES:
        if values and scheme.describes(values):
            return scheme
    has_prefixes = any(prefix == "B" for value in values for prefix in prefixes_of(value))
    if OUTSIDE in values and not has_prefixes and 1 < len(values) <= MAX_TYPES and WITHOUT_PREFIXES.describes(values):
        return WITHOUT_PREFIXES
    return None


def prefixes_of(value: str) -> list[str]:
    """The prefixes that a value has in the schemes with prefixes and types."""
    return [prefix for scheme in WITH_PREFIXES for prefix, _ in scheme.read(value) or ()]


def tags_of_brackets(cells: Iterable[str]) -> Iterator[list[Tag]]:
    """The tags of words with brackets, as in CoNLL-2012: `(City*`, `*`, `*)`, `(City)`; "-" and "*" have none."""
    is_open: list[str] = []
    for cell in cells:
        opened = re.findall(r"\(([^()*|]+)", cell)
        tags = [*(("I", kind) for kind in is_open), *(("B", kind) for kind in opened)]
        is_open += opened
        yield tags
        del is_open[len(is_open) - min(cell.count(")"), len(is_open)) :]


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
            continues = prefix == NO_PREFIX or prefix in INSIDE + LAST
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
