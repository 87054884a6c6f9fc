"""The model and what runs it: configuration, processor, modules, kernels, decoding, pipeline.

These files, and no others, travel with a checkpoint as one flat folder. They import torch, transformers and each
other, and nothing from the rest of the package.
"""

from .versions_triaffine import LOWEST_VERSIONS  # noqa: F401 - raises before what needs newer versions is imported

# isort: split
import transformers.models.auto  # noqa: F401 - registers the model with the Auto classes before its files are imported
