"""The report of an analysis: its tables, its page and its folder."""

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise, product

import pytest

from modeling_triaffine.drawing.figure_style import MOST_LABELS, figure_style
from modeling_triaffine.evaluation.cases import Case, CaseSpan
from modeling_triaffine.evaluation.error_analysis import confusion, sentences_with_errors
from modeling_triaffine.evaluation.figures import STYLE, _draw_scores, draw_figures
from modeling_triaffine.evaluation.prediction import DEFAULT_COUNTS
from modeling_triaffine.evaluation.report import (
    MOST_SENTENCES,
    SHOWN_COUNTS,
    html_report,
    markdown_report,
    write_report,
)
from modeling_triaffine.evaluation.scores import Scores, percentages
from modeling_triaffine.evaluation.scoring import candidate_recall, score_entities
from tests.helpers.analysed import HOSTILE
from tests.helpers.scored import entities


@pytest.fixture(scope="module")
def figures(analysis):
    return draw_figures(analysis)


# ---- the report


class Page(HTMLParser):
    """The tags, addresses, styles and text of a page; every tag that is opened must be closed in its turn."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.addresses, self.styles, self.text, self.source = [], [], [], [], "", page
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "srcset", "data")]
        self.styles += [value for name, value in attributes if name == "style"]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_page_is_closed_in_itself_and_shows_markup_as_text(analysis, figures):
    page = Page(html_report(analysis, figures))
    assert "script" not in page.tags
    assert page.tags.count("img") == 5
    assert all(address.startswith(("#part", "data:image/svg+xml;base64,")) for address in page.addresses)
    assert all(re.fullmatch(r"--lanes?:\d+", style) for style in page.styles)
    assert HOSTILE in page.text
    assert "url(" not in page.text
    parts = (
        "by label",
        "by length",
        "Errors",
        "Sentences with errors",
        "Candidates",
        "Comparison",
        "Cases",
        "s0: The IL2",
    )
    assert all(part in page.text for part in parts)


def test_page_and_markdown_have_the_same_numbers(analysis):
    page, text = html_report(analysis, {}), markdown_report(analysis)
    assert "<img" not in page
    assert "![" not in text
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith(("| -", "| :"))]
    assert page.count("<tr>") == len(rows) > 30
    for value in ("precision", f"{100 * analysis.scores['f1']:.2f}"):
        assert value in page
        assert value in text


def cells_of(text, first):
    """The cells of the first row of a Markdown table that begins so."""
    row = next(line for line in text.splitlines() if line.startswith(f"| {first} "))
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_numbers_of_the_report(analysis):
    text = markdown_report(analysis)
    scores = analysis.scores["by_label"]["DNA"]
    ratios = [ratio or "–" for ratio in percentages(scores)]
    assert cells_of(text, "DNA") == ["DNA", *ratios, str(scores["predicted"]), str(scores["gold"])]
    found = analysis.comparison.bootstrap
    assert f"p = {found['p_value']:.4f}" in text
    assert f"by {100 * found['difference']:+.2f}".replace("-", "−") in text
    assert f"{analysis.comparison.model} cannot find entities of types that are not among its labels: " in text


def test_labels_with_the_names_of_parts_have_rows_of_their_own(analysis):
    gold = [entities((0, 1, "all"), (0, 1, "flat"))]
    scores = score_entities(gold, gold)
    without_flat = {label: row for label, row in scores["by_label"].items() if label != "flat"}
    mine, other = Scores(scores | {"by_label": without_flat}), replace(analysis.comparison, scores=scores)
    text = markdown_report(replace(analysis, scores=mine, comparison=other))
    rows = [line for line in text[text.index("## Comparison") :].splitlines() if line.startswith(("| all", "| flat"))]
    assert [row.split()[3] for row in rows] == ["100.00", "100.00", "–", "100.00"]
    assert [row.split()[-2] for row in rows] == ["0.00", "0.00", "–", "0.00"]  # no difference to what is undefined


def test_case_without_candidates_in_the_report(analysis):
    span = CaseSpan(0, 2, "IL2 gene", ["DNA", "RNA"], "DNA", 0.75, None, None, None)
    text = markdown_report(replace(analysis, cases=[Case("s", "IL2 gene .", 6, [span])]))
    assert cells_of(text, "IL2 gene") == ["IL2 gene", "0–2", "DNA", "0.750", "–", "–", "–", "DNA, RNA"]


def test_sentences_with_errors_are_drawn_and_their_errors_listed(analysis):
    gold = entities((0, 2, "ORG"), (1, 2, "LOC"))
    record = {"id": "s<7>", "tokens": ["the", "Oxav", "\u2028", "`[x]`"], "entities": gold}
    sentences = sentences_with_errors([entities((0, 3, "ORG"), (1, 2, "LOC"), (3, 4, "LOC"))], [record])
    report = replace(analysis, sentences_with_errors=sentences)
    text = markdown_report(report)
    part = text[text.index("### s") : text.index("## Candidates")]
    assert "1 of the 4 sentences have errors. Those with the most errors come first." in text
    assert part.rstrip().split("\n") == [
        "### s\\<7\\>",
        "",
        "Gold:",
        "",
        "    the Oxav \N{REPLACEMENT CHARACTER} `[x]`",
        "        ╰──╯ LOC",
        "    ╰──────╯ ORG",
        "",
        "Predicted:",
        "",
        "    the Oxav \N{REPLACEMENT CHARACTER} `[x]`",
        "        ╰──╯ LOC",
        "               ╰───╯ LOC",
        "    ╰────────╯ ORG",
        "",
        "**2 errors**",
        "",
        "| error          | gold           | predicted        |",
        "| -------------- | -------------- | ---------------- |",
        "| wrong boundary | the Oxav (ORG) | the Oxav \N{REPLACEMENT CHARACTER} (ORG) |",
        "| spurious       | –              | \\`\\[x\\]\\` (LOC)  |",
    ]
    page = Page(html_report(report, {}))
    assert page.text.count("the Oxav \N{REPLACEMENT CHARACTER} `[x]`") == 2
    drawn = re.findall(r'<span class="entity[^>]* data-start="(\d+)" data-end="(\d+)" data-label="(\w+)"', page.source)
    assert drawn == [("0", "8", "ORG"), ("4", "8", "LOC"), ("0", "10", "ORG"), ("4", "8", "LOC"), ("11", "16", "LOC")]


def test_the_report_shows_some_sentences_with_errors_and_json_all(analysis, tmp_path):
    (sentence, *_) = analysis.sentences_with_errors
    many = [replace(sentence, id=f"many-{number}") for number in range(MOST_SENTENCES + 3)]
    write_report(replace(analysis, sentences_with_errors=many), tmp_path, {})
    text = (tmp_path / "report.md").read_text()
    assert "23 of the 4 sentences have errors. The 20 with the most errors are shown; report.json has all." in text
    assert re.findall("### (many-\\d+)", text) == [one.id for one in many[:MOST_SENTENCES]]
    written = json.loads((tmp_path / "report.json").read_text())["sentences_with_errors"]
    assert [one["id"] for one in written] == [one.id for one in many]


def test_of_the_candidates_tried_by_default_some_are_shown(analysis):
    def shown(counts):
        rows = [{**analysis.candidates[0], "max_candidates": count} for count in counts]
        text = markdown_report(replace(analysis, candidates=rows, max_candidates=35))
        part = text[text.index("## Candidates") : text.index("## Comparison")]
        numbers = re.findall(r"^\| +(\d+) \|", part, re.MULTILINE)
        return [int(number) for number in numbers], "shows some values of m" in part

    assert shown(DEFAULT_COUNTS) == (sorted({35, *SHOWN_COUNTS}), True)
    assert shown(range(1, 31)) == (list(range(1, 31)), False)


def test_undefined_ratios_are_null_in_json_and_dashes_in_tables(analysis):
    nothing = score_entities([[]], [[]], ["A"])
    candidates = [{"max_candidates": 7, "candidates": candidate_recall([[]], [[]]), "scores": nothing}]
    comparison = replace(analysis.comparison, scores=nothing)
    empty = replace(analysis, scores=nothing, candidates=candidates, comparison=comparison)
    data = empty.to_dict()
    for scored in (data, data["comparison"], *data["candidates"]):
        assert [scored["scores"][name] for name in ("precision", "recall", "f1")] == [None] * 3
        assert scored["scores"]["by_label"]["A"]["f1"] is None
    assert data["candidates"][0]["candidates"]["recall"] is None
    assert re.search(r"^\| +7 \| – +\| +0 \| –", markdown_report(empty), re.MULTILINE)


def test_lone_surrogates_are_written_as_escapes(analysis, tmp_path):
    write_report(replace(analysis, model="a\ud800"), tmp_path, {})
    assert json.loads((tmp_path / "report.json").read_text())["model"] == "a\ud800"


def many_labels(analysis, count):
    """The analysis of a corpus of so many labels; of each two entities, one is found, the last labels have more."""
    gold = [entities((0, 1, f"L{n}"), *[(2, 3, f"L{n}")] * (n >= count - 3)) for n in range(count)]
    predictions = [entities((0, 1, f"L{n - n % 2}")) for n in range(count)]
    scores, errors = score_entities(predictions, gold), confusion(predictions, gold)
    return replace(analysis, scores=scores, errors=errors, by_length={}, by_depth={}, candidates=None)


def test_figures_of_many_labels_show_the_most_frequent(analysis):
    figures = draw_figures(many_labels(analysis, MOST_LABELS + 10))
    for name in ("by_label.svg", "errors.svg"):
        text = "".join(ElementTree.fromstring(figures[name]).itertext())
        shown = set(re.findall(r"L\d+", text))
        assert len(shown) == MOST_LABELS
        assert {f"L{MOST_LABELS + 9 - n}" for n in range(3)} < shown
    assert f"the {MOST_LABELS} of {MOST_LABELS + 10} labels" in figures["by_label.svg"].decode()


@pytest.mark.parametrize(("count", "gold"), [(6, 12_345), (12, 12_345), (24, 1)])
def test_names_below_bars_do_not_overlap(analysis, count, gold):
    """They are slanted where they would, which numbers of entities alone can cause."""
    rows = {f"L{n}": {**analysis.scores["by_label"]["DNA"], "gold": gold} for n in range(count)}
    with figure_style("name", STYLE):
        figure = _draw_scores(rows, "")
        figure.draw_without_rendering()
    names = figure.axes[0].get_xticklabels()
    boxes = [name.get_window_extent() for name in names]
    assert names[0].get_rotation() or all(one.x1 < next_one.x0 for one, next_one in pairwise(boxes))


def test_undefined_ratios_have_no_bar(analysis):
    """Of a label without predictions, recall and F1 are 0 and precision is undefined."""
    sides = [[]], [entities((0, 1, "A"))]
    missing = replace(many_labels(analysis, 2), scores=score_entities(*sides), errors=confusion(*sides))
    drawn = draw_figures(missing)["by_label.svg"]
    numbers = [element.text for element in ElementTree.fromstring(drawn).iter() if element.text]
    assert numbers.count("0") == 3  # those of two bars and the axis


def test_the_table_of_types_has_labels_whose_spans_were_predicted(analysis):
    types = {"A": {"A": 2, "B": 1, "C": 0}, "B": {"A": 0, "B": 0, "C": 0}, "C": {"A": 0, "B": 0, "C": 0}}
    report = replace(analysis, errors=analysis.errors | {"types": types})
    rows = markdown_report(report).partition("by gold and predicted label**")[2].strip().splitlines()[:4]
    assert [row.split()[1::2] for row in rows[2:]] == [["A", "2", "1"], ["B", "0", "0"]]


def test_report_folder(analysis, figures, tmp_path):
    write_report(analysis, tmp_path, figures)
    names = {"by_label", "by_length", "by_depth", "errors", "candidates"}
    expected = {f"{name}.{form}" for name, form in product(names, ("svg", "png"))}
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "report.md", "report.json"} | expected
    for name in names:
        assert ElementTree.fromstring(figures[f"{name}.svg"]).tag.endswith("svg")
        assert figures[f"{name}.png"].startswith(b"\x89PNG")
        assert f"]({name}.png)" in (tmp_path / "report.md").read_text()
    assert json.loads((tmp_path / "report.json").read_text()) == json.loads(json.dumps(analysis.to_dict()))
    assert draw_figures(analysis) == figures  # the same analysis gives the same files
