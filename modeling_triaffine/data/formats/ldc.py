"""What ACE and ERE have in common as LDC distributes them: a source text and its annotations for every document.

Offsets are checked against the text that the annotation quotes. Sentences end at every tag.

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

from ...model.text_triaffine import Offsets
from ..corpus_format import CorpusFormat
from ..documents import Annotation, Document
from ..offsets import BYTE_ORDER_MARK
from ..reading import name_in_corpus, numbered_lines, open_corpus, parse_xml, read_text, visible_paths
from ..record_checker import RecordChecker
from ..schema import CorpusError

TAG = re.compile(r"<[^<>]+>")
ESCAPE = re.compile(r"&(amp|lt|gt|quot|apos);", re.IGNORECASE)
ESCAPED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}

LISTS = (".txt", ".lst", ".list", ".filelist")
"""Suffixes of a list of documents."""


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
        sources_of: files of annotations → the sources of each; none or several if the corpus is not as distributed.
        stages: folders that hold the same documents, from the first to the last stage of annotation.
    """

    suffixes: tuple[str, ...]
    source_suffix: str
    place: str
    sources_of: Callable[[Sequence[Path]], dict[Path, list[Path]]]
    stages: tuple[str, ...] = ()

    def document(self, file: Path) -> str:
        """The name of the document, without suffixes."""
        suffix = next((suffix for suffix in self.suffixes if file.name.endswith(suffix)), "")
        return file.name.removesuffix(suffix)

    def find(self, path: Path, check: RecordChecker) -> list[Path]:
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
        if not by_name:
            return []
        return [
            self._listed(line.strip(), f"line {number}", by_name, check)
            for number, line in numbered_lines(path, check)
            if line.strip()
        ]

    def documents(self, path: Path) -> list[Path]:
        """The annotations that `path` refers to, of all stages in a folder, and their sources, after the list itself.

        None of them if it lists something else.
        """
        try:
            annotations = self._annotations(path) if path.is_dir() else self.find(path, RecordChecker(path))
        except CorpusError:  # a list of something else
            return []
        lists = [path] if annotations and path.is_file() and path.suffix in LISTS else []
        return [*dict.fromkeys(chain(lists, annotations, *self.sources_of(annotations).values()))]

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
        if len(files) == 1:
            return files[0]
        stages = {file.parent.name for file in files}
        if len(stages) < len(files) or not stages <= set(self.stages):
            name, folders = self.document(files[0]), ", ".join(str(file.parent) for file in files)
            raise check.error("", f"there are several documents {name!r}, in {folders}", "Keep one, or list its folder")
        check.note("earlier stages of annotation ignored", len(files) - 1)
        return max(files, key=lambda file: self.stages.index(file.parent.name))


def format_of_pairs(
    files: AnnotationFiles,
    read_document: Callable[[Path, str, Path, RecordChecker], Document],
    **fields: Any,
) -> CorpusFormat:
    """A format of sources and annotations; documents come in the order of their names or of the list.

    Args:
        files: how annotations are named and found.
        read_document: `read_document(annotations, name, source, check)`; `name` is their path in the corpus, for
            messages.
        fields: further ones of [`CorpusFormat`].
    """

    def read(path: Path, check: RecordChecker) -> Iterator[Document]:
        annotations = files.find(path, check)
        sources = files.sources_of(annotations)
        for file in annotations:
            with check.record():
                name = name_in_corpus(file, path)
                if len(sources[file]) != 1:
                    text = f"{files.document(file)}{files.source_suffix}"
                    several = ", ".join(map(str, sources[file]))
                    found = f"there are several: {several}" if several else "there is none"
                    problem = f"the text that it annotates, {text}, belongs {files.place}; {found}"
                    raise check.error(name, problem, "Add the text, or keep one")
                yield read_document(file, name, sources[file][0], check)

    return CorpusFormat(read=read, suffixes=files.suffixes, documents=files.documents, lists=LISTS, **fields)
