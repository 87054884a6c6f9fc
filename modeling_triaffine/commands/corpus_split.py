"""Reads the split of a corpus that a command works on."""

from collections.abc import Sequence
from typing import Any, NamedTuple


class CorpusSplit(NamedTuple):
    """One split of a corpus; `name` is what to call it, `key` what its files call it."""

    name: str
    key: str
    records: Any
    files: Any


def load_split(
    corpus: Sequence[str], corpus_format: str | None, split: str | None, processor: Any, max_bad_records: int
) -> CorpusSplit:
    """A split of a corpus, by default the validation split, or the only one, in the words of the corpus or the model.

    The split of a single file, which training reads as `train`, is called what the name of the file tells, or as the
    file.

    Raises:
        ValueError: the corpus has no such split.
    """
    from ..data.loading import CorpusFiles

    wanted = split_name(split or "validation")
    files = CorpusFiles(corpus, corpus_format, max_bad_records=max_bad_records, only=wanted)
    splits = files.sentences(None if files.has_own_words else processor.split_words, processor.sentence_splitter)
    called = {key: files.name_of_only_split or key for key in splits}
    is_any = split is None and len(splits) == 1
    matching = [key for key, name in called.items() if is_any or wanted in (key, name)]
    check_splits([] if matching else [wanted], [*called.values()], corpus)
    key = matching[0]
    return CorpusSplit(called[key], key, splits[key], files)


def check_splits(wanted: Sequence[str], known: Sequence[str], corpus: Sequence[str]) -> None:
    """Raises ValueError if a corpus lacks some of the splits that are given as --split."""
    if missing := [repr(name) for name in wanted if name not in known]:
        raise ValueError(f"{' '.join(corpus)} has no split {', '.join(missing)}. Give --split {' or '.join(known)}.")


def split_name(given: str) -> str:
    """The name of a split in `load_nested_ner`, where `dev` is `validation`."""
    from ..data.splits import SPLIT_OF_NAME

    return SPLIT_OF_NAME.get(given, given)
