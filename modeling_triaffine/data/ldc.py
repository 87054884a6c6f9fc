"""Reads ACE and ERE as LDC distributes them: a source text and its annotations for every document.

Entities are the entity mentions, in ERE also nominal ones and pronouns, with the type of their entity; values, times,
fillers, relations and events are ignored and counted. Offsets are checked against the text that the annotation quotes.
Sentences end at every tag.

- ACE (`.sgm`, `.apf.xml`): offsets count the characters of the source without its tags, an escape like `&amp;` as
  written. What is outside of `<TEXT>` (ids, dates, most headlines) is not read, unless a mention is annotated there.
  If a document exists in several stages of annotation and the list does not name one, the last stage is read.
- ERE (`.rich_ere.xml`), of TAC KBP: offsets count the characters of the source file, its tags included. Text that a
  post of a forum quotes from another one (`<quote>`) is not annotated, and not read. Mentions in a tag (the author of a
  post) are dropped and counted. A source has the name of the annotations and another suffix.

The corpora have no splits of their own: a list (`train.txt`, `dev.txt`, `test.txt`) in a folder above the documents
names the documents of a split, one per line, with or without folders and suffix: `nw/adj/AFP_ENG_20030401.0476`.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from ..model.text_triaffine import Offsets
from .corpus_format import CorpusFormat
from .documents import AnnotatedText, Annotation, format_of_texts
from .reading import BYTE_ORDER_MARK, name_in_corpus, numbered_lines, open_corpus, parse_xml, read_text, visible_paths
from .schema import CorpusError, RecordChecker

TAG = re.compile(r"<[^<>]+>")
ESCAPE = re.compile(r"&(amp|lt|gt|quot|apos);", re.IGNORECASE)
ESCAPED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}

LISTS = (".txt", ".lst", ".list", ".filelist")
"""Suffixes of a list of documents."""

SourcesOf = Callable[[Sequence[Path]], dict[Path, list[Path]]]
"""Files of annotations → the sources of each; none or several if the corpus is not as distributed."""


def unescape(text: str) -> str:
    """The text with `&amp;` and the like as characters, padded with spaces, so that offsets stay valid."""
    return ESCAPE.sub(lambda escape: ESCAPED[escape[1].lower()].ljust(len(escape[0])), text)


def read_source(path: Path, check: RecordChecker, where: str) -> str:
    """The text that annotations count the characters of: a line end is one, whatever system wrote the file."""
    return read_text(path, check, where).removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n")


def entity_mentions(
    file: Path, name: str, check: RecordChecker, others: Mapping[str, str]
) -> Iterator[tuple[Element, Element, str]]:
    """Each entity mention of a document with its entity, before it, and its place for messages.

    Args:
        file: the annotations.
        name: their path in the corpus.
        others: tag → what such elements are, which are counted as ignored.
    """
    with open_corpus(file) as opened:
        root = parse_xml(opened.read(), check, name)
    for tag, what in others.items():
        if number := sum(1 for _ in root.iter(tag)):
            check.note(f"{what} ignored", number)
    for entity in root.iter("entity"):
        for mention in entity.iter("entity_mention"):
            yield entity, mention, f"{name}, {mention.get('ID') or mention.get('id')}"


def numbers(values: Sequence[str | None], names: str, where: str, check: RecordChecker) -> list[int]:
    """The numbers in attributes of these names; CorpusError if one is missing or no number."""
    if not all(re.fullmatch("[0-9]{1,15}", value or "") for value in values):
        raise check.error(where, f"it has no {names}", "Give the file as distributed by LDC")
    return [int(value or "") for value in values]


def overlaps(mention: Annotation, span: Offsets) -> bool:
    return any(start < span[1] and span[0] < end for start, end in mention.fragments)


@dataclass(frozen=True)
class AnnotationFiles:
    """How the files of annotations are named and found.

    Args:
        suffixes: of the annotations; none ends with another.
        source_suffix: of the texts that they annotate; lists may name those.
        place: where those texts are, in words.
        stages: folders that hold the same documents, from the first to the last stage of annotation.
    """

    suffixes: tuple[str, ...]
    source_suffix: str
    place: str
    stages: tuple[str, ...] = ()

    def document(self, file: Path) -> str:
        """The name of the document, without suffixes."""
        suffix = next((suffix for suffix in self.suffixes if file.name.endswith(suffix)), "")
        return file.name.removesuffix(suffix)

    def find(self, path: Path, check: RecordChecker) -> list[Path]:
        """The annotations of a folder (searched recursively), of a list in or above their folders, or the one file.

        Raises:
            CorpusError: a listed document is missing, or there are several of its name.
        """
        if path.name.endswith(self.suffixes):
            return [path]
        if not path.is_dir() and path.suffix not in LISTS:
            return []
        by_name = defaultdict(list)
        for file in self._annotations(path if path.is_dir() else path.parent):
            by_name[self.document(file)].append(file)
        if path.is_dir():
            return [self._last_stage(files, check) for files in by_name.values()]
        if not by_name:
            return []
        return [
            self._listed(line.strip(), f"line {number}", by_name, check)
            for number, line in numbered_lines(path, check)
            if line.strip()
        ]

    def with_sources(self, path: Path, sources_of: SourcesOf) -> list[Path]:
        """The annotations that `path` refers to, of all stages in a folder, and their sources, after the list itself.

        None if it lists something else.
        """
        try:
            annotations = self._annotations(path) if path.is_dir() else self.find(path, RecordChecker(path))
        except CorpusError:  # a list of something else
            return []
        lists = [path] if annotations and path.is_file() and path.suffix in LISTS else []
        return [*dict.fromkeys(chain(lists, annotations, *sources_of(annotations).values()))]

    def _annotations(self, folder: Path) -> list[Path]:
        return [file for file in visible_paths(folder) if file.name.endswith(self.suffixes)]

    def _listed(self, line: str, where: str, by_name: dict[str, list[Path]], check: RecordChecker) -> Path:
        """The document named by a line of a list, with or without folders and suffix."""
        wanted = line.replace("\\", "/").strip("/")
        for suffix in (*self.suffixes, self.source_suffix):
            wanted = wanted.removesuffix(suffix)
        files = by_name.get(wanted.rpartition("/")[2], [])
        fitting = [
            file for file in files if f"/{file.with_name(self.document(file)).as_posix()}".endswith(f"/{wanted}")
        ]
        if not fitting:
            suffixes = " or ".join(self.suffixes)
            problem = f"there is no document {line[:60]!r} ({suffixes}) in the folder of the list"
            raise check.error(where, problem, "Move the list to the folder of the corpus, or correct the name")
        return self._last_stage(fitting, check)

    def _last_stage(self, files: Sequence[Path], check: RecordChecker) -> Path:
        """The file with the last stage of annotation of several files of one document."""
        stages = [file.parent.name for file in files]
        if len(files) > 1 and not (set(stages) <= set(self.stages) and len(set(stages)) == len(files)):
            name, folders = self.document(files[0]), ", ".join(str(file.parent) for file in files)
            raise check.error("", f"there are several documents {name!r}, in {folders}", "Keep one, or list its folder")
        if len(files) > 1:
            check.note("earlier stages of annotation ignored", len(files) - 1)
        return max(files, key=lambda file: (*self.stages, file.parent.name).index(file.parent.name))


def format_of_pairs(
    files: AnnotationFiles,
    sources_of: SourcesOf,
    read_document: Callable[[Path, str, Path, RecordChecker], AnnotatedText],
    **fields: Any,
) -> CorpusFormat:
    """A format of sources and annotations; documents come in the order of their names or of the list.

    Args:
        files: how annotations are named and found.
        sources_of: see [`SourcesOf`].
        read_document: `read_document(annotations, name, source, check)`; `name` is their path in the corpus, for
            messages.
        fields: further ones of [`CorpusFormat`].
    """

    def read(path: Path, check: RecordChecker) -> Iterator[AnnotatedText]:
        annotations = files.find(path, check)
        sources = sources_of(annotations)
        for file in annotations:
            name = name_in_corpus(file, path)
            if len(sources[file]) != 1:
                text = f"{files.document(file)}{files.source_suffix}"
                found = f"there are several: {', '.join(map(str, sources[file]))}" if sources[file] else "there is none"
                problem = f"the text that it annotates, {text}, belongs {files.place}; {found}"
                raise check.error(name, problem, "Add the text, or keep one")
            yield read_document(file, name, sources[file][0], check)

    def documents(path: Path) -> list[Path]:
        return files.with_sources(path, sources_of)

    return format_of_texts(read, suffixes=files.suffixes, documents=documents, lists=LISTS, **fields)


# ---- ACE ----

# ACE 2005 has the same documents in several stages of annotation, here from the first to the last.
ACE_FILES = AnnotationFiles((".apf.xml",), ".sgm", "in its folder", stages=("fp1", "fp2", "adj", "timex2norm"))
NOT_IN_ACE = {
    "value_mention": "values",
    "timex2_mention": "times",
    "relation_mention": "relations",
    "event_mention": "events",
}


def _ace_sources(annotations: Sequence[Path]) -> dict[Path, list[Path]]:
    sources = {file: file.with_name(ACE_FILES.document(file) + ACE_FILES.source_suffix) for file in annotations}
    return {file: [source] if source.is_file() else [] for file, source in sources.items()}


def _read_ace(file: Path, name: str, source_file: Path, check: RecordChecker) -> AnnotatedText:
    mentions = list(_ace_mentions(file, name, check))
    source = read_source(source_file, check, name.removesuffix(file.name) + source_file.name)
    text = unescape(TAG.sub("", source))
    pieces = _pieces(source)
    kept = [piece for piece, is_text in pieces if is_text or any(overlaps(mention, piece) for mention in mentions)]
    blanked = list(" " * len(text))
    for start, end in kept:
        blanked[start:end] = text[start:end]
    return AnnotatedText(
        doc_id=ACE_FILES.document(file),
        text="".join(blanked),
        annotations=mentions,
        where=name,
        borders=sorted({border for piece in kept for border in piece}),
    )


def _ace_mentions(file: Path, name: str, check: RecordChecker) -> Iterator[Annotation]:
    for entity, mention, where in entity_mentions(file, name, check, NOT_IN_ACE):
        kind = check.typed(entity.attrib, "TYPE", str, where)
        extent = mention.find("extent/charseq")
        values = [None] if extent is None else [extent.get("START"), extent.get("END")]
        start, last = numbers(values, "extent with START and END", where, check)
        quote = mention.findtext("extent/charseq") or None
        yield Annotation("extent", ((start, last + 1),), type=kind, quote=quote, where=where)


def _pieces(source: str) -> Iterator[tuple[Offsets, bool]]:
    """The pieces between tags: their characters in the text without tags, and whether they are inside `<TEXT>`."""
    length, inside = 0, False
    for part in re.split(f"({TAG.pattern})", source):
        if TAG.fullmatch(part):
            inside = part.upper() == "<TEXT>" or (inside and part.upper() != "</TEXT>")
        else:
            yield (length, length + len(part)), inside
            length += len(part)


ACE = format_of_pairs(
    ACE_FILES,
    _ace_sources,
    _read_ace,
    name="ace",
    description="ACE as distributed by LDC, a folder of .sgm and .apf.xml",
    recognizes=lambda head: head.startswith("<") and "<source_file" in head,
)


# ---- ERE ----

ERE_FILES = AnnotationFiles(
    (".rich_ere.xml", ".light_ere.xml", ".ere.xml"),
    source_suffix=".xml",
    place="(with this or another suffix) in its folder or in `source` beside that",
)
QUOTE = re.compile(r"<quote\b.*?</quote\s*>", re.DOTALL | re.IGNORECASE)
NOT_IN_ERE = {"filler": "fillers", "relation_mention": "relations", "event_mention": "events"}


def _ere_sources(annotations: Sequence[Path]) -> dict[Path, list[Path]]:
    """The files that may be the text of each file of annotations: one, if the corpus is complete."""
    by_document: dict[Path, list[Path]] = defaultdict(list)  # where a source may be, without its suffix → annotations
    for file in annotations:
        for folder in dict.fromkeys([file.parent, file.parent.parent / "source"]):
            by_document[folder / ERE_FILES.document(file)].append(file)
    sources: dict[Path, list[Path]] = {file: [] for file in annotations}
    for folder in sorted({document.parent for document in by_document}):
        for source in sorted(folder.iterdir()) if folder.is_dir() else ():
            if not source.name.endswith(ERE_FILES.suffixes):
                dots = [dot.start() for dot in re.finditer(r"\.", source.name)]
                names = (folder / source.name[:dot] for dot in reversed(dots))  # of NEWS and NEWS.1, the longer one
                for file in next((by_document[name] for name in names if name in by_document), []):
                    sources[file].append(source)
    return sources


def _read_ere(file: Path, name: str, source_file: Path, check: RecordChecker) -> AnnotatedText:
    source = read_source(source_file, check, source_file.name)
    tags = [match.span() for match in TAG.finditer(source)]
    mentions = []
    for mention in _ere_mentions(file, name, check):
        if any(overlaps(mention, tag) for tag in tags):
            check.drop("mentions in tags dropped", example=f"{mention.where}: {mention.quote}")
        else:
            mentions.append(mention)
    quotes = [match.span() for match in QUOTE.finditer(source)]
    unread = [quote for quote in quotes if not any(overlaps(mention, quote) for mention in mentions)]
    text = list(unescape(source))
    for start, end in (*tags, *unread):
        text[start:end] = " " * (end - start)
    return AnnotatedText(
        doc_id=ERE_FILES.document(file),
        text="".join(text),
        annotations=mentions,
        where=name,
        borders=sorted({border for tag in tags for border in tag}),
    )


def _ere_mentions(file: Path, name: str, check: RecordChecker) -> Iterator[Annotation]:
    for entity, mention, where in entity_mentions(file, name, check, NOT_IN_ERE):
        kind = check.typed(entity.attrib, "type", str, where)
        values = [mention.get("offset"), mention.get("length")]
        start, length = numbers(values, "offset and length", where, check)
        quote = unescape(mention.findtext("mention_text", "")) or None
        yield Annotation("mention_text", ((start, start + length),), type=kind, quote=quote, where=where)


ERE = format_of_pairs(
    ERE_FILES,
    _ere_sources,
    _read_ere,
    name="ere",
    description="ERE as distributed by LDC, a folder of .rich_ere.xml and texts",
    recognizes=lambda head: "<deft_ere" in head,
)
