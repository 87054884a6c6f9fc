"""Training: the trainer, its arguments and parameter groups, recipes, and what a run of `triaffine-ner train` does.

`run.py` carries out a run from top to bottom. Each stage gives one value to the next ones: the plan (`plan.py`, from
the command line and a recipe), the corpus (`corpora.py`), processor and model, new or trained (`start.py`), the trained
model (`trainer.py`, whose optimizer is in `optimization.py`), its scores, and what is saved (`summary.py` has the facts
for its card). `interruptions.py` has what can stop a run, and the checkpoints from which it goes on.

The public names are imported when they are first used: `options.py`, which declares the options, needs no library.
"""

from typing import TYPE_CHECKING

from ..lazy import on_first_use

if TYPE_CHECKING:
    from .plan import NestedNERTrainingArguments as NestedNERTrainingArguments
    from .start import start_from_recipe as start_from_recipe
    from .trainer import NestedNERTrainer as NestedNERTrainer

__getattr__, __dir__, __all__ = on_first_use(__name__)
