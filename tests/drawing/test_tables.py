"""Tables as text, Markdown and HTML: the same cells come out of each, whatever they contain."""

import json
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from modeling_triaffine.drawing.predictions_page import ENVIRONMENT
from modeling_triaffine.drawing.safe_text import text_width, visible_json
from modeling_triaffine.drawing.tables import Code, Strong, Table

HOSTILE = {  # cell → what is shown of it
    "a|b": "a|b",
    "`tick` ``two``": "`tick` ``two``",
    "two\nlines\r\n\u2028 | three": "two lines | three",
    "<script>alert('1')</script>": "<script>alert('1')</script>",
    "&lt;b&gt; &amp;": "&lt;b&gt; &amp;",
    "[link](javascript:x) ![i](j)": "[link](javascript:x) ![i](j)",
    "_a_ __b__ *c* **d** ~~e~~ $f$": "_a_ __b__ *c* **d** ~~e~~ $f$",
    "\\| \\": "\\| \\",
    "\u202egnirts\u202c \u2066x\u2069": "�gnirts� �x�",
    "\x1b[31mred\x07\x00": "�[31mred��",
    "\ud800": "�",
    "  -- ": "--",
    "株式会社 e\u0301": "株式会社 e\u0301",
}


class Cells:
    """The text of each cell of a table, how the cells are aligned, and the tags within them."""

    def __init__(self, source):
        cells = [cell for cell in ElementTree.fromstring(source).iter() if cell.tag in ("td", "th")]
        self.cells = ["".join(cell.itertext()) for cell in cells]
        self.classes = [cell.get("class", cell.get("style")) for cell in cells]
        self.tags = {inner.tag for cell in cells for inner in cell}


def html_of(table):
    return ENVIRONMENT.get_template("drawing/tables.html").module.html_table(table)


def rendered(markdown):
    return Cells(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown))


@pytest.mark.parametrize("kind", [str, Code, Strong])
def test_hostile_cells_show_as_text_in_every_form(kind):
    table = Table([kind("|`<b>"), "n"], [[kind(text), 1] for text in HOSTILE], caption="<i>`|\x1b")
    expected = ["|`<b>", "n", *(cell for text in HOSTILE.values() for cell in (text, "1"))]
    page = Cells(html_of(table))
    assert page.cells == expected
    assert page.tags == set()
    assert "<caption>&lt;i&gt;`|�</caption>" in html_of(table)
    read = rendered(table.markdown().partition("\n\n")[2])
    assert read.cells == expected
    assert read.tags <= {"code", "strong"}
    caption, blank, *lines = table.text().splitlines()
    assert (caption, blank) == ("<i>`|�", "")
    assert [line.removesuffix("  1").strip() for line in lines[1:]] == list(HOSTILE.values())
    assert len({text_width(line) for line in lines}) == 1


def test_numbers_are_aligned_to_the_right():
    rows = [["a", "+1.5", "0–2", 12_345, "72.31 ± 0.12"], ["b", None, "7", -7, "3 %"]]
    table = Table(["name", "score", "words", "count", "mean"], rows)
    assert table.text().splitlines() == [
        "name  score  words   count          mean",
        "a      +1.5  0–2    12,345  72.31 ± 0.12",
        "b         –  7          -7           3 %",
    ]
    assert table.markdown().splitlines()[1] == "| ---- | ----: | ----- | -----: | -----------: |"
    assert Cells(html_of(table)).classes == [None, "number", None, "number", "number"] * 3
    assert rendered(table.markdown()).cells == Cells(html_of(table)).cells


def test_json_has_no_raw_controls_and_the_same_value():
    value = {"word": "a\x9b\u2028\u202e\x1b中"}
    written = visible_json(json.dumps(value, ensure_ascii=False))
    assert written == '{"word": "a\\u009b\\u2028\\u202e\\u001b中"}'
    assert json.loads(written) == value
