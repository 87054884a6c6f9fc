"""Nesting of spans; those that merely cross are not nested."""

from bisect import bisect_right
from collections.abc import Collection, Iterable

Span = tuple[int, int]  # (start, end), end exclusive, in words or in characters


def nested_spans(spans: Iterable[Span]) -> set[Span]:
    """The spans that contain another or are contained in one; a span with several types is not nested in itself."""
    depths = nesting_depths(spans)
    heights = nesting_heights(depths)
    return {span for span in depths if depths[span] > 1 or heights[span] > 1}


def nesting_depths(spans: Iterable[Span], others: Collection[Span] = ()) -> dict[Span, int]:
    """Span, also of `others`, → its depth: 1 if no other of `spans` contains it, else one more than the deepest."""
    outer, depths = set(spans), dict[Span, int]()
    furthest: list[int] = []  # of each depth, the greatest end so far, negated, so that the list is in rising order
    # What contains a span comes before it.
    for start, end in sorted(outer.union(others), key=lambda span: (span[0], -span[1])):
        depth = bisect_right(furthest, -end)
        if (start, end) in outer:
            furthest[depth : depth + 1] = [-end]
        depths[start, end] = depth + 1
    return depths


def nesting_heights(spans: Iterable[Span]) -> dict[Span, int]:
    """Span → its height: 1 if it contains no other, otherwise one more than the highest that it contains."""
    negated = nesting_depths((-start, -end) for start, end in spans)  # in which what is inside contains
    return {(-start, -end): height for (start, end), height in negated.items()}
