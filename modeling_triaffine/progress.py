"""Shows how far a long run is: a bar on a terminal, elsewhere a line a minute."""

import sys
from collections.abc import Generator, Iterable
from typing import Any, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")
SECONDS = 60
LINE = "{n_fmt}{unit} of {total_fmt}, {remaining} left, {rate_fmt}\n"


def with_progress(items: Iterable[Item], unit: str, total: int | None = None) -> Generator[Item]:
    """Passes the items on and prints to standard error how many there were, how many a second, and the time left.

    Args:
        unit: what the items are, such as "documents".
        total: their number, if it is known.
    """
    lines: dict[str, Any] = {"bar_format": LINE, "mininterval": SECONDS, "delay": SECONDS, "miniters": 1}
    with tqdm(total=total, unit=f" {unit}", **({} if sys.stderr.isatty() else lines)) as bar:
        for item in items:
            yield item
            bar.update()
