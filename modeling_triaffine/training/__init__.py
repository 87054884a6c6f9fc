"""Training: the trainer, its arguments, recipes, and what a run of `triaffine-ner train` does.

`run.py` carries out a run from top to bottom: the plan (`plan.py`), corpus and model (`start.py`), the trained model
(`trainer.py`), its scores, and what is saved.

The public names are imported when they are first used: `options.py`, which declares the options, needs no library.
"""

from typing import TYPE_CHECKING

from ..lazy import on_first_use

if TYPE_CHECKING:
    from .plan import NestedNERTrainingArguments as NestedNERTrainingArguments
    from .start import start_from_recipe as start_from_recipe
    from .trainer import NestedNERTrainer as NestedNERTrainer

__getattr__, __dir__, __all__ = on_first_use(__name__)
