"""Tags a corpus of many files on one machine or on a cluster, with Ray. Needs the extra `ray`.

`files.py` turns files into rows, which `run.py` leads through actors with a model, and back into files.
"""

from ..errors import importing_extra

with importing_extra("ray", "Tagging a corpus needs Ray"):
    import ray  # noqa: F401

from .files import find_files
from .run import TagOptions, tag_corpus

__all__ = ["TagOptions", "find_files", "tag_corpus"]
