"""Tags of words: the ways in which corpora write them, and the entities that they mean.

Orsk	B-City        IOB2, BIOES, BILOU, BMES; several of one word joined by one of | , ; / + # &
Orsk	B_City        with an underscore, perhaps before I alone; City-B with the prefix last
Orsk	B             without types: every entity is of the type "entity"
Orsk	City          without B and I: adjacent words of one type are one entity
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..schema import Entity, RecordChecker

OUTSIDE = "O"
INSIDE, LAST, SINGLE = "IM", "EL", "SU"  # prefixes beside B: inside an entity, of its last word, of its only word
TYPELESS = "entity"  # the type of entities whose tags have none
BETWEEN_TAGS = re.compile(r" ?(?:\| ?(?=[BIMELSU][-_]|O(?: ?\||\Z))|[,;/+#&] ?(?=[BIMELSU]-))")
"""The separators that join the tags of one word: O follows | alone, B_LOC too; all others may be part of a type."""
RULE = "A tag is O, or B- or I- and a type (IOB2), also with E-, S-, L-, U-, M-, as B_LOC or LOC-B, or a type alone"
WITH_PREFIX = re.compile(r"[BI][\W_]|.*[\W_]B\Z")  # B:LOC, LOC:B: no types if all are such, or I:LOC is there, too
CHUNKS = ({"NP", "VP"}, {"NC", "VC"})
NO_VALUE = "_"
NAMES_OF_TOKENS = {"form", "text", "token", "tokens", "word", "words"}  # in a line of column names
MAX_TYPES = 200  # different values of a column beyond which they are not types

Tag = tuple[str, str]  # (prefix, type); the prefix is one of B and the above, or empty if the corpus writes none


@dataclass(frozen=True)
class TagScheme:
    """One way of writing tags."""

    form: re.Pattern[str]  # of a tag that is not O, with the groups `prefix` and `type`, if it has them
    note: str = ""  # what is counted for each entity, if that is to be said

    def read(self, cell: str) -> list[Tag] | None:
        """The tags of a word, without O; None if it is no cell of this scheme. A type is empty after a bare I."""
        tags: list[Tag] = []
        for tag in BETWEEN_TAGS.split(cell.strip()):
            if tag.upper() != OUTSIDE:
                found = self.form.fullmatch(tag)
                if found is None:
                    return None
                parts = found.groupdict()
                tags.append((parts.get("prefix", ""), parts.get("type", TYPELESS) or ""))
        return tags

    def fits(self, cell: str) -> bool:
        return self.read(cell) is not None


STANDARD = TagScheme(re.compile(r"(?P<prefix>[BIMELSU])-(?P<type>.+)", re.DOTALL))
OTHER_PREFIXES = (
    TagScheme(re.compile(r"(?P<prefix>[BIMELSU])(?:_(?P<type>[^|]+)|(?<=I))")),
    TagScheme(re.compile(r"(?P<type>[^|]+)[-_](?P<prefix>[BIMELSU])")),
    TagScheme(re.compile("(?P<prefix>[BIMELSU])"), f"entities of tags without types, read as {TYPELESS!r}"),
)
WITHOUT_PREFIXES = TagScheme(
    re.compile(r"(?P<type>(?!B\Z|[BI][-_]|O\W|.*[-_]B\Z)[^\W\d_][^\s|]*)"),  # B-LOC, LOC-B, O^O are no types
    "entities of tags without B and I, with adjacent words of one type read as one entity",
)


def scheme_of(values: Iterable[str]) -> TagScheme | None:
    """The scheme of all these tags; None if they are not tags of one scheme."""
    values = {value.strip() for value in values}
    if not values or all(map(STANDARD.fits, values)):
        return STANDARD if values else None
    for scheme in OTHER_PREFIXES:
        tags = map(scheme.read, values) if all(map(scheme.fits, values)) else ()  # most values are of words
        if any(prefix in ("B", "I") for tag in tags for prefix, _ in tag or ()):
            return scheme
    types = {value for value in values if value.upper() != OUTSIDE}
    marked = set(filter(WITH_PREFIX.match, types))
    pairs = types if all(tag.startswith(("B", "I")) for tag in types) else marked  # BLOC and ILOC are no types, either
    has_both = any({f"I{tag[1:]}", f"{tag[:-1]}I"} & types - {tag} for tag in pairs)
    are_types = OUTSIDE in values and len(values) <= MAX_TYPES and all(map(WITHOUT_PREFIXES.fits, values))
    return WITHOUT_PREFIXES if are_types and marked != types and not has_both else None


def is_header(row: Sequence[str]) -> bool:
    """A row has the names of columns, one of which is that of the words, and no tags."""
    return any(cell.lower() in NAMES_OF_TOKENS for cell in row) and all(scheme_of([cell]) is None for cell in row)


def has_all_its_tags(row: Sequence[str]) -> bool:
    """A row is a token and the tags of the entities around it: O alone, or any number of others."""
    return len(row) > 1 and all(map(STANDARD.fits, row[1:])) and (len(row) == 2 or OUTSIDE not in row[1:])


def schemes_of(columns: Sequence[Sequence[str]]) -> list[TagScheme | None]:
    """The scheme of the tags in each column. One of O alone has that of others: it may have tags later in the file."""
    schemes = [scheme_of(column) for column in columns]
    used = [scheme for column, scheme in zip(columns, schemes, strict=True) if scheme and {*column} != {OUTSIDE}]
    of_others = used[0] if used else STANDARD
    return [of_others if {*column} == {OUTSIDE} else scheme for column, scheme in zip(columns, schemes, strict=True)]


def tag_columns(columns: Sequence[Sequence[str]]) -> dict[int, TagScheme]:
    """The last adjacent columns with nothing but tags, after one other or more, and their schemes.

    Columns without any value do not part them. Chunks, as in CoNLL-2003 (English, German), look like tags of entities,
    and are left out. Types alone are tags only where no column has prefixes.
    """
    schemes = schemes_of(columns)
    has_prefixes = any(scheme not in (None, WITHOUT_PREFIXES) for scheme in schemes)
    found: dict[int, TagScheme] = {}
    for column in range(len(columns) - 1, 0, -1):
        scheme = schemes[column]
        if scheme is not None and not (has_prefixes and scheme is WITHOUT_PREFIXES):
            found[column] = scheme
        elif found and {*columns[column]} != {NO_VALUE}:
            break
    types = {column: {tag[2:] for tag in columns[column]} for column in found}
    return {column: found[column] for column in sorted(found) if not any(map(types[column].issuperset, CHUNKS))}


def decode_tags(tags_of_words: Iterable[Sequence[Tag]], check: RecordChecker, note: str = "") -> Iterator[Entity]:
    """The entities of words with any number of tags each; a tag continues the earliest of the entities of its type.

    A tag that continues no entity begins one and is counted, unless the corpus writes no prefixes. For each entity, the
    `note` is counted.
    """
    open_entities: list[tuple[int, str]] = []  # first word and type of the entities that the word before is in
    for position, tags in enumerate([*tags_of_words, ()]):
        still_open: list[tuple[int, str]] = []
        finished: list[tuple[int, str]] = []
        for prefix, kind in tags:
            if kind == OUTSIDE:
                check.note(f"tags {prefix}-{OUTSIDE} read as {OUTSIDE}")
                continue
            kind = kind or (open_entities[-1][1] if open_entities else TYPELESS)
            continues = prefix in INSIDE + LAST  # as no prefix does
            known = min((entity for entity in open_entities if continues and entity[1] == kind), default=None)
            if known is not None:
                open_entities.remove(known)
            elif continues and prefix:
                check.note(f"tags {prefix}- that begin an entity read as {'B' if prefix in INSIDE else 'S'}-")
            (finished if prefix and prefix in LAST + SINGLE else still_open).append(known or (position, kind))
        entities = [Entity(start=start, end=position, type=kind) for start, kind in open_entities]
        entities += [Entity(start=start, end=position + 1, type=kind) for start, kind in finished]
        if note:
            check.note(note, len(entities))
        yield from entities
        open_entities = still_open
