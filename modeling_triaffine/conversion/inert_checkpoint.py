"""Reads files of `torch.save` without running them: returns the tensors, and descriptions of everything else.

A pickle is a program that names functions and calls them. Here every name resolves to an inert class that records the
arguments of the call ([`InertObject`]). The exceptions are ordered dictionaries, tensor sizes and the functions that
rebuild a tensor from its storage, which are implemented here. Nothing is imported.

Supports the ZIP archives of torch 1.6 and later and the legacy format before them.
"""

import math
import pickle
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import torch
from torch import Tensor

ZIP_MAGIC = b"PK\x03\x04"
PICKLE_IN_ZIP = "/data.pkl"
# The legacy format begins with this number, pickled.
LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
LEGACY_START = pickle.dumps(LEGACY_MAGIC, protocol=2)
STORAGES = {
    "torch.FloatStorage": torch.float32,
    "torch.DoubleStorage": torch.float64,
    "torch.HalfStorage": torch.float16,
    "torch.BFloat16Storage": torch.bfloat16,
    "torch.LongStorage": torch.int64,
    "torch.IntStorage": torch.int32,
    "torch.ShortStorage": torch.int16,
    "torch.CharStorage": torch.int8,
    "torch.ByteStorage": torch.uint8,
    "torch.BoolStorage": torch.bool,
}


class CheckpointError(ValueError):
    """A checkpoint cannot be read or converted; the message says why."""


class InertObject:
    """The record of an object that a pickle would have built, or of a function that it would have called.

    Attributes:
        path: module and name of the class or function, as in the pickle.
        arguments: the arguments of the call.
        state: the attributes of the object by name.
        items: the items of a collection.
    """

    path = ""

    def __new__(cls, *arguments: Any, **keywords: Any) -> "InertObject":
        inert = object.__new__(cls)
        inert.arguments = arguments
        inert.state = {}
        inert.items = []
        return inert

    def __init__(self, *arguments: Any, **keywords: Any):
        self.arguments: tuple[Any, ...]
        self.state: dict[str, Any]
        self.items: list[Any]

    @property
    def name(self) -> str:
        """The name without its module."""
        return self.path.rpartition(".")[2]

    def __setstate__(self, state: Any) -> None:
        parts = state if isinstance(state, tuple) else (state,)
        for part in parts:
            if isinstance(part, dict):
                self.state.update(part)

    def append(self, item: Any) -> None:
        self.items.append(item)

    def extend(self, items: Any) -> None:
        self.items.extend(items)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items.append((key, value))


class InertDict(dict[Any, Any]):
    """A substitute for an ordered dictionary, without attributes with which a pickle could replace its methods."""

    __slots__ = ()
    path = "collections.OrderedDict"

    def __setstate__(self, state: Any) -> None:
        """Ignores attributes, such as the module versions in a state dict."""


class _Function(NamedTuple):
    """A function that a pickle can call but not change: plain functions and methods have writable attributes."""

    run: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any:
        return self.run(*arguments)


class Storage(NamedTuple):
    """The data of one or more tensors: their key in the file, dtype and number of elements."""

    key: str
    dtype: torch.dtype
    size: int


