"""brat's standoff form: a text (`.txt`) and its annotations (`.ann`) for every document, in a folder or folders in it.

    T1	Person 0 17	the mayor of Orsk
    T2	City 13 17	Orsk

Text-bound annotations (T) are the entities; offsets count characters, and are checked against the text that brat noted
behind them. brat ends a fragment at every line end: fragments with only white space between them are one entity.
Really discontinuous entities are dropped and counted: no span of words is what the annotator marked, and the stretch
from first to last fragment is something that was not marked. Relations, events, attributes and notes are ignored and
counted; what triggers an event stays an entity, as for brat's own converters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .alignment import WordSplitter
from .documents import BYTE_ORDER_MARK, DEFAULT_SENTENCE_SPLITTER, AnnotatedText, Annotation, sentences_of
from .reading import CorpusFormat, read_text
from .schema import Record, RecordChecker

TEXT_SUFFIX, ANNOTATION_SUFFIX = ".txt", ".ann"
TYPE_AND_OFFSETS = re.compile(r"(\S+) ([0-9]{1,15} [0-9]{1,15}(?:;[0-9]{1,15} [0-9]{1,15})*)")
OTHER_ANNOTATIONS = {
    "R": "relations",
    "*": "equivalences",
    "E": "events",
    "A": "attributes",
    "M": "attributes",
    "N": "normalizations",
    "#": "notes",
}


def read_brat(
    path: Path,
    check: RecordChecker,
    word_splitter: WordSplitter | None = None,
    sentence_splitter: str = DEFAULT_SENTENCE_SPLITTER,
) -> Iterator[Record]:
    """The sentences of all documents, in the order of their names.

    Args:
        path: a folder, searched with all folders in it, or one `.ann` file with its text beside it.
        check: counts what is dropped or ignored.
        word_splitter, sentence_splitter: see `sentences_of`.

    Raises:
        CorpusError: names file, line and annotation: annotations without text, a line of another form, offsets outside
            the text or on other text than brat noted.
    """
    files = brat_documents(path)
    annotated = [file for file in files if file.suffix == ANNOTATION_SUFFIX]
    for lonely in sorted({*files} - {*annotated} - {file.with_suffix(TEXT_SUFFIX) for file in annotated}):
        check.note(f"texts without {ANNOTATION_SUFFIX} ignored", example=lonely.name)
    for file in annotated:
        name = file.relative_to(path if path.is_dir() else path.parent).as_posix()
        yield from sentences_of(_read_document(file, name, check), check, word_splitter, sentence_splitter)


def brat_documents(path: Path) -> list[Path]:
    """The texts and annotations in a folder, or of one `.ann`; none where nothing is annotated.

    Hidden files and folders are passed over: brat has none, archives of other systems leave some.
    """
    if not path.is_dir():
        files = [path, path.with_suffix(TEXT_SUFFIX)]
    else:
        files = [
            file
            for file in sorted(path.rglob("*"))
            if not any(part.startswith(".") for part in file.relative_to(path).parts)
        ]
    files = [file for file in files if file.suffix in (TEXT_SUFFIX, ANNOTATION_SUFFIX) and file.is_file()]
    return files if any(file.suffix == ANNOTATION_SUFFIX for file in files) else []


def _read_document(file: Path, name: str, check: RecordChecker) -> AnnotatedText:
    """One `.ann` with the text beside it; `name` is its path in the corpus."""
    text_file = file.with_suffix(TEXT_SUFFIX)
    if not text_file.is_file():
        problem = f"there is no {text_file.name} beside it, the text that it annotates"
        raise check.error(name, problem, f"Put it there, or remove {file.name}")
    lines = read_text(file, check, name).removeprefix(BYTE_ORDER_MARK).split("\n")
    annotations = []
    for number, line in enumerate(lines, start=1):
        line = line.rstrip("\r")
        if line.startswith("T"):
            annotations.append(_text_bound(line, f"{name}, line {number}", check))
        elif line[:1] in OTHER_ANNOTATIONS:
            check.note(f"{OTHER_ANNOTATIONS[line[0]]} ignored")
        elif line.strip():
            problem = f"{line[:40]!r} is no annotation"
            remedy = f"An annotation begins with T or one of {' '.join(OTHER_ANNOTATIONS)}"
            raise check.error(f"{name}, line {number}", problem, remedy)
    doc_id = name.removesuffix(ANNOTATION_SUFFIX)
    text = read_text(text_file, check, f"{doc_id}{TEXT_SUFFIX}")
    return AnnotatedText(doc_id=doc_id, text=text, annotations=annotations, where=name)


def _text_bound(line: str, where: str, check: RecordChecker) -> Annotation:
    name, *fields = line.split("\t", 2)
    found = TYPE_AND_OFFSETS.fullmatch(fields[0]) if len(fields) == 2 else None
    if found is None:
        problem = f"{line[:60]!r} is no text-bound annotation"
        remedy = "It has three fields with tabs between: an id, type and offsets ('Person 0 4'), the text"
        raise check.error(where, problem, remedy)
    offsets = [tuple(map(int, fragment.split())) for fragment in found[2].split(";")]
    fragments = tuple((start, end) for start, end in offsets)
    return Annotation(name=name, fragments=fragments, type=found[1], spelled=fields[1], where=where)


BRAT = CorpusFormat(
    name="brat",
    description="brat's standoff form, a folder of .txt and .ann",
    suffixes=(ANNOTATION_SUFFIX,),
    recognizes=lambda head: False,  # a file is told by its name, beside which its text lies
    read=read_brat,
    options=("word_splitter", "sentence_splitter"),
    documents=brat_documents,
)
