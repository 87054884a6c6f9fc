"""Training: the trainer, its arguments and parameter groups, recipes, and what a run of `triaffine-ner train` does.

The command line and a recipe define a plan (`plan.py`), which `run.py` carries out from top to bottom: `corpora.py`
reads its data, `start.py` makes or loads its model, the trainer (`trainer.py`, whose optimizer is in
`optimization.py`) trains and scores it, and `facts.py` collects what its card says. `callbacks.py` acts at the
trainer's events, `interruptions.py` explains what can stop a run and finds the checkpoint to resume from.
`ablations.py` trains the paper's ablations and tabulates their scores.

The public names are imported when they are first used: `options.py`, which declares the options, needs no library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .arguments import NestedNERTrainingArguments
    from .scoring_trainer import EntityPrediction
    from .start import start_from_recipe
    from .trainer import NestedNERTrainer

__all__ = ["EntityPrediction", "NestedNERTrainer", "NestedNERTrainingArguments", "start_from_recipe"]

_MODULES = {
    "EntityPrediction": "scoring_trainer",
    "NestedNERTrainer": "trainer",
    "NestedNERTrainingArguments": "arguments",
    "start_from_recipe": "start",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
