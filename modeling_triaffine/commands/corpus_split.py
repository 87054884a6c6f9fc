"""Reads the split of a corpus that a command works on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple


class CorpusSplit(NamedTuple):
    """One split of a corpus; if `is_written`, its texts are not words joined by spaces."""

    name: str
    records: Any
    texts: list[Any]
    is_written: bool
    files: tuple[Path, ...]


def load_split(
    corpus: Sequence[str], corpus_format: str | None, split: str | None, processor: Any, max_bad_records: int
) -> CorpusSplit:
    """A split of a corpus, by default the validation split, or the only one, in the words of the corpus or the model.

    The split of a single file, which training reads as `train`, is called what the name of the file tells, or as the
    file.

    Raises:
        ValueError: the corpus has no such split.
    """
    from ..data.loading import read_parts

    wanted = split_name(split or "validation")
    parts = read_parts(corpus, corpus_format, max_bad_records=max_bad_records, only=wanted)
    found = [(part.name or key, key, part) for part in parts for key in part.texts]
    is_any = split is None and len(found) == 1
    matching = [one for one in found if is_any or wanted in one]
    check_splits([] if matching else [wanted], [name for name, _, _ in found], corpus)
    name, key, part = matching[0]
    records = part.sentences(processor.split_words, processor.sentence_splitter, own_words=True)[key]
    return CorpusSplit(name, records, part.texts[key], part.is_written, part.files.files)


def check_splits(wanted: Sequence[str], known: Sequence[str], corpus: Sequence[str]) -> None:
    """Raises ValueError if a corpus lacks some of the splits that are given as --split."""
    if missing := [repr(name) for name in wanted if name not in known]:
        raise ValueError(f"{' '.join(corpus)} has no split {', '.join(missing)}. Give --split {' or '.join(known)}.")


def split_name(given: str) -> str:
    """The name of a split in `load_nested_ner`, where `dev` is `validation`."""
    from ..data.corpus_files import SPLIT_OF_NAME

    return SPLIT_OF_NAME.get(given, given)
