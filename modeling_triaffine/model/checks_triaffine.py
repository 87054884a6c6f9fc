"""Checks of versions, which the configuration imports first, and of values: errors name field and allowed values."""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata  # imports of transformers would take a second of the help of a command
from numbers import Real
from typing import Any

from packaging.version import Version

LOWEST_VERSIONS = {"torch": "2.11", "transformers": "5.20"}
for _package, _lowest in LOWEST_VERSIONS.items():
    if Version(_installed := metadata.version(_package)) < Version(_lowest):
        raise ImportError(f"{_package}>={_lowest} is required here, but {_package}=={_installed} is installed.")


def check_threshold(threshold: Any, labels: Sequence[str] | None = None, name: str = "threshold") -> None:
    """Raises ValueError unless `threshold` is None, a number in [0, 1], or such numbers by label, of `labels` if given.

    `name` is the name of the argument or field in the message.
    """
    by_label = isinstance(threshold, Mapping)
    for value in threshold.values() if by_label else [threshold]:
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not (is_number and 0.0 <= value <= 1.0) and (by_label or value is not None):
            remedy = 'give a number from 0 to 1, such numbers by label ({"protein": 0.4}), or None for the model\'s own'
            raise ValueError(f"`{name}` is {threshold!r:.80}; {remedy}.")
    if by_label and labels is not None and (unknown := [label for label in threshold if label not in labels]):
        raise ValueError(f"`{name}` names the labels {unknown!r:.80}; the model has {listed(labels, most=50)}.")


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first names and the number of the others."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


@contextlib.contextmanager
def reading(place: str, files: str = "the file") -> Iterator[None]:
    """Converts any error that damaged `files` cause in the block to a ValueError that begins with `place`.

    Errors with other causes pass through: missing files, packages that are not installed, lack of memory.
    """
    try:
        yield
    except (OSError, ImportError, MemoryError):
        raise
    except Exception as error:  # fields of a wrong type can raise anything, deep in other libraries
        import torch

        if isinstance(error, torch.OutOfMemoryError):
            raise
        text = " ".join(str(error).split())
        if not isinstance(error, ValueError) or isinstance(error, json.JSONDecodeError | UnicodeError):
            text = f"{files} cannot be parsed ({type(error).__name__}: {text}); restore it."
        raise ValueError(f"{place}: {text}") from error
