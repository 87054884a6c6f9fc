"""Entities drawn in HTML: the text once, brackets that nest, pieces of what crosses, safety."""

import itertools
import re
from html.parser import HTMLParser
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine.drawing.html_drawing import draw_entities_html, drawing_style
from modeling_triaffine.model.text_triaffine import clean_text
from modeling_triaffine.nesting import contains

HOSTILE = "\"><img src=x onerror='alert(3)'> &amp;"
ATTRIBUTES = {*["class", "style", "data-start", "data-end", "data-label", "title", "tabindex", "role", "aria-label"]}
VELMAR = "The mayor of Port Velmar resigned."


def entity(start, end, label="A", **more):
    return {"entity_group": label, "start": start, "end": end, **more}


class Reader(HTMLParser):
    """Reads a drawing back, with its brackets as pieces; any tag that a drawing does not consist of is an error."""

    def __init__(self, drawn):
        super().__init__()
        self.text, self.legend, self.pieces, self.open = "", [], [], []
        self.feed(drawn)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        assert tag in {"div", "style", "ul", "li", "span"}, tag
        element = SimpleNamespace(tag=tag, attributes=attributes, classes=attributes.get("class", "").split(), text="")
        if tag == "span":
            start, end = int(attributes["data-start"]), int(attributes["data-end"])
            element.key = start, end, attributes["data-label"]
            element.lane = int(re.fullmatch(r"--lane:(\d+)", attributes["style"])[1])
            element.around = [outer for outer in self.open if outer.tag == "span"]
            self.pieces.append(element)
        self.open.append(element)

    def handle_data(self, data):
        for element in self.open:
            element.text += data

    def handle_endtag(self, tag):
        element = self.open.pop()
        if tag == "li":
            self.legend.append(element.text)
        elif "text" in element.classes:
            self.text = element.text


def read(text, entities, labels=()):
    return Reader(draw_entities_html(text, entities, labels))


@st.composite
def texts_with_entities(draw):
    text = draw(st.text(min_size=1, max_size=30) | st.just(HOSTILE))
    places = st.integers(0, len(text))
    spans = draw(st.lists(st.tuples(places, places, st.sampled_from(["A", "B", HOSTILE])), max_size=8))
    return text, [entity(min(a, b), max(a, b), label) for a, b, label in spans if a != b]


@given(texts_with_entities())
def test_the_text_is_there_once_and_every_entity_covers_its_part_of_it(case):
    text, entities = case
    reader = read(text, entities)
    assert reader.text == clean_text(text)
    assert {name.rpartition(" ")[0] for name in reader.legend} == {e["entity_group"] for e in entities}
    assert all(piece.attributes.keys() <= ATTRIBUTES for piece in reader.pieces)
    pieces = {}
    for piece in reader.pieces:
        pieces.setdefault(piece.key, []).append(piece)
    assert set(pieces) == {(e["start"], e["end"], e["entity_group"]) for e in entities}
    for (start, end, _), parts in pieces.items():
        assert "".join(part.text for part in parts) == reader.text[start:end]
        assert ["continued" in part.classes for part in parts] == [False] + [True] * (len(parts) - 1)
        assert ["cut" in part.classes for part in parts] == [True] * (len(parts) - 1) + [False]
        assert ["tabindex" in part.attributes for part in parts] == [True] + [False] * (len(parts) - 1)
        assert len({part.lane for part in parts}) == 1


@given(texts_with_entities())
def test_what_overlaps_has_lanes_of_its_own_and_what_contains_lies_deeper(case):
    lanes = {piece.key: piece.lane for piece in read(*case).pieces}
    for (one, lane), (other, deeper) in itertools.permutations(lanes.items(), 2):
        if one[0] < other[1] and other[0] < one[1]:
            assert lane != deeper
        if contains(other[:2], one[:2]):
            assert lane < deeper


def test_nested_entities_are_nested_elements():
    reader = read(VELMAR, [entity(13, 24, "LOCATION", score=0.987), entity(0, 24, "PERSON")])
    outer, inner = reader.pieces
    assert (outer.text, inner.text) == ("The mayor of Port Velmar", "Port Velmar")
    assert inner.around == [outer]
    assert (inner.lane, outer.lane) == (0, 1)
    assert inner.attributes["aria-label"] == inner.attributes["title"] == "LOCATION 0.99"
    assert outer.attributes["aria-label"] == "PERSON"


def test_an_embedded_drawing_leaves_style_and_legend_to_the_page():
    found = [entity(13, 24, "LOCATION"), entity(0, 24, "PERSON")]
    alone = draw_entities_html(VELMAR, found, ["PERSON", "LOCATION"])
    embedded = draw_entities_html(VELMAR, found, ["PERSON", "LOCATION"], embedded=True)
    style, legend = f"<style>{drawing_style(2)}</style>", re.search(r"<ul.*</ul>", alone)[0]
    assert embedded == alone.replace(style, "").replace(legend, "").replace(' tabindex="0"', "")


def test_colours_follow_the_order_of_the_labels():
    labels = ["PERSON", "LOCATION", "EVENT"]
    found = ["ZOO", "EVENT", "ARK", "EVENT"]
    reader = read(VELMAR, [entity(n, n + 1, name) for n, name in enumerate(found)], labels)
    assert [piece.classes[1] for piece in reader.pieces] == ["kind-4", "kind-2", "kind-3", "kind-2"]
    assert reader.legend == ["EVENT 2", "ARK 1", "ZOO 1"]
