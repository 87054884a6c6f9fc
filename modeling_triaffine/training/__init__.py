"""Training: the trainer, its arguments and parameter groups, recipes, and what a run of `triaffine-ner train` does.

A run is read from the command line (`command_line.py`, `recipes.py`), prepared (`preparation.py`), and carried out
(`run.py`) by the trainer (`trainer.py`), whose folders on disk are whole or not there (`checkpoints.py`). What can
stop it is told by `faults.py`.
"""

from .arguments import NestedNERTrainingArguments
from .trainer import NestedNERTrainer

__all__ = ["NestedNERTrainer", "NestedNERTrainingArguments"]
