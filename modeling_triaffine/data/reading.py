"""Access to the contents of corpora: gzip, UTF-8, JSON and XML, with errors that say where a file is damaged."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, BinaryIO, TypeVar
from xml.etree import ElementTree
from xml.parsers import expat

from pydantic import Strict
from pydantic_core import from_json

from ..files import GZIP_MAGIC, NO_TEXT, DataError, decode_json, decode_text
from .schema import BYTE_ORDER_MARK, CorpusError, Entity, RecordChecker, Text, Value, names_of

Decoded = TypeVar("Decoded")

HEAD_SIZE = 1 << 16
XML_CHUNK = 1 << 20  # older expat reads a long attribute anew with every chunk
MAX_DEPTH = 200  # of XML; Python limits the depth of functions that follow it


@contextmanager
def open_corpus(path: Path) -> Iterator[BinaryIO]:
    """Opens a file for reading bytes and unpacks it if its content is gzip data."""
    with path.open("rb") as plain:
        start = plain.read(max(map(len, NO_TEXT)))
        plain.seek(0)
        for head, (problem, remedy) in NO_TEXT.items():
            if start.startswith(head) and head != GZIP_MAGIC:
                raise CorpusError.at(path, "", problem, remedy)
        try:
            # GzipFile has the methods of BinaryIO that are used.
            yield gzip.GzipFile(fileobj=plain) if start.startswith(GZIP_MAGIC) else plain  # type: ignore[misc]
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            problem = f"the gzip data is damaged or truncated ({error})"
            raise CorpusError.at(path, "", problem, "Download or compress the file again") from None


def name_in_corpus(path: Path, check: RecordChecker) -> str:
    """The name of a file with the folders in which it lies in its corpus, for ids and messages."""
    folder = check.folder or path
    return path.relative_to(folder if folder.is_dir() else folder.parent).as_posix()


def document_name(path: Path, check: RecordChecker) -> str:
    """Returns the name of a file for ids: without its suffix and `.gz`, with its folders in the corpus.

    The suffix stays if it alone tells files of a split apart. `path` and `check` are what a reader
    (`CorpusFormat.read`) gets.

    Examples:
        >>> from pathlib import Path
        >>> from modeling_triaffine.data import RecordChecker, document_name
        >>> document_name(Path("news/monday.txt.gz"), RecordChecker(Path("news")))
        'monday'
    """
    name = Path(name_in_corpus(path, check))
    name = name.with_suffix("") if name.suffix.lower() == ".gz" else name
    return (name if check.keeps_suffix else name.with_suffix("")).as_posix()


def read_head(path: Path) -> str:
    """The first characters of a file, from which its format is detected."""
    found = path.stat()
    return _head(path, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=8)  # of a file that is detected, checked and read
def _head(path: Path, size: int, changed: int) -> str:
    with open_corpus(path) as file:
        data = file.read(HEAD_SIZE)
    is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # which XML may be, and errors are to name
    text = data.decode("utf-16" if is_utf16 else "utf-8-sig", errors="replace")
    head = text.lstrip()
    if not head:
        raise CorpusError.at(path, "", "the file is empty", "Give a file with at least one sentence")
    if head[0] in "{[<":
        return head
    return text[text.rfind("\n", 0, len(text) - len(head)) + 1 :]  # a first token may be white space


def read_text(path: Path, check: RecordChecker, where: str) -> str:
    """A whole file as text; line ends and byte order mark are kept. CorpusError if it is not UTF-8."""
    with open_corpus(path) as file:
        return decoded(file.read(), check, where, decode_text)


def numbered_lines(path: Path, check: RecordChecker, name: str = "") -> Iterator[tuple[int, str]]:
    """Yields the lines of a file with their numbers, without line ends and byte order mark.

    The file may be gzipped. Only a line feed ends a line, with or without a carriage return before it. CorpusError if a
    line is not UTF-8.

    Args:
        path, check: as a reader (`CorpusFormat.read`) gets them.
        name: of the file in its corpus, for messages, if the checker does not name it.

    Examples:
        >>> from pathlib import Path
        >>> from modeling_triaffine.data import RecordChecker, numbered_lines
        >>> path = Path("lines.txt")
        >>> _ = path.write_bytes(b"Orsk slept.\\r\\nIt rained.")
        >>> list(numbered_lines(path, RecordChecker(path)))
        [(1, 'Orsk slept.'), (2, 'It rained.')]
    """
    with open_corpus(path) as lines:
        for number, data in enumerate(lines, start=1):
            yield number, _line(number, data, check, f"{name}, line {number}".lstrip(", "))


def numbered_paragraphs(path: Path, check: RecordChecker) -> Iterator[list[tuple[int, str]]]:
    """The groups of lines between blank lines, each a record; see [`numbered_lines`]."""
    with open_corpus(path) as lines:
        for is_blank, group in groupby(enumerate(lines, start=1), key=lambda line: _is_blank(line[1])):
            if not is_blank:
                with check.record():
                    paragraph = [(number, _line(number, data, check, f"line {number}")) for number, data in group]
                    for number in (number for number, line in paragraph if "\r" in line):
                        problem = "there is a carriage return inside the line"
                        raise check.error(f"line {number}", problem, "End every line with a line feed, or with both")
                    yield paragraph


def _is_blank(line: bytes) -> bool:
    return not line.decode(errors="replace").removeprefix(BYTE_ORDER_MARK).strip()


def _line(number: int, data: bytes, check: RecordChecker, where: str) -> str:
    """A line without its end, the first without a byte order mark."""
    mark = BYTE_ORDER_MARK if number == 1 else ""
    return decoded(data, check, where, decode_text).rstrip("\r\n").removeprefix(mark)


def decoded(data: bytes, check: RecordChecker, where: str, decode: Callable[[bytes], Decoded]) -> Decoded:
    """Decodes bytes by `decode_text` or `decode_json`; raises CorpusError, with the place, for damaged ones."""
    try:
        return decode(data)
    except DataError as error:
        raise check.error(where, error.problem, error.remedy) from None


def xml_elements(path: Path, check: RecordChecker, name: str = "") -> Iterator[ElementTree.Element]:
    """The elements of an XML file in the order of their end tags, the root last; `clear()` them to save memory.

    Safe for files from strangers: nothing external is fetched, and expat limits the growth of declared entities. For
    messages, `name` is that of the file in its corpus, if the checker does not name it.
    """
    depth = 0
    for event, element in _events(path, check, name):
        depth += 1 if event == "start" else -1
        if depth > MAX_DEPTH:
            problem = f"its tags are nested more than {MAX_DEPTH} deep, at <{element.tag}>"
            raise check.error(name, problem, "Check whether an end tag is missing")
        if event == "end":
            yield element


def parse_xml(path: Path, check: RecordChecker, name: str) -> ElementTree.Element:
    """The root element of a small XML file from strangers; see [`xml_elements`]."""
    *_, root = xml_elements(path, check, name)
    return root


def _events(path: Path, check: RecordChecker, name: str) -> Iterator[Any]:
    with open_corpus(path) as file:
        in_chunks: Any = SimpleNamespace(read=lambda size: file.read(XML_CHUNK))  # `iterparse` asks for small ones
        try:
            yield from ElementTree.iterparse(in_chunks, ("start", "end"))
        except (ElementTree.ParseError, expat.ExpatError) as error:
            line, column = error.position if isinstance(error, ElementTree.ParseError) else (error.lineno, error.offset)
            where = f"{name}, line {line}".lstrip(", ")
            problem = f"invalid XML, {expat.ErrorString(error.code)} at column {column + 1}"
            raise check.error(where, problem, "Check whether the file is truncated, or download it again") from None
        except (LookupError, ValueError) as error:  # how the parser reports an unknown encoding
            remedy = "Correct the encoding in the XML declaration: it should be UTF-8"
            raise check.error(name, str(error), remedy) from None


# ---- JSON ----

SEE_DOCS = "See docs/corpora.md"
HALF_PAIR = re.compile(r"\\(?:\\|u[dD][89a-fA-F]..)")
"""The escape of a surrogate, of which pydantic does not parse half a pair; or of a backslash, which begins none."""
Pair = Annotated[tuple[int, int], Strict(False)]
Triple = Annotated[tuple[int, int, str], Strict(False)]
"""Lists of two numbers, and of two numbers and a type."""


def json_values(path: Path, check: RecordChecker) -> Iterator[tuple[object, str]]:
    """The values of JSON lines, of one JSON list, or one value of several lines; each with its place in the file."""
    head = read_head(path)
    first, continues, _ = head.partition("\n")
    with open_corpus(path) as file:
        # A list of records begins with [{ or [[. JSON lines may be lists, too, such as ["text", {"entities": …}].
        if not re.match(r'\[\s*[^\s"]', head) and not (continues and first.rstrip()[-1:] in "{[,"):
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
        where, name: its place in the file ("line 3"), and in that ("passages[0]"; empty: the record itself).
    """

    def __init__(self, raw: object, where: str, check: RecordChecker, name: str = "", remedy: str = SEE_DOCS):
        self.fields: dict[str, Any] = check.valid(raw, dict, where, name, remedy)
        self.where, self.check, self.name = where, check, name

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

    def objects(self, field: str, optional: bool = False) -> Iterator[JsonObject]:
        """The objects in a list; none if the list is `optional` and missing or null."""
        found = self.value(field, list) if not optional or self.fields.get(field) is not None else []
        for index, raw in enumerate(found):
            yield JsonObject(raw, self.where, self.check, f"{self.name_of(field)}[{index}]")

    def first_of(self, names: Sequence[str]) -> str:
        """Returns the first of several names of a field that has a value; CorpusError if none is there."""
        has_value = (name for name in names if self.get(name) is not None)
        if found := next(has_value, None) or next((name for name in names if name in self.fields), None):
            return found
        remedy = f"Name it {' or '.join(name for name in names if '.' not in name)}; convert --columns takes others"
        raise self.error(names[0], f"is missing; the fields are {names_of(self.fields)}", remedy)

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
            of the file (`file_name`) with the number of the record. Options of the reader (`columns`) are passed on.
        fields, values: the fields of a record, for messages; and what reads the records of a file with their places.
    """

    def read(path: Path, check: RecordChecker, **options: Any) -> Iterator[Text]:
        name, remedy = file_name(path, check), f"A record has the fields {fields}"
        for number, (raw, where) in enumerate(values(path, check)):
            with check.record():
                text = text_of(JsonObject(raw, where, check, "", remedy), f"{name}:{number}", **options)
                if text is not None:
                    yield text

    return read


# ---- Texts as JSON ----

LAYERS: dict[str, tuple[Any, str]] = {
    "borders": (list[int], ""),
    "sentences": (list[Pair], ""),
    "sentence_ids": (list[str], "sentences"),
    "first_sentence": (int, "sentences"),
    "left_tokens": (list[str], "sentence_ids"),
    "right_tokens": (list[str], "sentence_ids"),
    "words": (list[Pair], ""),
    "pos": (list[str], "words"),
    "forms": (list[str], "words"),
    "word_entities": (list[Entity], "words"),
}
"""The fields that a text may have beside its entities → type, and the other field that it belongs to."""


def layers_of(record: JsonObject, text: str) -> dict[str, Any]:
    """The fields of `LAYERS` in the JSON of a text, but those of other types; CorpusError if one does not fit it."""
    found: dict[str, Any] = {}
    for name, (kind, owner) in LAYERS.items():
        if record.fields.get(name) is not None and (not owner or owner in found):
            with suppress(CorpusError):
                found[name] = record.value(name, kind)
    for name in {"sentences", "words"} & found.keys():
        starts = [0, *(start for start, _ in found[name])]
        if starts != sorted(starts) or not all(start < end <= len(text) for start, end in found[name]):
            raise record.error(name, "is not in order or outside of the text", "Give [start, end] in characters")
    for name in [name for name in ("sentence_ids", "pos", "forms") if name in found]:
        size, owner = len(found[name]), LAYERS[name][1]
        if size != len(found[owner]):
            raise record.error(name, f"has {size} values for {len(found[owner])} {owner}", "Give one for each")
    if "word_entities" in found:
        record.check.check_positions(found["word_entities"], len(found["words"]), record.where)
    return found
