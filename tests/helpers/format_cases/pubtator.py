"""PubTator's text files."""

from hypothesis import strategies as st

from ..corpora import PUBTATOR, TEXT
from . import FormatCase

FILES = {"a.pubtator": PUBTATOR}
BAD = {
    "no title": ("8|a|Orsk\n", "line 6", "'8'"),
    "another title": ("8|t|Orsk\n9|t|Orsk\n", "line 7", "'9' begins within the document '8'"),
    "no type": ("8|t|Orsk\n8\t0\t4\tOrsk\n", "line 7", "'8\\t0\\t4\\tOrsk'"),
    "an entity as in brat": (
        "8|t|Orsk\n8\tT1\tCity\t0\t4\n",
        "line 7",
        "'8\\tT1\\tCity\\t0\\t4' is not a line of PubTator",
    ),
    "quote": ("8|t|Orsk\n8\t0\t4\tOmsk\tCity\n", "line 7", "quotes 'Omsk'"),
}
CASE = FormatCase(
    FILES,
    bad=BAD,
    before=PUBTATOR,
    anything=st.text(st.sampled_from("71|ta\t 0-\r\n😀"), max_size=40),
    nothing={"a.pubtator": f"7|t|{TEXT}\n7|a|\n"},
)
