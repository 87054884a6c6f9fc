"""BioC in XML and JSON."""

import json

from ..corpora import BIOC_DOCUMENT, BIOC_XML, TEXT
from . import JSON_VALUES, XML, FormatCase

FILES = {"a.xml": BIOC_XML}
BAD = {
    "another root": ("<annotations></annotations>", "", "<document>"),
    "no type": (
        BIOC_XML.replace('key="type">City', 'key="kind">City'),
        "document 0 (document a)",
        ".infons.type' is missing",
        "'kind'",
    ),
    "offset": (BIOC_XML.replace('offset="13"', 'offset="x"'), "document 0", "locations[0].offset' is 'x' (str)"),
    "truncated": (BIOC_XML[:-30], "line 7"),
    "deep": (f"<document>{'<passage>' * 5000}{'</passage>' * 5000}</document>", "", "nested", "<passage>"),
    "bomb": ('<!DOCTYPE a [<!ENTITY e "eeee">]><collection>&e;</collection>', "line 1", "'e'"),
    "no passages": (
        json.dumps({"documents": [{"id": "a", "text": "b"}]}),
        "line 1, documents[0]",
        "'passages'",
        "'id', 'text'",
    ),
}
CASE = FormatCase(
    FILES,
    bad=BAD,
    anything=JSON_VALUES.map(json.dumps) | XML,
    nothing={"a.json": json.dumps({**BIOC_DOCUMENT, "passages": [{"offset": 0, "text": TEXT}]})},
)
