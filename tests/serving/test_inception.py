"""Requests of INCEpTION as documented by it, and the responses."""

import pytest

from modeling_triaffine.serving.inception import PREDICTED
from tests.helpers.served_model import ANNOTATED, client_of, found_in

LAYER = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
XMI = (
    '<?xml version="1.0" encoding="UTF-8"?> <xmi:XMI xmlns:tcas="http:///uima/tcas.ecore" '
    'xmlns:xmi="http://www.omg.org/XMI" xmlns:cas="http:///uima/cas.ecore" xmlns:cassis="http:///cassis.ecore" '
    'xmi:version="2.0"> <cas:NULL xmi:id="0"/> <tcas:DocumentAnnotation xmi:id="8" sofa="1" begin="0" end="47" '
    'language="x-unspecified"/> <cas:Sofa xmi:id="1" sofaNum="1" sofaID="mySofa" mimeType="text/plain" sofaString="'
    f'{ANNOTATED}"/> <cas:View sofa="1" members="8"/> </xmi:XMI>'
)
"""The document in the examples of INCEpTION's developer guide."""


def type_system(*features, layer=LAYER):
    """A type system whose layer has these features, (name, type), as INCEpTION extends it for a recommender."""
    described = "".join(
        f"<featureDescription><name>{name}</name><description/><rangeTypeName>uima.cas.{kind}</rangeTypeName>"
        "</featureDescription>"
        for name, kind in features
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?> <typeSystemDescription xmlns="http://uima.apache.org/resourceSpecifier">'
        f"<types><typeDescription><name>{layer}</name><description/><supertypeName>uima.tcas.Annotation</supertypeName>"
        f"<features>{described}</features></typeDescription></types></typeSystemDescription>"
    )


VALUE, IS_PREDICTED, SCORE = ("value", "String"), (PREDICTED, "Boolean"), ("value_score", "Double")


def recommender_request(*features, xmi=XMI, layer=LAYER, **metadata):
    return {
        "metadata": {"layer": layer, "feature": "value", "projectId": 1337, "anchoringMode": "tokens", **metadata},
        "document": {"xmi": xmi, "documentId": 42, "userId": "testuser"},
        "typeSystem": type_system(*features, layer=layer),
    }


def suggestions_of(answer, request):
    """The annotations of the layer and the text, as dkpro-cassis reads them."""
    cassis = pytest.importorskip("cassis")
    types = cassis.load_typesystem(request["typeSystem"])
    view = cassis.load_cas_from_xmi(answer.json()["document"], types).get_view("mySofa")
    return view.select(request["metadata"]["layer"]), view


@pytest.mark.parametrize(
    ("options", "features"),
    [
        ({}, [VALUE, IS_PREDICTED, SCORE]),
        ({"layer": "Plain"}, [VALUE, IS_PREDICTED]),
        ({"feature": "type", "layer": "custom.Span"}, [("type", "String"), IS_PREDICTED]),
    ],
)
def test_inception_gets_its_document_with_suggestions(annotator, options, features):
    request = recommender_request(*features, **options)
    answer = annotator.post("/inception/predict", json=request)
    assert answer.status_code == 200
    suggestions, view = suggestions_of(answer, request)
    feature = "type_" if "feature" in options else "value"  # cassis renames it
    found = [(one.begin, one.end, one[feature], one[PREDICTED]) for one in suggestions]
    assert found == [(0, 3, "Person", True), (15, 24, "Vehicle", True)]
    assert len(view.select("uima.tcas.DocumentAnnotation")) == 1
    if SCORE in features:
        assert [one["value_score"] for one in suggestions] == pytest.approx([0.75, 0.5])
    documents = {**request, "documents": [request.pop("document")]}
    assert annotator.post("/inception/train", json=documents).status_code == 204


def test_offsets_are_those_of_utf_16():
    text = "𝛼 &amp; &lt;&#10;𝛽 ä"
    client, batcher = client_of(lambda texts, threshold: [[{**found_in("𝛽 ä"), "start": 6, "end": 9}] for _ in texts])
    request = recommender_request(VALUE, IS_PREDICTED, xmi=XMI.replace(ANNOTATED, text))
    with batcher:
        answer = client.post("/inception/predict", json=request)
    assert 'begin="7" end="11"' in answer.json()["document"]
    suggestions, view = suggestions_of(answer, request)
    assert view.sofa_string == "𝛼 & <\n𝛽 ä"
    assert [one.get_covered_text() for one in suggestions] == ["𝛽 ä"]


BAD = {
    "layer": ({**recommender_request(VALUE), "typeSystem": type_system(VALUE, layer="b.C")}, [LAYER, "it has {}"]),
    "feature": (recommender_request(VALUE, IS_PREDICTED, feature="kind"), ["'kind'", "'value'"]),
    "number as feature": (recommender_request(("value", "Integer"), IS_PREDICTED), ["'value'", "String"]),
    "not for suggestions": (recommender_request(VALUE), [PREDICTED, "'value'"]),
    "no cas": (recommender_request(VALUE, IS_PREDICTED, xmi="<a/>"), ["document"]),
    "no text": (recommender_request(VALUE, IS_PREDICTED, xmi=XMI.replace(ANNOTATED, "")), ["document"]),
    "no view": (recommender_request(VALUE, IS_PREDICTED, xmi=XMI.replace('View sofa="1"', "View")), ["document"]),
    "no number": (recommender_request(VALUE, IS_PREDICTED, xmi=XMI.replace('id="8"', 'id="x"')), ["document"]),
    "no xml": (recommender_request(VALUE, IS_PREDICTED, xmi="nothing"), ["document"]),
    "surrogates": (recommender_request(VALUE, IS_PREDICTED, xmi=XMI + "\\ud800"), ["document"]),
    "long": (recommender_request(VALUE, IS_PREDICTED, xmi=XMI.replace(ANNOTATED, "x" * 101)), ["101 characters"]),
    "another version": ({"layer": LAYER}, ["metadata: Field required"]),
}


@pytest.mark.parametrize("name", BAD)
def test_inception_errors(annotator, name):
    request, facts = BAD[name]
    answer = annotator.post("/inception/predict", json=request)
    assert answer.status_code == 422
    assert [fact for fact in facts if fact not in answer.json()["detail"]] == []
