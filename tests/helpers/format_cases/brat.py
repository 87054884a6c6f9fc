"""brat's texts and annotations."""

from hypothesis import strategies as st

from ..corpora import TEXT
from . import FormatCase

FILES = {"a.txt": TEXT, "a.ann": "T1\tPerson 0 17\tThe mayor of Orsk\nT2\tCity 13 17\tOrsk\n"}
BAD = {
    "another line": ("X1\tCity 0 3\tThe", "'X1\\tCity 0 3\\tThe'"),
    "no text": ("T3\tCity 0 3", "'T3\\tCity 0 3'"),
    "type with a space": ("T3\tBig City 0 3\tThe", "'T3\\tBig City 0 3\\tThe'", "the type without spaces"),
    "huge": (f"T3\tCity 0 {'9' * 5000}\tThe", "T3\\tCity 0 99999"),
    "outside": ("T3\tCity 19 99\tOrsk.", "'T3' runs from 19 to 99", "24 characters"),
    "text": ("T3\tCity 0 3\tShe", "'T3' quotes 'She'", "[The] mayor of Orsk"),
}
CASE = FormatCase(
    FILES,
    bad=BAD,
    put=lambda line: {**FILES, "a.ann": FILES["a.ann"] + line},
    place="a.ann, line 3",
    anything=st.text(st.sampled_from("T1\tX 023;\r\n\0a"), max_size=40),
    nothing={"a.txt": TEXT, "a.ann": ""},
)
