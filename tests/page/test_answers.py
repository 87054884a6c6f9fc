"""What the page answers, without a browser: limits, and text that browsers cannot display."""

import pytest

pytest.importorskip("gradio", reason="needs the extra demo")

from modeling_triaffine import NestedNERPipeline
from modeling_triaffine.explanation import explain
from modeling_triaffine.page.answers import LONGEST_TEXT, explain_entity, find_entities
from modeling_triaffine.page.explained import show_explanation
from tests.helpers.portable import near


class Unavailable:
    """Models of which none can be loaded."""

    def pipeline(self, name):
        raise ValueError(f"{name} is gone")


def test_only_a_longer_text_than_the_limit_is_refused():
    for length, said in ((LONGEST_TEXT, "tiny is gone"), (LONGEST_TEXT + 1, f"the limit is {LONGEST_TEXT:,}")):
        answer = find_entities(Unavailable(), "tiny", "x" * length, None, "all", lambda done, total: None)
        assert said in answer.drawing


class Offered:
    def __init__(self, folder):
        self.folder = folder

    def pipeline(self, name):
        return NestedNERPipeline(model=str(self.folder))


def test_lone_surrogates_become_replacement_characters(saved_model):
    answer = find_entities(Offered(saved_model), "tiny", "a \ud800 gene", None, "all", lambda done, total: None)
    assert answer.marked.text == "a \ufffd gene"


def test_progress_counts_sentences(saved_model):
    seen = []
    text = "The gene binds. " * 40
    answer = find_entities(Offered(saved_model), "tiny", text, None, "all", lambda *progress: seen.append(progress))
    assert answer.marked.entities == near(Offered(saved_model).pipeline("tiny")(text))
    assert {total for _, total in seen} == {40}
    steps = [sentences for sentences, _ in seen]
    assert steps == sorted(set(steps))
    assert len(steps) > 1
    assert steps[-1] == 40


def test_an_entity_is_explained_by_the_threshold_that_found_it(saved_model):
    text = "a gene binds"
    marked = find_entities(Offered(saved_model), "tiny", text, 0.05, "all", lambda done, total: None).marked
    assert marked.entities
    for entity in marked.entities:
        explanation = explain(Offered(saved_model).pipeline("tiny"), text, (entity["start"], entity["end"]), 0.05)
        assert entity["entity_group"] in {explanation.predicted, *explanation.also_predicted}
        expected = show_explanation(explanation)
        assert explain_entity(Offered(saved_model), marked, entity["start"], entity["end"]) == expected
