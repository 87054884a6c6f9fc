"""`train`: the command whose options `training/` declares and reads."""

import sys
from collections.abc import Iterable
from itertools import groupby
from typing import Any

import typer
from typer.core import TyperCommand

from ..data.formats import FORMATS
from ..errors import ending_plainly
from ..model.options_triaffine import Option
from ..training.options import SECTIONS, TRAIN_OPTIONS
from .options import as_typed, describe


class TrainCommand(TyperCommand):
    """Passes all arguments on, and lists the options of `training/` in its help and to the shell."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.args = args
        if "--help" in args or "--help-all" in args:
            print(ctx.get_help())
            ctx.exit()
        return args

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[--recipe NAME] --train_file PATH --output_dir FOLDER [OPTIONS]"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        options: Iterable[Option] = TRAIN_OPTIONS.values()
        if "--help-all" in ctx.args:
            from ..training.plan import training_options

            options = training_options().values()
        in_order = sorted(options, key=lambda option: SECTIONS.index(option.section))
        for section, of_section in groupby(in_order, key=lambda option: option.section):
            with formatter.section(section):
                formatter.write_dl([(as_typed(option), describe(option)) for option in of_section])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        from typer.core import CompletionItem  # type: ignore[attr-defined, unused-ignore]

        last = ctx.args[-1][2:].replace("-", "_") if ctx.args else ""
        choices = {**{name: known.choices for name, known in TRAIN_OPTIONS.items()}, "data_format": (*FORMATS,)}
        names = choices.get(last) or [f"--{name}" for name in TRAIN_OPTIONS]
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def train(context: typer.Context) -> None:
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
    from ..training.interruptions import TrainingFault
    from ..training.run import prepare_run, start_logging, train_and_save

    with ending_plainly(TrainingFault):
        start_logging()
        train_and_save(prepare_run(context.args))


if __name__ == "__main__":
    from modeling_triaffine.commands import main

    main(["train", *sys.argv[1:]])
