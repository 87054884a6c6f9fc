"""The demo page in a real browser: finding, drawing, explaining, downloading, and what it refuses."""

import json
import urllib.error
import urllib.request
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("gradio", reason="needs the extra demo")

from modeling_triaffine import NestedNERPipeline
from modeling_triaffine.explanation import explain, format_explanation
from modeling_triaffine.explanation.explaining import StageScores, likeliest_labels, make_stages, number_text
from modeling_triaffine.page.answers import MOST_LABELS, in_plain_words, show_explanation
from tests.helpers.tiny import tiny_pipeline
from tests.page.conftest import HOSTILE, HOSTILE_LABELS, LAPTOP, MARKUP, PHONE, TEXT, Watch, find

if TYPE_CHECKING:
    from playwright.sync_api import Page

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pipeline(models) -> NestedNERPipeline:
    return NestedNERPipeline(model=models["tiny"], device="cpu")


def choose_model(visited: "Page", name: str) -> None:
    visited.click("#model input")
    visited.get_by_role("option", name=name, exact=True).click()


def drawn_entities(visited: "Page") -> list[tuple]:
    """(start, end, label, text) of the whole entities, pieces put together."""
    pieces = "(all) => all.map((one) => [{...one.dataset}, one.textContent])"
    texts: dict[tuple, str] = defaultdict(str)
    for data, text in visited.eval_on_selector_all("#drawing .entity", pieces):
        texts[int(data["start"]), int(data["end"]), data["label"]] += text
    return sorted((*key, text) for key, text in texts.items())


def wait_for_drawn(visited: "Page", text: str) -> None:
    visited.wait_for_function("(text) => document.querySelector('#drawing .text')?.textContent == text", arg=text)


def as_drawn(entities: list[dict]) -> list[tuple]:
    return sorted((e["start"], e["end"], e["entity_group"], e["word"]) for e in entities)


def table_rows(visited: "Page") -> list[list[str]]:
    return [row.locator("td").all_text_contents() for row in visited.locator("#table tbody tr").all()]


def test_entities_of_a_typed_text_are_drawn_and_listed(visited, pipeline):
    visited.fill("#text textarea", "")
    visited.locator("#text textarea").press_sequentially(TEXT)
    visited.press("#text textarea", "Shift+Enter")
    visited.wait_for_selector("#drawing .text")
    expected = pipeline(TEXT)
    assert len(expected) > 2
    assert drawn_entities(visited) == as_drawn(expected)
    assert visited.text_content("#drawing .text") == TEXT
    assert table_rows(visited) == [
        [e["word"], e["entity_group"], f"{e['score']:.3f}", str(e["start"]), str(e["end"])] for e in expected
    ]


def test_markup_in_the_text_shows_as_text(visited):
    for text in (MARKUP, "<b>"):
        find(visited, text)
        wait_for_drawn(visited, text)
        assert visited.locator("#drawing .text :not(span.entity)").count() == 0
        assert {row[0] for row in table_rows(visited)} == {word for _, _, _, word in drawn_entities(visited)}
        assert visited.locator("#table td :not(span)").count() == 0
    assert "<b>" in {row[0] for row in table_rows(visited)}  # of three words all spans are candidates


def test_markup_of_a_model_shows_as_text(visited):
    choose_model(visited, HOSTILE)
    find(visited, MARKUP)
    wait_for_drawn(visited, MARKUP)
    label = drawn_entities(visited)[0][2]
    assert label in HOSTILE_LABELS
    assert any(label in item for item in visited.locator("#drawing .legend li").all_text_contents())
    visited.locator("#table tbody tr").first.press("Enter")
    visited.wait_for_selector("#explanation table")
    made_of = "figcaption, strong, span, table, thead, tbody, tr, th, td, bdi, p, details, summary, pre"
    assert visited.locator(f"#explanation figure :not({made_of})").count() == 0
    assert visited.locator("#explanation thead th").count() == len(HOSTILE_LABELS)
    choose_model(visited, "tiny")


def test_examples_of_the_card_are_drawn_when_the_page_opens_and_at_a_click(context, address, visited):
    shown = visited.locator("#examples button").all_text_contents()
    assert [text.strip() for text in shown] == ["protein binds gene", "gene"]
    opened = Watch(context.new_page(), address)
    for text in ("protein binds gene", "gene"):
        if text == "gene":
            opened.page.locator("#examples button").nth(1).click()
        wait_for_drawn(opened.page, text)
        assert opened.page.input_value("#text textarea") == text
    opened.check()
    opened.page.close()


def test_nothing_is_cut_nor_scrolls_sideways_and_the_button_stays_in_sight(visited):
    visited.click("#options button")
    visited.wait_for_selector("#overlap label")
    for size in (LAPTOP, PHONE):
        visited.set_viewport_size(size)
        bottom = visited.locator("#find").evaluate("(button) => button.getBoundingClientRect().bottom")
        assert bottom <= size["height"]
    find(visited, f"{TEXT} " * 4)
    visited.locator("#table tbody tr").first.click()
    visited.wait_for_selector("#explanation table")
    for size in (LAPTOP, PHONE):
        visited.set_viewport_size(size)
        assert_all_is_in_sight(visited, size)
    visited.click("#options button")


