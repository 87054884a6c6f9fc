"""The model card: each block from what is known of a run, honest where nothing is, safe from what names may hold."""

import re
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard
from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine.evaluation.scores import summary_metrics
from modeling_triaffine.publishing import build_model_card
from modeling_triaffine.publishing.model_card import EPOCH_COLUMNS, code_block
from modeling_triaffine.publishing.run_summary import Example, RunSummary
from tests.helpers.cards import (
    NESTED,
    SENTENCE,
    cells,
    find,
    make_config,
    make_evaluation,
    make_row,
    make_summary,
    section,
)

NAME = "tester/nested-genia"
HOSTILE = "a|b`c``*_<script>\n---\n# d\r\n[x](y) $e$ www.f.org {{ name }} {% if %} \u2028 @g\n```\n~~~\n"
TITLES = ["Intended use", "Use", "Code", "Demo page and endpoint", "Labels", "Scores", "Model", "Training", "Citation"]


def make_card(summary: RunSummary | None = None, config: Any = None) -> ModelCard:
    return build_model_card(config or make_config(), model_name=NAME, summary=summary)


def without_code(text: str) -> str:
    """Markdown without its code blocks, as long as their fences may be."""
    return re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.contract
def test_a_card_with_its_metadata():
    """As recorded; after a wanted change, write `str(card)` to the file, and read what changed in it."""
    card, recorded = make_card(make_summary()), ModelCard.load(Path(__file__).parent / "card_of_a_run.md")
    assert card.text == recorded.text
    assert card.data.to_dict() == recorded.data.to_dict()


def test_without_a_run_nothing_is_claimed():
    card = make_card()
    assert card.data.to_dict().keys() == {"library_name", "pipeline_tag", "tags", "metrics"}
    assert section(card, "Scores") == "Not known: there are no numbers to show."
    for part in ("Epochs", "Hyper-parameters", "Hardware and versions"):
        assert section(card, part, "###") == "Not known."
    assert section(card, "Labels") == "3: `protein`, `cell_type`, `DNA`"
    opening = card.text.split("\n## ")[0]
    assert "There is no record of how this model was trained" in opening
    assert "```" not in opening
    assert not re.search(r"\d\.\d|%", re.sub(r"https?://\S+|2110\.07480|threshold=0\.9", "", card.text))
    assert re.findall(r"^## (.*)", card.text, re.MULTILINE) == TITLES


@pytest.mark.parametrize("title", ["Our minutes, 1990-2020", None])
def test_a_data_set_without_an_id_is_named_but_not_linked(title: str | None):
    card = make_card(make_summary(dataset=title))
    assert card.data.get("datasets") is None
    assert {result.dataset_name for result in card.data.eval_results} == {title or "unnamed data set"}
    named = f" of `{title}`" if title else ""
    assert section(card, "Scores").startswith(f"On the 1,854 sentences of the `test` split{named}. ")


def test_a_card_without_a_part_says_so():
    evaluation = make_evaluation(candidate_recall=None)
    without = make_summary(evaluation=evaluation, label_counts={"DNA": 1}, training_sentences=None)
    card = make_card(without)
    assert section(card, "Candidate recall", "###") == "Not measured."
    assert cells(section(card, "Labels")) == [["`protein`", "–"], ["`cell_type`", "–"], ["`DNA`", "1"]]
    choices = {"attention": "none", "scoring": "biaffine", "cross_span": False, "max_span_width": 8}
    filterless = make_card(without, make_config(**choices))
    assert "does not filter candidates" in section(filterless, "Candidate recall", "###")
    encoder, *parts = re.findall(r"^- [^:]*: (.*)", section(filterless, "Model"), re.MULTILINE)
    assert encoder == "[`tester/encoder`](https://huggingface.co/tester/encoder) (`bert`, 6 layers, 384 wide)"
    width = "width 320, no tensors"
    assert parts == ["`none`", "`biaffine`", "not used", width, "8 words", "1,234,567 parameters"]


