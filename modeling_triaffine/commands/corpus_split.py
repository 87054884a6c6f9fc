"""Reads the split of a corpus that a command works on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datasets import Dataset

    from ..data.loading import CorpusFiles


@dataclass(frozen=True)
class CorpusSplit:
    """One split of a corpus; `name` is what to call it, `key` what its files call it."""

    name: str
    key: str
    records: "Dataset"
    files: "CorpusFiles"

    def texts(self) -> Any:
        """The texts as written, for files that keep them."""
        return self.files.texts().get(self.key, [])


def load_split(
    corpus: str | list[str], corpus_format: str | None, split: str | None, processor: Any, max_bad_records: int
) -> CorpusSplit:
    """A split of a corpus, by default the validation split, or the only one.

    Texts of a corpus without sentences or words of its own are split into those of the model's `processor`. The split
    of a single file, which training reads as `train`, is called what the name of the file tells, or as the file.

    Raises:
        ValueError: the corpus has no such split.
    """
    from ..data.loading import CorpusFiles

    wanted = split_name(split or "validation")
    files = CorpusFiles(corpus, corpus_format, max_bad_records=max_bad_records, only=wanted)
    words = None if files.has_own_words else processor.split_words
    splits = files.sentences(words, processor.sentence_splitter)
    called = {key: files.name_of_only_split or key for key in splits}
    is_any = split is None and len(splits) == 1
    matching = [key for key, name in called.items() if is_any or wanted in (key, name)]
    check_splits("--split", [] if matching else [wanted], [*called.values()], corpus)
    key = matching[0]
    return CorpusSplit(called[key], key, splits[key], files)


def check_splits(option: str, wanted: Sequence[str], known: Sequence[str], corpus: str | list[str]) -> None:
    """Raises ValueError if a corpus lacks some of the splits that are the value of the option."""
    if missing := [repr(name) for name in wanted if name not in known]:
        given = corpus if isinstance(corpus, str) else " ".join(corpus)
        raise ValueError(f"{given} has no split {', '.join(missing)}. Give {option} {' or '.join(known)}.")


def split_name(given: str) -> str:
    """The name of a split in `load_nested_ner`, where `dev` is `validation`."""
    from ..data.splits import SPLIT_OF_NAME

    return SPLIT_OF_NAME.get(given, given)
