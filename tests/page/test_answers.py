"""What the page answers, without a browser: limits, and text that browsers cannot display."""

import pytest

pytest.importorskip("gradio", reason="needs the extra demo")

from modeling_triaffine import NestedNERPipeline
from modeling_triaffine.explanation import explain
from modeling_triaffine.page.answers import LONGEST_TEXT, explain_entity, find_entities, mark_text
from modeling_triaffine.page.explained import show_explanation


class Unavailable:
    """Models of which none can be loaded."""

    def pipeline(self, name):
        raise ValueError(f"{name} is gone")


def test_only_a_longer_text_than_the_limit_is_refused():
    for length, said in ((LONGEST_TEXT, "tiny is gone"), (LONGEST_TEXT + 1, f"the limit is {LONGEST_TEXT:,}")):
        answer = find_entities(Unavailable(), "tiny", "x" * length, None, "all", lambda done, total: None)
        assert said in answer.drawing


def test_lone_surrogates_become_replacement_characters(saved_model):
    pipeline = NestedNERPipeline(model=str(saved_model))
    assert mark_text(pipeline, "tiny", "a \ud800 gene", None, "all", lambda done, total: None).text == "a \ufffd gene"


def test_an_entity_is_explained_by_the_threshold_that_found_it(saved_model):
    class Offered:
        def pipeline(self, name):
            return NestedNERPipeline(model=str(saved_model))

    text = "a gene binds"
    marked = mark_text(Offered().pipeline("tiny"), "tiny", text, 0.05, "all", lambda done, total: None)
    assert marked.entities
    for entity in marked.entities:
        explanation = explain(Offered().pipeline("tiny"), text, (entity["start"], entity["end"]), 0.05)
        assert entity["entity_group"] in {explanation.predicted, *explanation.also_predicted}
        assert explain_entity(Offered(), marked, entity["start"], entity["end"]) == show_explanation(explanation)
