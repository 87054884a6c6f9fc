r"""Trains a model on a corpus, scores it, and saves it with its card.

    triaffine-ner train --recipe genia-minilm --train_file my_corpus/ --output_dir outputs/mine
    triaffine-ner train --recipe demo --train_file my_corpus/ --output_dir outputs/full --triaffine_rank none \
        --max_candidates 40
    accelerate launch --num_processes 2 -m modeling_triaffine.commands.train --recipe …  (several GPUs)

The command line overrides the recipe, and the recipe the defaults below. An empty value (--word_vectors=) restores the
default. Options may be written with underscores or dashes. To resume an interrupted training, repeat the command with
--resume_from_checkpoint.

--help-all lists all options, including those inherited from transformers' TrainingArguments.
"""

import re
import sys
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from ..errors import ending_plainly


class Unparsed(TyperCommand):
    """A command that parses its arguments itself, so that its help needs no imports."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.args = args
        return args

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        from typer.core import CompletionItem  # type: ignore[attr-defined, unused-ignore]

        entries = re.findall(r"^  (--.*?)(?:  |$)", options_text(), re.MULTILINE)
        names = [name for entry in entries for name in re.findall(r"--\w+", entry)]
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


SETTINGS = {"cls": Unparsed}


def options_text() -> str:
    """The most important options, by subject; `training/command_line.py` reads their descriptions, too."""
    return (Path(__file__).parents[1] / "training" / "options.txt").read_text(encoding="utf-8")


def command(context: typer.Context) -> None:
    if "--help" in context.args:
        print(f"Usage: {context.command_path} [--recipe NAME] --train_file PATH --output_dir FOLDER [OPTIONS]\n")
        print(__doc__)
        print(options_text(), end="")
        return
    from ..publishing.upload import NotPublishedError
    from ..training.faults import TrainingFault
    from ..training.run import prepare_run, start_logging, train_and_save

    start_logging()
    arguments = ["--help" if argument == "--help-all" else argument for argument in context.args]
    with ending_plainly(TrainingFault):
        run = prepare_run(arguments)
        try:
            train_and_save(run)
        except (TrainingFault, NotPublishedError):
            raise
        except (ValueError, OSError) as error:  # a mistake of the user is found before the training
            raise RuntimeError("Training stopped at an error that is none of its options, data or machine.") from error


if __name__ == "__main__":
    from modeling_triaffine.commands import main

    main(["train", *sys.argv[1:]])
