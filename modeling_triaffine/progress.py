"""Shows how far a long run is: a bar on a terminal, elsewhere a line a minute."""

import sys
import time
from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")
SECONDS = 60


def with_progress(
    items: Iterable[Item], unit: str, total: int | None = None, size: Callable[[Item], int] = lambda item: 1
) -> Generator[Item]:
    """Passes the items on and prints to standard error how many there were, how many a second, and the time left.

    Args:
        unit: what the items are, such as "documents".
        total: their number, if it is known.
        size: how many an item counts for.
    """
    with tqdm(total=total, unit=f" {unit}", disable=None) as bar:
        started = told = time.monotonic()
        number = 0
        for item in items:
            yield item
            number += size(item)
            bar.update(size(item))
            now = time.monotonic()
            if bar.disable and now - told >= SECONDS:
                told = now
                form = "{n_fmt}{unit} of {total_fmt}, {remaining} left, {rate_fmt}"
                line = tqdm.format_meter(number, total, now - started, unit=f" {unit}", bar_format=form)
                print(line, file=sys.stderr, flush=True)
