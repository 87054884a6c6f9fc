"""The command line, `triaffine-ner COMMAND …`: which commands there are, and how their mistakes are told.

A command is a module with a docstring (its help, with an example), `add_arguments(parser)` and `run(arguments)`. Only
the module that is asked for is imported. Options are spelled with dashes or underscores alike.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

from ..errors import ending_plainly
from ..version import __version__

PROGRAM = "triaffine-ner"


class Command(NamedTuple):
    module: str
    summary: str


COMMANDS = {
    "predict": Command("predict", "mark nested entities in texts"),
    "explain": Command("explain", "show why a span got its scores"),
    "evaluate": Command("evaluate", "score a model on a corpus"),
    "analyse": Command("analyse", "break the scores down by length, depth, label and candidates"),
    "statistics": Command("statistics", "count what a corpus holds"),
    "convert": Command("convert", "turn a corpus into JSON lines, IOB2 or brat's form"),
    "publish": Command("publish", "put a trained model on the Hub, or write its repository to a folder"),
    "demo": Command("demo", "serve a page to try a model in the browser"),
    "serve": Command("serve", "serve a model over HTTP"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command; a mistake of the user ends the process with code 2 and one paragraph on standard error."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] not in COMMANDS:
        parse_no_command(given)
        return
    name, *options = given
    with ending_plainly():
        module = importlib.import_module(f".{COMMANDS[name].module}", __name__)
        parser = argparse.ArgumentParser(
            prog=f"{PROGRAM} {name}",
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_arguments(parser)
        module.run(parser.parse_args([with_dashes(option) for option in options]))


def parse_no_command(given: Sequence[str]) -> None:
    """What is there besides commands: the list of them, the version, and the message about a name that is none."""
    listed = "\n".join(f"  {name:<12}{command.summary}" for name, command in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        usage="%(prog)s COMMAND [options]",
        description=f"Nested named entity recognition.\n\ncommands:\n{listed}",
        epilog=f"{PROGRAM} COMMAND --help tells more, with an example.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help=argparse.SUPPRESS)
    parser.parse_args(given[:1])


def with_dashes(option: str) -> str:
    """`--batch_size=3` as `--batch-size=3`; what is no option stays as it is."""
    name, equals, value = option.partition("=")
    return name.replace("_", "-") + equals + value if option.startswith("--") and " " not in name else option
