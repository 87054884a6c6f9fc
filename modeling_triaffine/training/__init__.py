"""Training: the trainer, its arguments and parameter groups, recipes, and what a run of `triaffine-ner train` does.

The command line and a recipe (`command_line.py`, `recipes.py`) define a run; `preparation.py` builds data and model,
`run.py` trains, scores and saves with the trainer (`trainer.py`, whose optimizer is in `optimization.py`).
`callbacks.py` acts at its events, `checkpoints.py` finds undamaged checkpoints, and `faults.py` explains what can stop
a training. `ablations.py` trains the paper's ablations and tabulates their scores.
"""

from .arguments import NestedNERTrainingArguments
from .own_metrics import EntityPrediction
from .preparation import start_from_recipe
from .trainer import NestedNERTrainer

__all__ = ["EntityPrediction", "NestedNERTrainer", "NestedNERTrainingArguments", "start_from_recipe"]
