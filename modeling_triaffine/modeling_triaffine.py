"""Former place of `model/modeling_triaffine.py`; imports from here keep working."""

from .model.modeling_triaffine import *  # noqa: F403
