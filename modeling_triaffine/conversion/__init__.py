"""Conversion to and from other formats: checkpoints of the published implementation, and ONNX.

A pickle is read without running it (`inert_checkpoint.py`) and interpreted by `published.py`. `onnx_export.py` exports
a model, `onnx_predictor.py` runs it.
"""

from .inert_checkpoint import CheckpointError
from .published import CORPORA, convert_published

__all__ = ["CORPORA", "CheckpointError", "convert_published"]
