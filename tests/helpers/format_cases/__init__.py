"""A case for each format, in a module of its name: the same sentence in that format, files with a mistake, and noise.

The tests of all formats (`tests/data/test_formats.py`, `tests/test_fuzzing.py`) take their input from here.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ..corpora import NESTED, conllu

Files = Mapping[str, str | bytes]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.text(st.sampled_from('ab .\n"\ud800😀'), max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["text", "label", "entities", "start", "end", "type"]), inner, max_size=4)
        | st.dictionaries(st.sampled_from(["passages", "offsets", "infons", "locations", "offset"]), inner, max_size=4)
        | st.dictionaries(st.sampled_from(["data", "annotations", "result", "value", "labels"]), inner, max_size=4)
    ),
    max_leaves=12,
)
JSON_VALUES = st.lists(JSON, max_size=3)
LINES = st.lists(
    st.text(st.sampled_from("aO\t BI-\r#1.(=)\0\ufeff\x85"), max_size=12)
    | st.sampled_from(["w\tO", "w\tB-A", "# newdoc id = x", "# sent_id = y", "-DOCSTART-\tO", ""])
    | st.sampled_from(conllu("(1-a", "1)").splitlines()),
    max_size=8,
).map("\n".join)
XML = st.lists(
    st.sampled_from(["<set>", "<article>", "<bibliomisc>x</bibliomisc>", "<sentence>", "a b", "</sentence>"])
    | st.sampled_from(["<cons sem='G#DNA_x'>", "</cons>", "</article>", "</set>", "&amp;", "<!ENTITY", "<?xml ?>"]),
    max_size=12,
).map("".join)


@dataclass(frozen=True)
class FormatCase:
    """What the tests of all formats read.

    Args:
        files: name → content, with the sentence `TEXT` and the `entities`; a reader opens the last one. Or a function
            that makes them, with the library that it `needs`.
        bad: what is wrong → a value that `put` makes files of, to be named at `place`, then facts that the message
            names. Without `put`: the content of the last file after what is in it `before`, the place, and facts.
        anything: contents of the last file that are to be read or rejected.
        nothing: files with the sentence and no entities.
        noted: what the report has of the files.
    """

    files: Files | Callable[[], Files]
    bad: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    put: Callable[[Any], Files] | None = None
    noted: tuple[str, ...] = ()
    place: str = ""
    before: str = ""
    anything: SearchStrategy[str] | None = None
    entities: list[tuple[str, str]] = field(default_factory=lambda: NESTED)
    nothing: Files = field(default_factory=dict)
    needs: str = ""

    def sample(self) -> Files:
        if self.needs:
            pytest.importorskip(self.needs)
        return self.files() if callable(self.files) else self.files

    def bad_files(self) -> Iterator[tuple[str, Files, str, list[str]]]:
        """What is wrong, the files, the place of the mistake, and facts that the message names."""
        for wrong, (value, *facts) in self.bad.items():
            if self.put is not None:
                yield wrong, self.put(value), self.place, facts
            else:
                place, *others = facts
                content = self.before.encode() + (value if isinstance(value, bytes) else value.encode())
                yield wrong, {**self.sample(), [*self.sample()][-1]: content}, place, others


def after(first: object) -> Callable[[object], Files]:
    """Puts a value after a good one, as JSON lines."""
    return lambda value: {"a.jsonl": f"{json.dumps(first)}\n{json.dumps(value)}\n"}


CASES: dict[str, FormatCase] = {
    module.name: import_module(f".{module.name}", __name__).CASE for module in iter_modules(__path__)
}
SAMPLES: dict[str, Files] = {name: case.sample() for name, case in CASES.items() if not case.needs}
"""Format → files with the sentence `TEXT` and the entities `NESTED` (in GENIA, whose types are fixed, one)."""