def test_nested_output_is_preferred_and_what_the_code_prints(capsys: pytest.CaptureFixture):
    examples = [Example("Bare."), Example("A flat one.", [NESTED[1]]), Example(SENTENCE, NESTED)]
    use = section(make_card(make_summary(examples=examples)), "Use")
    code = find(r"```python\nfrom transformers import pipeline\n\nner = [^\n]*\n(text = .*?)\n\n", use)[1]
    exec(code, {"ner": {SENTENCE: NESTED}.get})
    assert capsys.readouterr().out == find(r"The loop prints:\n\n```text\n(.*?)```", use)[1]
    assert "4 13 DNA IL-2 gene\n4 8 protein IL-2\n" in use
    assert "The loop prints" not in section(make_card(make_summary(examples=[Example("Bare.")])), "Use")


def test_hostile_names_stay_in_their_cells():
    summary = make_summary(
        **dict.fromkeys(("dataset", "language", "license", "recipe"), HOSTILE),
        **{name: {HOSTILE: HOSTILE} for name in ("settings", "hardware", "versions")},
        evaluation=make_evaluation(HOSTILE, "DNA", split=HOSTILE, by_length={HOSTILE: make_row(1, 1, 1)}),
        label_counts={HOSTILE: 1, "DNA": 2},
        examples=[Example(HOSTILE, [{**NESTED[0], "entity_group": HOSTILE, "word": HOSTILE}])],
    )
    card = make_card(summary, make_config(HOSTILE, "DNA"))
    prose = without_code(card.text)
    assert re.findall(r"^## (.*)", prose, re.MULTILINE) == TITLES
    assert "<script>" not in prose
    assert "www.f" not in prose
    assert not re.search(r"^(~~~|```|---)", prose, re.MULTILINE)
    assert {len(row) for row in cells(section(card, "Scores"))} == {6}
    assert {len(row) for row in cells(section(card, "Labels"))} == {2}
    assert {len(row) for row in cells(section(card, "Training"))} == {len(EPOCH_COLUMNS) + len(summary_metrics()), 2}
    assert card.data.get("datasets") is None
    assert "{{ name }}" not in prose  # nor rendered, nor left for another renderer: its braces are references
    assert NAME not in section(card, "Labels") + section(card, "Scores")


text = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=30)


@given(content=st.lists(st.sampled_from(["```", "`", "~", "a", " ", "\n"]), max_size=20).map("".join))
def test_no_content_ends_its_code_block(content: str):
    first, *lines, last = code_block(content, "text").split("\n")
    fence = first.removesuffix("text")
    assert set(fence) == {"`"}
    assert last == fence
    assert "\n".join(lines) == content
    assert not any(line.strip().startswith(fence) for line in lines)


@given(sentence=text, dataset=text)
def test_metadata_survives_any_text_but_for_white_space(sentence: str, dataset: str):
    card = make_card(make_summary(dataset=dataset, examples=[Example(sentence)]))
    again = ModelCard(str(card))
    assert again.data.get("widget") == [{"text": " ".join(sentence.split())}]
    assert again.data.eval_results[0].dataset_name == (" ".join(dataset.split()) or "unnamed data set")
    assert again.text == card.text


def test_a_name_may_have_blanks_and_the_data_may_be_two_sets():
    card = build_model_card(make_config(), model_name="My NER model", summary=make_summary(dataset="a/b, a/c"))
    assert card.data.datasets == ["a/b", "a/c"]
    assert 'pipeline("token-classification", model="My NER model", trust_remote_code=True)' in card.text
    assert "triaffine-ner page --model 'My NER model'" in card.text


def test_a_base_model_is_on_the_hub():
    with pytest.raises(ValueError, match=r"\.\./encoder"):
        make_card(RunSummary(base_model="../encoder"))
