"""The model card: each block from what was given, honest where nothing was, and safe from what names may hold."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard, metadata_load
from hypothesis import given, settings
from hypothesis import strategies as st

from modeling_triaffine.publishing import build_model_card, save_model_card
from modeling_triaffine.publishing import model_card as module

NAME = "tester/nested-genia"
HOSTILE = "a|b`c``*_<script>\n---\n# d\r\n[x](y) $e$ www.f.org \u2028 @g"
NESTED = [
    {"entity_group": "DNA", "score": 0.987654, "word": "IL-2 gene", "start": 4, "end": 13},
    {"entity_group": "protein", "score": 0.5, "word": "IL-2", "start": 4, "end": 8},
]


def make_config(*labels: str, **changes: Any) -> SimpleNamespace:
    names = [*(labels or ("protein", "cell_type", "DNA")), "None"]
    choices = {"attention": "triaffine", "scoring": "triaffine", "cross_span": True, "triaffine_dim": 320}
    choices |= {"triaffine_rank": None, "max_candidates": 30, **changes}
    return SimpleNamespace(id2label=dict(enumerate(names)), **choices)


def make_row(correct: int, predicted: int, gold: int) -> dict[str, Any]:
    precision, recall = correct / predicted, correct / gold
    f1 = 2 * correct / (predicted + gold)
    counts = {"correct": correct, "predicted": predicted, "gold": gold}
    return {"precision": precision, "recall": recall, "f1": f1, **counts}


def make_scores(*labels: str) -> dict[str, Any]:
    by_label = {label: make_row(1, 2, 4) for label in labels or ("protein", "cell_type", "DNA")}
    return {**make_row(3, 4, 5), "by_label": by_label, "flat": make_row(2, 3, 3), "nested": make_row(1, 1, 2)}


def find(pattern: str, text: str) -> re.Match[str]:
    match = re.search(pattern, text, re.DOTALL | re.MULTILINE)
    assert match, f"{pattern} not found in:\n{text}"
    return match


def section(card: ModelCard, name: str) -> str:
    return find(rf"^## {name}\n\n(.*?)(?=\n\n## |\Z)", card.text)[1]


def cells(table: str) -> list[list[str]]:
    """The body of a Markdown table as GitHub splits it: at every "|" that no backslash precedes."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def test_metadata():
    card = build_model_card(
        make_config(),
        model_name=NAME,
        base_model="tester/encoder",
        dataset_name="tester/genia",
        language="en",
        license="apache-2.0",
        examples=[{"text": "The IL-2 gene."}, {"text": "Another."}],
    )
    metadata = yaml.safe_load(find(r"\A---\n(.*?)\n---\n", str(card))[1])
    assert metadata["library_name"] == "transformers"
    assert metadata["pipeline_tag"] == "token-classification"
    assert {"nested-ner", "triaffine"} <= set(metadata["tags"])
    assert metadata["metrics"] == ["precision", "recall", "f1"]
    assert (metadata["language"], metadata["license"]) == ("en", "apache-2.0")
    assert (metadata["base_model"], metadata["datasets"]) == ("tester/encoder", ["tester/genia"])
    assert metadata["widget"] == [{"text": "The IL-2 gene."}, {"text": "Another."}]
    assert "model-index" not in metadata


def test_nothing_is_claimed_that_was_not_given():
    card = build_model_card(make_config(), model_name=NAME)
    assert card.data.to_dict().keys() == {"library_name", "pipeline_tag", "tags", "metrics"}
    assert section(card, "Scores").startswith("Not trained yet")
    assert "## Training" not in card.text
    assert "Encoder" not in card.text
    assert not re.search(r"\b\d{1,3}\.\d", card.text)  # no score, no result of any kind
    assert "an illustration, not an output of this model" in card.text


