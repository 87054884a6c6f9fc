"""ERE as LDC distributes it."""

from hypothesis import strategies as st

from ..corpora import TEXT, ere_annotations
from . import FormatCase

FILES = {"a.txt": TEXT, "a.rich_ere.xml": ere_annotations()}
BAD = {
    "offset": (ere_annotations().replace('offset="', 'offset="x'), "a.rich_ere.xml, m-0", "no offsets"),
    "no type": (ere_annotations().replace('type="Person" ', ""), "a.rich_ere.xml, m-0", "'mention.type' is ''"),
    "quote": (ere_annotations().replace(">Orsk<", ">Omsk<"), "a.rich_ere.xml, m-1", "quotes 'Omsk'"),
}
CASE = FormatCase(FILES, bad=BAD, anything=st.just(ere_annotations()))
