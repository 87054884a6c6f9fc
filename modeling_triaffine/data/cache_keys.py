"""Cache keys of data: from what it is made of, and from the code that makes it.

`datasets` would use the arguments of that code alone, in which a function of a module is its name, and return stale
data for a changed file and for an edited function.
"""

import hashlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from datasets.fingerprint import Hasher, generate_random_fingerprint
from huggingface_hub.utils.sha import sha_fileobj

from .corpus_format import module_of

OURS = __name__.partition(".")[0]


def fingerprint_of(parts: Iterable[Any], functions: Iterable[Any] = ()) -> str:
    """A fingerprint of data that `functions` make of `parts`; a new one each time if something of these has none.

    Args:
        parts: whatever pickles to the same bytes in each process.
        functions: readers and splitters; of those from outside this package, the code counts, too.
    """
    try:
        modules = sorted({module_of(function) for function in functions})
        code = [file_digest(path, path.name) for module in modules for path in sorted(_code_of(module))]
        return str(Hasher.hash([*parts, *code]))
    except Exception:  # of pickling, or of code without a file
        return str(generate_random_fingerprint())


def file_digest(path: Path, name: str) -> bytes:
    """A digest of the content of a file, and of its name."""
    with path.open("rb") as file:
        return hashlib.sha256(os.fsencode(name) + b"\0" + sha_fileobj(file)).digest()


def _code_of(name: str) -> set[Path]:
    """The Python files of the package of a module from outside, or of the folder of a script.

    Raises:
        LookupError: there is no file of it, as in a notebook: nobody can tell whether the function is still the same.
    """
    if name.partition(".")[0] in (OURS, "builtins"):
        return set()
    module = sys.modules.get(name)
    file = Path(getattr(module, "__file__", None) or "")
    if module is None or not file.is_file():
        raise LookupError(name)
    package = sys.modules.get(name.partition(".")[0])
    folders = [*getattr(package, "__path__", ())]
    found = (Path(folder).rglob("*.py") for folder in folders) if folders else (file.parent.glob("*.py"),)
    return {file, *(path for paths in found for path in paths if path.is_file())}
