"""ACE's originals: a source text (`.sgm`) and its annotations (`.apf.xml`) for every document, as LDC distributes them.

Entities are the extents of the entity mentions with their entity's type; values, times, relations and events are
ignored and counted. Offsets count the characters of the source without its tags, an escape like `&amp;` as it is
written, and are checked against the text that the annotation quotes. A sentence ends at every tag. What stands outside
`<TEXT>` (ids, dates, most headlines) is no text, unless a mention is annotated there.

The corpora have no splits of their own: a list (`train.txt`, `dev.txt`, `test.txt`) in a folder above the documents
names those of a split, one a line, as published splits do: `nw/adj/AFP_ENG_20030401.0476`, or the name alone. Where a
document is there in several stages of annotation and the name leaves a choice, the last stage is taken.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from .alignment import WordSplitter
from .documents import BYTE_ORDER_MARK, DEFAULT_SENTENCE_SPLITTER, AnnotatedText, Annotation, Offsets, sentences_of
from .reading import CorpusFormat, open_corpus, read_text
from .schema import CorpusError, Record, RecordChecker

SOURCE_SUFFIX, ANNOTATION_SUFFIX = ".sgm", ".apf.xml"
LIST_SUFFIXES = (".txt", ".lst", ".list", ".filelist")
STAGES = ("fp1", "fp2", "adj", "timex2norm")
"""Folders of ACE 2005 with the same documents, from first to last."""

TAG = re.compile(r"<[^<>]+>")
ESCAPE = re.compile(r"&(amp|lt|gt|quot|apos);", re.IGNORECASE)
ESCAPED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
OTHER_MENTIONS = {
    "value_mention": "values",
    "timex2_mention": "times",
    "relation_mention": "relations",
    "event_mention": "events",
}


def read_ace(
    path: Path,
    check: RecordChecker,
    word_splitter: WordSplitter | None = None,
    sentence_splitter: str = DEFAULT_SENTENCE_SPLITTER,
) -> Iterator[Record]:
    """The sentences of all documents, in the order of their names or of the list.

    Args:
        path: a folder, searched with all folders in it; a list of documents in or above their folders; one `.apf.xml`.
        check: counts what is dropped or ignored.
        word_splitter, sentence_splitter: see `sentences_of`.

    Raises:
        CorpusError: names file and place: a document that is listed and not there, or has no source; broken XML;
            offsets outside the text, or on other text than the annotation quotes.
    """
    folder = path if path.is_dir() else path.parent
    for file in _annotations(path, check):
        name = file.relative_to(folder).as_posix()
        yield from sentences_of(_read_document(file, name, check), check, word_splitter, sentence_splitter)


def ace_documents(path: Path) -> list[Path]:
    """The sources and annotations in a folder, of a list or of one document, the list itself included."""
    is_list = path.is_file() and path.suffix in LIST_SUFFIXES
    try:
        annotations = _annotations(path, RecordChecker(path))
    except CorpusError:  # a list of something else
        return []
    sources = [file for annotation in annotations if (file := _source(annotation)).is_file()]
    return [*([path] if is_list and annotations else []), *annotations, *sources]


def _annotations(path: Path, check: RecordChecker) -> list[Path]:
    """The `.apf.xml` that `path` stands for, each document once."""
    if path.name.endswith(ANNOTATION_SUFFIX):
        return [path]
    if not path.is_dir() and path.suffix not in LIST_SUFFIXES:
        return []
    by_name = defaultdict(list)
    folder = path if path.is_dir() else path.parent
    for file in sorted(folder.rglob(f"*{ANNOTATION_SUFFIX}")):
        by_name[_name(file)].append(file)
    if path.is_dir():
        return [_last_stage(files, check) for files in by_name.values()]
    if not by_name:
        return []
    return [_listed(line, f"line {number}", by_name, check) for number, line in _lines(path, check)]


def _lines(path: Path, check: RecordChecker) -> Iterator[tuple[int, str]]:
    text = read_text(path, check, "").removeprefix(BYTE_ORDER_MARK)
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.strip()


def _listed(line: str, where: str, by_name: dict[str, list[Path]], check: RecordChecker) -> Path:
    """The document that a line names, with or without folders before and a suffix behind the name."""
    wanted = line.removesuffix(".xml").removesuffix(".apf").removesuffix(SOURCE_SUFFIX).strip("/")
    files = by_name.get(wanted.rpartition("/")[2], [])
    fitting = [file for file in files if f"/{file.with_name(_name(file)).as_posix()}".endswith(f"/{wanted}")]
    if not fitting:
        problem = f"there is no document {line[:60]!r} ({ANNOTATION_SUFFIX}) in the list's folder or below"
        raise check.error(where, problem, "Put the list into the folder of the corpus, or correct the name")
    return _last_stage(fitting, check)


def _last_stage(files: Sequence[Path], check: RecordChecker) -> Path:
    """The one that is furthest annotated of several files of one document."""
    stages = [file.parent.name for file in files]
    if len(files) > 1 and not (set(stages) <= set(STAGES) and len(set(stages)) == len(files)):
        problem = f"there are several documents {_name(files[0])!r}, in {', '.join(str(file.parent) for file in files)}"
        raise check.error("", problem, "Keep one of them, or name it in a list with its folder")
    if len(files) > 1:
        check.note("earlier stages of annotation ignored", len(files) - 1)
    return max(files, key=lambda file: (*STAGES, file.parent.name).index(file.parent.name))


def _name(annotations: Path) -> str:
    return annotations.name.removesuffix(ANNOTATION_SUFFIX)


def _source(annotations: Path) -> Path:
    return annotations.with_name(_name(annotations) + SOURCE_SUFFIX)


def _read_document(file: Path, name: str, check: RecordChecker) -> AnnotatedText:
    """One `.apf.xml` with its source beside it; `name` is its path in the corpus."""
    source = _source(file)
    if not source.is_file():
        raise check.error(name, f"there is no {source.name} beside it, the text that it annotates", "Put it there")
    mentions = list(_mentions(file, name, check))
    text, pieces = _text(read_text(source, check, name.removesuffix(file.name) + source.name))
    kept = [piece for piece, is_text in pieces if is_text or any(_meets(piece, mention) for mention in mentions)]
    blanked = list(" " * len(text))
    for start, end in kept:
        blanked[start:end] = text[start:end]
    return AnnotatedText(
        doc_id=_name(file),
        text="".join(blanked),
        annotations=mentions,
        where=name,
        borders=sorted({border for piece in kept for border in piece}),
    )


def _mentions(file: Path, name: str, check: RecordChecker) -> Iterator[Annotation]:
    """The entity mentions of one document; everything else is counted."""
    try:
        with open_corpus(file) as content:
            root = ElementTree.parse(content).getroot()
    except ElementTree.ParseError as error:
        raise check.error(name, f"broken XML, {error}", "See whether the file is whole, or fetch it again") from None
    except CorpusError:
        raise
    except (LookupError, ValueError) as error:  # an encoding that the parser does not know
        raise check.error(name, f"{error}", "Correct the encoding in the XML declaration") from None
    for tag, what in OTHER_MENTIONS.items():
        if number := sum(1 for _ in root.iter(tag)):
            check.note(f"{what} ignored", number)
    for entity in root.iter("entity"):
        for mention in entity.iter("entity_mention"):
            where = f"{name}, {mention.get('ID')}"
            kind = check.typed(entity.attrib, "TYPE", str, where)
            yield _mention(mention.find("extent/charseq"), kind, where, check)


def _mention(extent: ElementTree.Element | None, kind: str, where: str, check: RecordChecker) -> Annotation:
    offsets = [] if extent is None else [extent.get("START", ""), extent.get("END", "")]
    if extent is None or not all(re.fullmatch("[0-9]{1,15}", offset) for offset in offsets):
        raise check.error(where, "it has no extent with START and END", "Give the file as LDC distributes it")
    start, last = map(int, offsets)
    return Annotation(
        name="extent", fragments=((start, last + 1),), type=kind, spelled=extent.text or None, where=where
    )


def _text(source: str) -> tuple[str, list[tuple[Offsets, bool]]]:
    """The source without its tags, and its pieces between them: where they are, and whether that is inside `<TEXT>`."""
    source = source.removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n")
    parts: list[str] = []
    pieces: list[tuple[Offsets, bool]] = []
    length, position, inside = 0, 0, False
    for tag in (*TAG.finditer(source), None):
        part = ESCAPE.sub(_unescaped, source[position : tag.start() if tag else len(source)])
        parts.append(part)
        pieces.append(((length, length + len(part)), inside))
        length += len(part)
        if tag:
            position = tag.end()
            inside = tag.group().upper() == "<TEXT>" or (inside and tag.group().upper() != "</TEXT>")
    return "".join(parts), pieces


def _unescaped(escape: re.Match[str]) -> str:
    """The character, as long as its escape, so that offsets keep their meaning."""
    return ESCAPED[escape[1].lower()].ljust(len(escape[0]))


def _meets(piece: Offsets, mention: Annotation) -> bool:
    return any(start < piece[1] and piece[0] < end for start, end in mention.fragments)


ACE = CorpusFormat(
    name="ace",
    description="ACE's originals, a folder of .sgm and .apf.xml",
    suffixes=(ANNOTATION_SUFFIX,),
    recognizes=lambda head: head.startswith("<") and "<source_file" in head,
    read=read_ace,
    options=("word_splitter", "sentence_splitter"),
    documents=ace_documents,
    lists=LIST_SUFFIXES,
)
