"""A path → the files of each split and their format → texts → sentences of words in the library `datasets`."""

from __future__ import annotations

import glob
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from datasets import Dataset, DatasetDict

from ..files import visible_files
from .formats import FORMATS, IN_LIST, CorpusFormat
from .reading import document_name, read_head, record_keys
from .records import dataset_of_texts
from .schema import OF_TABLES, WITHOUT_SPANS, CorpusError, RecordChecker, Text, names_of
from .texts import DEFAULT_SENTENCE_SPLITTER, WordSplitter, is_written

logger = logging.getLogger(__name__)

SPLIT_OF_NAME = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(
        ("dev", "devel", "develop", "development", "val", "valid", "eval", "validation", "testa"), "validation"
    ),
    **dict.fromkeys(("test", "testing", "testb"), "test"),
}
"""Name of a file, folder or key of `path` → its split. CoNLL-2002 and 2003 call theirs testa and testb."""

SPLIT_IN_NAME = re.compile(rf"(?<![a-z0-9])({'|'.join(SPLIT_OF_NAME)})(?:set)?(?![a-z0-9])")
TABLES = (".parquet", ".arrow", ".xlsx")
GIVE_FILES = "Give a corpus file, or a folder with train, dev and test"
EACH_BY_ITSELF = 'Give one, or a pattern: --train_file, --validation_file, --test_file, in Python {"train": "train_*"}'
REMEDY = (
    "docs/corpora.md shows all forms that are read: name one (--format, in train --data_format), or convert JSON whose "
    "fields have other names (triaffine-ner convert --columns 'text=… entities=… start=… end=… type=…')"
)
SHOWN = 3

PathLike = str | os.PathLike[str]
Paths = PathLike | Sequence[PathLike]
CorpusPath = Paths | Mapping[str, Paths]
"""A corpus: a file, a folder or a pattern such as "gum/*.conllu"; several of them; or a mapping of splits to these."""


def load_nested_ner(
    path: CorpusPath,
    format: str | None = None,
    *,
    word_splitter: WordSplitter | None = None,
    sentence_splitter: str | None = None,
    columns: Mapping[str, Any] | None = None,
    offsets: str | None = None,
    max_bad_records: int = 0,
) -> DatasetDict:
    """Loads a nested NER corpus in the schema of this package (`FEATURES`); docs/corpora.md says what is read, and how.

    Returns those of the splits `train`, `validation` and `test` that exist. What a reader drops is counted, logged as
    one warning for each split, and kept in the split's `info.description`.

    Args:
        path: a file; a folder, whose files or folders named `train`, `dev` and `test` are the splits (if none is, all
            of it is `train`); a pattern such as "gum/*.conllu"; a list of these; or a mapping of splits to these.
        format: one of `FORMATS`; None detects it from content and name.
        word_splitter: a function from a text to the [(start, end)] of its words. None takes the words of the corpus; if
            it has none, the words that the pipeline finds.
        sentence_splitter: how texts are split into sentences whose corpus marks none: "punctuation" (the default, as in
            the pipeline), "lines" or "none".
        columns: the columns, layer, span group or fields to read, as the format takes them, such as
            {"tokens": 0, "entities": [1, 2]} of "iob2", {"text": "body", "entities": "marks"} of JSON. None: detected.
        offsets: what the offsets in texts count: "characters" (None), "utf16" (units of UTF-16) or "bytes" (of UTF-8).
        max_bad_records: how many records and entities of each split that cannot be read are dropped, each named with
            its place in the report. One more raises CorpusError, and so does what does not parse as a whole.

    Raises:
        FileNotFoundError: there is no such file, or a folder has no splits.
        CorpusError: a ValueError. The format cannot be detected, or a file cannot be read.
        TypeError: `path` is data in memory, which [`adapt_dataset`] converts; an option is of another type.

    Examples:
        >>> from modeling_triaffine import load_nested_ner
        >>> corpus = load_nested_ner("outputs/demo/corpus")
        >>> sorted(corpus)
        ['test', 'train', 'validation']
        >>> corpus["train"][0]["entities"][0].keys() >= {"start", "end", "type"}
        True
    """
    if word_splitter is not None and not callable(word_splitter):
        raise TypeError(f"`word_splitter` is {word_splitter!r}. Give a function from a text to the offsets of words.")
    splits = DatasetDict()
    for part in read_parts(path, format, columns=columns, offsets=offsets, max_bad_records=max_bad_records):
        splits |= part.sentences(word_splitter, sentence_splitter)
    return splits


