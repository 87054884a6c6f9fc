"""JSON of corpora: the values of a file, and its objects, whose fields errors name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Strict
from pydantic_core import from_json

from ..parsing import decode_json
from .reading import decoded, document_name, open_corpus, read_head
from .record_checker import RecordChecker, Value, names_of
from .schema import CorpusError, Text

HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]..")
"""Escapes of surrogates, of which pydantic refuses half ones."""
Pair = Annotated[tuple[int, int], Strict(False)]
TypedSpan = Annotated[tuple[int, int, str], Strict(False)]
"""Lists of two numbers, and of two numbers and a type."""


def json_values(path: Path, check: RecordChecker) -> Iterator[tuple[object, str]]:
    """The values of JSON lines, of one JSON list, or one value of several lines; each with its place in the file.

    Lines are read one by one; a list is parsed as a whole, so that memory grows with the file.
    """
    head = read_head(path)
    first, continues, _ = head.partition("\n")
    with open_corpus(path) as file:
        if not head.startswith("[") and not (continues and first.rstrip()[-1:] in "{[,"):
            for number, line in enumerate(file, start=1):
                if line.strip():
                    with check.record():
                        yield decoded(line.rstrip(b"\r\n"), check, f"line {number}", decode_json), f"line {number}"
            return
        value = decoded(file.read(), check, "", decode_json)
    yield from ((raw, f"record {number}") for number, raw in enumerate(value if isinstance(value, list) else [value]))


def record_keys(head: str) -> set[str]:
    """The keys of the first object in JSON lines or a JSON list, as far as `head` reaches; empty for anything else."""
    try:
        value = from_json(HALF_PAIR.sub("?", head), allow_partial="trailing-strings")
    except ValueError:
        return set()
    return next(({*raw} for raw in (value if isinstance(value, list) else [value]) if isinstance(raw, dict)), set())


class JsonObject:
    """Reads the fields of an object, and names object and field in errors.

    Args:
        raw: what was found; CorpusError, with the `remedy`, unless it is an object.
        where: its place in the file: "line 3".
        name: of the object in that place: "passages[0].annotations[2]"; empty for the record itself.
        number: of the record in its file.
    """

    def __init__(
        self,
        raw: object,
        where: str,
        check: RecordChecker,
        name: str = "",
        remedy: str = "See docs/corpora.md",
        number: int = 0,
    ):
        self.fields: dict[str, Any] = check.valid(raw, dict, where, name, remedy)
        self.where, self.check, self.name, self.number = where, check, name, number

    def name_of(self, field: str) -> str:
        return f"{self.name}.{field}" if self.name else field

    def value(self, field: str, kind: type[Value], remedy: str = "") -> Value:
        """The value of a required field of this type; the field may be a path, such as "data.text"."""
        found = self.get(field)
        if found is None and field not in self.fields:
            raise self.error(field, f"is missing; the fields are {names_of(self.fields)}", "Add it")
        return self.check.valid(found, kind, self.where, self.name_of(field), remedy)

    def get(self, field: str) -> object:
        """The value of a field, which may be a path; None if it is missing."""
        if field in self.fields or field.partition(".")[0] not in self.fields:
            return self.fields.get(field)
        value: object = self.fields
        for name in field.split("."):
            if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
                value = value[int(name)]
            else:
                value = value.get(name) if isinstance(value, Mapping) else None
        return value

    def object(self, field: str, remedy: str) -> JsonObject:
        return JsonObject(self.fields.get(field), self.where, self.check, self.name_of(field), remedy)

    def objects(self, field: str, remedy: str = "See docs/corpora.md", optional: bool = False) -> Iterator[JsonObject]:
        """The objects in a list; none if the list is `optional` and missing or null."""
        found = self.value(field, list) if not optional or self.fields.get(field) is not None else []
        for index, raw in enumerate(found):
            yield JsonObject(raw, self.where, self.check, f"{self.name_of(field)}[{index}]", remedy)

    def first_of(self, names: Sequence[str]) -> str:
        """Returns the first of several names of a field that has a value; CorpusError if none is there."""
        has_value = (name for name in names if self.get(name) is not None)
        found = next(has_value, None) or next((name for name in names if name in self.fields), None)
        if found:
            return found
        plain = " or ".join(name for name in names if "." not in name)
        raise self.error(names[0], f"is missing; the fields are {names_of(self.fields)}", f"Name it {plain}")

    def error(self, field: str, problem: str, remedy: str) -> CorpusError:
        """The error for a field; the `problem` is said of it: "has 2 values"."""
        return self.check.error(self.where, f"field '{self.name_of(field)}' {problem}", remedy)


def json_reader(
    text_of: Callable[..., Text | None],
    fields: str,
    file_name: Callable[[Path, RecordChecker], str] = document_name,
    values: Callable[[Path, RecordChecker], Iterator[tuple[object, str]]] = json_values,
) -> Callable[..., Iterator[Text]]:
    """A reader (`CorpusFormat.read`) of JSON whose every record is a text.

    Args:
        text_of: `text_of(record, name)` → the text of a `JsonObject`, None if it is not to be read. The name is that
            of the file with the number of the record. Options of the reader (`columns`) are passed on.
        fields: what a record is expected to have, for messages.
        file_name: the name of a file, before the number.
        values: the records of a file, each with its place.
    """

    def read(path: Path, check: RecordChecker, **options: Any) -> Iterator[Text]:
        name, remedy = file_name(path, check), f"A record has the fields {fields}"
        for number, (raw, where) in enumerate(values(path, check)):
            with check.record():
                text = text_of(JsonObject(raw, where, check, "", remedy, number), f"{name}:{number}", **options)
                if text is not None:
                    yield text

    return read
