"""What a page or service calls its models: by names that tell nobody where on this machine they lie."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

# Names of folders that a training gives.
SAYS_NOTHING = re.compile(r"model|checkpoint-\d+")


def public_names(places: Sequence[str | os.PathLike]) -> list[str]:
    """What each of some folders or Hub ids is called, as short as tells them apart.

    A Hub id stays as it is. A folder is called by its last name; by its last two where the last one is `model` or a
    checkpoint's, and by as many as tell all apart.
    """
    paths = [str(place) for place in places]
    whole = [str(Path(path).resolve()) if Path(path).is_dir() else path for path in paths]
    longest = max(len(Path(path).parts) for path in whole)
    for count in range(1, longest):
        names = [_end(path, count) if Path(path).is_dir() else path for path in whole]
        if len(set(names)) == len(set(whole)):
            return names
    return whole


def _end(path: str, count: int) -> str:
    """The last names of a path, so many, but more than `model`."""
    says_nothing = SAYS_NOTHING.fullmatch(Path(path).name)
    return Path(*Path(path).parts[-max(count, 2 if says_nothing else 1) :]).as_posix()