def assert_all_is_in_sight(visited: "Page", size: dict[str, int]) -> None:
    hidden = """(all) => all.filter((one) =>
        one.scrollHeight > one.clientHeight + 1 && getComputedStyle(one).overflowY != 'visible')"""
    for sheet in ("drawing", "explanation", "table"):
        assert visited.eval_on_selector_all(f"#{sheet} *", f"(all) => ({hidden})(all).length") == 0
    tops = [visited.locator(f"#{sheet}").bounding_box() for sheet in ("drawing", "explanation", "table")]
    assert [box["y"] for box in tops] == sorted(box["y"] for box in tops)
    assert len({box["x"] for box in tops}) == 1
    columns = visited.locator("#explanation thead th").evaluate_all(
        "(all) => all.filter((one) => one.offsetWidth).map((one) => one.getBoundingClientRect().right)"
    )
    assert max(columns) <= size["width"]
    assert visited.evaluate("document.documentElement.scrollWidth") == size["width"]
    boxes = visited.eval_on_selector_all(
        "#drawing .entity", "(all) => all.flatMap((one) => [...one.getClientRects()].map((box) => box.toJSON()))"
    )
    assert all(box["left"] >= 0 and box["right"] <= size["width"] for box in boxes)


def test_a_chosen_entity_is_explained_and_the_next_one_takes_its_place(visited, pipeline):
    find(visited, TEXT)
    assert "Choose an entity" in visited.text_content("#explanation")
    ways = [("drawing", None), ("drawing", "Enter"), ("table", None), ("table", "Space")]
    # The shortest first: a click on the middle of a bracket chooses the innermost one there.
    entities = sorted(pipeline(TEXT), key=lambda entity: entity["end"] - entity["start"])[:4]
    assert len({(entity["start"], entity["end"]) for entity in entities}) == 4
    for entity, (part, key) in zip(entities, ways, strict=True):
        place = f"[data-start='{entity['start']}'][data-end='{entity['end']}']"
        chosen = visited.locator(f"#{part} [tabindex]{place}")
        chosen.press(key) if key else chosen.click()
        expected = format_explanation(explain(pipeline, TEXT, (entity["start"], entity["end"])))
        visited.wait_for_function(
            "(text) => document.querySelector('#explanation pre')?.textContent == text", arg=expected
        )
        assert visited.text_content("#explanation figcaption").startswith(f"“{entity['word']}”")
        for where in ("#drawing", "#table"):
            marked = visited.locator(f"{where} [aria-current]")
            assert marked.count() == visited.locator(f"{where} {place}").count() > 0
            assert marked.first.get_attribute("data-start") == str(entity["start"])


def test_the_tab_key_stops_once_in_the_drawing_and_once_in_the_table(visited):
    find(visited, TEXT)
    for part, role in (("drawing", "link"), ("table", "row")):
        stops = visited.locator(f"#{part} [data-start][tabindex]")
        words = stops.all_text_contents()
        assert len(words) > 2
        assert visited.locator(f"#{part}").get_by_role(role).filter(has_not_text="Start").count() == len(words)
        visited.wait_for_function(f"document.querySelectorAll('#{part} [tabindex=\"0\"]').length == 1")
        visited.locator(f"#{part} [tabindex='0']").focus()
        places = []
        for key in ("End", "ArrowLeft", "Home", "ArrowUp", "ArrowDown", "ArrowRight"):
            visited.keyboard.press(key)
            places.append(stops.evaluate_all("(all) => all.indexOf(document.activeElement)"))
        assert places == [len(words) - 1, len(words) - 2, 0, 0, 1, 2]
        visited.keyboard.press("Tab")
        visited.keyboard.press("Shift+Tab")
        assert stops.evaluate_all("(all) => all.indexOf(document.activeElement)") == 2
        visited.keyboard.press("Enter")
        visited.wait_for_function(f"document.querySelector('#{part} [tabindex=\"0\"][aria-current]') !== null")


def explanation_rows(explanation) -> list[list[list[str]]]:
    """The rows of each part of the table as texts, without its heading."""
    table = ElementTree.fromstring(show_explanation(explanation)).find("table")
    return [[["".join(cell.itertext()) for cell in row] for row in list(part)[1:]] for part in table.iter("tbody")]


@pytest.mark.parametrize(
    ("fields", "stages"),
    [
        ({"max_candidates": 20}, 2),
        ({"cross_span": False}, 1),
        ({"attention": "none", "scoring": "biaffine", "cross_span": False}, 1),
    ],
)
def test_the_page_shows_the_rows_of_the_text_with_the_predicted_label_first(encoder, fields, stages):
    explanation = explain(tiny_pipeline(encoder, **fields), TEXT, (4, 8))
    order = likeliest_labels(explanation)
    assert explanation.labels[order[0]] == explanation.predicted
    probabilities, *parts = explanation_rows(explanation)
    assert len(parts) == stages
    for part, stage in zip(parts, make_stages(explanation), strict=True):
        names = [f"{row.name} {row.label}" if row.label else row.name for row in stage.rows]
        numbers = ([number_text(row.numbers[label]) for label in order] for row in stage.rows)
        assert part == [[name, *shown] for name, shown in zip(names, numbers, strict=True)]
    expected = [explanation.span_stage, explanation.final][:stages]
    assert [row[1] for row in probabilities] == [f"{stage.probabilities[order[0]]:.2f}" for stage in expected]
    if stages == 1:  # the words are rows if the model attends to them
        words = [word.text for word in explanation.words] if len(fields) == 1 else ["first and last word"]
        assert [row[0] for row in parts[0]] == [*words, "label bias", "logit p"]


