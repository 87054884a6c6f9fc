"""Label Studio's export."""

import json

from ..corpora import region, task
from . import JSON_VALUES, FormatCase

FILES = {"a.json": json.dumps([task(region(0, 17, "Person"), region(13, 17, "City"))], indent=1)}
BAD = {
    "no annotations": ({"id": 5, "data": {}}, "'annotations'", "Export the tasks"),
    "no string": (task(data={"n": 1}), "'data'"),
    "no result": (task(annotations=[{}]), "'annotations[0].result'"),
    "no value": (task({"type": "labels"}), "'annotations[0].result[0].value'", "null"),
    "path": (task(region("/p[1]", 3, "City")), "'annotations[0].result[0].value.start' is '/p[1]' (str)"),
}
CASE = FormatCase(
    FILES,
    bad=BAD,
    put=lambda value: {"a.json": json.dumps([value])},
    place="record 0 (task 5)",
    anything=JSON_VALUES.map(json.dumps),
    nothing={"a.json": json.dumps([task()])},
)
