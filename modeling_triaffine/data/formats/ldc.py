"""Reads ACE and ERE as LDC distributes them: a source text and its annotations for every document.

Entities are the entity mentions, also nominal ones and pronouns, with the type of their entity. Sentences end at every
tag.

- ACE (`.sgm`, `.apf.xml`): offsets count the characters of the source without its tags, an escape like `&amp;` as
  written. What is outside of `<TEXT>` is not read, unless a mention is annotated there.
- ERE of TAC KBP (`.rich_ere.xml` and texts): offsets count the characters of the source, its tags included. Text that a
  post of a forum quotes from another one (`<quote>`) is not annotated, and not read. Mentions in a tag (the author of a
  post) are dropped and counted.

The corpora have no splits of their own: a list (`train.txt`, `dev.txt`, `test.txt`) in a folder above the documents
names the documents of a split, one per line, with or without folders and suffix: `nw/adj/AFP_ENG_20030401.0476`.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from ...model.text_triaffine import Offsets
from ..corpus_format import CorpusFormat
from ..offsets import BYTE_ORDER_MARK
from ..reading import name_in_corpus, numbered_lines, open_corpus, parse_xml, read_text, visible_paths
from ..record_checker import RecordChecker
from ..schema import CorpusError, Text

TAG = re.compile(r"<[^<>]+>")
QUOTE = re.compile(r"<quote\b.*?</quote\s*>", re.DOTALL | re.IGNORECASE)
ESCAPE = re.compile(r"&(amp|lt|gt|quot|apos);", re.IGNORECASE)
ESCAPED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
LISTS = (".txt", ".lst", ".list", ".filelist")
"""Suffixes of a list of documents."""
STAGES = ("fp1", "fp2", "adj", "timex2norm")
"""Folders of ACE 2005 that hold the same documents, from the first to the last stage of annotation."""


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
        ignored: tag of what is no entity → its name.
        span_of: element of a mention → start, end and quote; fails if they are not there.
        written: source and mentions → what is read.
    """

    suffixes: tuple[str, ...]
    sources: tuple[str, ...]
    ignored: Mapping[str, str]
    span_of: Callable[[Element], tuple[int, int, str]]
    written: Callable[[str, list[Mention], RecordChecker], Written]

    def documents(self, path: Path) -> list[Path]:
        """The annotations in a folder or of a list, and their sources, after the list; none if it lists others."""
        try:
            annotations = self._annotations(path) if path.is_dir() else self._find(path, RecordChecker(path))
        except CorpusError:  # a list of something else
            return []
        lists = [path] if annotations and path.suffix in LISTS else []
        return [*lists, *annotations, *(source for file in annotations for source in self._sources(file))]

    def read(self, path: Path, check: RecordChecker) -> Iterator[Text]:
        """Reads the documents in the order of their names or of the list."""
        for file in self._find(path, check):
            with check.record():
                yield self._read_document(file, name_in_corpus(file, path), check)

    def _read_document(self, file: Path, name: str, check: RecordChecker) -> Text:
        document, sources = self._document(file), self._sources(file)
        if len(sources) != 1:
            problem = f"its text, {document}{'|'.join(self.sources)}, is not there once: {[*map(str, sources)]}"
            raise check.error(name, problem, "Put it beside the annotations, or in the folder `source` beside it")
        mentions = list(self._mentions(file, name, check))
        # A line end is one character, whatever system wrote the file.
        content = read_text(sources[0], check, sources[0].name).removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n")
        text, borders, mentions = self.written(content, mentions, check)
        entities = (
            check.entity(text, [(found.start, found.end)], found.type, found.quote or None, found.where, "mention")
            for found in mentions
        )
        return Text(
            doc_id=document,
            text=text,
            entities=[entity for entity in entities if entity],
            borders=sorted({border for border in borders if 0 < border < len(text)}),
            where=name,
        )

    def _mentions(self, file: Path, name: str, check: RecordChecker) -> Iterator[Mention]:
        with open_corpus(file) as opened:
            root = parse_xml(opened.read(), check, name)
        for tag, what in self.ignored.items():
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

    def _document(self, file: Path) -> str:
        """The name of the document, without suffixes."""
        return next(file.name.removesuffix(suffix) for suffix in self.suffixes if file.name.endswith(suffix))

    def _annotations(self, folder: Path) -> list[Path]:
        return [file for file in visible_paths(folder) if file.name.endswith(self.suffixes)]

    def _sources(self, file: Path) -> list[Path]:
        """The files that may be the text of these annotations: one, if the corpus is complete."""
        folders = dict.fromkeys((file.parent, file.parent.parent / "source"))
        places = (folder / f"{self._document(file)}{suffix}" for folder in folders for suffix in self.sources)
        return [place for place in places if place.is_file()]

    def _find(self, path: Path, check: RecordChecker) -> list[Path]:
        """The annotations of a folder (searched recursively), of a list in or above their folders, or the one file."""
        if path.name.endswith(self.suffixes):
            return [path]
        if not path.is_dir() and path.suffix not in LISTS:
            return []
        by_name = defaultdict(list)
        for file in self._annotations(path if path.is_dir() else path.parent):
            by_name[self._document(file)].append(file)
        if path.is_dir():
            return [self._last_stage(files, check) for files in by_name.values()]
        found = []
        for number, line in numbered_lines(path, check) if by_name else ():
            wanted = line.strip().replace("\\", "/")
            for suffix in (*self.suffixes, *self.sources):
                wanted = wanted.removesuffix(suffix)
            files = by_name.get(wanted.rpartition("/")[2], [])
            listed = [doc for doc in files if f"/{doc.parent.as_posix()}/{self._document(doc)}".endswith(f"/{wanted}")]
            if wanted and not listed:
                problem = f"there is no document {line[:60]!r} in the folder of the list"
                remedy = "Move the list to the folder of the corpus, or correct the name"
                raise check.error(f"line {number}", problem, remedy)
            found += [self._last_stage(listed, check)] if wanted else []
        return found

    def _last_stage(self, files: list[Path], check: RecordChecker) -> Path:
        """The file with the last stage of annotation of several files of one document."""
        stages = {file.parent.name for file in files}
        if len(files) > 1 and (len(stages) < len(files) or not stages <= {*STAGES}):
            problem = f"there are several documents {self._document(files[0])!r}: {', '.join(map(str, files))}"
            raise check.error("", problem, "Keep one, or list its folder")
        if len(files) > 1:
            check.note("earlier stages of annotation ignored", len(files) - 1)
        return max(files, key=lambda file: STAGES.index(file.parent.name) if len(files) > 1 else 0)


