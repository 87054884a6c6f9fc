"""The command line, `triaffine-ner COMMAND …`.

A command is a function with its name, whose parameters are the options and whose docstring is the help. The other
folders do the work; they are imported when the command runs, so that help and usage errors appear at once.
"""

import gc
import inspect
import os
import sys
from collections.abc import Sequence
from typing import Any

from ..errors import ending_plainly

PROGRAM = "triaffine-ner"
COMPLETION = "_TRIAFFINE_NER_COMPLETE"  # set by the shell when it requests completions


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line; a user's mistake ends the process with code 2 and a message of one paragraph."""
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    # By default, garbage collections take a seventh of a command's start: imports of torch and transformers make many
    # objects, and next to no garbage.
    gc.set_threshold(50_000)
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 - closed, as by `<&-`
    sys.stdout, sys.stderr = (each or open(os.devnull, "w") for each in (sys.stdout, sys.stderr))  # noqa: SIM115
    if not sys.stderr.isatty():  # bars of loading and downloading would fill a log
        for library in ("HF_HUB", "HF_DATASETS"):
            os.environ.setdefault(f"{library}_DISABLE_PROGRESS_BARS", "1")
    with ending_plainly():
        import typer

        application = build_application()
        try:
            if COMPLETION in os.environ:
                application.main(prog_name=PROGRAM, complete_var=COMPLETION)  # answers the shell, and exits
            with application.make_context(PROGRAM, given) as context:
                code = application.invoke(context)
        except typer.Exit as end:
            code = end.exit_code
        except typer.TyperException as error:
            context = getattr(error, "ctx", None)
            path = context.command_path if context else PROGRAM
            message = error.format_message().replace("Value error, ", "")  # of pydantic, which typer uses
            raise ValueError(f"{message}{'' if message[-1] in '.?' else '.'} See `{path} --help`.") from None
        if code:
            sys.exit(code)


def build_application() -> Any:
    """The group of all commands."""
    import typer

    from ..version import __version__
    from . import corpora, evaluate, predict, servers, sharing, train

    def print_version(wanted: bool) -> None:
        if wanted:
            print(f"{PROGRAM} {__version__}")
            raise typer.Exit

    application = typer.Typer(
        help="Nested named entity recognition with the triaffine mechanism.",
        epilog=f"`{PROGRAM} COMMAND --help` describes a command, with an example.",
        rich_markup_mode=None,  # plain text: for logs, screen readers, and a quick answer
        context_settings={"max_content_width": 120, "token_normalize_func": lambda name: name.replace("-", "_")},
    )

    @application.callback()
    def common(
        show: bool = typer.Option(False, "--version", is_eager=True, callback=print_version, help="Print the version."),
    ) -> None:
        """Options of the program itself."""

    for command in (
        *(train.train, evaluate.evaluate, predict.predict, predict.explain, evaluate.calibrate, corpora.statistics),
        *(corpora.convert, predict.tag, servers.serve, servers.page, sharing.publish, sharing.export),
    ):
        # The sign \b keeps the lines of an indented paragraph, which would else be wrapped.
        text = (inspect.getdoc(command) or "").replace("\n\n    ", "\n\n\b\n    ")
        kind = train.TrainCommand if command is train.train else None
        application.command(command.__name__, help=text, short_help=text.partition("\n")[0], cls=kind)(command)
    return typer.main.get_command(application)
