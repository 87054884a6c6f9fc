"""Reads and makes what other libraries load, each of which is an extra: UIMA CAS (dkpro-cassis), and spaCy's DocBin."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ...errors import importing_extra
from ...files import visible_files
from ...model.text_triaffine import Offsets
from ..reading import document_name, name_in_corpus, open_corpus, parse_xml, read_head, record_keys
from ..schema import CorpusError, Entity, RecordChecker, Text, annotated
from . import CorpusFormat, check_columns

if TYPE_CHECKING:
    from cassis import Cas
    from spacy.tokens import Doc

WITHOUT_TYPE = "entities without a type dropped"

# ---- UIMA CAS, INCEpTION's form ----

XMI_SUFFIX, IN_XMI, TYPE_SYSTEM = ".xmi", "<xmi:XMI", "TypeSystem.xml"
LAYER, FEATURE = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity", "value"  # INCEpTION's "Named entity"
SENTENCE = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Sentence"
TOKEN = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Token"
METADATA = "de.tudarmstadt.ukp.dkpro.core.api.metadata.type.DocumentMetaData"
WHOLE = "uima.tcas.DocumentAnnotation"
SCORE = "score"
ANNOTATION, STRING, DOUBLE = "uima.tcas.Annotation", "uima.cas.String", "uima.cas.Double"
JSON_KEYS = ("%TYPES", "%FEATURE_STRUCTURES")
NOT_ANNOTATED = "INITIAL_CAS"  # the document before annotation, beside those of annotators in the export of a project


def read_cas(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Text]:
    """Reads one document; entities are the annotations of a layer, their types the values of one of its features."""
    columns = columns or {"entities": LAYER}
    check_columns(columns, ("entities",))
    layer, _, feature = str(columns["entities"]).partition(":")
    name = name_in_corpus(path, check)
    if path.stem == NOT_ANNOTATED:
        check.note("documents before annotation left out", example=name)
        return
    with check.record():
        yield _text_of_cas(_load(path, name, check), layer, feature or FEATURE, name, check)


def _text_of_cas(cas: Cas, layer: str, feature: str, where: str, check: RecordChecker) -> Text:
    """The text with the annotations of a layer, and its sentences; an empty text has neither."""
    doc_id, entities = where.rpartition(".")[0] or where, []
    text = check.valid(cas.sofa_string or "", str, where, "sofaString")
    if not text:
        return annotated(doc_id, text, (), where)
    there = sorted({annotation.type.name for annotation in cas.select_all_annotations()})
    if cas.typesystem.contains_type(layer):
        there = [declared.name for declared in cas.typesystem.get_type(layer).all_features]
    if feature not in there:
        problem = f"there is no layer {layer!r} with a feature {feature!r}, but {', '.join(map(repr, there)) or 'none'}"
        raise check.error(where, problem, "Name the layer and feature: columns={'entities': 'layer:feature'}")
    for number, span in enumerate(cas.select(layer)):
        start, end = check.valid([span.begin, span.end], list[int], where, f"{layer}[{number}]")
        if value := span.get(feature):
            entities.append(check.entity(text, [(start, end)], value, None, where, f"{layer}[{number}]"))
        else:
            check.drop(WITHOUT_TYPE, example=f"{where}: {text[start:end]!r}")
    for other in cas.select_all_annotations():
        if other.type.name not in (layer, SENTENCE, TOKEN, METADATA, WHOLE):
            check.note(f"annotations of the layer {other.type.name!r} ignored", example=where)
    made = annotated(doc_id, text, entities, where)
    if sentences := cas.select(SENTENCE) if cas.typesystem.contains_type(SENTENCE) else ():
        borders = {border for span in sentences for border in (span.begin, span.end) if border in range(1, len(text))}
        made["sentences"] = [*pairwise((0, *sorted(borders), len(text)))]
    return made


def _load(file: Path, name: str, check: RecordChecker) -> Cas:
    """Loads a CAS of a stranger, whose XML is parsed and written anew: dkpro-cassis would fetch external entities."""
    with open_corpus(file) as opened:
        data = opened.read()
    cassis = _cassis(name)
    is_xmi = file.suffix == XMI_SUFFIX or IN_XMI in read_head(file)
    if is_xmi:
        type_system = file.with_name(TYPE_SYSTEM)
        if not type_system.is_file():
            raise check.error(name, f"its type system, {TYPE_SYSTEM}, is not in its folder", "Add it, or export JSON")
        if b"<!DOCTYPE" in data.replace(b"\0", b""):  # expat drops its entities from the text, an attribute
            raise check.error(name, "it has a DOCTYPE, as no XMI has", "Remove it, and write its entities out")
        types, xmi = (io.BytesIO(ElementTree.tostring(parse_xml(xml, check, name))) for xml in (type_system, file))
    try:
        if is_xmi:
            cas = cassis.load_cas_from_xmi(xmi, typesystem=cassis.load_typesystem(types))
        else:
            cas = cassis.load_cas_from_json(data.decode("utf-8-sig"))
        return next((cas.get_view(sofa.sofaID) for sofa in cas.sofas if sofa.sofaString), cas)
    except Exception as error:  # files of another kind make cassis fail in any way
        problem = f"dkpro-cassis cannot read it ({type(error).__name__}: {error})"
        raise check.error(name, problem, "Export UIMA CAS, XMI with its type system or JSON 0.4") from None


def make_cas(text: str, sentences: Sequence[Sequence[Offsets]], entities: Sequence[Mapping[str, Any]]) -> Cas:
    """A CAS of a text with its words by sentence, and its entities in the built-in layer.

    An entity has `start`, `end`, `type` and perhaps `score`, for which the layer has a feature here.
    """
    cassis = _cassis("output")
    types = cassis.TypeSystem()
    sentence_type, token_type, entity_type = (types.create_type(name, ANNOTATION) for name in (SENTENCE, TOKEN, LAYER))
    types.create_feature(entity_type, FEATURE, STRING)
    types.create_feature(entity_type, SCORE, DOUBLE)
    cas = cassis.Cas(typesystem=types)
    cas.sofa_string, cas.sofa_mime = text, "text/plain"
    for words in sentences:
        if words:
            cas.add(sentence_type(begin=words[0][0], end=words[-1][1]))
        cas.add_all([token_type(begin=start, end=end) for start, end in words])
    for entity in entities:
        values = {FEATURE: entity["type"], SCORE: entity.get("score")}
        cas.add(entity_type(begin=entity["start"], end=entity["end"], **values))
    return cas


def _is_cas(file: Path) -> bool:
    try:
        head = read_head(file) if file.suffix in (".json", ".xml") else ""
        return file.suffix == XMI_SUFFIX or IN_XMI in head or not record_keys(head).isdisjoint(JSON_KEYS)
    except (CorpusError, OSError):  # an empty file or a lost link, which may have nothing to do with the corpus
        return False


def _cassis(where: str) -> Any:
    with importing_extra("cas", f"{where}: UIMA CAS needs dkpro-cassis"):
        import cassis
    return cassis


CAS = CorpusFormat(
    name="cas",
    description="UIMA CAS, in XMI or JSON, as exported by INCEpTION",
    read=read_cas,
    suffixes=(XMI_SUFFIX, ".json"),
    keys=JSON_KEYS,
    recognizes=lambda head: IN_XMI in head,
    columns="the layer: {'entities': 'layer:feature'}",
    documents=lambda path: [file for file in visible_files(path) if _is_cas(file)],  # each annotator has one
)

# ---- DocBin ----

SPAN_GROUP, ENTS = "sc", "ents"  # spaCy's default name of a span group, and `doc.ents`


def read_docbin(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Text]:
    """Reads all documents, whose words are tokens other than white space. Memory grows with the file."""
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
                text["sentences"] = [(sentence.start_char, sentence.end_char) for sentence in doc.sents]
            yield text


def _entities(doc: Doc, group: str, where: str, check: RecordChecker) -> Iterator[Entity | None]:
    for index, span in enumerate(doc.ents if group == ENTS else doc.spans.get(group, ())):
        if span.label_:
            fragments = [(span.start_char, span.end_char)]
            yield check.entity(doc.text, fragments, span.label_, None, where, f"spans[{index}]")
        else:
            check.drop(WITHOUT_TYPE, example=f"{where}: {span.text}")


def _group(docs: Sequence[Doc], named: str | None, check: RecordChecker) -> str:
    """The name of the span group with the entities, or `ENTS`; the spans of others are counted."""
    sizes = Counter({ENTS: sum(len(doc.ents) for doc in docs)})
    for doc in docs:
        sizes.update({name: len(spans) for name, spans in doc.spans.items()})
    group = named or (SPAN_GROUP if sizes[SPAN_GROUP] or not sizes[ENTS] else ENTS)
    if named not in (None, *sizes) or (named is None and sizes.total() and not sizes[group]):
        remedy = f"Name the one with the entities: columns={{'entities': name}}, or {ENTS!r} for doc.ents"
        raise check.error("", f"its span groups are {', '.join(map(repr, sorted(sizes)))}", remedy)
    for other in sizes.keys() - {group}:
        check.note(f"spans of the group {other!r} ignored", sizes[other])
    return group


DOCBIN = CorpusFormat(
    name="docbin",
    description="spaCy's DocBin",
    read=read_docbin,
    suffixes=(".spacy",),
    columns="the span group, or ents: {'entities': 'sc'}",
)
