"""The model and what runs it: configuration, processor, modules, kernels, decoding, pipeline.

These files, listed in `repository_triaffine.py`, travel with a checkpoint as one flat folder. They import each other,
torch, transformers and what transformers itself installs, but nothing from the rest of the package.
"""

from .versions_triaffine import LOWEST_VERSIONS  # noqa: F401 - raises before what needs newer versions is imported

# isort: split
import transformers.models.auto  # noqa: F401 - registers the model with the Auto classes before its files are imported
