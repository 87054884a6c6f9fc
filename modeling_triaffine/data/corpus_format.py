"""`CorpusFormat`: how a reader describes its file format to the rest of the package.

The formats themselves are in their readers' modules; `formats.py` lists them and detects which one a file has.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .schema import Document, Record, RecordChecker

TEXT_OPTIONS = ("word_splitter", "sentence_splitter")
"""Options of the formats that keep texts as written, without sentences or words."""


@dataclass(frozen=True)
class CorpusFormat:
    """A corpus format, as its reader registers it in `formats.FORMATS`.

    Args:
        name: value of `load_nested_ner(format=…)`.
        description: a few words for error messages.
        suffixes: file name suffixes, without `.gz`.
        recognizes: whether the first characters of a file look like this format.
        read: `read(path, check) → records`, a generator that passes each sentence through `check` (a `RecordChecker`)
            and reports to it what it drops (`check.drop`) or ignores (`check.note`). What it cannot read is a
            CorpusError, which names the place.
        split_starts: split → index of its first sentence, for a format whose file contains several splits.
        options: keyword arguments of `read`: "word_splitter" if the format keeps the text as written,
            "sentence_splitter" if it does not mark sentences, "columns" if it does not name its columns.
        read_texts: `read_texts(path, check) → documents`, the texts as written with their entities by characters, for a
            format that keeps them.
        documents: for a format of many small files, `documents(path) → files`: all files of this format that belong to
            the folder or document `path`, empty if there are none. `read` is then called with that `path`.
        lists: suffixes of files that list the documents of a split; `documents` and `read` accept them as `path`.
    """

    name: str
    description: str
    suffixes: tuple[str, ...]
    recognizes: Callable[[str], bool]
    read: Callable[..., Iterator[Record]]
    split_starts: Mapping[str, int] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    read_texts: Callable[[Path, RecordChecker], Iterator[Document]] | None = None
    documents: Callable[[Path], list[Path]] | None = None
    lists: tuple[str, ...] = ()

    @property
    def keeps_text(self) -> bool:
        """Whether the format keeps the text as written, so that any word splitter can be applied."""
        return "word_splitter" in self.options

    @property
    def has_own_words(self) -> bool:
        """Whether its sentences are words that the corpus cut itself, not those of the pipeline's word splitter."""
        return not set(TEXT_OPTIONS) <= set(self.options)

    def splits(self, num_sentences: int) -> dict[str, range]:
        """The sentence indices of each split in a file of `num_sentences`; splits beyond its end are left out."""
        starts = list(self.split_starts.values())
        stops = [*starts[1:], num_sentences]
        return {
            name: range(start, min(stop, num_sentences))
            for name, start, stop in zip(self.split_starts, starts, stops, strict=True)
            if start < num_sentences
        }
