"""The declarations of options: which values each allows, and how errors say what to give."""

import dataclasses
from typing import Any

import pytest
import torch

from modeling_triaffine import TriaffineConfig
from modeling_triaffine.model.options_triaffine import MODEL_OPTIONS, ModelOptions, option, options_of
from tests.helpers.tiny import tiny_model, tiny_processor


@dataclasses.dataclass
class Examples:
    whole: int = option(3, "A size", least=1, most=8)
    share: float | int = option(0.5, "A share", least=0, below=1)
    count: int | None = option(None, "A count", least=0)
    switch: bool = option(True, "A switch")
    name: str | None = option(None, "A name")
    way: str = option("a", "A way", {"a": "one", "b": "other"})
    undeclared: int = 0


OPTIONS = options_of(Examples)


@pytest.mark.contract
@pytest.mark.parametrize(
    ("name", "allowed", "refused"),
    [
        ("whole", [1, 8], {0: "from 1 to 8", 9: "from 1 to 8", 2.0: "a whole number", True: "a whole number"}),
        (
            "share",
            [0, 0.99],
            {1.0: "at least 0 and below 1", float("nan"): "at least 0 and below 1", "0.1": "a number"},
        ),
        ("count", [0, 10**9, None], {-1: "at least 0", 1.5: "a whole number"}),
        ("switch", [True, False], {1: "true or false", "true": "true or false", None: "true or false"}),
        ("name", ["", "x", None], {3: "a string", ("x",): "a string"}),
    ],
)
def test_an_option_allows_its_type_within_its_bounds(name, allowed, refused):
    assert [value for value in allowed if OPTIONS[name].problem(value)] == []
    for value, expected in refused.items():
        assert OPTIONS[name].problem(value) == f"it must be {expected}."


@pytest.mark.contract
@pytest.mark.parametrize("value", ["c", "", None, 3, ["a"]])
def test_an_option_allows_its_choices(value):
    assert OPTIONS["way"].problem(value) == "choose one of 'a', 'b'."
    assert not any(map(OPTIONS["way"].problem, "ab"))


@pytest.mark.contract
def test_every_option_of_the_model_is_a_field_of_the_configuration_with_its_default():
    assert [*MODEL_OPTIONS] == [field.name for field in dataclasses.fields(ModelOptions)]
    config = TriaffineConfig()
    assert {name: getattr(config, name) for name in MODEL_OPTIONS} == {
        name: option.default for name, option in MODEL_OPTIONS.items()
    }


# Of other options, what a choice may need beside it.
COMPANIONS: list[dict[str, Any]] = [
    {},
    {"share_triaffine": False},
    {"cross_span": False, "attention": "none"},
    {"cross_span": False, "scoring": "biaffine"},
]


def companions(name: str, choice: str) -> dict[str, Any]:
    for fields in COMPANIONS:
        try:
            TriaffineConfig(num_labels=3, **{**fields, name: choice})
            return fields
        except ValueError:
            pass
    pytest.fail(f"No configuration has {name}={choice!r}; name in COMPANIONS what it needs.")


def loss_and_scores(encoder: str, name: str, choice: str) -> list[float]:
    """Of a model with the choice, all else as small as it may be, on two sentences."""
    processor = tiny_processor(encoder, context=choice if name == "context" else "none")
    processor.build_vocabularies([{"tokens": ["gene", "binds", "protein"]}], ["chars"])
    chars = {"char_vocab_size": len(processor.vocabularies["chars"]), "char_embedding_size": 4}
    fields = {**companions(name, choice), name: choice}
    model = tiny_model(encoder, seed=1, char_lstm_hidden_size=2, **{**chars, **fields})
    batch = processor.pad([feature for feature, _ in processor.encode_text("protein gene. The gene binds a protein.")])
    size = int(batch["num_words"].max())
    words = torch.arange(size)
    is_span = (words[:, None] <= words) & (words < batch["num_words"][:, None, None])
    labels = torch.where(is_span, torch.tensor(model.config.label2id["None"]), torch.tensor(-100))
    output = model(**batch, labels=labels)
    scores = output.span_logits if output.logits is None else output.logits
    return [output.loss.item(), scores[scores.isfinite()].abs().mean().item()]


@pytest.mark.parametrize("name", [name for name, known in MODEL_OPTIONS.items() if known.choices])
def test_every_choice_of_the_model_makes_another_loss_or_other_scores(encoder, name):
    """A choice that is declared and does nothing would be found by nobody."""
    found = {choice: loss_and_scores(encoder, name, choice) for choice in MODEL_OPTIONS[name].choices}
    for choice, values in found.items():
        same = [other for other in found if other != choice and found[other] == pytest.approx(values, rel=1e-6)]
        assert same == [], f"{name}={choice!r} is {same}"
