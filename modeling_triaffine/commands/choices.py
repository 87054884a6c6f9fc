"""Options that take one of several names, each with a meaning: `--to brat`, `--overlap nested`."""

from collections.abc import Callable, Mapping
from typing import Any

import typer

from .option_help import described_choices

Meanings = Mapping[str, str]


class Choice:
    """Reads one of the names, as typer's `parser`.

    Args:
        known: the names that there are, with what they mean, when help or a value needs them: a register may grow.
    """

    def __init__(self, known: Callable[[], Meanings]):
        self.known = known

    def __call__(self, name: str) -> str:
        if name not in self.known():
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, self.known()))}.")
        return name


def choice(
    doc: str, known: Meanings | Callable[[], Meanings], *spellings: str, unset: str = "", metavar: str = "NAME"
) -> Any:
    """An option (`typer.Option`) whose value is a name; its help says what each means, and what no value means."""
    reader = Choice(known if callable(known) else lambda: known)
    default = f"  [default: {unset}]" if unset else ""
    return typer.Option(
        *spellings,
        parser=reader,
        autocompletion=lambda: [*reader.known()],
        help=f"{doc}: {described_choices(reader.known())}.{default}",
        metavar=metavar,
    )
