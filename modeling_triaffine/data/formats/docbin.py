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
from ..documents import Annotation, Document, Sentence
from ..offsets import in_context
from ..reading import document_name, open_corpus
from ..record_checker import RecordChecker
from ..schema import CorpusError

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

SPAN_GROUP = "sc"  # spaCy's default name
ENTS = "ents"  # names doc.ents
NO_ENTITIES = re.compile("incorrect|reject|negative|candidate|coref|cluster", re.IGNORECASE)
"""In the names of span groups that are not gold: rejected spans, candidates of a span finder, coreference clusters."""


def read_docbin(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Document]:
    """Reads all documents. The file is read as a whole: memory grows with it.

    Spans without a label are dropped and counted.

    Args:
        columns: {"entities": name or names of span groups, or "ents"}; None finds them.
    """
    file_name = document_name(path, check)
    docs = _documents(path, check)
    groups = _groups(docs, columns, check)
    for number, doc in enumerate(docs):
        where = f"document {number}"
        annotations = list(_annotations(doc, groups, where, check))
        has_sentences = doc.has_annotation("SENT_START")
        parts = doc.sents if has_sentences else [doc[:]]
        words = [words for part in parts if (words := [token for token in part if not token.text.isspace()])]
        sentences = [_sentence(tokens, f"{where}, sentence {n}") for n, tokens in enumerate(words)]
        doc_id = f"{file_name}:{number}"
        yield Document(doc_id, where, doc.text, annotations, has_sentences=has_sentences, sentences=sentences)


def _annotations(doc: Doc, groups: Sequence[str], where: str, check: RecordChecker) -> Iterator[Annotation]:
    if doc.ents and groups and not any(group in doc.spans for group in groups):
        shown = f"{where}: {in_context(doc.text, doc.ents[0].start_char, doc.ents[0].end_char)}"
        check.drop("entities of doc.ents dropped where there is no span group", len(doc.ents), shown)
    elif groups and doc.ents:
        check.note("entities of doc.ents ignored in favor of the span group", len(doc.ents))
    spans = (span for group in groups for span in doc.spans.get(group, [])) if groups else doc.ents
    for index, span in enumerate(spans):
        fragment = (span.start_char, span.end_char)
        if span.label_:
            yield Annotation(f"spans[{index}]", (fragment,), span.label_, quote=None, where=where)
        else:
            check.drop("spans without a label dropped", example=f"{where}: {in_context(doc.text, *fragment)}")


def _sentence(tokens: Sequence[Token], where: str) -> Sentence:
    pos = [token.pos_ for token in tokens]
    fields = {"tokens": [token.text for token in tokens], "pos": pos if all(pos) else [], "entities": []}
    return Sentence(fields, where, [(token.idx, token.idx + len(token)) for token in tokens])


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


def _groups(docs: Sequence[Doc], columns: Mapping[str, Any] | None, check: RecordChecker) -> list[str]:
    """The names of the span groups with the entities; empty if they are in `doc.ents`."""
    there = sorted({group for doc in docs for group in doc.spans})
    filled = [group for group in there if any(doc.spans.get(group) for doc in docs)]
    has_ents = any(doc.ents for doc in docs)
    if columns is not None:
        check_columns(columns, ("entities",))
        groups = [columns["entities"]] if isinstance(columns["entities"], str) else [*columns["entities"]]
        if not {*groups} <= {*there, ENTS}:
            raise _unclear(there, check)
        groups = [] if groups == [ENTS] else groups
    elif SPAN_GROUP in filled or has_ents:
        groups = [SPAN_GROUP]
    else:
        groups = [group for group in filled if not NO_ENTITIES.search(group)]
        if len(groups) > 1:
            raise _unclear(there, check)
    if has_ents and not {*groups} & {*filled}:
        groups = []
    for group in sorted({*filled} - {*groups}):
        check.note(f"spans of the group {group!r} ignored", sum(len(doc.spans.get(group, ())) for doc in docs))
    return groups


def _unclear(there: Sequence[str], check: RecordChecker) -> CorpusError:
    """The error if nothing tells which of the groups that are `there` has the entities."""
    found = f"its span groups are {', '.join(map(repr, there))}" if there else "it has no span groups"
    remedy = f"Name the one with the entities: columns={{'entities': name}}, or {ENTS!r} for doc.ents"
    return check.error("", found, remedy)


DOCBIN = CorpusFormat(
    name="docbin",
    description="spaCy's DocBin",
    read=read_docbin,
    has_own_words=True,  # and sentences, but not in every file
    suffixes=(".spacy",),
    columns="the span group, or ents: {'entities': 'sc'}",
    tools="spaCy",
    example='doc.spans["sc"] = [doc.char_span(13, 17, "City")]',
)
