"""Reads spaCy's DocBin (`.spacy`): documents of tokens with entities in a span group, or flat ones in `doc.ents`.

Tokens are spaCy's without those of white space; sentences are those of the documents, otherwise those into which raw
text is split. Entities are the span group "sc", or if it has no spans in the file, `doc.ents`;
`columns={"entities": …}` names another group, or "ents". Needs the extra `spacy`; no pipeline is loaded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import importing_extra
from ..reading import document_name, open_corpus
from ..schema import Entity, RecordChecker, Text, annotated
from . import CorpusFormat, check_columns

if TYPE_CHECKING:
    from spacy.tokens import Doc

SPAN_GROUP = "sc"  # spaCy's default name
ENTS = "ents"  # names doc.ents


def read_docbin(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Text]:
    """Reads all documents. The file is read as a whole: memory grows with it.

    Args:
        columns: {"entities": name of a span group, or "ents"}; None finds them.
    """
    with importing_extra("spacy", f"{path}: reading a DocBin needs spaCy"):
        from spacy.tokens import DocBin
        from spacy.vocab import Vocab
    with open_corpus(path) as file:
        data = file.read()
    try:
        docs = list(DocBin().from_bytes(data).get_docs(Vocab()))
    except Exception as error:  # files of another kind make spaCy fail in any way
        problem = f"spaCy cannot read it as a DocBin ({type(error).__name__}: {error})"
        raise check.error("", problem, "Give a file written by DocBin.to_disk") from error
    file_name = document_name(path, check)
    check_columns(columns or {"entities": SPAN_GROUP}, ("entities",))
    group = _group(docs, (columns or {}).get("entities"), check)
    for number, doc in enumerate(docs):
        with check.record():
            where = f"document {number}"
            words = [token for token in doc if not token.text.isspace()]
            text = annotated(f"{file_name}:{number}", doc.text, _entities(doc, group, where, check), where)
            text["words"] = [(token.idx, token.idx + len(token)) for token in words]
            if any(token.pos_ for token in words):
                text["pos"] = [token.pos_ for token in words]
            if doc.has_annotation("SENT_START"):
                visible = ([token for token in sentence if not token.text.isspace()] for sentence in doc.sents)
                text["sentences"] = [(part[0].idx, part[-1].idx + len(part[-1])) for part in visible if part]
            yield text


def _entities(doc: Doc, group: str, where: str, check: RecordChecker) -> Iterator[Entity | None]:
    for index, span in enumerate(doc.ents if group == ENTS else doc.spans.get(group, ())):
        if span.label_:
            fragments = [(span.start_char, span.end_char)]
            yield check.entity(doc.text, fragments, span.label_, None, where, f"spans[{index}]")
        else:
            check.drop("entities without a type dropped", example=f"{where}: {span.text}")


def _group(docs: Sequence[Doc], named: str | None, check: RecordChecker) -> str:
    """The name of the span group with the entities, or `ENTS`; the spans of others are counted."""
    sizes = Counter({ENTS: sum(len(doc.ents) for doc in docs)})
    for doc in docs:
        sizes.update({name: len(spans) for name, spans in doc.spans.items()})
    group = named or (SPAN_GROUP if sizes[SPAN_GROUP] or not sizes[ENTS] else ENTS)
    if named not in (None, *sizes) or (named is None and sizes.total() and not sizes[group]):
        remedy = f"Name the one with the entities: columns={{'entities': name}}, or {ENTS!r} for doc.ents"
        raise check.error("", f"its span groups are {', '.join(map(repr, sorted(sizes)))}", remedy)
    for other in (+sizes).keys() - {group}:
        check.note(f"spans of the group {other!r} ignored", sizes[other])
    return group


DOCBIN = CorpusFormat(
    name="docbin",
    description="spaCy's DocBin",
    read=read_docbin,
    suffixes=(".spacy",),
    columns="the span group, or ents: {'entities': 'sc'}",
)
