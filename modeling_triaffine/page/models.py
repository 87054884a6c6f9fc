"""The offered models: display names, loading, and examples from their cards."""

import os
from collections.abc import Sequence
from functools import lru_cache

from huggingface_hub import metadata_load
from transformers.utils import cached_file

from ..installed_models import find_model, public_names
from ..model.pipeline_triaffine import NestedNERPipeline

MOST_LOADED = 4


class Models:
    """Models by display name, of which the last used ones stay loaded.

    Args:
        places: Folders or Hub ids, displayed by their [`public_names`].
        device: As in torch; None: a GPU if available.
    """

    def __init__(self, places: Sequence[str | os.PathLike[str]], device: str | None = None):
        self.device = device
        paths = [find_model(str(place)) for place in places]
        self.places = dict(zip(public_names(paths), paths, strict=True))

    def pipeline(self, name: str) -> NestedNERPipeline:
        """Returns the pipeline of a model, loaded on first use; KeyError if it is not offered."""
        return _load(self.places[name], self.device)

    def examples(self) -> list[str]:
        """Returns the widget texts of the first model's card, which is optional."""
        try:
            card = cached_file(next(iter(self.places.values())), "README.md") or ""
            return [str(example["text"]) for example in (metadata_load(card) or {})["widget"]]
        except Exception:  # of a stranger's YAML, too
            return []


@lru_cache(maxsize=MOST_LOADED)
def _load(place: str, device: str | None) -> NestedNERPipeline:
    # The package's own classes load the model from safetensors; code in its repository never runs.
    return NestedNERPipeline(model=place, device=device, disable_mmap=True)  # a file may change
