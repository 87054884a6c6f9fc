"""The page of predictions: what it counts, what it draws, and that it loads and runs nothing."""

import re

from modeling_triaffine import NestedNERPipeline
from modeling_triaffine.drawing import Drawing
from modeling_triaffine.drawing.predictions_page import MOST_NAMES, MOST_TEXTS, predictions_page


def entity(text, word, label):
    start = text.index(word)
    return {"entity_group": label, "start": start, "end": start + len(word), "score": 0.5, "word": word}


def cells(page):
    return re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", page)


def test_the_most_frequent_entities_of_each_label_are_counted():
    text = "Ana and Ion\nPop saw Orsk."
    found = [entity(text, "Ana", "PER"), entity(text, "Ion\nPop", "PER"), entity(text, "Orsk", "LOC")]
    page = predictions_page(iter([(text, found), (text, found[:1]), ("", [])]), "News")
    assert re.findall(r"<caption>(.*?)</caption>", page) == ["PER (3)", "LOC (1)"]
    assert cells(page) == ["Entity", "Times", "Ana", "2", "Ion Pop", "1", "Entity", "Times", "Orsk", "1"]
    assert "4 entities in 3 texts." in page
    assert page.count('<div class="nested-entities"><div class="text"') == 3
    assert page.count("<style>") == 1


def test_names_and_drawn_texts_are_limited_and_counts_are_not():
    names = [(f"n{number}", [{"type": "X", "start": 0, "end": 2}]) for number in range(10, MOST_TEXTS + 11)]
    numbered = [("ab", [{"type": letter, "start": 0, "end": 1}]) for letter in "YY"]
    page = predictions_page([(text, found) for text, found in [*names, *numbered]], "Many")
    assert page.count('<div class="text"') == MOST_TEXTS
    assert f"The first {MOST_TEXTS} texts are drawn" in page
    several = "".join(chr(97 + number) for number in range(MOST_NAMES + 2))
    page = predictions_page([(several, [{"type": "X", "start": n, "end": n + 1} for n in range(len(several))])], "Some")
    assert len(cells(page)) == 2 + 2 * MOST_NAMES


def test_nothing_of_a_text_is_markup_and_nothing_is_loaded():
    hostile = "<script>alert(1)</script><img src=//x>"
    page = predictions_page([(hostile, [{"type": hostile, "start": 0, "end": len(hostile)}])], hostile)
    assert not re.search(r"<(script|img|link)|url\(|@import", page)
    assert "default-src 'none'" in page


def test_a_pipeline_draws_a_text(saved_model):
    find_entities = NestedNERPipeline(str(saved_model))
    drawing = find_entities.draw("The mayor of Port Velmar resigned.", threshold=0.0)
    assert isinstance(drawing, Drawing)
    assert drawing.entities == find_entities("The mayor of Port Velmar resigned.", threshold=0.0)
    assert str(drawing).startswith("The mayor of Port Velmar resigned.\n")
    assert drawing._repr_html_().startswith('<div class="nested-entities"><style>')
