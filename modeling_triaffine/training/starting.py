"""A recipe in Python: what a `NestedNERTrainer` starts from, for data sets that are loaded already.

`run.py` carries out the whole of a recipe, with files, scores and a model card.
"""

from collections.abc import Mapping
from dataclasses import fields
from os import PathLike, fspath
from typing import Any

from datasets import Dataset, DatasetDict

from ..model.modeling_triaffine import TriaffineForNestedNER
from ..model.processing_triaffine import TriaffineProcessor
from .arguments import DataArguments, NestedNERTrainingArguments
from .command_line import as_arguments, parse_training_plan
from .preparation import build_model, check_entities, label_names

# Options of `triaffine-ner train` that need the whole run, and what to use instead.
OF_A_RUN = {
    **{field.name: "the data sets are given to the trainer" for field in fields(DataArguments)},
    "resume_from_checkpoint": "pass it to `trainer.train`",
    "keep_labels": "use `triaffine-ner train`",
}


def start_from_recipe(
    recipe: str | PathLike[str],
    corpus: Mapping[str, Dataset],
    output_dir: str | PathLike[str],
    **options: Any,
) -> tuple[TriaffineForNestedNER, TriaffineProcessor, NestedNERTrainingArguments]:
    """Returns what a [`NestedNERTrainer`] needs to train a new model as a recipe says.

    Args:
        recipe: the name of a recipe of this package ("genia-minilm"), or the folder of another.
        corpus: data sets in the form of [`load_nested_ner`]; "train" decides on labels and vocabularies. A recipe with
            context needs data sets that went through `add_context`.
        output_dir: folder for checkpoints and the finished model.
        options: replace those of the recipe, None by the default: fields of [`TriaffineConfig`] and of
            [`NestedNERTrainingArguments`], and `model_name_or_path`, the encoder or a trained model.

    Returns:
        The model, its processor and the training arguments.

    Raises:
        CommandLineError, RecipeError: there is no such recipe or option, or its value is invalid.
        ValueError: an option applies to whole runs only, or there are no entities to learn.

    >>> corpus = load_nested_ner("my_corpus/")  # doctest: +SKIP
    >>> model, processor, arguments = start_from_recipe("genia-minilm", corpus, "outputs/mine")  # doctest: +SKIP
    """
    for name in options:
        if name in OF_A_RUN:
            raise ValueError(f"start_from_recipe does not take {name!r}: {OF_A_RUN[name]}.")
    given = {"recipe": fspath(recipe), "output_dir": fspath(output_dir), **options}
    plan = parse_training_plan([argument for name, value in given.items() for argument in as_arguments(name, value)])
    if "train" not in corpus:
        raise ValueError(f"`corpus` has the splits {sorted(corpus)}, but no 'train', which a new model is made for.")
    splits = DatasetDict(corpus)
    model, processor = build_model(plan, splits, label_names(splits["train"]))
    check_entities(model.config, splits)
    return model, processor, plan.training
