"""CoNLL-U with brackets."""

from ..corpora import TOKENS, conllu
from . import LINES, FormatCase

FILES = {"a.conllu": conllu("(1-Person", "", "", "(2-City)1)", "", "", words=TOKENS)}
BAD = {
    "columns": (conllu("(1-a)") + "2\tw\n", "line 2", "2 columns, 10"),
    "number": (conllu("(1-a)").replace("1", "9" * 5000, 1), "line 1", "'9999"),
    "close": (conllu("1)"), "line 1", "'1'"),
    "close in another document": (conllu("(1-a") + "\n# newdoc\n" + conllu("1)"), "line 4", "'1'"),
    "neither": (conllu("1-a"), "line 1", "'1-a'"),
    "no type": ("# global.Entity = eid-head\n" + conllu("(1-a)"), "line 1", "'eid-head'", "etype"),
}
CASE = FormatCase(FILES, bad=BAD, anything=LINES, nothing={"a.conllu": conllu(*[""] * 6, words=TOKENS)})