def load_texts(
    path: CorpusPath,
    format: str | None = None,
    *,
    columns: Mapping[str, Any] | None = None,
    offsets: str | None = None,
    max_bad_records: int = 0,
) -> dict[str, list[Text]]:
    """Loads the texts of a corpus by split, as they were written, with entities by characters; see [`Text`].

    Sentences of a corpus of words alone are lines. Entities that cross sentences or begin inside a word are kept;
    discontinuous ones are dropped. Arguments and errors are those of [`load_nested_ner`].

    Examples:
        >>> import json
        >>> from pathlib import Path
        >>> from modeling_triaffine.data import load_texts
        >>> _ = Path("texts.jsonl").write_text(json.dumps({"text": "Orsk slept.", "entities": [[0, 4, "City"]]}))
        >>> load_texts("texts.jsonl")["train"][0]["entities"]
        [{'start': 0, 'end': 4, 'type': 'City'}]
    """
    splits: dict[str, list[Text]] = {}
    for part in read_parts(path, format, columns=columns, offsets=offsets, max_bad_records=max_bad_records):
        splits |= part.texts
        part.check.tell()
    for text in chain.from_iterable(splits.values()):
        text.pop("where", None)
    return splits


@dataclass
class CorpusPart:
    """The contents of files that belong together: the texts of a split, or of all splits of GENIA's XML."""

    check: RecordChecker
    texts: dict[str, list[Text]] = field(default_factory=dict)
    name: str | None = None
    """The name to use in place of `train`, if no one names the split: the split in the file's name, or that name."""
    logged: set[str] = field(default_factory=set)
    """The reports that were logged: sentences of other words may have the same one, which is not repeated."""

    @property
    def has_words(self) -> bool:
        """Some of the texts have words of the corpus's own."""
        return any("words" in text for text in chain.from_iterable(self.texts.values()))

    @property
    def is_written(self) -> bool:
        """The texts are as written, so that a model can be scored on raw text."""
        return any(map(is_written, chain.from_iterable(self.texts.values())))

    def sentences(
        self, word_splitter: WordSplitter | None = None, sentence_splitter: str | None = None, own_words: bool = False
    ) -> dict[str, Dataset]:
        """The splits in the schema; see [`load_nested_ner`] and [`sentences_of`]."""
        check = deepcopy(self.check)
        splitters = word_splitter, sentence_splitter or DEFAULT_SENTENCE_SPLITTER, own_words
        splits = {split: dataset_of_texts(texts, check, split, *splitters) for split, texts in self.texts.items()}
        if not any(map(len, splits.values())):
            remedy = check.report().removesuffix(".") or "Check whether it is complete"
            raise check.error("", "it has no sentences", remedy)
        if (report := check.report()) not in self.logged:
            self.logged.add(check.tell())
        for rows in splits.values():
            rows.info.description = report
        return splits


