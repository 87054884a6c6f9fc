"""Former place of `model/pipeline_triaffine.py`; imports from here keep working."""

from .model.pipeline_triaffine import *  # noqa: F403
