"""The files of a split → documents → sentences, with the key under which these are cached."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from .. import parsing
from ..model import text_triaffine
from .cache_keys import file_digest, fingerprint_of
from .counts import WITHOUT_SPANS
from .cutting import sentences_of
from .detection import read_as
from .documents import Document, num_entities, numbered
from .formats import FORMATS
from .parts import Part
from .reading import read_head
from .record_checker import RecordChecker
from .schema import CorpusError, Record

SPLITTERS = ("word_splitter", "sentence_splitter")


def check_options(part: Part, options: Mapping[str, Any]) -> None:
    """Raises CorpusError if one of the options does not apply to the format of these files."""
    known = part.format
    without = "Load it without"
    retokenized = "Load it without, then use `retokenize`, which splits the tokens joined by spaces"
    taken = {
        "word_splitter": (known.keeps_text, "does not keep the text to which a word_splitter would apply", retokenized),
        "sentence_splitter": (
            not known.marks_sentences,
            "has its own sentences, so a sentence_splitter does not apply",
            without,
        ),
        "columns": (bool(known.columns), "has no columns to name", without),
        "offsets": (known.keeps_text, "has words, not offsets in a text", without),
    }
    for option in options:
        applies, why, remedy = taken[option]
        if not applies:
            raise CorpusError.at(part.path, "", f"the format {known.name!r} {why}", remedy)


@dataclass(frozen=True)
class Source:
    """The files of a split, and how they are read.

    Args:
        labels: the entity types allowed; None allows any.
        options: those that not every format takes, as far as they are given; see [`check_options`].
        format_given: the format that was named; None if it was detected.
        max_bad_records: how many records that cannot be read are dropped.
    """

    part: Part
    labels: tuple[str, ...] | None
    options: Mapping[str, Any]
    format_given: str | None
    max_bad_records: int

    def checker(self, unique_ids: bool = True) -> RecordChecker:
        path, offsets = self.part.path, self.options.get("offsets")
        how = partial(read_as, path, self.part.format, self.format_given)
        return RecordChecker(path, self.labels, unique_ids, how, offsets, self.max_bad_records)

    def documents(self, check: RecordChecker) -> Iterator[Document]:
        """All documents; of copies in several folders, the first; those with an id of an earlier one numbered."""
        documents = self._as_read(check)
        documents = _without_copies(documents, check) if len(self.part.files) > 1 else documents
        try:
            yield from numbered(documents, check) if check.unique_ids else documents
        except CorpusError as error:
            raise check.whole(error) from None

    def _as_read(self, check: RecordChecker) -> Iterator[Document]:
        known, path = self.part.format, self.part.path
        options = {"columns": self.options["columns"]} if "columns" in self.options else {}
        try:
            if known.documents is not None:
                yield from known.read(path, check, **options)
                return
            number = 0
            for file in self.part.files:
                check.path, check.folder, check.is_document = file, path, self.part.has_documents
                read_head(file)  # an empty file is reported as such, not as invalid content
                for document in known.read(file, check, **options):
                    number += 1
                    yield document
            check.path = path
        except Exception as error:
            owner = FORMATS.owner(known.name)
            if not owner or isinstance(error, (CorpusError, OSError, ImportError)):
                raise
            problem = f"the reader of the format {known.name!r}, {owner}, failed ({type(error).__name__}: {error})"
            remedy = "Tell its authors, or name another format with format=… (--format)"
            raise check.error("", problem, remedy) from error
        if number and check.counts[WITHOUT_SPANS] == number:
            problem = "no text has a field of spans"
            remedy = "Name the field with columns=… (--columns), or move a test split without gold entities elsewhere"
            raise check.error("", problem, remedy)

    def records(
        self, check: RecordChecker, documents: Callable[[RecordChecker], Iterable[Document]] | None = None
    ) -> Iterator[Record]:
        """The sentences of the `documents`, by default as they are read; raises CorpusError if there are none."""
        splitters = {name: self.options[name] for name in SPLITTERS if name in self.options}
        found = False
        for document in (documents or self.documents)(check):
            with check.record(num_entities(document)):
                for record in sentences_of(document, check, **splitters):
                    found = True
                    yield record
        if not found:
            raise check.error(
                "", "it has no sentences", check.report().removesuffix(".") or "Check whether it is complete"
            )

    def fingerprint(self, split: str) -> str:
        """The cache key: changes with the files' names and contents, the options, and the code that reads them."""
        known, path = self.part.format, self.part.path
        own = {*Path(__file__).parent.rglob("*.py"), Path(text_triaffine.__file__), Path(parsing.__file__)}
        content = [
            file_digest(file, str(file.relative_to(path) if file.is_relative_to(path) else file.name))
            for file in (*self.part.files, *sorted(own))
        ]
        reader = [known.read] if FORMATS.owner(known.name) else []
        splitters = [self.options[name] for name in SPLITTERS if name in self.options]
        options = [known.name, reader, self.labels, self.options, self.max_bad_records, split]
        return fingerprint_of([content, path.name, *options], [*reader, *splitters])


def _without_copies(documents: Iterator[Document], check: RecordChecker) -> Iterator[Document]:
    """The documents but for those that are in another folder, too, under the same name and with the same content."""
    first_ones: dict[tuple[str, int], tuple[str, int]] = {}
    for document in documents:
        folder, _, name = document.id.rpartition("/")
        words = [(one.fields.get("tokens"), one.fields.get("entities")) for one in document.sentences or ()]
        text = hash(document.text or repr([tokens for tokens, _ in words]))
        annotated = hash(repr((words, [(one.fragments, one.type) for one in document.annotations])))
        first_folder, first_annotated = first_ones.setdefault((name, text), (folder, annotated))
        example = f"{document.id}, as in {first_folder or 'the folder itself'}"
        if folder != first_folder and annotated == first_annotated:
            check.note("copies of documents in another folder left out", example=example)
            continue
        if folder != first_folder:
            check.note("documents in two folders with different entities, both read", example=example)
        yield document
