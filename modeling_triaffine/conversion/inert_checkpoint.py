"""Reads files of `torch.save` without running them: returns the tensors, and descriptions of everything else.

A pickle is a program that names functions and calls them. torch's `weights_only` refuses all names but those that
tensors need. Here the other names stand for inert classes, so that the modules and settings around the tensors are
read, too: a call makes an [`InertObject`]. Nothing is imported.
"""

from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor


class CheckpointError(ValueError):
    """A checkpoint cannot be read or converted; the message says why."""


class InertObject:
    """The record of an object that a pickle would have built, or of a function that it would have called.

    Attributes:
        path: module and name of the class or function, as in the pickle.
        state: the attributes of the object by name.
    """

    path = ""
    state: dict[str, Any]

    def __new__(cls, *arguments: Any, **keywords: Any) -> "InertObject":
        inert = object.__new__(cls)
        inert.state = {}
        return inert

    @property
    def name(self) -> str:
        """The name without its module."""
        return self.path.rpartition(".")[2]

    def __setstate__(self, state: Any) -> None:
        parts = state if isinstance(state, tuple) else (state,)
        for part in parts:
            if isinstance(part, dict):
                self.state.update(part)


def read_checkpoint(path: str | Path) -> Any:
    """Reads a file written by `torch.save` of torch 1.6 or later; its tensors are mapped from the file."""
    try:
        names = torch.serialization.get_unsafe_globals_in_checkpoint(path)
        with torch.serialization.safe_globals([_inert_class(name) for name in names]):
            return torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    except OSError:
        raise
    except Exception as error:  # an invalid pickle can raise anything
        reason = " ".join(str(error).split())
        if isinstance(error, UnpicklingError):  # whose message advises to run the file
            reason = "its pickle has calls or instructions that a saved model does not need"
        raise CheckpointError(
            f"{path} was not written by torch.save (of torch 1.6 or later), or is damaged: {reason}"
        ) from None


def _inert_class(path: str) -> type[InertObject]:
    """An inert class in place of what a pickle calls by this path."""
    module, _, name = path.rpartition(".")
    return type(name, (InertObject,), {"__module__": module, "path": path})


def module_tensors(module: Any, prefix: str = "") -> dict[str, Tensor]:
    """Parameters and buffers of a pickled `torch.nn.Module` by their names in its state dict."""
    if not isinstance(module, InertObject) or "_modules" not in module.state:
        raise CheckpointError(f"{prefix.rstrip('.') or 'the saved object'} is not a module")
    own = module.state["_parameters"] | module.state["_buffers"]
    tensors = {f"{prefix}{name}": tensor.detach() for name, tensor in own.items() if isinstance(tensor, Tensor)}
    for name, child in module.state["_modules"].items():
        if child is not None:
            tensors |= module_tensors(child, f"{prefix}{name}.")
    return tensors


def submodule(module: InertObject, name: str) -> InertObject | None:
    """A descendant of a pickled module by its dotted name; None if there is none."""
    for part in name.split("."):
        child = module.state.get("_modules", {}).get(part)
        if not isinstance(child, InertObject):
            return None
        module = child
    return module