def test_scores_stand_in_the_model_index(tmp_path: Path):
    scores = make_scores()
    card = build_model_card(make_config(), model_name=NAME, dataset_name="tester/genia", scores=scores)
    loaded = ModelCard.load(save_model_card(tmp_path, card))

    assert loaded.data.model_name == NAME
    assert {result.metric_type: result.metric_value for result in loaded.data.eval_results} == {
        metric: scores[metric] for metric in ("precision", "recall", "f1")
    }
    assert {result.task_type for result in loaded.data.eval_results} == {"token-classification"}
    assert {result.dataset_type for result in loaded.data.eval_results} == {"tester/genia"}


def test_scores_table():
    card = build_model_card(make_config(), model_name=NAME, dataset_name="genia", scores=make_scores())
    text = section(card, "Scores")
    assert text.startswith("On `genia`. In percent.")
    label = ["50.00", "25.00", "33.33", "1", "2", "4"]
    assert cells(text) == [
        ["all", "75.00", "60.00", "66.67", "3", "4", "5"],
        ["`protein`", *label],
        ["`cell_type`", *label],
        ["`DNA`", *label],
        ["flat", "66.67", "66.67", "66.67", "2", "3", "3"],
        ["nested", "100.00", "50.00", "66.67", "1", "1", "2"],
    ]


def test_labels_without_none():
    assert section(build_model_card(make_config(), model_name=NAME), "Labels") == "3: `protein`, `cell_type`, `DNA`"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["`triaffine`", "`triaffine`", "the 30 best spans of a sentence", "width 320, full tensors"]),
        ({"cross_span": False, "triaffine_rank": 64}, ["`triaffine`", "`triaffine`", "not used", "width 320, rank 64"]),
        (
            {"cross_span": False, "attention": "none", "scoring": "biaffine"},
            ["`none`", "`biaffine`", "not used", "width 320, full tensors"],
        ),
    ],
)
def test_model_table_says_what_is_used(changes: dict[str, Any], expected: list[str]):
    card = build_model_card(make_config(**changes), model_name=NAME, base_model="tester/encoder")
    encoder, *rows = cells(section(card, "Model"))
    assert encoder[1] == "[`tester/encoder`](https://huggingface.co/tester/encoder)"
    assert [value for _, value in rows] == expected


def test_loading_code_is_python_with_the_repository_in_it():
    use = section(build_model_card(make_config(), model_name=NAME), "Use")
    code = find(r"```python\n(from .*?)```", use)[1]
    compile(code, "card", "exec")
    for call in ("pipeline", "AutoModel.from_pretrained", "AutoProcessor.from_pretrained"):
        assert re.search(rf'{re.escape(call)}\(.*"{NAME}", trust_remote_code=True\)', code)


def test_nested_output_is_preferred_and_shown_as_given():
    flat = {"text": "A flat one.", "entities": [{**NESTED[1], "score": 0.25}]}
    examples: list[dict[str, Any]] = [{"text": "Bare."}, flat, {"text": "The IL-2 gene.", "entities": NESTED}]
    use = section(build_model_card(make_config(), model_name=NAME, examples=examples), "Use")
    question, answer = find(r">>> ner\((.*?)\)\n(\[.*?\])\n```", use).groups()
    assert ast.literal_eval(question) == "The IL-2 gene."
    assert ast.literal_eval(answer) == [{**NESTED[0], "score": 0.9877}, NESTED[1]]
    assert "illustration" not in use


def test_illustration_counts_its_characters_rightly():
    text = find(r'ner\("(.*?)"\)', module.ILLUSTRATION)[1]
    entities = re.findall(r"'word': '(.*?)', 'start': (\d+), 'end': (\d+)", module.ILLUSTRATION)
    assert [text[int(start) : int(end)] for _, start, end in entities] == [word for word, *_ in entities]
    assert len(entities) == 2


def test_training_table():
    training = {"learning_rate": 3e-5, "epochs": 15, "note": HOSTILE}
    rows = cells(section(build_model_card(make_config(), model_name=NAME, training=training), "Training"))
    assert rows[:2] == [["`learning_rate`", "`3e-05`"], ["`epochs`", "`15`"]]
    assert len(rows) == 3


