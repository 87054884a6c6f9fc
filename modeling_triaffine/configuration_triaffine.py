"""Former place of `model/configuration_triaffine.py`; imports from here keep working."""

from .model.configuration_triaffine import *  # noqa: F403