class StoredTensor(NamedTuple):
    """A tensor's place in its storage: the arguments of torch's rebuild functions."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def read(self, storages: dict[str, bytes]) -> Tensor:
        """Returns the tensor.

        Raises:
            CheckpointError: it is outside of its storage.
        """
        data = storages.get(self.storage.key, b"")
        last = self.offset + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        sound = min(self.offset, *self.shape, *self.strides, 0) == 0 and math.prod(self.shape) <= self.storage.size
        if not sound or len(data) != self.storage.size * self.storage.dtype.itemsize:
            raise CheckpointError(f"tensor of shape {list(self.shape)} does not fit storage {self.storage.key!r}")
        if not math.prod(self.shape):
            return torch.empty(self.shape, dtype=self.storage.dtype)
        if last >= self.storage.size:
            raise CheckpointError(f"tensor of shape {list(self.shape)} exceeds storage {self.storage.key!r}")
        flat = torch.frombuffer(bytearray(data), dtype=self.storage.dtype)
        return flat.as_strided(self.shape, self.strides, self.offset).clone()


@dataclass(frozen=True)
class InertCheckpoint:
    """The contents of a file of `torch.save`: the saved object, and the storages of its tensors."""

    root: Any
    storages: dict[str, bytes]


def read_checkpoint(path: str | Path) -> InertCheckpoint:
    """Reads a file written by `torch.save`.

    Raises:
        CheckpointError: it is not such a file, or is damaged.
        OSError: it cannot be opened.
    """
    with Path(path).open("rb") as file:
        start = file.read(len(LEGACY_START))
        file.seek(0)
        try:
            if start.startswith(ZIP_MAGIC):
                return _read_archive(file)
            if start == LEGACY_START:
                return _read_legacy(file)
        except CheckpointError as error:
            raise CheckpointError(f"{path} cannot be read: {error}. Download or save the file again.") from None
        except Exception as error:  # an invalid pickle can raise anything
            reason = f"{type(error).__name__}: {error}"
            raise CheckpointError(
                f"{path} is damaged or truncated ({reason}). Download or save the file again."
            ) from None
    raise CheckpointError(f"{path} was not written by torch.save. Give the .pth file of a published training.")


def module_tensors(module: InertObject) -> dict[str, StoredTensor]:
    """Parameters and buffers of a pickled `torch.nn.Module` by their names in its state dict.

    Raises:
        CheckpointError: something else takes the place of a module or a tensor.
    """
    tensors: dict[str, StoredTensor] = {}
    waiting: list[tuple[str, Any]] = [("", module)]
    seen: set[int] = set()
    while waiting:
        prefix, module = waiting.pop()
        if not isinstance(module, InertObject) or "_modules" not in module.state or id(module) in seen:
            raise CheckpointError(f"{prefix.rstrip('.') or 'the saved object'} is not a module")
        seen.add(id(module))
        for kind in ("_parameters", "_buffers"):
            for name, tensor in _mapping(module, kind).items():
                if isinstance(tensor, StoredTensor):
                    tensors[f"{prefix}{name}"] = tensor
                elif tensor is not None:
                    raise CheckpointError(f"{prefix}{name} is not a tensor")
        children = _mapping(module, "_modules").items()
        waiting += [(f"{prefix}{name}.", child) for name, child in children if child is not None]
    return tensors


def submodule(module: InertObject, name: str) -> InertObject | None:
    """A descendant of a pickled module by its dotted name; None if there is none."""
    for part in name.split("."):
        child = _mapping(module, "_modules").get(part)
        if not isinstance(child, InertObject):
            return None
        module = child
    return module


def _mapping(module: InertObject, name: str) -> dict[str, Any]:
    value = module.state.get(name)
    return value if isinstance(value, dict) else {}


class _InertUnpickler(pickle.Unpickler):
    """An unpickler that imports nothing. `storages` are those to which the tensors refer."""

    def __init__(self, file: IO[bytes]):
        super().__init__(file)
        self.storages: dict[str, Storage] = {}
        self._classes: dict[str, type[InertObject]] = {}

    def find_class(self, module: str, name: str) -> Any:
        path = f"{module}.{name}"
        allowed = {
            InertDict.path: InertDict,
            "torch.Size": tuple,
            "torch._utils._rebuild_tensor": _Function(self._rebuild_tensor),
            "torch._utils._rebuild_tensor_v2": _Function(self._rebuild_tensor),
            "torch._utils._rebuild_parameter": _Function(self._rebuild_parameter),
            "torch._utils._rebuild_parameter_with_state": _Function(self._rebuild_parameter),
        }
        if path in allowed:
            return allowed[path]
        return self._classes.setdefault(path, type("InertObject", (InertObject,), {"path": path}))

    def persistent_load(self, identifier: Any) -> Any:
        """The storage, or in the legacy format the class of a module, that torch keeps outside of the pickle."""
        match identifier:
            case ("storage", type() as kind, str() as key, _, int() as size, *view) if not any(view):
                dtype = STORAGES.get(getattr(kind, "path", ""))
                if dtype is None:
                    raise CheckpointError(f"the storage type {getattr(kind, 'path', kind)} is unknown")
                self.storages[key] = Storage(key, dtype, size)
                return self.storages[key]
            case ("module", type() as kind, *_):
                return kind
        raise CheckpointError(f"the storage {str(identifier)[:80]} is unknown")

    def _rebuild_tensor(self, storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> StoredTensor:
        numbers = offset, *shape, *strides
        if not isinstance(storage, Storage) or not all(isinstance(number, int) for number in numbers):
            raise CheckpointError("a tensor is rebuilt in an unknown way")
        return StoredTensor(storage, offset, tuple(shape), tuple(strides))

    def _rebuild_parameter(self, data: Any, *_: Any) -> Any:
        return data


def _read_archive(file: IO[bytes]) -> InertCheckpoint:
    with zipfile.ZipFile(file) as archive:
        pickles = [name for name in archive.namelist() if name.endswith(PICKLE_IN_ZIP)]
        if len(pickles) != 1 or any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
            raise CheckpointError("it is a ZIP archive, but not one written by torch.save")
        prefix = pickles[0].removesuffix(PICKLE_IN_ZIP)
        with archive.open(pickles[0]) as stream:
            unpickler = _InertUnpickler(stream)
            root = unpickler.load()
        storages = {}
        for key, storage in unpickler.storages.items():
            entry = archive.getinfo(f"{prefix}/data/{key}")
            if entry.file_size != storage.size * storage.dtype.itemsize:
                raise CheckpointError(f"storage {key!r} has a different size than its tensors state")
            storages[key] = archive.read(entry)
    return InertCheckpoint(root, storages)


def _read_legacy(file: IO[bytes]) -> InertCheckpoint:
    """Reads five pickles (magic number, version, machine, object, keys of the storages), then the storages."""
    for _ in range(3):
        _InertUnpickler(file).load()
    unpickler = _InertUnpickler(file)
    root = unpickler.load()
    storages = {}
    for key in _InertUnpickler(file).load():
        storage = unpickler.storages[key]
        (size,) = struct.unpack("<q", file.read(8))
        if size != storage.size:
            raise CheckpointError(f"storage {key!r} has a different size than its tensors state")
        storages[key] = file.read(size * storage.dtype.itemsize)
    return InertCheckpoint(root, storages)
