"""The former name of `model_triaffine.py`, until nothing imports it any more; it is not remote code."""

from .model_triaffine import ADAPTED as ADAPTED
from .model_triaffine import MERGE_ADAPTERS as MERGE_ADAPTERS
from .model_triaffine import NestedNEROutput as NestedNEROutput
from .model_triaffine import TriaffineForNestedNER as TriaffineForNestedNER
from .model_triaffine import evaluating as evaluating
