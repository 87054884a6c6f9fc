"""Former place of `model/processing_triaffine.py`; imports from here keep working."""

from .model.processing_triaffine import *  # noqa: F403
