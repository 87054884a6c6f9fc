"""The same numbers as in `model/`, faster: Triton kernels, CUDA graphs, layers by oneDNN.

Nothing here travels with a model: its own code, without the package, computes by torch's own operations.
"""

from ..model.triaffine_blocks import Acceleration
from .full_tensors import buffered_weight, label_chunks
from .graphs import run_model
from .onednn import linear_layers, run_lstm
from .span_stage import attend_inside


def accelerate(operations: Acceleration) -> None:
    """Sets the operations of this folder in place of the plain ones."""
    operations.linear_layers = linear_layers
    operations.run_lstm = run_lstm
    operations.full_weight = buffered_weight
    operations.label_chunks = label_chunks
    operations.attend_inside = attend_inside
    operations.run = run_model
