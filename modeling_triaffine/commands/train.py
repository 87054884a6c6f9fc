r"""Trains a model on a corpus, scores it, and saves it with its card.

    triaffine-ner train --recipe genia-minilm --train_file my_corpus/ --output_dir outputs/mine
    triaffine-ner train --recipe demo --train_file my_corpus/ --output_dir outputs/full --triaffine_rank none \
        --max_candidates 40
    accelerate launch --num_processes 2 -m modeling_triaffine.commands.train --recipe …  (several GPUs)

The command line overrides the recipe, and the recipe overrides the defaults below. An empty value (--word_vectors=)
restores the default. Options may be written with underscores or dashes. To resume an interrupted run, repeat the
command with --resume_from_checkpoint.

--help-all lists all options, including those inherited from transformers' TrainingArguments.
"""

import sys
from collections.abc import Iterable
from typing import Any

import typer
from typer.core import TyperCommand

from ..data.formats import FORMATS
from ..errors import ending_plainly
from ..model.options_triaffine import Option
from ..training.options import SECTIONS, TRAIN_OPTIONS
from .option_help import format_options

USAGE = "[--recipe NAME] --train_file PATH --output_dir FOLDER [OPTIONS]"


class Unparsed(TyperCommand):
    """A command that parses its arguments itself, so that its help needs no imports."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.args = args
        return args

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        from typer.core import CompletionItem  # type: ignore[attr-defined, unused-ignore]

        last = ctx.args[-1][2:].replace("-", "_") if ctx.args else ""
        choices = {**{name: known.choices for name, known in TRAIN_OPTIONS.items()}, "data_format": (*FORMATS,)}
        names = choices.get(last) or [f"--{name}" for name in TRAIN_OPTIONS]
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


SETTINGS = {"cls": Unparsed}


def command(context: typer.Context) -> None:
    if "--help" in context.args:
        print_help(context.command_path, TRAIN_OPTIONS.values(), f"\n{__doc__}")
        return
    if "--help-all" in context.args:
        from ..training.plan import training_options

        print_help(context.command_path, training_options().values())
        return
    from ..publishing.upload import NotPublishedError
    from ..training.interruptions import TrainingFault
    from ..training.run import prepare_run, start_logging, train_and_save

    start_logging()
    with ending_plainly(TrainingFault):
        run = prepare_run(context.args)
        try:
            train_and_save(run)
        except (TrainingFault, NotPublishedError):
            raise
        except (ValueError, OSError) as error:  # most mistakes of the user are found before the run starts
            raise RuntimeError(
                "Training stopped because of the error above. It is a fault of the program, or is due to an option of "
                "transformers that fails during training only."
            ) from error


def print_help(command_path: str, options: Iterable[Option], text: str = "") -> None:
    """Prints usage, the text, and the options by section."""
    print(f"Usage: {command_path} {USAGE}\n{text}")
    print(format_options(sorted(options, key=lambda option: SECTIONS.index(option.section))), end="")


if __name__ == "__main__":
    from modeling_triaffine.commands import main

    main(["train", *sys.argv[1:]])
