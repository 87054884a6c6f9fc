"""Tags a corpus of many files on one machine or on a cluster, with Ray. Needs the extra `ray`.

`reading.py` splits the files into chunks of rows, `tagger.py` is the actor with the model, `output.py` the output
folder, and `run.py` leads the chunks through the actors.
"""

from ..errors import importing_extra

with importing_extra("ray", "Tagging a corpus needs Ray"):
    import ray  # noqa: F401

from .output import OutputFolder, Totals
from .reading import Reading, find_files
from .run import Actors, tag_corpus
from .tagger import Tagging, describe_model

__all__ = ["Actors", "OutputFolder", "Reading", "Tagging", "Totals", "describe_model", "find_files", "tag_corpus"]