def read_parts(
    path: CorpusPath,
    format: str | None = None,
    *,
    columns: Mapping[str, Any] | None = None,
    offsets: str | None = None,
    max_bad_records: int = 0,
    only: str | None = None,
) -> list[CorpusPart]:
    """Reads each file of a corpus once; sentences in the corpus's own or in other words are made of its texts later.

    Where splits are files of their own, `only` is the one to read. For the other arguments see [`load_nested_ner`].
    """
    if columns is not None and not isinstance(columns, Mapping):
        raise TypeError(f"`columns` is {columns!r}. Give a mapping, such as {{'tokens': 0, 'entities': [1, 2]}}.")
    how = "--format (in train --data_format) names another" if format is None else "as named"
    if columns is not None and format is None:
        of_words = isinstance(columns.get("tokens"), str) or "names" in columns
        format = "text_spans" if "text" in columns else "word_tags" if of_words else None
    found = find_splits(path, format)
    parts = []
    for split, files in ({only: found[only]} if only in found else found).items():
        known = files.format
        if columns is not None and not known.columns:
            raise CorpusError.at(files.path, "", f"the format {known.name!r} has no columns", "Leave them out")
        read_as = f"Read as {known.name!r} ({known.description}); {how}"
        part = CorpusPart(RecordChecker(files.path, read_as, offsets, max_bad_records))
        for text in part.check.numbered(_texts(files, part.check, {} if columns is None else {"columns": columns})):
            part.texts.setdefault(split or text.get("split") or "train", []).append(text)
        part.texts = part.texts or {split or "train": []}
        if split is None and not any("split" in text for text in part.texts.get("train", ())):
            part.name = split_of(files.path) or files.path.name
        parts.append(part)
    return parts


def _texts(files: SplitFiles, check: RecordChecker, options: Mapping[str, Any]) -> Iterator[Text]:
    """The texts of a split; `check` counts what the reader does not read."""
    number = 0
    check.folder, check.is_document = files.path, len(files.files) > 1
    check.keeps_suffix = len({document_name(file, check) for file in files.files}) < len(files.files)
    for file in files.files:
        if files.format.documents is None:
            check.path = file
            read_head(file)  # an empty file is reported as such, not as invalid content
        for text in files.format.read(file, check, **options):
            number += 1
            yield text
    check.path = files.path
    if number and check.counts[WITHOUT_SPANS] == number:
        remedy = "Name the field (convert --columns, columns=), or move a test split without entities elsewhere"
        raise check.error("", "no text has a field of spans", remedy)


class SplitFiles(NamedTuple):
    """The files of a split, all of one format; `path` is what messages name: the file, or the folder around them."""

    path: Path
    files: tuple[Path, ...]
    format: CorpusFormat


def split_of(path: Path) -> str | None:
    """The split that is in the name of a file or folder; None if none is, or several are."""
    names = SPLIT_IN_NAME.findall(plain_name(path))
    return SPLIT_OF_NAME[names[0]] if len(names) == 1 else None


def _is_split(path: Path) -> bool:
    """The name is that of a split, without other words."""
    return SPLIT_IN_NAME.fullmatch(_stem(path)) is not None


# ---- The files of each split ----


def find_splits(path: CorpusPath, format: str | None) -> dict[str | None, SplitFiles]:
    """Finds the files of each split. The split is None if no name tells one: its texts say it, or it is all `train`."""
    if format is not None and format not in FORMATS:
        raise ValueError(f"There is no format {format!r}. Choose {', '.join(sorted(FORMATS))}, or none to detect it.")
    known = None if format is None else FORMATS[format]
    if not isinstance(path, Mapping):
        given = GivenFiles(path, known)
        return given.named_splits() or {None: given.together(given.folder)}
    splits: dict[str | None, SplitFiles] = {}
    for name, of_split in path.items():
        split = SPLIT_OF_NAME.get(name, name)
        if split in splits:
            raise ValueError(f"Two files are given for the split {split!r}. Give one, or a list of both.")
        given = GivenFiles(of_split, known)
        named = given.named_splits() if len(given.paths) == 1 else {}
        if split not in named and len(named) > 1:
            problem = f"it is given for {split}, and has {', '.join(sorted(map(str, named)))}"
            raise CorpusError.at(given.folder, "", problem, "Give the files")
        splits[split] = named.get(split) or given.together(given.folder)
    return splits


