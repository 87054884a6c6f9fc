"""Markdown that no name, text or number in it can break: inline code, tables, code blocks."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

READABLE = re.compile(r"[\w .,:/+-]+")


def inline_code(value: Any) -> str:
    """`value` as inline code that no character in it can end: neither the code, nor a table cell, nor a line.

    Ordinary names stay readable in the source; in all others, punctuation is written as character references.
    """
    text = one_line(str(value))
    if READABLE.fullmatch(text):
        return f"`{text}`"
    return "<code>" + re.sub(r"[^\w ]|_", lambda match: f"&#{ord(match[0])};", text) + "</code>"


def inline_codes(values: Iterable[Any]) -> str:
    return ", ".join(map(inline_code, values))


def code_block(content: str, language: str = "") -> str:
    """A fenced block; the fence is longer than any run of backticks in the content."""
    longest = max((len(run) for run in re.findall(r"`+", content)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{content}\n{fence}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], numbers: bool = False) -> str:
    """A table of ready cells; with `numbers` all columns but the first are aligned to the right."""
    rule = ["---", *(["---:" if numbers else "---"] * (len(header) - 1))]
    return "\n".join(f"| {' | '.join(line)} |" for line in [header, rule, *rows])


def code_table(header: Sequence[str], values: Mapping[str, Any]) -> str:
    """A table of names and values, all as inline code."""
    return table(header, [(inline_code(name), inline_code(value)) for name, value in values.items()])


def one_line(text: str) -> str:
    """`text` with single spaces for all white space: YAML would fold some of Unicode's line ends away, silently."""
    return " ".join(text.split())
