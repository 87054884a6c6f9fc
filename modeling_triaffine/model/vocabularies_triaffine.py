"""Vocabularies of the parts of a word beside its sub-words: words, parts of speech and characters → ids."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .checks_triaffine import check_kind, reading
from .repository_triaffine import find_file
from .text_triaffine import composed

VOCABULARIES_FILE = "vocabularies.json"
VOCABULARY_PARTS = ("words", "pos", "chars")
PADDING, UNKNOWN = "[PAD]", "[UNK]"


def check_parts(name: str, parts: Sequence[Any]) -> None:
    """Raises ValueError if the option `name` contains unknown parts."""
    if unknown := [part for part in parts if part not in VOCABULARY_PARTS]:
        raise ValueError(f"`{name}` holds {unknown}; choose among {', '.join(VOCABULARY_PARTS)}.")


def count_vocabularies(
    records: Iterable[dict[str, Any]], parts: Sequence[str], min_count: int
) -> dict[str, dict[str, int]]:
    """The vocabularies of these parts, of names that occur at least `min_count` times, by decreasing frequency."""
    counts: dict[str, Counter[str]] = {part: Counter() for part in parts}
    for record in records:
        words = list(map(composed, record["tokens"]))
        for part, count in counts.items():
            if part == "pos":
                count.update(record["pos"])
            else:  # a string counts as its characters
                count.update("".join(words) if part == "chars" else words)
    return {
        part: number_names(sorted((name for name in of if of[name] >= min_count), key=lambda name: (-of[name], name)))
        for part, of in counts.items()
    }


def number_names(names: Iterable[str]) -> dict[str, int]:
    """A vocabulary of distinct names, in order after padding (0) and the unknown name (1)."""
    return {name: number for number, name in enumerate(dict.fromkeys([PADDING, UNKNOWN, *names]))}


def read_vocabularies(
    name_or_path: str | os.PathLike[str], parts: Sequence[str], kwargs: dict[str, Any]
) -> dict[str, dict[str, int]]:
    """The vocabularies saved with a processor; `kwargs` are those of `from_pretrained`.

    Raises:
        FileNotFoundError: there is no file of vocabularies.
        ValueError: it is damaged, or does not contain one of `parts`.
    """
    path = find_file(name_or_path, VOCABULARIES_FILE, kwargs)
    if path is None:
        raise FileNotFoundError(
            f"{name_or_path} has no {VOCABULARIES_FILE}, but its processor reads {', '.join(parts)}: the folder is "
            "incomplete. Save the processor there again, with the model it was trained with."
        )
    with reading(f"{path} is damaged (save the processor again)"):
        vocabularies = json.loads(Path(path).read_text(encoding="utf-8"))
        check_kind("JSON", "vocabularies", vocabularies, dict, "an object")
        for part in parts:
            if part not in vocabularies:
                raise ValueError(f"it has no vocabulary of {part}")
            _check_vocabulary(part, vocabularies[part])
    return vocabularies


def _check_vocabulary(part: str, vocabulary: Any) -> None:
    check_kind("vocabularies", part, vocabulary, dict, "names with their ids")
    if UNKNOWN not in vocabulary:
        raise ValueError(f"the vocabulary of {part} has no {UNKNOWN}")
    for name, number in vocabulary.items():
        if type(number) is not int or not 0 <= number < len(vocabulary):
            raise ValueError(f"the vocabulary of {part} gives {name!r} the id {number!r}, not one below its length")