class GivenFiles:
    """The files below some paths, and the formats of those that are read."""

    def __init__(self, given: object, known: CorpusFormat | None):
        self.paths, self.known = _existing(given), known
        # The only path, or the folder around several, which messages name.
        self.folder = self.paths[0] if len(self.paths) == 1 else Path(os.path.commonpath(self.paths))
        self.above = {*self.paths, *(folder for path in self.paths for folder in path.parents)}
        self.files = [*dict.fromkeys(file for path in self.paths for file in visible_files(path))]
        self.formats = self._formats()

    def _formats(self) -> dict[Path, CorpusFormat]:
        """The format of each file that is read: the known one, its own, or that of its neighbors."""
        kinds = [self.known] if self.known else FORMATS.values()
        # Of documents that consist of several files, the ones to read.
        found = {file: kind for kind in kinds if kind.documents for path in self.paths for file in kind.documents(path)}
        documents = {_stem(file) for file in found}  # the other files of a document have the same stem
        for file in self.files:
            own = None if _stem(file) in documents else self._own_format(file)
            if own is not None and (own.documents is None or file == self.folder):
                found[file] = own
        # Files without a format that are named like others get theirs; its reader says what is wrong with them.
        near = {_suffix(file): kind for file, kind in found.items() if kind.documents is None}
        for file in self.files:
            like = near.get(_suffix(file))
            if file not in found and like and (split_of(file) or _suffix(file) in like.suffixes):
                found[file] = like
        return found

    def _own_format(self, file: Path) -> CorpusFormat | None:
        """The format of a file by its name and content; None if it has none, or not the known one."""
        if self.known and (file in self.paths or plain_name(file).endswith(self.known.suffixes)):
            return self.known
        with suppress(CorpusError, OSError):
            if self.known is None:
                return format_of_file(file)
            return self.known if self.known in formats_recognizing(read_head(file)) else None
        return None

    def named_splits(self) -> dict[str | None, SplitFiles]:
        """The splits that names of files or folders tell, the least deep ones. Files that are left out are logged."""
        found = {place for file in sorted(self.formats) if (place := self._place_of(file))}
        depths = {place: 0 if place in self.above else len(place.parts) for place in sorted(found)}
        least_deep = min(depths.values(), default=0)
        splits: dict[str | None, SplitFiles] = {}
        for split in dict.fromkeys(SPLIT_OF_NAME.values()):
            places = [place for place, depth in depths.items() if depth == least_deep and split_of(place) == split]
            places = [place for place in places if _is_split(place)] or places
            alike = [place for place in places if not place.is_dir()] or places
            if len(alike) > 1:
                problem = f"{_shown(self.folder, alike)} could each be its {split} split"
                raise CorpusError.at(self.folder, "", problem, EACH_BY_ITSELF)
            if alike:
                splits[split] = self.together(alike[0])
        if splits:
            read = {file for files in splits.values() for file in files.files}
            kinds, names = {files.format for files in splits.values()}, {_stem(file) for file in read}
            left_out = [
                file
                for file in sorted({*self.files} - read)
                if self.formats.get(file) in kinds or (split_of(file) and _stem(file) not in names)
            ]
            if named := [file for file in left_out if file in self.paths]:
                raise CorpusError.at(named[0], "", "its name tells no split, as those of others do", EACH_BY_ITSELF)
            _log_files(self.folder, "files outside all splits left out", left_out)
        return splits

    def _place_of(self, file: Path) -> Path | None:
        """The outermost folder, or else the file itself, whose name tells the split of a file; None if none does."""
        below = [place for place in (*reversed(file.parents), file) if self.folder in place.parents]
        told = {place: split for place in below if (split := split_of(place))}
        place = next(iter(told), None)
        if place is None or _is_split(place):
            return place
        if self.formats[file].documents is not None:  # which may have any name
            return None if place == file else place
        if len({*told.values()}) > 1:
            problem = f"{_shown(self.folder, [file])} has the names of several splits"
            raise CorpusError.at(self.folder, "", problem, f"Give the folder that contains them. {EACH_BY_ITSELF}")
        return place

    def together(self, place: Path) -> SplitFiles:
        """All files at a place as one split. Documents come before other files, which may describe them."""
        files = [file for file in self.files if place == file or place in file.parents]
        read = {file: self.formats[file] for file in files if file in self.formats}
        documents = {file: kind for file, kind in read.items() if kind.documents is not None}
        examples = {kind.name: file for file, kind in (documents or read).items()}
        if len(examples) > 1:
            forms = ", ".join(f"{name!r} ({os.path.relpath(file, place)})" for name, file in examples.items())
            remedy = f"Give the folder of one, or name one: --format (in train --data_format) {next(iter(examples))}"
            raise CorpusError.at(place, "", f"it has files of several forms, {forms}", remedy)
        if not examples:
            for file in files if self.known is None else ():
                if len({*map(_suffix, files)}) == 1 or split_of(file):
                    format_of_file(file)  # whose error says more
            wanted = f"the format {self.known.name}" if self.known else "a known format"
            raise FileNotFoundError(
                f"{place}: it has no documents or files of {wanted}. It contains {_shown(place, files) or 'no files'}. "
                f"{GIVE_FILES}; `predict` reads texts without entities. {OF_TABLES}."
            )
        if not documents:
            _log_files(place, "files of unknown formats left out", [file for file in files if file not in read])
        (name,) = examples
        return SplitFiles(place, tuple(documents or read), FORMATS[name])


