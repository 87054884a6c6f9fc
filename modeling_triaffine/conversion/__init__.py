"""Conversion to and from other formats: checkpoints of the published implementation, and ONNX.

A pickle is read without running it (`inert_checkpoint.py`) and interpreted by `published.py` and `published_names.py`;
`onnx_export.py` exports a model, `onnx_predictor.py` runs it. Not here: the commands (`commands/`)
and how this package's own checkpoints are saved.
"""

from .inert_checkpoint import CheckpointError
from .published import CORPORA, convert_published

__all__ = ["CORPORA", "CheckpointError", "convert_published"]
