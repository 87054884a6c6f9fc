"""The help of options, from their declarations."""

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from ..model.options_triaffine import Option

WIDTH = 120
COLUMN = 35  # where descriptions begin
METAVARS = {int: "N", float: "NUMBER", bool: "BOOL", str: "TEXT", object: "VALUE"}


def describe(option: Option) -> str:
    """The meaning of an option, its choices, and its default."""
    text = option.doc + (f": {described_choices(option.meanings)}" if option.meanings else "")
    default = as_written(option.default) if option.default is not None else option.unset
    if option.required:
        return f"{text}. Required."
    return f"{text} (default: {default})." if default and option.default is not False else f"{text}."


def described_choices(meanings: Mapping[str, str]) -> str:
    """`a (its meaning), b or c`."""
    names = [f"{name} ({meaning})" if meaning else name for name, meaning in meanings.items()]
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def as_written(value: Any) -> str:
    """A value as on a command line: true, 3e-5, triaffine."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}".replace("e-0", "e-") if isinstance(value, float) else str(value)


def format_options(options: Iterable[Option]) -> str:
    """The options below the headings of their sections, in the order in which the sections first come."""
    sections: dict[str, list[str]] = {}
    for option in options:
        sections.setdefault(option.section, []).append(_entry(option))
    return "\n".join(f"{section}\n{''.join(entries)}" for section, entries in sections.items())


def as_typed(option: Option) -> str:
    """The option and what stands for its value: `--threshold PROBABILITY`."""
    value = option.metavar or ("CHOICE" if option.meanings else METAVARS[option.type])
    value = f"[{value}]" if option.bare else f"{value} …" if option.many else value
    is_flag = option.type is bool and not option.default
    return f"--{option.name}" + ("" if is_flag else f" {value}")


def _entry(option: Option) -> str:
    name = f"  {as_typed(option)}"
    lines = textwrap.wrap(describe(option), WIDTH - COLUMN, break_on_hyphens=False)
    first = f"{name:<{COLUMN}}{lines[0]}" if len(name) < COLUMN - 1 else f"{name}\n{'':<{COLUMN}}{lines[0]}"
    return "\n".join([first, *(f"{'':<{COLUMN}}{line}" for line in lines[1:])]) + "\n"
