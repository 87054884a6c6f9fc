"""Shows how far a long run is: a bar on a terminal, elsewhere a line a minute."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
SECONDS = 60


def with_progress(items: Iterable[Item], unit: str, total: int | None = None) -> Iterator[Item]:
    """Passes the items on and prints to standard error how many there were, how many a second, and the time left.

    Args:
        unit: what the items are, such as "documents".
        total: number of items, if it is known.
    """
    if sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(items, total=total, unit=f" {unit}")
        return
    started = told = time.monotonic()
    for number, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - told >= SECONDS:
            told, rate = now, number / (now - started)
            left = f" of {total:,}, {max(0, total - number) / rate / 60:,.0f} minutes left" if total else ""
            print(f"{number:,} {unit}{left}, {rate:,.1f} a second", file=sys.stderr, flush=True)
