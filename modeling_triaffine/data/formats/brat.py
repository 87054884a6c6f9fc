"""Reads brat's standoff format: a text (`.txt`) and its annotations (`.ann`) for every document of a folder.

Text-bound annotations (T) are the entities, event triggers among them. brat ends a fragment at every line end:
fragments separated by white space alone are one entity.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from ..reading import name_in_corpus, numbered_lines, read_text, visible_files
from ..schema import Entity, RecordChecker, Text, annotated
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


def brat_documents(path: Path) -> list[Path]:
    """The annotations in a folder, and texts that have none; empty if nothing is annotated."""
    files = visible_files(path)
    if not any(file.suffix == ANNOTATION_SUFFIX for file in files):
        return []
    alone = [file for file in files if file.suffix == TEXT_SUFFIX and not file.with_suffix(ANNOTATION_SUFFIX).is_file()]
    return sorted({*alone, *(file for file in files if file.suffix == ANNOTATION_SUFFIX)})


def read_brat(path: Path, check: RecordChecker) -> Iterator[Text]:
    """Reads one `.ann` with the text beside it."""
    name = name_in_corpus(path, check)
    if path.suffix == TEXT_SUFFIX:
        check.note(f"texts without {ANNOTATION_SUFFIX} ignored", example=path.name)
        return
    with check.record():
        text_file = path.with_suffix(TEXT_SUFFIX)
        if not text_file.is_file():
            problem = f"the text that it annotates, {text_file.name}, is not in its folder"
            raise check.error(name, problem, f"Add it, or remove {path.name}")
        doc_id = name.removesuffix(path.suffix)
        text = read_text(text_file, check, f"{doc_id}{TEXT_SUFFIX}")
        entities = []
        for number, line in numbered_lines(path, check, name):
            where = f"{name}, line {number}"
            if line[:1] in OTHER_ANNOTATIONS:
                check.note(f"{OTHER_ANNOTATIONS[line[0]]} ignored")
            elif line.startswith("T") or "\t" in line:
                entities.append(_entity(line, text, where, check))
            elif line.strip():
                check.note("lines that are not annotations ignored", example=where)
        yield annotated(doc_id, text, entities, name)


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
