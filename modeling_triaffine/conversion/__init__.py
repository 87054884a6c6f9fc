"""Conversion to and from other formats: checkpoints of the published implementation, and ONNX."""

from .published import CORPORA, CheckpointError, convert_published

__all__ = ["CORPORA", "CheckpointError", "convert_published"]
