"""A corpus of many files tagged on one machine or on a cluster of them, with Ray Data.

`reading.py` cuts the files into chunks of rows and sets rows without a text aside, `tagger.py` is the actor that holds
the model, `output.py` the folder of what is finished, `run.py` leads the chunks from one to the other. Needs the extra
`ray`.
"""

from ..errors import missing_extra

try:
    import ray.data  # noqa: F401
except ImportError as error:
    raise missing_extra("Tagging a corpus needs Ray Data", "ray") from error

from .output import OutputFolder, Totals
from .reading import Reading, find_files
from .run import Actors, tag_corpus
from .tagger import Tagging, describe_model

__all__ = [
    "Actors",
    "OutputFolder",
    "Reading",
    "Tagging",
    "Totals",
    "describe_model",
    "find_files",
    "tag_corpus",
]
