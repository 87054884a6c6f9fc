"""Reads ACE and ERE as LDC distributes them: a source text and its annotations for every document.

Entities are all entity mentions, with the type of their entity. Sentences end at every tag.

- ACE (`.sgm`, `.apf.xml`): offsets count the characters of the source without its tags, an escape like `&amp;` as
  written. What is outside of `<TEXT>` is not read, unless a mention is annotated there.
- ERE of TAC KBP (`.rich_ere.xml` and texts): offsets count the characters of the source, its tags included. Text that a
  post of a forum quotes from another one (`<quote>`) is not annotated, and not read. Mentions in a tag (the author of a
  post) are dropped and counted.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from ...model.text_triaffine import Offsets
from ..reading import name_in_corpus, open_corpus, parse_xml, read_text, visible_files
from ..schema import BYTE_ORDER_MARK, RecordChecker, Text, annotated
from . import CorpusFormat

TAG = re.compile(r"<[^<>]+>")
QUOTE = re.compile(r"<quote\b.*?</quote\s*>", re.DOTALL | re.IGNORECASE)
ESCAPE = re.compile(r"&(amp|lt|gt|quot|apos);", re.IGNORECASE)
STAGES = ("fp1", "fp2", "adj", "timex2norm")
"""Folders of ACE 2005 that hold the same documents, from the first to the last stage of annotation."""
IGNORED = {
    "value_mention": "values",
    "timex2_mention": "times",
    "filler": "fillers",
    "relation_mention": "relations",
    "event_mention": "events",
}
"""Tag of what is no entity → its name."""


class Mention(NamedTuple):
    """An entity mention; `quote` is its text as annotated."""

    where: str
    type: str
    start: int
    end: int
    quote: str

    def overlaps(self, span: Offsets) -> bool:
        return self.start < span[1] and span[0] < self.end


Written = tuple[str, list[int], list[Mention]]
"""The text that is read, the positions that no sentence crosses, and the mentions in it."""


@dataclass(frozen=True)
class Release:
    """The way the files of a corpus are named and written.

    Args:
        suffixes: of the annotations; none ends with another.
        sources: suffixes of the texts that they annotate, beside them or in the folder `source` beside theirs.
        span_of: element of a mention → start, end and quote; fails if they are not there.
        written: source and mentions → what is read.
    """

    suffixes: tuple[str, ...]
    sources: tuple[str, ...]
    span_of: Callable[[Element], tuple[int, int, str]]
    written: Callable[[str, list[Mention], RecordChecker], Written]

    def documents(self, path: Path) -> list[Path]:
        """The annotations in a folder, searched recursively, or the one file."""
        return [file for file in visible_files(path) if file.name.endswith(self.suffixes)]

    def read(self, path: Path, check: RecordChecker) -> Iterator[Text]:
        """Reads one document, unless the corpus has a later stage of its annotation."""
        stage = STAGES.index(path.parent.name) if path.parent.name in STAGES else len(STAGES)
        later = [path.parent.parent / name / path.name for name in STAGES[stage + 1 :]]
        if any(file.is_file() and check.folder in file.parents for file in later):
            check.note("earlier stages of annotation ignored")
            return
        name = name_in_corpus(path, check)
        document = next((path.name.removesuffix(end) for end in self.suffixes if path.name.endswith(end)), path.name)
        folders = dict.fromkeys((path.parent, path.parent.parent / "source"))
        places = [folder / f"{document}{suffix}" for folder in folders for suffix in self.sources]
        sources = [place for place in places if place.is_file()]
        with check.record():
            if len(sources) != 1:
                problem = f"its text, {document}{'|'.join(self.sources)}, is not there once: {[*map(str, sources)]}"
                raise check.error(name, problem, "Put it beside the annotations, or in the folder `source` beside it")
            mentions = list(self._mentions(path, name, check))
            # A line end is one character, whatever system wrote the file.
            source = read_text(sources[0], check, sources[0].name).removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n")
            text, borders, mentions = self.written(source, mentions, check)
            entities = (
                check.entity(text, [(found.start, found.end)], found.type, found.quote or None, found.where, "mention")
                for found in mentions
            )
            yield annotated(document, text, entities, name, borders)

    def _mentions(self, file: Path, name: str, check: RecordChecker) -> Iterator[Mention]:
        with open_corpus(file) as opened:
            root = parse_xml(opened.read(), check, name)
        for tag, what in IGNORED.items():
            if number := sum(1 for _ in root.iter(tag)):
                check.note(f"{what} ignored", number)
        for entity in root.iter("entity"):
            for element in entity.iter("entity_mention"):
                where = f"{name}, {element.get('ID') or element.get('id')}"
                try:
                    span = self.span_of(element)
                except (AttributeError, TypeError, ValueError):
                    raise check.error(where, "it has no offsets", "Give the file as distributed by LDC") from None
                yield Mention(where, entity.get("TYPE") or entity.get("type") or "", *span)


def _unescape(text: str) -> str:
    """The text with `&amp;` and the like as characters, padded with spaces, so that offsets stay valid."""
    return ESCAPE.sub(lambda escape: unescape(escape[0].lower()).ljust(len(escape[0])), text)


def _blanked(text: str, spans: list[Offsets]) -> str:
    """The text with spaces in these places."""
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


# ---- ACE ----


def _ace_span(mention: Element) -> tuple[int, int, str]:
    extent: Any = mention.find("extent/charseq")
    return int(extent.get("START")), int(extent.get("END")) + 1, extent.text or ""


def _ace_written(source: str, mentions: list[Mention], check: RecordChecker) -> Written:
    text = _unescape(TAG.sub("", source))
    borders: list[int] = []
    unread: list[Offsets] = []
    first, is_text = 0, False
    for part in re.split(f"({TAG.pattern})", source):
        if TAG.fullmatch(part):
            is_text = part.upper() == "<TEXT>" or (is_text and part.upper() != "</TEXT>")
            continue
        piece = (first, first + len(part))
        first = piece[1]
        if is_text or any(mention.overlaps(piece) for mention in mentions):
            borders += piece
        else:
            unread.append(piece)
    return _blanked(text, unread), borders, mentions


ACE_RELEASE = Release((".apf.xml",), (".sgm",), _ace_span, _ace_written)
ACE = CorpusFormat(
    name="ace",
    description="ACE as distributed by LDC, a folder of .sgm and .apf.xml",
    read=ACE_RELEASE.read,
    suffixes=ACE_RELEASE.suffixes,
    recognizes=lambda head: head.startswith("<") and "<source_file" in head,
    documents=ACE_RELEASE.documents,
)


# ---- ERE ----


def _ere_span(mention: Element) -> tuple[int, int, str]:
    start, length = (int(mention.get(name, "")) for name in ("offset", "length"))
    return start, start + length, _unescape(mention.findtext("mention_text", ""))


def _ere_written(source: str, mentions: list[Mention], check: RecordChecker) -> Written:
    tags = [match.span() for match in TAG.finditer(source)]
    kept = [mention for mention in mentions if not any(mention.overlaps(tag) for tag in tags)]
    for mention in (mention for mention in mentions if mention not in kept):
        check.drop("mentions inside tags dropped", 1, f"{mention.where}: {mention.quote}")
    quotes = (match.span() for match in QUOTE.finditer(source))
    unread = [quote for quote in quotes if not any(mention.overlaps(quote) for mention in kept)]
    return _blanked(_unescape(source), [*tags, *unread]), [border for tag in tags for border in tag], kept


ERE_RELEASE = Release(
    (".rich_ere.xml", ".light_ere.xml", ".ere.xml"),
    (".cmp.txt", ".mpdf.xml", ".mp.txt", ".txt", ".xml", ".sgm"),
    _ere_span,
    _ere_written,
)
ERE = CorpusFormat(
    name="ere",
    description="ERE as distributed by LDC, a folder of .rich_ere.xml and texts",
    read=ERE_RELEASE.read,
    suffixes=ERE_RELEASE.suffixes,
    recognizes=lambda head: "<deft_ere" in head,
    documents=ERE_RELEASE.documents,
)
