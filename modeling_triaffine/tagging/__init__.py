"""Tags a corpus of many files on one machine or on a cluster, with Ray. Needs the extra `ray`.

`reading.py` turns files into rows, which `run.py` leads through actors with a model to a folder (`output.py`).
"""

from ..errors import importing_extra

with importing_extra("ray", "Tagging a corpus needs Ray"):
    import ray  # noqa: F401

from .reading import TagOptions, find_files
from .run import tag_corpus

__all__ = ["TagOptions", "find_files", "tag_corpus"]
