"""GENIA's XML."""

from ..corpora import article, cons, genia
from . import XML, FormatCase

ENTITY = f'<!DOCTYPE set [<!ENTITY e "eeee">]>\n<set>{article("&e;")}</set>'


FILES = {"a.xml": genia(article(f"The mayor of {cons('G#cell_line', 'Orsk')} slept ."))}
BAD = {
    "no name": (genia(article("A", name=" ")), "article 1 of the file", "<bibliomisc>"),
    "deep": (genia(article("<b>" * 5000 + "</b>" * 5000)), "", "nested", "<b>"),
    "truncated": (genia(article("One two"))[:-30], "line 13"),
    "encoding": (genia(article("A")).replace("UTF-8", "KOI9"), "", "KOI9"),
    "entity": (ENTITY, "line 1", "'e'"),
    "external entity": (ENTITY.replace('"eeee"', 'SYSTEM "/etc/hostname"'), "line 1", "'e'"),
}
CASE = FormatCase(FILES, bad=BAD, entities=[("Orsk", "cell_line")], anything=XML)
