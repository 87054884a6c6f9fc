"""Columns of tags."""

from ..corpora import COLUMNS, TOKENS
from . import LINES, FormatCase

FILES = {"a.conll": COLUMNS}
BAD = {
    "fewer": ("a\tO\n", "line 8", "2 columns, 3"),
    "encoding": (b"\xe9\tO\tO\n", "line 8", "byte 1", "utf-8"),
    "line ends of old Macs": ("a\tO\tO\rb\tO\tO\r", "line 8", "carriage return"),
    "scheme": ("a\tO\tO\n\n" * 10_000 + "b\tO\tQ-A\n", "line 20008", "column 2 is 'Q-A'"),
}
CASE = FormatCase(
    FILES,
    bad=BAD,
    before=f"{COLUMNS}\n",
    anything=LINES,
    nothing={"a.conll": "".join(f"{token}\tO\n" for token in TOKENS)},
)
