"""The declarations of options: which values each allows, and how errors say what to give."""

import dataclasses

import pytest

from modeling_triaffine import TriaffineConfig
from modeling_triaffine.model.options_triaffine import MODEL_OPTIONS, ModelOptions, option, options_of


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
        ("share", [0, 0.99], {1.0: "at least 0 and below 1", float("nan"): "at least 0 and below 1", "0": "a number"}),
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