def test_an_explanation_begins_with_plain_words(pipeline):
    explanation = explain(pipeline, TEXT, (4, 18))
    best = likeliest_labels(explanation)[0]
    # The last word speaks for the label, but not clearly.
    contributions = [[1, 3, 0.05] if number == best else [0, 0.5, 0] for number in range(len(explanation.labels))]
    said = in_plain_words(replace(explanation, span_stage=replace(explanation.span_stage, contributions=contributions)))
    assert said.startswith(f"These words speak most for {explanation.predicted}: “binds”, “gene”.")


def test_an_explanation_of_many_labels_shows_the_likeliest_and_counts_the_others(pipeline):
    explanation = explain(pipeline, TEXT, (4, 8))
    *labels, none = explanation.labels
    scores = StageScores(*([*values, *[values[-1]] * 6] for values in vars(explanation.span_stage).values()))
    labels += [none, *(f"L{number}" for number in range(6))]
    many = replace(explanation, labels=labels, span_stage=scores, cross_span_stage=None)
    figure = ElementTree.fromstring(show_explanation(many))
    head = ["".join(cell.itertext()) for cell in figure.iter("th") if cell.get("scope") == "col"]
    assert (head[0], len(head)) == (explanation.predicted, MOST_LABELS)
    assert "6 less likely labels are left out." in [note.text for note in figure.iter("p")]


def test_options_are_the_pipelines(visited, pipeline):
    visited.click("#options button")
    visited.click("#overlap label:has-text('share a word')")
    find(visited, TEXT)
    flat = pipeline(TEXT, overlap="flat")
    assert len(flat) < len(pipeline(TEXT))
    assert drawn_entities(visited) == as_drawn(flat)
    visited.fill("#threshold input[type=number]", "0.95")
    visited.press("#threshold input[type=number]", "Enter")
    assert pipeline(TEXT, threshold=0.95) == []
    find(visited, TEXT, "#drawing :text('No entities were found')")
    assert visited.text_content("#drawing .text") == TEXT
    assert visited.locator("#table tr").count() == 0
    visited.fill("#threshold input[type=number]", "0")
    visited.press("#threshold input[type=number]", "Enter")
    for choice in ("#overlap label:has-text('All of them')", "#options button"):
        visited.click(choice)


def test_the_download_is_the_result(visited, pipeline):
    find(visited, f"{TEXT} é 👩‍🔬")
    with visited.expect_download() as download:
        visited.click("#download")
    assert download.value.suggested_filename == "entities.html"
    document = Path(download.value.path()).read_text(encoding="utf-8")
    assert "👩‍🔬" in document
    assert all(f'data-label="{entity["entity_group"]}"' in document for entity in pipeline(TEXT))


def status(url: str, **request) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, **request)) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_nothing_but_the_page_is_served(address, models):
    with urllib.request.urlopen(f"{address}/gradio_api/info") as answer:
        assert json.load(answer) == {"named_endpoints": {}, "unnamed_endpoints": {}}
    for name in ("find", "explain"):  # only in turn, as the page itself asks
        call = {"data": b'{"data": []}', "headers": {"Content-Type": "application/json"}}
        assert status(f"{address}/gradio_api/run/{name}", **call) == 404
    for path in (models["tiny"] / "config.json", REPOSITORY / "setup.cfg", "/etc/passwd"):
        assert status(f"{address}/gradio_api/file={path}") in (403, 404)
    body = '--border\r\nContent-Disposition: form-data; name="files"; filename="f"\r\n\r\n\r\n--border--\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=border"}
    for upload in ("upload", "process_recording"):  # of an empty file
        assert status(f"{address}/gradio_api/{upload}", data=body.encode(), headers=headers) == 403
    too_long = {**headers, "Content-Length": "2500000"}  # refused before it is sent
    assert status(f"{address}/gradio_api/queue/join", data=b"{}", headers=too_long) == 413
    assert status(address, headers={"Host": address.removeprefix("http://")}) == 200
    assert status(address, headers={"Host": "evil.example:7860"}) == 400  # a website's name that leads here
    for path in ("docs", "redoc", "openapi.json", "monitoring"):
        assert status(f"{address}/{path}") in (403, 404)
    with urllib.request.urlopen(address) as answer:  # nor does it name another server, or a place on this machine
        document = answer.read().decode()
    for source in ("fonts.googleapis", "fonts.gstatic", "cdn.", "cdnjs", "unpkg", str(models["tiny"].parent)):
        assert source not in document
