"""The offered models: display names, loading, and examples from their cards."""

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import yaml
from huggingface_hub import metadata_load
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id
from transformers.utils import cached_file

from ..addresses import public_names
from ..installed_models import find_model
from ..model.pipeline_triaffine import NestedNERPipeline
from ..own_weights import own_weights

MOST_EXAMPLES = 5


class Models:
    """Models by display name.

    Args:
        places: Folders or Hub ids, displayed by their [`public_names`].
        free_choice: Whether other folders and Hub ids are accepted, too.
        device: As in torch; None: a GPU if available.
    """

    def __init__(self, places: Sequence[str | os.PathLike[str]], free_choice: bool = False, device: str | None = None):
        self.free_choice = free_choice
        paths = [find_model(str(place)) for place in places]
        self._places = dict(zip(public_names(paths), paths, strict=True))

        # With free choice, one model that is not offered stays loaded.
        @lru_cache(maxsize=len(paths) + free_choice)
        def load(place: str) -> NestedNERPipeline:
            # The package's own classes load the model from safetensors; code in its repository never runs.
            pipeline = NestedNERPipeline(model=place, device=device)
            own_weights(pipeline.model)
            return pipeline

        self._load = load

    @property
    def names(self) -> list[str]:
        return list(self._places)

    def pipeline(self, name: str | None) -> NestedNERPipeline:
        """The pipeline of a model, loaded on first use.

        Raises:
            ValueError: The model is not offered or cannot be loaded; the message does not reveal its path.
        """
        place = self._place(name)
        try:
            return self._load(place)
        except (ValueError, OSError) as error:
            # A relative path reveals nothing, and could occur elsewhere in the message.
            raise ValueError(str(error).replace(place, str(name)) if os.path.isabs(place) else str(error)) from error

    def examples(self, name: str | None) -> list[str]:
        """The widget texts of the model's card, if any."""
        try:
            card = cached_file(self._place(name), "README.md", _raise_exceptions_for_missing_entries=False)
            content = (metadata_load(card) if card else None) or {}
            texts = [example["text"] for example in content["widget"]]
        except (ValueError, OSError, yaml.YAMLError, TypeError, KeyError):
            return []  # the card is optional; errors of the model appear when it is used
        return [text for text in texts if isinstance(text, str) and text.strip()][:MOST_EXAMPLES]

    def _place(self, name: str | None) -> str:
        if not name or (name not in self._places and not self.free_choice):
            raise ValueError(f"The model {name!r} is not offered here; choose one of {', '.join(self._places)}.")
        place = self._places.get(name, name)
        if not Path(place).is_dir():
            try:
                validate_repo_id(place)
            except HFValidationError:  # its message has the path
                raise ValueError(f"{name!r} is neither a folder nor a Hub id of the form owner/name.") from None
        return place
