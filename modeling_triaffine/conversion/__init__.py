"""Checkpoints of other code, made into models of this package.

A pickle is read without running it (`inert_checkpoint.py`); what the published implementation's checkpoints mean is in
`published.py` and `published_names.py`.
"""

from .inert_checkpoint import CheckpointError
from .published import CORPORA, convert_published

__all__ = ["CORPORA", "CheckpointError", "convert_published"]
