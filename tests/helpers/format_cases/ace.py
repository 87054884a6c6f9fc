"""ACE as LDC distributes it."""

from hypothesis import strategies as st

from ..corpora import ACE_SOURCE, ace_annotations
from . import FormatCase

BOMB = '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)


FILES = {"a.sgm": ACE_SOURCE, "a.apf.xml": ace_annotations()}
BAD = {
    "truncated": (ace_annotations()[:-20], "a.apf.xml, line "),
    "offset": (ace_annotations().replace('END="', 'END="x'), "a.apf.xml, a-Person-0", "no offsets"),
    "no extent": (ace_annotations().replace("charseq", "other"), "a.apf.xml, a-Person-0", "no offsets"),
    "no type": (ace_annotations().replace('TYPE="Person" ', ""), "a.apf.xml, a-Person-0", "'mention.type' is ''"),
    "quote": (ace_annotations().replace(">Orsk<", ">Omsk<"), "a.apf.xml, a-City-1", "quotes 'Omsk'"),
    "bomb": (f"{BOMB}]><a>&j;</a>", "a.apf.xml", "'a'"),
}
CASE = FormatCase(FILES, bad=BAD, anything=st.just(ace_annotations()))
