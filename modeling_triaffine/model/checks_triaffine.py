"""What a field that is read from a file may hold, told in one paragraph: a checker a kind."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch


def check_integer(where: str, name: str, value: Any, least: int, most: int) -> None:
    """Raises ValueError but for a whole number from `least` to `most`; neither True nor 1.0 is one."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{where}: `{name}` is {shortened(value)}; give a whole number from {least} to {most}.")


def check_number(where: str, name: str, value: Any, least: float, below: float = float("inf")) -> None:
    """Raises ValueError but for a number of at least `least` and below `below`; infinity and NaN are none."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value < below:
        limit = "" if below == float("inf") else f" and below {below:g}"
        raise ValueError(f"{where}: `{name}` is {shortened(value)}; give a number of at least {least:g}{limit}.")


def check_kind(where: str, name: str, value: Any, kind: type | tuple[type, ...], wanted: str) -> None:
    """Raises ValueError but for an instance of `kind`, which `wanted` says in words."""
    if not isinstance(value, kind):
        raise ValueError(f"{where}: `{name}` is {shortened(value)}; give {wanted}.")


def check_dtype(where: str, name: str, value: Any) -> None:
    """Raises ValueError but for the name of one of torch's dtypes, or one itself."""
    if not isinstance(getattr(torch, value, None) if isinstance(value, str) else value, torch.dtype):
        raise ValueError(f"{where}: `{name}` is {shortened(value)}; give the name of one of torch's dtypes.")


def shortened(value: Any) -> str:
    """A value as a message quotes it."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def listed(names: Sequence[str]) -> str:
    """The first five names, and how many more there are."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


@contextlib.contextmanager
def reading(place: str, files: str = "the file") -> Iterator[None]:
    """Raises ValueError that begins with `place` for whatever other libraries make of damaged `files` there.

    What is no fault of a file stays as it is: one that is not there, a package that is not installed, no memory.
    """
    try:
        yield
    except (OSError, ImportError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # any there is: fields of a wrong kind go deep into code that does not expect them
        text = " ".join(str(error).split())
        if not isinstance(error, ValueError):
            text = f"{files} holds what nothing can be made of ({type(error).__name__}: {text}); restore it."
        raise ValueError(f"{place}: {text}") from error
