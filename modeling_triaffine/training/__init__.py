"""Training: the trainer, its arguments and parameter groups, recipes, and what a run of `triaffine-ner train` does.

A run is read from the command line (`command_line.py`, `recipes.py`), prepared (`preparation.py`), and carried out
(`run.py`) by the trainer (`trainer.py`), which resumes from undamaged checkpoints (`checkpoints.py`). `starting.py`
prepares the trainer alone, from Python. `faults.py` lists what can stop a run.
"""

from .arguments import NestedNERTrainingArguments
from .starting import start_from_recipe
from .trainer import NestedNERTrainer

__all__ = ["NestedNERTrainer", "NestedNERTrainingArguments", "start_from_recipe"]
