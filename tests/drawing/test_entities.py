"""Entities drawn under text: alignment, lanes, wrapping, widths, safety, read back; in HTML: pieces of what crosses."""

import re
import unicodedata
from functools import partial
from html.parser import HTMLParser
from itertools import permutations
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine.drawing import draw_entities, draw_entities_html, drawing_style
from modeling_triaffine.drawing import entities as module
from modeling_triaffine.drawing.entities import read_entities
from modeling_triaffine.drawing.safe_text import clean, markdown_text
from modeling_triaffine.model.text_triaffine import clean_text
from modeling_triaffine.nesting import nesting_depths

BRACKET = re.compile(r"([╰▸]─*[╯▸]|┴|[╰╯▸]) (\w+)")


def entity(text, word, label, nth=0):
    start = [match.start() for match in re.finditer(re.escape(word), text)][nth]
    return {"entity_group": label, "score": 1.0, "word": word, "start": start, "end": start + len(word)}


def draw(text, *entities, **options):
    return draw_entities(text, [entity(text, *parts) for parts in entities], **options).split("\n")


NFD = partial(unicodedata.normalize, "NFD")
DRAWINGS = {  # text, its entities as (word, label), the lines below the text
    "three levels, innermost first": (
        "She met the rector of the University of Orsk.",
        [("the rector of the University of Orsk", "PERSON"), ("the University of Orsk", "ORG"), ("Orsk", "LOC")],
        [
            "                                        ╰──╯ LOC",
            "                      ╰────────────────────╯ ORG",
            "        ╰──────────────────────────────────╯ PERSON",
        ],
    ),
    "a label that would touch the next bracket": (
        "Orsk, Velmar, Dorin",
        [("Orsk", "LOCATION"), ("Velmar", "PERSON"), ("Dorin", "PERSON")],
        ["╰──╯ LOCATION", "      ╰────╯ PERSON", "              ╰───╯ PERSON"],
    ),
    "two columns after a label": ("a bcdef", [("a", "XX"), ("f", "Y")], ["┴ XX  ┴ Y"]),
    "crossing and on the same span": (
        "alpha beta gamma",
        [("alpha beta", "A"), ("beta gamma", "B"), ("beta gamma", "C")],
        ["╰────────╯ A", "      ╰────────╯ B", "      ╰────────╯ C"],
    ),
    "wide characters": (
        "東京大学の山田さん",
        [("東京", "LOC"), ("東京大学", "組織"), ("山田", "PER")],
        ["╰──╯ LOC  ╰──╯ PER", "╰──────╯ 組織"],
    ),
    "combining marks": (NFD("Åsé à Orsk"), [(NFD("Åsé"), "PER"), ("Orsk", "LOC")], ["╰─╯ PER", "      ╰──╯ LOC"]),
    "decomposed Hangul": (NFD("한글 A"), [("A", "X")], ["     ┴ X"]),
}


@pytest.mark.parametrize(("text", "phrases", "lines"), DRAWINGS.values(), ids=DRAWINGS)
def test_lines_below_the_text(text, phrases, lines):
    assert draw(text, *phrases) == [text, *lines]


# ---- wrapping


def test_wrap_continues_entities_and_repeats_the_label():
    text = "It is the board of the Port Velmar council again."
    assert draw(text, ("the board of the Port Velmar council", "ORG"), ("Port Velmar", "LOC"), width=32) == [
        "It is the board of the Port",
        "                       ╰──▸ LOC",
        "      ╰───────────────────▸ ORG",
        "",
        "Velmar council again.",
        "▸────╯ LOC",
        "▸────────────╯ ORG",
    ]


def test_long_words_are_cut_and_text_is_wrapped_early_where_a_label_would_stick_out():
    assert draw("aaa bbb ccc ddd", ("ccc", "LABEL"), width=15) == ["aaa bbb", "ccc ddd", "╰─╯ LABEL"]
    assert draw("x " + "a" * 25, width=10) == ["x", "a" * 10, "a" * 10, "a" * 5]
    assert draw(" 1" + "中" * 5, width=10) == ["", "1" + "中" * 4, "中"]


