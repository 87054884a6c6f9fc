"""A reader outside of the package: lines of text with entities in brackets, `[Person: the mayor of [City: Orsk]]`."""

import re

from modeling_triaffine.data import Annotation, CorpusFormat, Document

FIRST_LINE = "#brackets"
MARK = re.compile(r"\[(\w+): |\]")


def read_brackets(path, check):
    """One document for each line after the first."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if number > 1 and line.strip():
                yield document(f"{path.stem}:{number}", line.rstrip("\n"), f"line {number}", check)


def document(name, line, where, check):
    text, is_open, annotations, last = "", [], [], 0
    for mark in MARK.finditer(line):
        text += line[last : mark.start()]
        last = mark.end()
        if mark[1]:
            is_open.append((mark[1], len(text)))
        elif is_open:
            kind, start = is_open.pop()
            annotations.append(Annotation(kind, ((start, len(text)),), kind, quote=None, where=where))
        else:
            raise check.error(where, f"a bracket closes at character {mark.start()}", "Open it before")
    return Document(name, where, text + line[last:], annotations)


BRACKETS = CorpusFormat(
    name="brackets",
    description="lines of text with entities in brackets",
    read=read_brackets,
    keeps_text=True,
    marks_sentences=False,
    has_own_words=False,
    recognizes=lambda head: head.startswith(FIRST_LINE),
    example="[Person: the mayor of [City: Orsk]]",
)
