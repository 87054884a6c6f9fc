"""The typer application of all commands: their names, how options are read, and usage errors."""

import importlib
import inspect
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import typer
from typer.core import TyperCommand

from ..version import __version__

PROGRAM = "triaffine-ner"
COMPLETION = "_TRIAFFINE_NER_COMPLETE"  # set by the shell when it requests completions

# Command → its line in the list of all. The module of that name has the function `command`.
COMMANDS = {
    "train": "Train a model, score it and save it with its card.",
    "predict": "Find nested entities in texts.",
    "explain": "Show why a span got its scores.",
    "evaluate": "Score a model on a corpus.",
    "analyse": "Break scores down by length, depth, label and candidates.",
    "calibrate": "Tune thresholds by label, and the temperature of probabilities.",
    "statistics": "Count sentences, words and entities of a corpus.",
    "convert": "Convert a corpus to JSON lines, IOB2, brat, PubTator or BioC.",
    "tag": "Tag a corpus of many files with Ray.",
    "preannotate": "Write predictions for an annotation tool.",
    "publish": "Upload a model to the Hub, or write its repository to a folder.",
    "export": "Export a model to ONNX.",
    "convert-published": "Convert a checkpoint of the published implementation.",
    "page": "Serve a web page to try a model.",
    "serve": "Serve a model over HTTP.",
}
# Options whose value has parts, with an example: of two that are given, click drops the first.
ONCE = {"--threshold": "protein=0.4,DNA=0.6"}


def build_application(name: str | None = None) -> Any:
    """The group of all commands.

    Only the module of the command `name` is imported; the others are listed. None, for completion, imports all.
    """
    own_options = name is None or name.startswith("-")
    application = typer.Typer(
        help="Nested named entity recognition with the triaffine mechanism.",
        epilog=f"`{PROGRAM} COMMAND --help` describes a command, with an example.",
        rich_markup_mode=None,  # plain text: for logs, screen readers, and a quick answer
        # Reading the program's own options would take 0.2 s, since typer imports pydantic for them.
        add_help_option=own_options,
        add_completion=own_options,
        context_settings={"max_content_width": 100},
    )
    application.callback()(_common)
    for command, summary in COMMANDS.items():
        if name in (command, None):
            add_command(application, command, summary)
        else:
            application.command(command, short_help=summary)(_common)
    return typer.main.get_command(application)


def add_command(application: typer.Typer, name: str, summary: str) -> None:
    """Adds the function `command` of a module, whose docstring is the help."""
    module = importlib.import_module(f".{name.replace('-', '_')}", __package__)
    # click's sign \b keeps the lines of an indented paragraph, which would else be wrapped.
    text = re.sub(r"\n\n(?=    )", "\n\n\b\n", inspect.cleandoc(module.__doc__ or ""))
    settings = {"cls": Command, "help": text, "short_help": summary, **getattr(module, "SETTINGS", {})}
    application.command(name, **settings)(module.command)


def run(application: Any, arguments: Sequence[str]) -> None:
    """Runs the application, ends with the command's exit code, if any, and raises usage errors as ValueError.

    typer's own `main` prints them in another form, and ends with code 1 for a closed pipe.
    """
    try:
        with application.make_context(PROGRAM, list(arguments)) as context:
            code = application.invoke(context)
    except typer.Exit as end:
        code = end.exit_code
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else PROGRAM
        raise ValueError(f"{_describe(error)} See `{path} --help`.") from None
    if code:
        sys.exit(code)


def _describe(error: typer.TyperException) -> str:
    if near := getattr(error, "possibilities", None):
        return f"{error.message}. Did you mean {' or '.join(near)}?"
    message = error.format_message().replace("Value error, ", "")  # of pydantic, which typer reads choices with
    return message if message.endswith(("?", ".")) else f"{message}."


class Command(TyperCommand):
    """A command that takes `--batch_size` for `--batch-size`, and `--seeds 1 2` for `--seeds 1 --seeds 2`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        repeatable = {name for option in self.params if getattr(option, "multiple", False) for name in option.opts}
        words = list(self._normalized(ctx, args, repeatable))
        try:
            return super().parse_args(ctx, list(words))
        except typer.TyperException as error:
            last = next((word for word in reversed(words) if word.startswith("-")), "")
            arguments = " and ".join(option.name for option in self.params if option.param_type_name == "argument")
            # The error is about a value of the last option, or about an argument, which that option may have taken.
            about = "/".join(getattr(getattr(error, "param", None), "opts", ()))
            if last in repeatable and arguments and (about == last or not about.startswith("-")):
                remedy = f"{last} takes all that follows it: give {arguments} before it."
                raise ValueError(f"{_describe(error)} {remedy}") from None
            raise

    def _normalized(self, ctx: Any, arguments: Sequence[str], repeatable: Collection[str]) -> Iterator[str]:
        known = {name for option in self.params for name in (*option.opts, *option.secondary_opts)}
        given, given_before = iter(arguments), set[str]()
        option, values = "", 0  # the last option, and its number of values so far
        for argument in given:
            if argument == "--":
                yield from (argument, *given)
            elif argument.startswith("--"):
                name, equals, value = argument.partition("=")
                dashed = name.replace("_", "-")
                option, values = dashed if dashed in known else name, 0
                if option in given_before and option in ONCE:
                    raise typer.BadParameter(f"{option} is given twice; give one, such as {option} {ONCE[option]}", ctx)
                given_before.add(option)
                yield option + equals + value
            else:
                values += 1
                if option in repeatable and values > 1:
                    yield option
                yield argument


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"{PROGRAM} {__version__}")
        raise typer.Exit


def _common(
    version: bool = typer.Option(
        False, "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
    ),
) -> None:
    """Options of the program itself."""
