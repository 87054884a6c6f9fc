"""Reads spaCy's DocBin (`.spacy`): documents of tokens with entities in a span group, or flat ones in `doc.ents`.

Tokens are spaCy's without those of white space; sentences are those of the documents, otherwise those into which raw
text is split. Entities are the span group "sc", or those named by `columns={"entities": …}`; where they have no spans,
`doc.ents` (which "ents" names); and where there are none, the only other group. Groups that are no entities, such as
`incorrect_spans`, are read only if they are named. Needs the extra `spacy`; no pipeline is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import importing_extra
from ..corpus_format import CorpusFormat, check_columns
from ..reading import document_name, open_corpus
from ..record_checker import RecordChecker
from ..schema import Entity, Text

if TYPE_CHECKING:
    from spacy.tokens import Doc

SPAN_GROUP = "sc"  # spaCy's default name
ENTS = "ents"  # names doc.ents
NO_ENTITIES = re.compile("incorrect|reject|negative|candidate|coref|cluster", re.IGNORECASE)
"""In the names of span groups that are not gold: rejected spans, candidates of a span finder, coreference clusters."""


def read_docbin(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Text]:
    """Reads all documents. The file is read as a whole: memory grows with it.

    Args:
        columns: {"entities": name or names of span groups, or "ents"}; None finds them.
    """
    file_name = document_name(path, check)
    docs = _documents(path, check)
    if columns is not None:
        check_columns(columns, ("entities",))
    named = None if columns is None else columns["entities"]
    groups = _groups(docs, [named] if isinstance(named, str) else named, check)
    for number, doc in enumerate(docs):
        with check.record():
            where = f"document {number}"
            words = [token for token in doc if not token.text.isspace()]
            text = Text(
                doc_id=f"{file_name}:{number}",
                text=doc.text,
                entities=_entities(doc, groups, where, check),
                words=[(token.idx, token.idx + len(token)) for token in words],
                where=where,
            )
            if any(token.pos_ for token in words):
                text["pos"] = [token.pos_ for token in words]
            if doc.has_annotation("SENT_START"):
                visible = ([token for token in sentence if not token.text.isspace()] for sentence in doc.sents)
                text["sentences"] = [(part[0].idx, part[-1].idx + len(part[-1])) for part in visible if part]
            yield text


def _entities(doc: Doc, groups: Sequence[str], where: str, check: RecordChecker) -> list[Entity]:
    if doc.ents and groups and not any(group in doc.spans for group in groups):
        check.drop("entities of doc.ents dropped where there is no span group", len(doc.ents), where)
    elif groups and doc.ents:
        check.note("entities of doc.ents ignored in favor of the span group", len(doc.ents))
    entities = []
    spans = [span for group in groups for span in doc.spans.get(group, [])] if groups else doc.ents
    for index, span in enumerate(spans):
        fragments = [(span.start_char, span.end_char)]
        if not span.label_:
            check.drop("entities without a type dropped", example=f"{where}: {span.text}")
        elif entity := check.entity(doc.text, fragments, span.label_, None, where, f"spans[{index}]"):
            entities.append(entity)
    return entities


def _documents(path: Path, check: RecordChecker) -> list[Doc]:
    with importing_extra("spacy", f"{path}: reading a DocBin needs spaCy"):
        from spacy.tokens import DocBin
        from spacy.vocab import Vocab
    with open_corpus(path) as file:
        data = file.read()
    try:
        return list(DocBin().from_bytes(data).get_docs(Vocab()))
    except Exception as error:  # files of another kind make spaCy fail in any way
        problem = f"spaCy cannot read it as a DocBin ({type(error).__name__}: {error})"
        raise check.error("", problem, "Give a file written by DocBin.to_disk") from error


def _groups(docs: Sequence[Doc], named: Sequence[str] | None, check: RecordChecker) -> list[str]:
    """The names of the span groups with the entities; empty if they are in `doc.ents`."""
    there = {group for doc in docs for group in doc.spans}
    filled = {group for group in there if any(doc.spans.get(group) for doc in docs)}
    likely = sorted(group for group in filled if not NO_ENTITIES.search(group))
    has_ents = any(doc.ents for doc in docs)
    groups = [*named] if named else [SPAN_GROUP] if SPAN_GROUP in filled or has_ents else likely
    if not {*groups} <= there | {SPAN_GROUP, ENTS} or (not named and len(groups) > 1):
        remedy = f"Name the one with the entities: columns={{'entities': name}}, or {ENTS!r} for doc.ents"
        raise check.error("", f"its span groups are {', '.join(map(repr, sorted(there))) or 'none'}", remedy)
    if groups == [ENTS] or (has_ents and not {*groups} & filled):
        groups = []
    for group in sorted(filled - {*groups}):
        check.note(f"spans of the group {group!r} ignored", sum(len(doc.spans.get(group, ())) for doc in docs))
    return groups


DOCBIN = CorpusFormat(
    name="docbin",
    description="spaCy's DocBin",
    read=read_docbin,
    suffixes=(".spacy",),
    columns="the span group, or ents: {'entities': 'sc'}",
    tools="spaCy",
    example='doc.spans["sc"] = [doc.char_span(13, 17, "City")]',
)