def test_widget_and_citation_are_explained():
    card = build_model_card(make_config(), model_name=NAME)
    assert "does not run repositories with custom code" in section(card, "Hosted widget")
    citation = section(card, "Citation")
    for part in ("Yuan, Zheng and Tan, Chuanqi and Huang, Songfang and Huang, Fei", "2110.07480", "ACL 2022"):
        assert part in citation
    assert "2110.07480" in card.text.split("## ")[0]


def test_hostile_names_stay_in_their_cells():
    card = build_model_card(
        make_config(HOSTILE, "DNA"),
        model_name=NAME,
        dataset_name=HOSTILE,
        scores=make_scores(HOSTILE, "DNA"),
        examples=[{"text": HOSTILE, "entities": [{**NESTED[0], "entity_group": HOSTILE, "word": HOSTILE}]}],
    )
    headings = re.findall(r"^#+ (.*)", re.sub(r"```.*?\n```", "", card.text, flags=re.DOTALL), re.MULTILINE)
    assert headings == ["nested-genia", "Model", "Labels", "Scores", "Use", "Hosted widget", "Citation"]
    assert {len(row) for row in cells(section(card, "Scores"))} == {7}
    assert "<script>" not in section(card, "Labels") + section(card, "Scores")
    assert len(re.findall(r"^```", card.text, re.MULTILINE)) == 6
    assert card.data.get("widget") == [{"text": " ".join(HOSTILE.split())}]


text = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=30)


@given(name=text)
@settings(max_examples=100, deadline=None)
def test_any_name_becomes_one_inline_code(name: str):
    code = module._code(name)
    assert code.splitlines() == [code]
    plain, escaped = find(r"\A(?:`([\w .,:/+-]+)`|<code>((?:[^\W_]| |&#\d+;)*)</code>)\Z", code).groups()
    decoded = plain or re.sub(r"&#(\d+);", lambda match: chr(int(match[1])), escaped)
    assert decoded == " ".join(name.split())


@given(sentence=text, dataset=text.filter(bool))
@settings(max_examples=100, deadline=None)
def test_metadata_survives_any_text_but_for_white_space(sentence: str, dataset: str):
    given_texts: dict[str, Any] = {"dataset_name": dataset, "examples": [{"text": sentence}]}
    card = build_model_card(make_config(), model_name=NAME, scores=make_scores(), **given_texts)
    again = ModelCard(str(card))
    assert again.data.get("widget") == [{"text": " ".join(sentence.split())}]
    assert again.data.get("datasets") == [" ".join(dataset.split())]
    assert again.text == card.text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_name": "/home/tester/model"}, r"`model_name` is '/home/tester/model'.*Give an id"),
        ({"base_model": "../encoder"}, r"`base_model` is '../encoder'"),
        ({"examples": [{"text": "x"}, {"sentence": "y"}]}, r"`examples\[1\]` has no text"),
        ({"dataset_name": None}, "without `dataset_name`"),
        ({"scores": {}}, "lack 'by_label'"),
        ({"scores": {**make_scores(), "nested": {"f1": 0.5}}}, r"`scores\['nested'\]` lack precision, recall, correct"),
        ({"scores": {**make_scores(), "f1": 66.67}}, r"f1 = 66.67; give fractions"),
        ({"scores": {**make_scores(), "recall": float("nan")}}, r"recall = nan"),
    ],
)
def test_errors_name_the_argument(change: dict[str, Any], message: str):
    arguments = {"model_name": NAME, "dataset_name": "genia", "scores": make_scores(), **change}
    with pytest.raises(ValueError, match=message):
        build_model_card(make_config(), **arguments)


def test_saving_replaces_the_card_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "new" / "model"
    card = build_model_card(make_config(), model_name=NAME)
    assert save_model_card(folder, card) == folder / "README.md"
    assert (folder / "README.md").read_text(encoding="utf-8") == str(card)
    assert metadata_load(folder / "README.md") == card.data.to_dict()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(module.os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save_model_card(folder, build_model_card(make_config("other"), model_name=NAME))
    assert (folder / "README.md").read_text(encoding="utf-8") == str(card)
    assert [path.name for path in folder.iterdir()] == ["README.md"]