def _unescape(text: str) -> str:
    """The text with `&amp;` and the like as characters, padded with spaces, so that offsets stay valid."""
    return ESCAPE.sub(lambda escape: ESCAPED[escape[1].lower()].ljust(len(escape[0])), text)


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


ACE_RELEASE = Release(
    suffixes=(".apf.xml",),
    sources=(".sgm",),
    ignored={
        "value_mention": "values",
        "timex2_mention": "times",
        "relation_mention": "relations",
        "event_mention": "events",
    },
    span_of=_ace_span,
    written=_ace_written,
)
ACE = CorpusFormat(
    name="ace",
    description="ACE as distributed by LDC, a folder of .sgm and .apf.xml",
    read=ACE_RELEASE.read,
    suffixes=ACE_RELEASE.suffixes,
    recognizes=lambda head: head.startswith("<") and "<source_file" in head,
    documents=ACE_RELEASE.documents,
    lists=LISTS,
    tools="LDC's ACE 2004 and 2005",
    example='<entity_mention ID="1-1"><extent><charseq START="13" END="16">Orsk</charseq></extent></entity_mention>',
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
    suffixes=(".rich_ere.xml", ".light_ere.xml", ".ere.xml"),
    sources=(".cmp.txt", ".mpdf.xml", ".mp.txt", ".txt", ".xml", ".sgm"),
    ignored={"filler": "fillers", "relation_mention": "relations", "event_mention": "events"},
    span_of=_ere_span,
    written=_ere_written,
)
ERE = CorpusFormat(
    name="ere",
    description="ERE as distributed by LDC, a folder of .rich_ere.xml and texts",
    read=ERE_RELEASE.read,
    suffixes=ERE_RELEASE.suffixes,
    recognizes=lambda head: "<deft_ere" in head,
    documents=ERE_RELEASE.documents,
    lists=LISTS,
    tools="LDC's TAC KBP and DEFT ERE",
    example='<entity_mention id="m-1" offset="13" length="4"><mention_text>Orsk</mention_text></entity_mention>',
)
