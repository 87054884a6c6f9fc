"""Public names that are imported when they are first used, so that a package costs no import that is not needed."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def on_first_use(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and the public names of a package: what its source imports under `TYPE_CHECKING`.

    So type checkers and editors read the same list. `from . import name` is a module of the package.
    """
    specification: Any = sys.modules[package].__spec__
    source = ast.parse(specification.loader.get_source(package))
    (checked,) = (node.body for node in source.body if isinstance(node, ast.If))
    imports = [node for node in checked if isinstance(node, ast.ImportFrom)]
    modules = {alias.name: node.module for node in imports for alias in node.names}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f".{modules[name] or name}", package)
        value = getattr(module, name) if modules[name] else module
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return get, names, sorted(name for name, module in modules.items() if module)
