"""Reads brat's standoff format: a text (`.txt`) and its annotations (`.ann`) for every document of a folder.

Text-bound annotations (T) are the entities, event triggers among them. brat ends a fragment at every line end:
fragments separated by white space alone are one entity.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from ..reading import name_in_corpus, numbered_lines, read_text, visible_paths
from ..record_checker import RecordChecker
from ..schema import Entity, Text
from ..texts import annotated
from . import CorpusFormat

TEXT_SUFFIX, ANNOTATION_SUFFIX = ".txt", ".ann"
TEXT_BOUND = re.compile(
    r"(T[^\t]*)\t(\S+) ([0-9]{1,15} [0-9]{1,15}(?:;[0-9]{1,15} [0-9]{1,15})*)(?:\t(.*))?", re.DOTALL
)
OTHER_ANNOTATIONS = {
    "R": "relations",
    "*": "equivalences",
    "E": "events",
    "A": "attributes",
    "M": "attributes",
    "N": "normalizations",
    "#": "notes",
}


def read_brat(path: Path, check: RecordChecker) -> Iterator[Text]:
    """Reads the documents of a folder, searched recursively, or that of one `.ann`, in the order of their names."""
    files = brat_documents(path)
    for file in files:
        if file.suffix == TEXT_SUFFIX and file.with_suffix(ANNOTATION_SUFFIX) not in files:
            check.note(f"texts without {ANNOTATION_SUFFIX} ignored", example=file.name)
    for file in files:
        if file.suffix == ANNOTATION_SUFFIX:
            with check.record():
                yield _read_document(file, name_in_corpus(file, path), check)


def brat_documents(path: Path) -> list[Path]:
    """The texts and annotations in a folder, or of one of its files; empty if nothing is annotated."""
    files = visible_paths(path) if path.is_dir() else [path, path.with_suffix(TEXT_SUFFIX)]
    files = [file for file in files if file.suffix in (TEXT_SUFFIX, ANNOTATION_SUFFIX) and file.is_file()]
    return files if any(file.suffix == ANNOTATION_SUFFIX for file in files) else []


def _read_document(file: Path, name: str, check: RecordChecker) -> Text:
    """One `.ann` with the text beside it; `name` is its path in the corpus."""
    text_file = file.with_suffix(TEXT_SUFFIX)
    if not text_file.is_file():
        problem = f"the text that it annotates, {text_file.name}, is not in its folder"
        raise check.error(name, problem, f"Add it, or remove {file.name}")
    doc_id = name.removesuffix(file.suffix)
    text = read_text(text_file, check, f"{doc_id}{TEXT_SUFFIX}")
    entities = []
    for number, line in numbered_lines(file, check, name):
        where = f"{name}, line {number}"
        if line[:1] in OTHER_ANNOTATIONS:
            check.note(f"{OTHER_ANNOTATIONS[line[0]]} ignored")
        elif line.startswith("T") or "\t" in line:
            entities.append(_entity(line, text, where, check))
        elif line.strip():
            check.note("lines that are not annotations ignored", example=where)
    return annotated(doc_id, text, entities, name)


def _entity(line: str, text: str, where: str, check: RecordChecker) -> Entity | None:
    found = TEXT_BOUND.fullmatch(line)
    fragments = [(int(start), int(end)) for start, end in re.findall("([0-9]+) ([0-9]+)", found[3])] if found else []
    if found is None or (found[4] is None and any(start != end for start, end in fragments)):
        rule = "One has three fields separated by tabs: an id with T, type and offsets ('Person 0 4', the type without "
        raise check.error(where, f"{line[:60]!r} is not a text-bound annotation", f"{rule}spaces), and the text")
    return check.entity(text, fragments, found[2], found[4] or "", where, found[1])


BRAT = CorpusFormat(
    name="brat",
    description="brat's standoff format, a folder of .txt and .ann",
    read=read_brat,
    suffixes=(ANNOTATION_SUFFIX,),  # by this alone, which leads to its text
    documents=brat_documents,
)