def _existing(given: object) -> list[Path]:
    """The files and folders of a path, a pattern, or several of either."""
    found: list[Path] = []
    for entry in given if isinstance(given, (list, tuple)) else [given]:
        if not isinstance(entry, (str, os.PathLike)):
            found_type = type(entry).__name__
            raise TypeError(f"A corpus is a file or folder, but the data is of type {found_type}. {OF_TABLES}.")
        path = Path(entry).expanduser()
        matching = [path] if path.exists() else sorted(map(Path, glob.glob(str(path), recursive=True)))
        if not matching:
            raise FileNotFoundError(f"{path}: no such file. {GIVE_FILES}.")
        found += matching
    if not found:
        raise ValueError("No file is given. Give the path of a corpus file or folder.")
    if len(found) == 1 and found[0].name:
        return found
    # "." has no name, and the folder around several is absolute.
    return [*dict.fromkeys(Path(os.path.abspath(path)) for path in found)]


def plain_name(path: Path) -> str:
    """The name of a file in small letters and without `.gz`, as suffixes and splits are looked for in it."""
    return path.name.lower().removesuffix(".gz")


def _stem(path: Path) -> str:
    return plain_name(path).partition(".")[0]


def _suffix(path: Path) -> str:
    return Path(plain_name(path)).suffix


def _log_files(folder: Path, what: str, files: Sequence[Path]) -> None:
    if files:
        logger.warning("%s: %s: %d (%s).", folder, what, len(files), _shown(folder, files))


def _shown(folder: Path, files: Sequence[Path]) -> str:
    names = [os.path.relpath(file, folder) for file in files]
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")


# ---- The format of a file ----


def format_of_file(path: Path) -> CorpusFormat:
    """The format of a file by its content, or else its suffix; CorpusError if it is empty, or of no known format."""
    name = plain_name(path)
    is_table = name.endswith(TABLES)
    head = "" if is_table else read_head(path)
    recognized = formats_recognizing(head) if head else []
    named = [known for known in FORMATS.values() if name.endswith(known.suffixes) and not known.keys]
    if recognized or len(named) == 1:  # .xml is of several, and of much else
        return [*recognized, *named][0]
    if is_table or name.endswith(".csv"):
        raise CorpusError.at(path, "", "tables are not read", OF_TABLES)
    if "\0" in head:
        raise CorpusError.at(path, "", "it has characters NUL, as UTF-16 and no text has", "Save the file as UTF-8")
    problem = f"its format cannot be detected; it begins with {head[:40]!r}"
    if keys := sorted(record_keys(head)):
        problem = f"its JSON is of no known form; the keys of its first record are {names_of(keys)}"
    raise CorpusError.at(path, "", problem, REMEDY)


def formats_recognizing(head: str) -> list[CorpusFormat]:
    """The formats that recognize a file by its first characters best: in JSON, those that require most of its keys.

    A test sees to it that one format of this package does; those registered at run time come after it.
    """
    keys = record_keys(head)
    keys |= {IN_LIST} if keys and head.startswith("[") else set()
    fits = {known.name: known.fit(head, keys) for known in FORMATS.values()}
    best = max(fits.values())
    return [FORMATS[name] for name, fit in fits.items() if fit == best] if best else []
