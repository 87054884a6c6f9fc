"""The help of options from their declarations, for `train` and the pages of the documentation."""

from collections.abc import Mapping
from typing import Any

from ..model.options_triaffine import Option

METAVARS = {int: "N", float: "NUMBER", bool: "BOOL", str: "TEXT", object: "VALUE"}


def described(option: Option) -> str:
    """The meaning of an option, with that of its choices."""
    return option.doc + (f": {described_choices(option.meanings)}" if option.meanings else "") + "."


def describe(option: Option) -> str:
    """The meaning of an option, its choices, and its default."""
    text = described(option)
    default = as_written(option.default) if option.default is not None else option.unset
    if option.required:
        return f"{text} Required."
    return f"{text[:-1]} (default: {default})." if default and option.default is not False else text


def described_choices(meanings: Mapping[str, str]) -> str:
    """`a (its meaning), b or c`."""
    names = [f"{name} ({meaning})" if meaning else name for name, meaning in meanings.items()]
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def as_written(value: Any) -> str:
    """A value as on a command line: true, 3e-5, triaffine."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}".replace("e-0", "e-") if isinstance(value, float) else str(value)


def as_typed(option: Option) -> str:
    """The option and what stands for its value: `--threshold PROBABILITY`."""
    value = option.metavar or ("CHOICE" if option.meanings else METAVARS[option.type])
    value = f"[{value}]" if option.bare else value
    return f"--{option.name}" + ("" if option.type is bool and not option.default else f" {value}")
