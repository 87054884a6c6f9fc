"""Links in docstrings: [`Name`] becomes a link to the reference of a public name, and code elsewhere."""

import re
from typing import Any

import griffe

import modeling_triaffine

REFERENCE = re.compile(r"\[`(\w+)`\](?![\[(])")


class LinkPublicNames(griffe.Extension):
    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = REFERENCE.sub(_link, obj.docstring.value)


def _link(reference: re.Match[str]) -> str:
    name = reference[1]
    return f"[`{name}`][modeling_triaffine.{name}]" if name in modeling_triaffine.__all__ else f"`{name}`"
