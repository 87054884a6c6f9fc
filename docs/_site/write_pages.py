"""Writes what the documentation says of options and commands from their declarations. Run it after a change of one.

python docs/_site/write_pages.py
"""

import re
from collections.abc import Callable, Iterable
from inspect import cleandoc
from itertools import chain
from pathlib import Path
from typing import Any

from modeling_triaffine.commands import PROGRAM, build_application
from modeling_triaffine.commands.options import as_typed, as_written, describe
from modeling_triaffine.files import write_text
from modeling_triaffine.model.options_triaffine import (
    MODEL_OPTIONS,
    PREDICTION_OPTIONS,
    PROCESSOR_OPTIONS,
    TYPE_NAMES,
    Option,
)
from modeling_triaffine.training.options import INHERITED, MODEL, SECTIONS
from modeling_triaffine.training.plan import training_options

DOCS = Path(__file__).resolve().parents[1]
GUIDE = re.compile(r"\bdocs/(\w+\.md)")  # named in a help text

COMMANDS_PAGE = f"""# Reference of the commands

Every command of `{PROGRAM}`, as `{PROGRAM} COMMAND --help` describes it. Options may be written with dashes or
underscores. A command ends with code 0, or prints one paragraph on what is wrong and ends with another code.
"""
OPTIONS_PAGE = """# Reference of the options of training

All options of [`triaffine-ner train`](commands.md#train). Give them on the command line (`--num_train_epochs 10`), in a
recipe's `training.yaml` (`num_train_epochs: 10`), or to `start_from_recipe` and `NestedNERTrainingArguments` as
keywords. The command line overrides the recipe, and the recipe the defaults given here. For an option without a value,
its paragraph says what the default means; on the command line, an empty value (`--word_vectors=`) restores it.
"""
CONFIGURATION_PAGE = """# Reference of the configuration

Settings of a model and of prediction. The value None is written `none` on the command line and `null` in JSON; if an
option can be None, its paragraph says what that means.
"""
MODEL_SECTION = """## Model

Fields of [`TriaffineConfig`](python.md#modeling_triaffine.TriaffineConfig): in Python
(`TriaffineConfig(max_candidates=40)`), in the `config.json` of a recipe or a model, and as options of training
(`--max_candidates 40`). Letters of ablations are those of the paper.
"""
PROCESSOR_SECTION = """## Words and sentences

Fields of [`TriaffineProcessor`](python.md#modeling_triaffine.TriaffineProcessor), in a model's `processor_config.json`,
and the splitters options of training.
"""
PREDICTION_SECTION = """## Prediction

Arguments of [`NestedNERPipeline`](python.md#modeling_triaffine.NestedNERPipeline), and options of the
[commands](commands.md) that predict (`--batch-size 32`).
"""


def commands() -> str:
    """All commands with their options, as their help lists them; those of `train` have a page of their own."""
    group = build_application()
    context = group.make_context(PROGRAM, [], resilient_parsing=True)
    known = {name: group.get_command(context, name) for name in group.list_commands(context)}
    summaries = [f"| [`{name}`](#{name}) | {command.short_help} |\n" for name, command in known.items()]
    table = "| Command | What it does |\n|---|---|\n" + "".join(summaries)
    return "\n".join([COMMANDS_PAGE, table, *(_command(command, context) for command in known.values())])


def _command(command: Any, parent: Any) -> str:
    context = command.make_context(command.name, [], parent=parent, resilient_parsing=True)
    if command.name == "train":
        lines = ["Its options have [a page of their own](options.md).\n"]
    else:
        records = (parameter.get_help_record(context) for parameter in command.params)
        # Two brackets side by side would be a link in Markdown.
        lines = [
            f"- `{typed}`: {' '.join(text.split()).replace('] [', '; ')}\n" for typed, text in filter(None, records)
        ]
    help_text = GUIDE.sub(r"[\1](../\1)", cleandoc(command.help).replace("\b\n", ""))
    return f"## {command.name}\n\n{help_text}\n\n{''.join(lines)}"


def _line(option: Option) -> str:
    return f"- `{as_typed(option)}`: {describe(option)}\n" if option.doc else f"- `{as_typed(option)}`\n"


def training() -> str:
    """The options of training by the sections of their help; the model's are on the page of the configuration."""
    sections: dict[str, list[Option]] = {section: [] for section in SECTIONS}
    for option in training_options().values():
        if option.name not in MODEL_OPTIONS:
            sections[option.section].append(option)
    return "\n".join([OPTIONS_PAGE, *(_section(name, options) for name, options in sections.items())])


def _section(name: str, options: Iterable[Option]) -> str:
    if name == INHERITED:
        link = "https://huggingface.co/docs/transformers/main_classes/trainer#transformers.TrainingArguments"
        return f"## {name}\n\nIn the words of [its documentation]({link}).\n\n{''.join(map(_line, options))}"
    also = "All fields of the [configuration](configuration.md) are options, too.\n\n" if name == MODEL else ""
    return f"## {name}\n\n{also}" + "\n".join(_entry(option, f"--{option.name}") for option in options)


def configuration() -> str:
    """The options of model, processor and prediction."""
    parts = {
        MODEL_SECTION: MODEL_OPTIONS.values(),
        PROCESSOR_SECTION: PROCESSOR_OPTIONS.values(),
        PREDICTION_SECTION: PREDICTION_OPTIONS.values(),
    }
    entries = ([intro, *(_entry(option, option.name) for option in options)] for intro, options in parts.items())
    return "\n".join([CONFIGURATION_PAGE, *chain.from_iterable(entries)])


def _entry(option: Option, name: str) -> str:
    """A heading, so that a search for the name finds it; meaning, default and values."""
    meanings = [f"- `{value}`{f': {meaning}' if meaning else ''}\n" for value, meaning in option.meanings.items()]
    choices = "\n" + "".join(meanings) if meanings else ""
    default = f"`{as_written(option.default)}`" if option.default is not None else option.unset or "not set"
    required = "required" if option.required else f"default: {default}"
    values = (
        "one of these" if meanings else " ".join(filter(None, [TYPE_NAMES.get(option.type, "a list"), option.bounds]))
    )
    return f"### `{name}`\n\n{option.doc}.\n\n*{values[0].upper()}{values[1:]}; {required}.*\n{choices}"


PAGES: dict[str, Callable[[], str]] = {
    "reference/commands.md": commands,
    "reference/configuration.md": configuration,
    "reference/options.md": training,
}
"""Page → its text as it should be."""


def main() -> None:
    for name, text in PAGES.items():
        write_text(DOCS / name, text())


if __name__ == "__main__":
    main()