def test_line_breaks_of_the_text_are_kept():
    assert draw("one\r\ntwo\rthree\n\nfour", ("one\r\ntwo", "X")) == [
        "one", "╰─▸ X", "", "two", "▸─╯ X", "", "three", "", "four",
    ]  # fmt: skip


# ---- widths and safety


FAMILY = "\U0001f468\u200d\U0001f469\u2764\ufe0f"  # with joiners, which have no width


@pytest.mark.parametrize(
    ("text", "phrases", "lines"),
    [
        ("東京大学の山田太郎", [], ["東京大学の", "山田太郎"]),
        (NFD("é" * 12), [], [NFD("é" * 10), NFD("éé")]),
        (f"{FAMILY} A", ["\u200d", "A"], ["\U0001f468\U0001f469\u2764 A", "  ┴ X", "      ┴ X"]),
        ("\x1b[3\x07\tb\x7f\x9b", ["b"], ["␛[3␇␉b␡�", "     ┴ X"]),
        ("\u202eb\u2066c\ud800d\u2028\u00ade\ufeff", [], ["�b�c�d�e�"]),
        (f"a{' ' * 11}\u0301", [], [f"a{' ' * 11}\u0301"]),  # wider, and without a label that could be the reason
    ],
)
def test_lines_of_ten_columns(text, phrases, lines):
    assert draw(text, *((phrase, "X") for phrase in phrases), width=10) == lines


def test_joiners_of_words_and_emoji_stay_in_tables_and_pages():
    text = "می\u200cخواهم \U0001f468\u200d\U0001f469"
    assert clean(text) == markdown_text(text) == text


@given(st.text(max_size=60), st.text(min_size=1, max_size=8))
def test_no_control_characters_reach_the_terminal(text, label):
    entities = [{"entity_group": label, "start": 0, "end": len(text)}] if text else []
    for line in draw_entities(text, entities, width=20).split("\n"):
        assert not any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in line)


# ---- read back


@st.composite
def drawings(draw):
    words = draw(st.lists(st.text("abcxyz", min_size=1, max_size=9), min_size=1, max_size=25))
    text = " ".join(words)
    points = st.integers(0, len(text))
    spans = draw(st.lists(st.tuples(points, points).filter(lambda span: span[0] < span[1]), max_size=8))
    # Entities start and end at characters: spaces at the end of a line are not visible.
    spans = [(a, b) for a, b in spans if text[a] != " " and text[b - 1] != " "]
    entities = [{"entity_group": f"E{i}", "start": a, "end": b} for i, (a, b) in enumerate(spans)]
    return text, entities + entities[:1], draw(st.integers(16, 70))  # the one that is given twice is drawn once


@given(drawings())
def test_drawing_can_be_read_back(drawing):
    """The drawing determines the text and the span of every label."""
    text, entities, width = drawing
    read_text, parts = "", {}
    for block in draw_entities(text, entities, width).split("\n\n"):
        for line in block.split("\n"):  # lines without brackets stand right above the next line of text
            if not BRACKET.search(line):
                read_text += (" " if read_text and text[len(read_text)] == " " else "") + line
                line_start = len(read_text) - len(line)
            for match in BRACKET.finditer(line):
                shape = match[1]
                part = (line_start + match.start(1), line_start + match.end(1), shape[0] in "╰┴", shape[-1] in "╯┴")
                parts.setdefault(match[2], []).append(part)
    assert read_text == text
    assert parts.keys() == {entity["entity_group"] for entity in entities}
    for entity in entities:
        starts, ends, opens, closes = zip(*parts[entity["entity_group"]], strict=True)
        assert (starts[0], ends[-1]) == (entity["start"], entity["end"])
        assert all(text[end:start] in ("", " ") for end, start in zip(ends, starts[1:], strict=False))
        assert opens == (True, *[False] * (len(starts) - 1))
        assert closes == (*[False] * (len(starts) - 1), True)


