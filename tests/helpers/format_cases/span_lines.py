"""A line of words and a line of spans."""

from hypothesis import strategies as st

from ..corpora import TOKENS
from . import FormatCase

SPAN_LINES = f"{' '.join(TOKENS)}\nDT NN IN NNP VBD .\n0,3 Person|3,3 City\n\n"
BAD = {
    "beyond the sentence": ("He slept\n0,3 Person\n", "line 6", "0,3 Person", "2 words"),
    "not spans": ("He slept\n0-1 Person .\n", "line 6", "'0-1 Person .' is neither spans"),
    "four lines": ("He slept\nPRP VBD\nPRP VBD\n0,1 Person\n", "line 8", "is neither"),
}
CASE = FormatCase(
    {"a.data": SPAN_LINES},
    bad=BAD,
    before=SPAN_LINES,
    anything=st.text(st.sampled_from("01a,| \r\n😀"), max_size=40),
    noted=("files with spans such as 3,3, whose last word is therefore part of every span",),
)
