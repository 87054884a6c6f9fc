"""Requests of INCEpTION as documented by it, and the responses."""

import copy
import sys
from xml.etree import ElementTree

import pytest

from modeling_triaffine.serving.inception_recommender import PREDICTED, check_size
from tests.helpers.served_model import ANNOTATED

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


def recommender_request(*features, xmi=XMI, **metadata):
    return {
        "metadata": {"layer": LAYER, "feature": "value", "projectId": 1337, "anchoringMode": "tokens", **metadata},
        "document": {"xmi": xmi, "documentId": 42, "userId": "testuser"},
        "typeSystem": type_system(*features),
    }


@pytest.mark.parametrize(
    ("name", "features"),
    [
        ("value", [VALUE, IS_PREDICTED, SCORE]),
        ("value", [VALUE, IS_PREDICTED]),
        ("type", [("type", "String"), IS_PREDICTED]),
    ],
)
def test_inception_gets_its_document_with_suggestions(annotator, name, features):
    cassis = pytest.importorskip("cassis")
    request = recommender_request(*features, feature=name)
    answer = annotator.post("/inception/predict", json=request)
    assert answer.status_code == 200
    types = cassis.load_typesystem(request["typeSystem"])
    cas = cassis.load_cas_from_xmi(answer.json()["document"], types)
    suggestions = cas.get_view("mySofa").select(LAYER)
    found = [(one.begin, one.end, one["type_" if name == "type" else name], one[PREDICTED]) for one in suggestions]
    assert found == [(0, 3, "Person", True), (15, 24, "Vehicle", True)]
    if SCORE in features:
        assert [one["value_score"] for one in suggestions] == pytest.approx([0.75, 0.5])
    documents = {**request, "documents": [request.pop("document")]}
    assert annotator.post("/inception/train", json=documents).status_code == 204


def chain(types, features):
    """A type system of which each type inherits from the one before."""
    system = ElementTree.fromstring(
        type_system(*((f"f{number}", "String") for number in range(features)), layer="x.T0")
    )
    (described,) = system.iterfind(".//{*}typeDescription")
    for number in range(1, types):
        child = copy.deepcopy(described)
        child.find("{*}name").text, child.find("{*}supertypeName").text = f"x.T{number}", f"x.T{number - 1}"
        child.remove(child.find("{*}features"))
        system[0].append(child)
    return ElementTree.tostring(system, "unicode")


BAD = {
    "layer": (recommender_request(VALUE, IS_PREDICTED, layer="custom.Layer"), ["custom.Layer"]),
    "feature": (recommender_request(VALUE, IS_PREDICTED, feature="kind"), ["'kind'", "'value'"]),
    "number as feature": (recommender_request(("value", "Integer"), IS_PREDICTED), ["'value'", "String"]),
    "not for suggestions": (recommender_request(VALUE), [PREDICTED, "'value'"]),
    "no cas": (recommender_request(VALUE, IS_PREDICTED, xmi="<a/>"), ["document"]),
    "no xml": (recommender_request(VALUE, IS_PREDICTED, xmi="nothing"), ["document"]),
    "long": (recommender_request(VALUE, IS_PREDICTED, xmi=XMI.replace(ANNOTATED, "x" * 101)), ["101 characters"]),
    "another version": ({"layer": LAYER}, ["metadata: Field required"]),
    # Each would take minutes.
    "many types": ({**recommender_request(), "typeSystem": chain(200, 200)}, ["too many types and features"]),
    "many features": ({**recommender_request(), "typeSystem": chain(10, 400)}, ["too many types and features"]),
    "a circle": (
        {**recommender_request(), "typeSystem": chain(2, 1).replace("uima.tcas.Annotation", "x.T1")},
        ["many"],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_inception_errors(annotator, name):
    pytest.importorskip("cassis")
    request, facts = BAD[name]
    answer = annotator.post("/inception/predict", json=request)
    assert answer.status_code == 422
    assert [fact for fact in facts if fact not in answer.json()["detail"]] == []


def test_type_systems_of_projects_are_not_too_large():
    """A hundred layers with ten features each, and a deep hierarchy."""
    check_size(chain(40, 20))
    flat = "".join(chain(1, 10).replace("x.T0", f"x.T{number}") for number in range(100))
    check_size(f"<all>{flat}</all>".replace('<?xml version="1.0" encoding="UTF-8"?>', ""))


def test_without_the_extra_the_answer_names_it(annotator, monkeypatch):
    monkeypatch.setitem(sys.modules, "cassis", None)
    answer = annotator.post("/inception/predict", json=recommender_request(VALUE, IS_PREDICTED))
    assert (answer.status_code, "cas" in answer.json()["detail"]) == (501, True)
