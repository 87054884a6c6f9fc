"""Reads spaCy's DocBin (`.spacy`): documents of tokens with entities in a span group, or flat ones in `doc.ents`.

Tokens are spaCy's without those of white space; sentences are those of the documents, otherwise those into which raw
text is split. The span group is "sc", the only one there is, or the one named by `columns={"entities": …}`; `doc.ents`
is read if there is none. Needs the extra `spacy`; no pipeline is loaded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import missing_extra
from ..model.text_triaffine import sentence_splitter as named_sentence_splitter
from .corpus_format import CorpusFormat
from .documents import (
    DEFAULT_SENTENCE_SPLITTER,
    MAX_SENTENCE_WORDS,
    AnnotatedText,
    Annotation,
    document_of,
    in_context,
    sentences_of,
)
from .reading import open_corpus, stem
from .schema import Document, Record, RecordChecker

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

SPAN_GROUP = "sc"  # spaCy's default name


def read_docbin(
    path: Path,
    check: RecordChecker,
    columns: Mapping[str, Any] | None = None,
    sentence_splitter: str = DEFAULT_SENTENCE_SPLITTER,
) -> Iterator[Record]:
    """Reads the sentences of all documents. The file is read as a whole: memory grows with it.

    Spans that cross the end of a sentence, have no label or consist of white space are dropped and counted.

    Args:
        columns: {"entities": name or names of span groups}; None takes the only one.
        sentence_splitter: "punctuation", "lines" or "none", for documents without sentences; sentences of more than
            `MAX_SENTENCE_WORDS` tokens are cut.

    Raises:
        CorpusError: the file is not a DocBin, or there are several span groups.
        ImportError: spaCy is not installed.
    """
    for document in _annotated(path, check, columns, sentence_splitter):
        yield from sentences_of(document, check, sentence_splitter=sentence_splitter)


def read_docbin_texts(path: Path, check: RecordChecker) -> Iterator[Document]:
    """The documents as written."""
    return (document_of(document, check) for document in _annotated(path, check))


def _annotated(
    path: Path,
    check: RecordChecker,
    columns: Mapping[str, Any] | None = None,
    sentence_splitter: str = DEFAULT_SENTENCE_SPLITTER,
) -> Iterator[AnnotatedText]:
    docs = _documents(path, check)
    groups = _groups(docs, columns, check)
    for number, doc in enumerate(docs):
        where = f"document {number}"
        if doc.ents and groups and not any(group in doc.spans for group in groups):
            shown = f"{where}: {in_context(doc.text, doc.ents[0].start_char, doc.ents[0].end_char)}"
            check.drop("entities of doc.ents dropped where there is no span group", len(doc.ents), shown)
        elif groups and doc.ents:
            check.note("entities of doc.ents besides the span group ignored", len(doc.ents))
        annotations = []
        spans = (span for group in groups for span in doc.spans.get(group, [])) if groups else doc.ents
        for index, span in enumerate(spans):
            fragment = (span.start_char, span.end_char)
            if span.label_:
                annotations.append(Annotation(f"spans[{index}]", (fragment,), span.label_, quote=None, where=where))
            else:
                check.drop("spans without a label dropped", example=f"{where}: {in_context(doc.text, *fragment)}")
        sentences = [sentence for sentence in _sentences(doc, sentence_splitter) if sentence]
        yield AnnotatedText(
            f"{stem(path)}:{number}",
            doc.text,
            annotations,
            where,
            has_sentences=doc.has_annotation("SENT_START"),
            words=[[(token.idx, token.idx + len(token)) for token in sentence] for sentence in sentences],
            pos=[
                [token.pos_ for token in tokens] if all(token.pos_ for token in tokens) else [] for tokens in sentences
            ],
        )


def _documents(path: Path, check: RecordChecker) -> list[Doc]:
    try:
        from spacy.tokens import DocBin
        from spacy.vocab import Vocab
    except ImportError as error:
        raise missing_extra(f"{path}: reading a DocBin needs spaCy", "spacy") from error
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
    if columns is not None:
        if columns.keys() != {"entities"}:
            raise ValueError(
                f"`columns` names {sorted(columns)}; for a DocBin, name the span group: {{'entities': 'sc'}}."
            )
        given = columns["entities"]
        groups = [given] if isinstance(given, str) else list(given)
    else:
        groups = [SPAN_GROUP] if SPAN_GROUP in there else there
    if not set(groups) <= set(there) or (columns is None and len(groups) > 1):
        problem = f"its span groups are {', '.join(map(repr, there))}" if there else "it has no span groups"
        raise check.error("", problem, "Name the one with the entities: columns={'entities': name}")
    return groups


def _sentences(doc: Doc, sentence_splitter: str) -> list[list[Token]]:
    """The tokens of every sentence without those of white space; sentences of the document itself are never cut."""
    if doc.has_annotation("SENT_START"):
        return [_words(sentence) for sentence in doc.sents]
    positions = [token.idx for token in doc]
    borders = named_sentence_splitter(sentence_splitter)(doc.text)
    whole = [_words(doc[bisect_left(positions, start) : bisect_left(positions, end)]) for start, end in borders]
    size = MAX_SENTENCE_WORDS
    return [tokens[first : first + size] for tokens in whole for first in range(0, len(tokens), size)]


def _words(tokens: Span) -> list[Token]:
    return [token for token in tokens if not token.text.isspace()]


DOCBIN = CorpusFormat(
    name="docbin",
    description="spaCy's DocBin",
    suffixes=(".spacy",),
    recognizes=lambda head: False,
    read=read_docbin,
    options=("columns", "sentence_splitter"),
    read_texts=read_docbin_texts,
)
