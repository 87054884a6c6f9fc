"""Reads and makes UIMA CAS, INCEpTION's form, in XMI and JSON. Needs the extra `cas` (dkpro-cassis).

The entities are the annotations of a layer, their types the values of one of its features: the built-in layer "Named
entity" with its feature `value`, or those named by `columns={"entities": "webanno.custom.Term:kind"}`. Sentences are
those of the file, if it has any; its tokens are ignored, and so are other layers, which are counted. XMI needs its
type system, `TypeSystem.xml` in the same folder, as INCEpTION exports it; JSON brings its own.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ...errors import importing_extra
from ...model.text_triaffine import Offsets
from ..reading import name_in_corpus, open_corpus, parse_xml, read_head, record_keys, visible_files
from ..schema import CorpusError, RecordChecker, Text, annotated
from . import CorpusFormat, check_columns

if TYPE_CHECKING:
    from cassis import Cas

XMI_SUFFIX, TYPE_SYSTEM = ".xmi", "TypeSystem.xml"
LAYER, FEATURE = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity", "value"
"""INCEpTION's built-in layer "Named entity"."""
SENTENCE = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Sentence"
TOKEN = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Token"
METADATA = "de.tudarmstadt.ukp.dkpro.core.api.metadata.type.DocumentMetaData"
WHOLE = "uima.tcas.DocumentAnnotation"
SCORE = "score"
ANNOTATION, STRING, DOUBLE = "uima.tcas.Annotation", "uima.cas.String", "uima.cas.Double"
JSON_KEYS = ("%TYPES", "%FEATURE_STRUCTURES")
NOT_ANNOTATED = "INITIAL_CAS"
"""The document before annotation, beside those of the annotators in the export of a project."""


def read_cas(path: Path, check: RecordChecker, columns: Mapping[str, Any] | None = None) -> Iterator[Text]:
    """Reads one document. Annotations without a value are dropped and counted.

    Args:
        columns: {"entities": "layer:feature"}, or the layer alone, with the feature `value`.
    """
    check_columns(columns or {"entities": LAYER}, ("entities",))
    layer, _, feature = str((columns or {}).get("entities", LAYER)).partition(":")
    name = name_in_corpus(path, check)
    if path.stem == NOT_ANNOTATED:
        check.note("documents before annotation left out", example=name)
        return
    with check.record():
        yield _text(_load(path, name, check), layer, feature or FEATURE, name, check)


def cas_documents(path: Path) -> list[Path]:
    """The XMI files, and the JSON files that are CAS, in a folder or of one file; each annotator has one."""
    return sorted(file for file in visible_files(path) if file.suffix == XMI_SUFFIX or _is_json(file))


def _text(cas: Cas, layer: str, feature: str, where: str, check: RecordChecker) -> Text:
    """The text of a CAS with the annotations of a layer, and its sentences; without a text there are none of either."""
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
        if not (value := span.get(feature)):
            check.drop("entities without a type dropped", example=f"{where}: {text[span.begin : span.end]!r}")
        else:
            entities.append(check.entity(text, [(span.begin, span.end)], value, None, where, f"{layer}[{number}]"))
    for other in cas.select_all_annotations():
        if other.type.name not in (layer, SENTENCE, TOKEN, METADATA, WHOLE):
            check.note(f"annotations of the layer {other.type.name!r} ignored", example=where)
    made = annotated(doc_id, text, entities, where)
    if sentences := cas.select(SENTENCE) if cas.typesystem.contains_type(SENTENCE) else ():
        borders = {border for span in sentences for border in (span.begin, span.end) if 0 < border < len(text)}
        made["sentences"] = [*pairwise((0, *sorted(borders), len(text)))]
    return made


def _load(file: Path, name: str, check: RecordChecker) -> Cas:
    """A CAS of strangers, whose XML is parsed and written anew: dkpro-cassis would fetch external entities."""
    with open_corpus(file) as opened:
        data = opened.read()
    type_system = file.with_name(TYPE_SYSTEM)
    if file.suffix == XMI_SUFFIX and not type_system.is_file():
        raise check.error(name, f"its type system, {TYPE_SYSTEM}, is not in its folder", "Add it, or export JSON")
    cassis = _cassis(name)
    try:
        if file.suffix == XMI_SUFFIX:
            if b"<!DOCTYPE" in data.replace(b"\0", b""):  # expat drops its entities from the text, an attribute
                raise check.error(name, "it has a DOCTYPE, as no XMI has", "Remove it, and write its entities out")
            parsed = (parse_xml(xml, check, name) for xml in (type_system.read_bytes(), data))
            types, xmi = (io.BytesIO(ElementTree.tostring(root)) for root in parsed)
            cas = cassis.load_cas_from_xmi(xmi, typesystem=cassis.load_typesystem(types))
        else:
            cas = cassis.load_cas_from_json(data.decode("utf-8-sig"))
        return next((cas.get_view(sofa.sofaID) for sofa in cas.sofas if sofa.sofaString), cas)
    except CorpusError:
        raise
    except Exception as error:  # files of another kind make cassis fail in any way
        problem = f"dkpro-cassis cannot read it ({type(error).__name__}: {error})"
        raise check.error(name, problem, "Export UIMA CAS, XMI with its type system or JSON 0.4") from None


def make_cas(text: str, sentences: Sequence[Sequence[Offsets]], entities: Sequence[Mapping[str, Any]]) -> Cas:
    """A CAS of a text with its words by sentence, and its entities (`start`, `end`, `type`, perhaps `score`) in the
    built-in layer, which has a feature `score` here."""
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


def _is_json(file: Path) -> bool:
    try:
        return file.suffix == ".json" and not record_keys(read_head(file)).isdisjoint(JSON_KEYS)
    except CorpusError:  # an empty file, which may have nothing to do with the corpus
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
    recognizes=lambda head: "<xmi:XMI" in head,
    columns="the layer: {'entities': 'layer:feature'}",
    documents=cas_documents,
)
