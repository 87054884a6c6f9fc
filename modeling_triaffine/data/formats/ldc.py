"""Reads ACE and ERE as LDC distributes them: a source text and its annotations for every document.

Entities are the entity mentions, also nominal ones and pronouns, with the type of their entity; values, times, fillers,
relations and events are ignored and counted. Offsets are checked against the text that the annotation quotes. Sentences
end at every tag.

- ACE (`.sgm`, `.apf.xml`): offsets count the characters of the source without its tags, an escape like `&amp;` as
  written. What is outside of `<TEXT>` (ids, dates, most headlines) is not read, unless a mention is annotated there. Of
  several stages of annotation the last is read, if the list does not name one.
- ERE of TAC KBP (`.rich_ere.xml` and texts): offsets count the characters of the source, its tags included. Text that a
  post of a forum quotes from another one (`<quote>`) is not annotated, and not read. Mentions in a tag (the author of a
  post) are dropped and counted. A source has the name of the annotations and another suffix.

The corpora have no splits of their own: a list (`train.txt`, `dev.txt`, `test.txt`) in a folder above the documents
names the documents of a split, one per line, with or without folders and suffix: `nw/adj/AFP_ENG_20030401.0476`.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
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


class Mention(NamedTuple):
    """An entity mention; `quote` is its text as annotated."""

    where: str
    type: str
    start: int
    end: int
    quote: str

    def overlaps(self, span: Offsets) -> bool:
        return self.start < span[1] and span[0] < self.end


@dataclass(frozen=True)
class Release:
    """How the files of a corpus are named and written.

    Args:
        suffixes: of the annotations; none ends with another.
        source_suffix: of the texts that they annotate; empty for any.
        stages: folders that hold the same documents, from the first to the last stage of annotation.
        ignored: tag of what is no entity → its name.
        span_of: element of a mention → start, end and quote; fails if they are not there.
        written: source and mentions → the text that is read, the positions that no sentence crosses, and the mentions.
    """

    suffixes: tuple[str, ...]
    source_suffix: str
    stages: tuple[str, ...]
    ignored: Mapping[str, str]
    span_of: Callable[[Element], tuple[int, int, str]]
    written: Callable[[str, list[Mention], RecordChecker], tuple[str, list[int], list[Mention]]]

    def document(self, file: Path) -> str:
        """The name of the document, without suffixes."""
        suffix = next((suffix for suffix in self.suffixes if file.name.endswith(suffix)), "")
        return file.name.removesuffix(suffix)

    def documents(self, path: Path) -> list[Path]:
        """The annotations in a folder or of a list, and their sources, after the list; none if it lists others."""
        try:
            annotations = self._annotations(path) if path.is_dir() else self._find(path, RecordChecker(path))
        except CorpusError:  # a list of something else
            return []
        lists = [path] if annotations and path.is_file() and path.suffix in LISTS else []
        return [*lists, *annotations, *(source for found in self._sources(annotations).values() for source in found)]

    def read(self, path: Path, check: RecordChecker) -> Iterator[Text]:
        """Reads the documents in the order of their names or of the list."""
        annotations = self._find(path, check)
        sources = self._sources(annotations)
        for file in annotations:
            with check.record():
                name = name_in_corpus(file, path)
                if len(sources[file]) != 1:
                    found = ", ".join(map(str, sources[file])) or "none"
                    problem = f"its text, {self.document(file)}{self.source_suffix or '.*'}, is not there once: {found}"
                    raise check.error(
                        name, problem, "Put it beside the annotations, or in the folder `source` beside it"
                    )
                yield self._read_document(file, name, sources[file][0], check)

    def _read_document(self, file: Path, name: str, source: Path, check: RecordChecker) -> Text:
        mentions = list(self._mentions(file, name, check))
        # A line end is one character, whatever system wrote the file.
        content = read_text(source, check, source.name).removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n")
        text, borders, mentions = self.written(content, mentions, check)
        entities = (
            check.entity(text, [(m.start, m.end)], m.type, m.quote or None, m.where, "mention") for m in mentions
        )
        return Text(
            doc_id=self.document(file),
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

    def _annotations(self, folder: Path) -> list[Path]:
        return [file for file in visible_paths(folder) if file.name.endswith(self.suffixes)]

    def _sources(self, annotations: Sequence[Path]) -> dict[Path, list[Path]]:
        """The files that may be the text of each file of annotations: one, if the corpus is complete."""
        by_document = defaultdict(list)  # where a source may be, without its suffix → annotations
        for file in annotations:
            for folder in {file.parent, file.parent.parent / "source"}:
                by_document[folder / self.document(file)].append(file)
        sources: dict[Path, list[Path]] = {file: [] for file in annotations}
        for folder in sorted({document.parent for document in by_document if document.parent.is_dir()}):
            for source in sorted(folder.iterdir()):
                if source.name.endswith(self.source_suffix) and not source.name.endswith(self.suffixes):
                    dots = [dot.start() for dot in re.finditer(r"\.", source.name)]
                    names = (folder / source.name[:dot] for dot in reversed(dots))  # of NEWS and NEWS.1, the longer one
                    for file in next((by_document[name] for name in names if name in by_document), []):
                        sources[file].append(source)
        return sources

    def _find(self, path: Path, check: RecordChecker) -> list[Path]:
        """The annotations of a folder (searched recursively), of a list in or above their folders, or the one file."""
        if path.name.endswith(self.suffixes):
            return [path]
        if not path.is_dir() and path.suffix not in LISTS:
            return []
        by_name = defaultdict(list)
        for file in self._annotations(path if path.is_dir() else path.parent):
            by_name[self.document(file)].append(file)
        if path.is_dir():
            return [self._last_stage(files, check) for files in by_name.values()]
        lines = numbered_lines(path, check) if by_name else ()
        return [self._listed(line.strip(), number, by_name, check) for number, line in lines if line.strip()]

    def _listed(self, line: str, number: int, by_name: Mapping[str, list[Path]], check: RecordChecker) -> Path:
        """The document named by a line of a list, with or without folders and suffix."""
        wanted = line.replace("\\", "/").strip("/")
        for suffix in (*self.suffixes, self.source_suffix):
            wanted = wanted.removesuffix(suffix)
        files = by_name.get(wanted.rpartition("/")[2], [])
        fitting = [one for one in files if f"/{one.with_name(self.document(one)).as_posix()}".endswith(f"/{wanted}")]
        if not fitting:
            problem = f"there is no document {line[:60]!r} in the folder of the list"
            raise check.error(
                f"line {number}", problem, "Move the list to the folder of the corpus, or correct the name"
            )
        return self._last_stage(fitting, check)

    def _last_stage(self, files: Sequence[Path], check: RecordChecker) -> Path:
        """The file with the last stage of annotation of several files of one document."""
        if len(files) == 1:
            return files[0]
        stages = {file.parent.name for file in files}
        if len(stages) < len(files) or not stages <= {*self.stages}:
            problem = f"there are several documents {self.document(files[0])!r}: {', '.join(map(str, files))}"
            raise check.error("", problem, "Keep one, or list its folder")
        check.note("earlier stages of annotation ignored", len(files) - 1)
        return max(files, key=lambda file: self.stages.index(file.parent.name))


def _unescape(text: str) -> str:
    """The text with `&amp;` and the like as characters, padded with spaces, so that offsets stay valid."""
    return ESCAPE.sub(lambda escape: ESCAPED[escape[1].lower()].ljust(len(escape[0])), text)


def _blanked(text: str, spans: Sequence[Offsets]) -> str:
    """The text with spaces in these places."""
    characters = list(text)
    for start, end in spans:
        characters[start:end] = " " * (end - start)
    return "".join(characters)


# ---- ACE ----


def _ace_span(mention: Element) -> tuple[int, int, str]:
    extent: Any = mention.find("extent/charseq")
    return int(extent.get("START")), int(extent.get("END")) + 1, extent.text or ""


def _ace_written(source: str, mentions: list[Mention], check: RecordChecker) -> tuple[str, list[int], list[Mention]]:
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
    source_suffix=".sgm",
    stages=("fp1", "fp2", "adj", "timex2norm"),  # of ACE 2005
    ignored={
        "value_mention": "values",
        "timex2_mention": "times",
        "relation_mention": "relations",
        "event_mention": "events",
    },
    span_of=_ace_span,
    written=_ace_written,
)


# ---- ERE ----


def _ere_span(mention: Element) -> tuple[int, int, str]:
    start, length = (int(mention.get(name, "")) for name in ("offset", "length"))
    return start, start + length, _unescape(mention.findtext("mention_text", ""))


def _ere_written(source: str, mentions: list[Mention], check: RecordChecker) -> tuple[str, list[int], list[Mention]]:
    tags = [match.span() for match in TAG.finditer(source)]
    kept = [mention for mention in mentions if not any(mention.overlaps(tag) for tag in tags)]
    for mention in mentions:
        if mention not in kept:
            check.drop("mentions inside tags dropped", 1, f"{mention.where}: {mention.quote}", mention.type)
    quotes = (match.span() for match in QUOTE.finditer(source))
    unread = [quote for quote in quotes if not any(mention.overlaps(quote) for mention in kept)]
    return _blanked(_unescape(source), [*tags, *unread]), [border for tag in tags for border in tag], kept


ERE_RELEASE = Release(
    suffixes=(".rich_ere.xml", ".light_ere.xml", ".ere.xml"),
    source_suffix="",
    stages=(),
    ignored={"filler": "fillers", "relation_mention": "relations", "event_mention": "events"},
    span_of=_ere_span,
    written=_ere_written,
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
