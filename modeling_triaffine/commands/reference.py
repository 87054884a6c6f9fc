"""A list of all options of all commands, for their documentation."""

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from typer.models import ArgumentInfo, OptionInfo

from ..model.options_triaffine import Option
from .application import COMMANDS
from .option_help import described_choices

UNSET = "  [default: "  # in the help of an option without a value of its own


@dataclass(frozen=True)
class CommandReference:
    """A command, with all that it takes.

    Attributes:
        summary: its line in the list of commands.
        help: what it does, with examples.
        arguments: what it takes without a name, in order.
        options: what it takes by name, as typed behind the dashes.
    """

    name: str
    summary: str
    help: str
    arguments: tuple[Option, ...]
    options: tuple[Option, ...]


def describe_commands() -> list[CommandReference]:
    """All commands, with default, bounds, choices and meaning of all their options; imports torch and transformers."""
    from ..training.plan import training_options

    described = []
    for name, summary in COMMANDS.items():
        module = import_module(f".{name.replace('-', '_')}", __package__)
        arguments, options = command_options(module.command)
        options = tuple(training_options().values()) if name == "train" else options
        described.append(CommandReference(name, summary, inspect.cleandoc(module.__doc__ or ""), arguments, options))
    return described


def command_options(command: Any) -> tuple[tuple[Option, ...], tuple[Option, ...]]:
    """The arguments and the options of a command's function."""
    arguments: list[Option] = []
    options: list[Option] = []
    for parameter in inspect.signature(command).parameters.values():
        if get_origin(parameter.annotation) is Annotated:
            info = get_args(parameter.annotation)[1]
            into = arguments if isinstance(info, ArgumentInfo) else options
            into.append(_read_parameter(parameter, info))
    return tuple(arguments), tuple(options)


def _read_parameter(parameter: inspect.Parameter, info: ArgumentInfo | OptionInfo) -> Option:
    annotation = get_args(parameter.annotation)[0]
    doc, _, unset = (info.help or "").partition(UNSET)
    meanings: Mapping[str, str] = getattr(info.parser, "known", dict)()
    if meanings:
        doc = doc.removesuffix(f": {described_choices(meanings)}.")
    kinds = [kind for kind in get_args(annotation) or [annotation] if kind is not NoneType]
    many = next((kind for kind in kinds if get_origin(kind) in (list, tuple)), None)
    plain = get_args(many)[0] if many else kinds[0]
    default = None if parameter.default is inspect.Parameter.empty else parameter.default
    # typer takes what comes first in `typer.Option("--format", …)` for a default.
    given = map(str, (info.default, *(info.param_decls or ())))
    spellings = [name for name in given if name.startswith("-")]
    return Option(
        (spellings or [parameter.name.replace("_", "-")])[0].lstrip("-").partition("/")[0],
        str if meanings or plain is Path else plain if plain in (int, float, bool, str) else object,
        str(default) if isinstance(default, Path) else default,
        doc.removesuffix("."),
        meanings,
        least=-math.inf if info.min is None else info.min,
        most=math.inf if info.max is None else info.max,
        optional=default is None,
        unset=unset.removesuffix("]"),
        metavar=(info.metavar or "").removesuffix(" …"),  # help adds it
        many=many is not None,
        required=parameter.default is inspect.Parameter.empty,
    )
