"""Documents of INCEpTION's external recommender: UIMA CAS in XMI, to which suggestions are added.

INCEpTION sends a document, its type system, and the layer and feature for labels. Unknown fields, which later versions
may add, are ignored.
"""

from collections.abc import Sequence
from itertools import accumulate
from xml.etree import ElementTree

from fastapi import HTTPException
from pydantic import BaseModel, Field

from ..model.kinds_triaffine import TextEntity

PREDICTED = "inception_internal_predicted"
SCORE_SUFFIX = "_score"
"""The feature that marks suggestions, and the suffix of the one for scores; INCEpTION adds both to the layer."""

XMI, CAS = "http://www.omg.org/XMI", "http:///uima/cas.ecore"
ID = f"{{{XMI}}}id"
ElementTree.register_namespace("xmi", XMI)  # UIMA compares the prefix, too
ElementTree.register_namespace("cas", CAS)


class Metadata(BaseModel):
    """The layer and feature for predictions; other fields are ignored."""

    layer: str = Field(min_length=1, description="Type of the annotations.")
    feature: str = Field(min_length=1, description="Feature of the label.")


class CasDocument(BaseModel):
    """A document of INCEpTION; other fields are ignored."""

    xmi: str = Field(description="UIMA CAS as XMI, with a text.")


class RecommenderRequest(BaseModel):
    """A request of INCEpTION for predictions; other fields are ignored."""

    metadata: Metadata
    document: CasDocument
    type_system: str = Field(alias="typeSystem", description="Type system of the CAS, XML.")


class Document:
    """The document of a request, with its text.

    Raises:
        HTTPException: It cannot be read, has no text, or its layer lacks the features for suggestions.
    """

    def __init__(self, request: RecommenderRequest):
        self.layer, self.feature = request.metadata.layer, request.metadata.feature
        try:
            self.root = ElementTree.fromstring(request.document.xmi)  # expat limits the growth of declared entities
            types = ElementTree.fromstring(request.type_system)
            sofa = next(text for text in self.root.iter(f"{{{CAS}}}Sofa") if text.get("sofaString"))
            self.text, self.sofa = sofa.attrib["sofaString"], sofa.attrib[ID]
            views = self.root.iter(f"{{{CAS}}}View")
            self.view = next(view for view in views if view.get("sofa") == self.sofa)
            self.last_id = max(int(element.get(ID, 0)) for element in self.root)
        except (ElementTree.ParseError, ValueError, KeyError, StopIteration) as error:
            reason = f"{type(error).__name__} {error}".strip()
            raise HTTPException(422, f"document: It is no CAS with a text in XMI ({reason}).") from None
        self.features = {
            feature.findtext("{*}name", ""): feature.findtext("{*}rangeTypeName", "")
            for described in types.iterfind(".//{*}typeDescription")
            if described.findtext("{*}name") == self.layer
            for feature in described.iterfind("{*}features/{*}featureDescription")
        }
        needed = {self.feature: "uima.cas.String", PREDICTED: "uima.cas.Boolean"}
        if not needed.items() <= self.features.items():
            problem = f"The layer {self.layer} must have features {needed}; it has {self.features}."
            raise HTTPException(422, f"metadata: {problem}")

    def with_suggestions(self, entities: Sequence[TextEntity]) -> str:
        """The document in XMI with the entities as suggestions."""
        package, _, name = self.layer.rpartition(".")
        tag = f"{{http:///{package.replace('.', '/') or 'uima/noNamespace'}.ecore}}{name}"
        # UIMA counts in UTF-16.
        units = [*accumulate((1 + (character > "\uffff") for character in self.text), initial=0)]
        place, members = [*self.root].index(self.view), [self.view.get("members", "")]
        for number, entity in enumerate(entities, self.last_id + 1):
            begin, end = units[entity["start"]], units[entity["end"]]
            values = {ID: str(number), "sofa": self.sofa, "begin": str(begin), "end": str(end)}
            values |= {self.feature: entity["entity_group"], PREDICTED: "true"}
            if self.feature + SCORE_SUFFIX in self.features:
                values[self.feature + SCORE_SUFFIX] = str(entity["score"])
            self.root.insert(place, ElementTree.Element(tag, values))
            members.append(str(number))
        self.view.set("members", " ".join(members).strip())
        return ElementTree.tostring(self.root, "unicode")