@given(drawings())
def test_lines_stay_within_the_width_and_outer_entities_below_inner_ones(drawing):
    text, entities, width = drawing
    for line in draw_entities(text, entities, width).split("\n"):
        assert len(line) <= width
        assert line == line.rstrip()
    lines = draw_entities(text, entities, width=1000).split("\n")
    row = {match[2]: number for number, line in enumerate(lines) for match in BRACKET.finditer(line)}
    for outer, inner in permutations(read_entities(entities, text, str), 2):
        assert row[outer.label] > row[inner.label] or nesting_depths([outer[:2], inner[:2]])[inner[:2]] == 1


# ---- errors


@pytest.mark.parametrize("draw", [draw_entities, draw_entities_html])
def test_malformed_entities(draw):
    for fields, message in (({}, "exactly one of type and entity_group"), ({"type": "X", "end": 4}, "end <= 3, .*4")):
        with pytest.raises(ValueError, match=f"Entity 0.*{message}"):
            draw("abc", [{"start": 0, "end": 1, **fields}])


def test_lines_are_searched_for_the_entities_that_are_there_alone(monkeypatch):
    """A text of 200,000 characters with 20,000 entities took half a minute."""
    text = "gene word " * 1000
    searched = []
    original = module._bracket
    monkeypatch.setattr(module, "_bracket", lambda found, line: searched.append(found) or original(found, line))
    draw_entities(text, [{"entity_group": "X", "start": n, "end": n + 4} for n in range(0, len(text), 10)])
    assert len(searched) == 1000


# ---- in HTML

HOSTILE = "\"><img src=x onerror='alert(3)'> &amp;"
ATTRIBUTES = {*["class", "style", "data-start", "data-end", "data-label", "title", "tabindex", "role", "aria-label"]}
VELMAR = "The mayor of Port Velmar resigned."


def entity_at(start, end, label="A", **more):
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
    return text, [entity_at(min(a, b), max(a, b), label) for a, b, label in spans if a != b]


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
    for (one, lane), (other, deeper) in permutations(lanes.items(), 2):
        if one[0] < other[1] and other[0] < one[1]:
            assert lane != deeper
        if nesting_depths([other[:2], one[:2]])[one[:2]] == 2:
            assert lane < deeper


def test_nested_entities_are_nested_elements():
    reader = read(VELMAR, [entity_at(13, 24, "LOCATION", score=0.987), entity_at(0, 24, "PERSON")])
    outer, inner = reader.pieces
    assert (outer.text, inner.text) == ("The mayor of Port Velmar", "Port Velmar")
    assert inner.around == [outer]
    assert (inner.lane, outer.lane) == (0, 1)
    assert inner.attributes["aria-label"] == inner.attributes["title"] == "LOCATION 0.99"
    assert outer.attributes["aria-label"] == "PERSON"


def test_an_embedded_drawing_leaves_style_and_legend_to_the_page():
    found = [entity_at(13, 24, "LOCATION"), entity_at(0, 24, "PERSON")]
    alone = draw_entities_html(VELMAR, found, ["PERSON", "LOCATION"])
    embedded = draw_entities_html(VELMAR, found, ["PERSON", "LOCATION"], embedded=True)
    style, legend = f"<style>{drawing_style(2)}</style>", re.search(r"<ul.*</ul>", alone)[0]
    assert embedded == alone.replace(style, "").replace(legend, "").replace(' tabindex="0"', "")


def test_colours_follow_the_order_of_the_labels():
    labels = ["PERSON", "LOCATION", "EVENT"]
    found = ["ZOO", "EVENT", "ARK", "EVENT"]
    reader = read(VELMAR, [entity_at(n, n + 1, name) for n, name in enumerate(found)], labels)
    assert [piece.classes[1] for piece in reader.pieces] == ["kind-4", "kind-2", "kind-3", "kind-2"]
    assert reader.legend == ["EVENT 2", "ARK 1", "ZOO 1"]
