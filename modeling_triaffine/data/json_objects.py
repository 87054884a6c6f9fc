"""`JsonObject`: an object of a JSON file that knows its place, so that a reader names only the field that it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..model.text_triaffine import Offsets
from .documents import Annotation
from .schema import CorpusError, Kind, RecordChecker, names_of


class JsonObject:
    """Reads the fields of an object, and names object and field in errors.

    Args:
        raw: what was found; CorpusError, with the `remedy`, unless it is an object.
        where: its place in the file: "line 3".
        name: of the object in that place: "passages[0].annotations[2]"; empty for the record itself.
    """

    def __init__(
        self, raw: object, where: str, check: RecordChecker, name: str = "", remedy: str = "See docs/corpora.md"
    ):
        self.fields = check.mapping(raw, where, f"field '{name}'" if name else "the record", remedy)
        self.where, self.check, self.name = where, check, name

    def name_of(self, field: str) -> str:
        return f"{self.name}.{field}" if self.name else field

    def value(self, field: str, kind: type[Kind]) -> Kind:
        """The value of a required field of type str, int or list."""
        return self.check.typed(self.fields, field, kind, self.where, self.name)

    def object(self, field: str, remedy: str) -> JsonObject:
        return JsonObject(self.fields.get(field), self.where, self.check, self.name_of(field), remedy)

    def objects(self, field: str, remedy: str = "See docs/corpora.md") -> Iterator[JsonObject]:
        """The objects in a required list."""
        for index, raw in enumerate(self.value(field, list)):
            yield JsonObject(raw, self.where, self.check, f"{self.name_of(field)}[{index}]", remedy)

    def optional_objects(self, field: str) -> Iterator[JsonObject]:
        """The objects in a list; none if it is missing or null."""
        return self.objects(field) if self.fields.get(field) is not None else iter(())

    def require(
        self, fields: Sequence[str], form: str, remedy: str = "Give files of this form, or name another format"
    ) -> None:
        """Raises CorpusError, which names the fields there are, unless all these are among them."""
        if missing := [field for field in fields if field not in self.fields]:
            problem = f"field '{missing[0]}' is missing, so this is not {form}; its fields are {names_of(self.fields)}"
            raise self.check.error(self.where, problem, remedy)

    def error(self, field: str, problem: str, remedy: str) -> CorpusError:
        """The error for a field; the `problem` is said of it: "has 2 values"."""
        return self.check.error(self.where, f"field '{self.name_of(field)}' {problem}", remedy)

    def annotation(self, fragments: Sequence[Offsets], kind: str, quoted: str = "text") -> Annotation:
        """The entity that this object describes; the quote is its field `quoted`, if it has one."""
        quote = self.value(quoted, str) if self.fields.get(quoted) else None
        return Annotation(self.name, tuple(fragments), kind, quote, self.where)
