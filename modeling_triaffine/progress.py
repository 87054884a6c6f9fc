"""Shows how far a long run is: a bar on a terminal, elsewhere a line a minute."""

import sys
import time
from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

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
    if sys.stderr.isatty():
        from tqdm import tqdm

        with tqdm(total=total, unit=f" {unit}") as progress:
            for item in items:
                yield item
                progress.update(size(item))
        return
    started = told = time.monotonic()
    number = 0
    for item in items:
        yield item
        number += size(item)
        now = time.monotonic()
        if now - told >= SECONDS:
            told, rate = now, number / (now - started)
            left = f" of {total:,}, {max(0, total - number) / rate / 60:,.0f} minutes left" if total else ""
            print(f"{number:,} {unit}{left}, {rate:,.1f} a second", file=sys.stderr, flush=True)
