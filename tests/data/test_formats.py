"""What holds for every format: detection, gzip, caching and streaming; and the error for each kind of damaged file."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine.data import CorpusError, detect_format, load_nested_ner
from modeling_triaffine.data.alignment import INVISIBLE_SPACES
from modeling_triaffine.data.detection import formats_recognizing
from modeling_triaffine.data.json_records import record_keys
from tests.helpers.corpora import (
    BIGBIO_RECORD,
    BIOC_DOCUMENT,
    BIOC_XML,
    COLUMNS,
    DOCUMENT,
    NESTED,
    PUBLISHED,
    PUBTATOR,
    QUESTIONS,
    RECORD,
    SAMPLES,
    TEXT_RECORD,
    TOKENS,
    ace_annotations,
    article,
    conllu,
    ere_annotations,
    genia,
    read,
    region,
    spelled,
    task,
    write_files,
    write_json,
)

SINGLE_FILES = [name for name, files in SAMPLES.items() if len(files) == 1]


@pytest.mark.parametrize("format", SAMPLES)
def test_the_sample_is_read_alike_from_the_file_the_cache_and_a_stream(tmp_path, format):
    path = write_files(tmp_path / "in", SAMPLES[format])
    assert detect_format(path).name == format
    (record,), check = read(path)
    assert record["tokens"] == TOKENS
    assert sorted(spelled(record), reverse=True) == ([("Orsk", "cell_line")] if format == "genia" else NESTED)
    assert not check.report()
    for _ in range(2):
        assert list(load_nested_ner(path)["train"]) == [record]
    assert list(load_nested_ner(path, streaming=True)["train"]) == [record]


@pytest.mark.parametrize("name", ["a", "a.txt", "a.dat.gz"])
@pytest.mark.parametrize("format", SINGLE_FILES)
def test_formats_are_detected_by_content(tmp_path, format, name):
    (content,) = SAMPLES[format].values()
    path = write_files(tmp_path, {name: gzip.compress(content.encode()) if name.endswith("gz") else content})
    assert detect_format(path).name == format
    assert read(path)[0][0]["tokens"] == TOKENS


@pytest.mark.parametrize("format", sorted(set(SINGLE_FILES)))
def test_exactly_one_format_recognizes_a_sample_best(format):
    (content,) = SAMPLES[format].values()
    values = [content]
    if content.startswith("{"):
        values.append(f"[{content}]" if format != "json_lines" else json.dumps(json.loads(content), indent=1))
    assert [[known.name for known in formats_recognizing(value)] for value in values] == [[format]] * len(values)


@pytest.mark.parametrize("change", [lambda text: text.replace("\n", "\r\n"), lambda text: f"\ufeff{text}"])
@pytest.mark.parametrize("format", SINGLE_FILES)
def test_line_ends_of_windows_and_byte_order_marks_change_nothing(tmp_path, format, change):
    ((name, content),) = SAMPLES[format].items()
    path = write_files(tmp_path, {name: change(content)})
    assert read(path)[0] == read(write_files(tmp_path / "plain", {name: content}))[0]


@pytest.mark.parametrize("format", ["json_lines", "text_spans", "label_studio", "bigbio_kb", "inclusive_spans"])
def test_one_object_of_several_lines(tmp_path, format):
    (content,) = SAMPLES[format].values()
    value = json.loads(content)
    path = write_files(tmp_path, {"a.json": json.dumps(value[0] if isinstance(value, list) else value, indent=1)})
    assert detect_format(path).name == format
    assert read(path)[0][0]["tokens"] == TOKENS


def test_xml_may_have_another_encoding(tmp_path):
    content = BIOC_XML.replace("?>", ' encoding="UTF-16"?>', 1).replace("<offset>0<", "<offset> 0\n<")
    path = write_files(tmp_path, {"a.xml": content.encode("utf-16")})
    assert detect_format(path).name == "bioc"
    assert spelled(read(path)[0][0]) == NESTED


SIMILAR_JSON = {
    "a text besides": ("json_lines", {**RECORD, "text": "The mayor of Orsk slept."}),
    "a text and no ids": ("json_lines", {"text": "The mayor", "tokens": TOKENS, "entities": RECORD["entities"]}),
    "a list of sentences": ("json_lines", [RECORD]),
    "lines of published records": ("published_json", PUBLISHED),
    "tasks": ("label_studio", [{"data": {"text": "a"}, "predictions": []}]),
    "tokens besides": ("text_spans", {"text": "a", "tokens": [{"id": 0}], "spans": []}),
    "a sentence with spans": ("text_spans", {"sentence": "a", "annotations": [[0, 1, "A"]]}),
    "a sentence of words": ("inclusive_spans", {"sentence": ["a"], "ner": [], "word": []}),
    "a long text first": (
        "bigbio_kb",
        {**BIGBIO_RECORD, "passages": [{**BIGBIO_RECORD["passages"][0], "text": ["a" * 100_000]}]},
    ),
}


@pytest.mark.parametrize(("format", "value"), SIMILAR_JSON.values(), ids=SIMILAR_JSON)
def test_similar_json(tmp_path, format, value):
    assert detect_format(write_files(tmp_path, {"a.json": json.dumps(value)})).name == format


def test_the_name_decides_where_the_content_does_not(tmp_path):
    assert detect_format(write_files(tmp_path, {"a.conllu": json.dumps(RECORD)})).name == "json_lines"
    assert detect_format(write_files(tmp_path, {"b.conllu": conllu("", "")})).name == "conllu"


@pytest.mark.parametrize("format", SINGLE_FILES)
def test_empty_files(tmp_path, format):
    ((name, _),) = SAMPLES[format].items()
    for content in ("", " \n"):
        with pytest.raises(CorpusError, match="file is empty"):
            load_nested_ner(write_files(tmp_path, {name: content}), format)


@pytest.mark.parametrize(
    ("head", "keys"),
    [
        ('{"a": 1, "b": {"c": 2}, "d": ["e", {"f": 1}], "g": "h: {"}\n{"i": 1}', {"a", "b", "d", "g"}),
        ('[{"a": "b\\": c", "d": [', {"a", "d"}),
        ('{"a": 1, "b": "cut {off: ', {"a", "b"}),
        ('{"a": 1, "b\\', {"a"}),
        ('[[1, 2], {"a": 1}]', {"a"}),
        ("[]", set()),
        ("no JSON", set()),
    ],
)
def test_keys_of_truncated_json(head, keys):
    assert record_keys(head) == keys


# ---- Damaged files: format → what is wrong → (content, place, facts that the message names) ----


def changed(**fields):
    return {**RECORD, "id": "a:1", **fields}


def without(name):
    return {key: value for key, value in changed().items() if key != name}


def entity(start, end, kind="City"):
    return {"entities": [{"start": start, "end": end, "type": kind}]}


def changed_bigbio(**fields):
    return {**BIGBIO_RECORD, **fields}


BAD_RECORDS = {
    "not an object": ([1], "[1] (list)"),
    "missing tokens": (without("tokens"), "'tokens'"),
    "missing entities": (without("entities"), "'entities'"),
    "id a number": (changed(id=3), "'id' is 3 (int)"),
    "sent_id true": (changed(sent_id=True), "'sent_id' is True (bool)"),
    "sent_id large": (changed(sent_id=2**31), f"'sent_id' is {2**31}"),
    "no tokens": (changed(tokens=[], pos=[], entities=[]), "'tokens'"),
    "null token": (changed(tokens=["a", None]), "'tokens[1]' is null"),
    "empty token": (changed(tokens=["a", ""]), "'tokens[1]' is ''"),
    "half a surrogate": (changed(tokens=["a", "\ud800"], pos=[], entities=[]), "'tokens' has '\\ud800'"),
    "tags": (changed(pos=["DET"]), "'pos' has 1 tags for 6 tokens"),
    "entity no object": (changed(entities=[[0, 1, "City"]]), "'entities[0]'"),
    "entity without type": (changed(entities=[{"start": 0, "end": 1}]), "'entities[0].type'"),
    "entity past the end": (changed(**entity(2, 7)), "'entities[0]' runs from 2 to 7"),
    "entity backwards": (changed(**entity(3, 2)), "'entities[0]' runs from 3 to 2"),
    "entity named None": (changed(**entity(0, 1, "None")), "'entities[0].type' is 'None'"),
    "white space around a label": (changed(**entity(0, 1, " City")), "'entities[0].type' is ' City'"),
    "line end in a label": (changed(**entity(0, 1, "P\nQ")), "'entities[0].type' is 'P\\nQ'", "'\\n'"),
    "unknown label": (changed(**entity(0, 1, "X")), "'entities[0].type' is 'X'", "'City', 'Person'"),
    "duplicate id": (RECORD, "'id': 'a:0'", "line 1"),
    "context": (changed(left_tokens="so"), "'left_tokens' is 'so' (str)"),
}
BAD_TEXTS = {
    "no text": ({"entities": []}, "'text'"),
    "spans no list": ({"text": "a", "entities": {}}, "'entities' is {} (dict)"),
    "spans twice": ({"text": "a", "entities": [3], "label": [3]}, "'entities' and 'label'"),
    "spans a string": ({"text": "a", "label": "news"}, "'label' is 'news' (str)"),
    "span a number": ({"text": "a", "label": [3]}, "'label[0]'", "3 (int)"),
    "two values": ({"text": "a", "label": [[0, 1]]}, "'label[0]' has 2 values"),
    "start true": ({"text": "a", "label": [[True, 1, "A"]]}, "'label[0].start' is True (bool)"),
    "type a number": ({"text": "a", "label": [[0, 1, 5]]}, "'label[0].label' is 5 (int)"),
    "outside": ({"text": "a", "label": [[0, 2, "City"]]}, "'label[0]' runs from 0 to 2", "1 characters"),
}
BAD_TASKS = {
    "no annotations": ({"id": 5, "data": {}}, "'annotations'", "Export the tasks"),
    "no data": (task(data=None), "'data'", "null"),
    "no string": (task(data={"n": 1}), "'data'"),
    "several strings": (task(data={"a": "x", "b": "y"}), "'data'", "'a', 'b'"),
    "no result": (task(annotations=[{}]), "'annotations[0].result'"),
    "result": (task(3), "'annotations[0].result[0]'"),
    "no value": (task({"type": "labels"}), "'annotations[0].result[0].value'", "null"),
    "path": (task(region("/p[1]", 3, "City")), "'annotations[0].result[0].value.start' is '/p[1]' (str)"),
}
BAD_BIGBIO = {
    "another schema": ({"id": "1", "text": "a", "labels": []}, "'passages'", "'id', 'text', 'labels'"),
    "entities null": (changed_bigbio(entities=None) | {"passages": 3}, "'passages' is 3 (int)"),
    "offsets": (changed_bigbio(entities=[{"type": "City", "offsets": [[0]]}]), "'entities[0].offsets' has [0]"),
    "text": (changed_bigbio(entities=[{"type": "City", "offsets": [[0, 1]], "text": [3]}]), "'entities[0].text' is"),
    "passages overlap": (
        changed_bigbio(
            passages=[{"text": [name], "offsets": [[start, start + 4]]} for name, start in (("aaaa", 0), ("b", 2))]
        ),
        "'passages[1]' begins at 2",
        "ends at 4",
    ),
    "passage far away": (changed_bigbio(passages=[{"text": ["a"], "offsets": [[10**12, 10**12 + 1]]}]), f"{10**12}"),
    "two pairs": (
        changed_bigbio(passages=[{"text": ["a"], "offsets": [[0, 1], [2, 3]]}]),
        "'passages[0].offsets' has 2",
    ),
}
BAD_BIOC = {
    "another root": ("<annotations></annotations>", "", "<annotations>", "<collection>"),
    "no type": (BIOC_XML.replace('key="type">City', 'key="kind">City'), "document 0 (document a)", "'type'", "'kind'"),
    "no offset": (BIOC_XML.replace("<offset>0</offset>", ""), "document 0", "'passages[0].offset'"),
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
    "json cut": (json.dumps({"documents": [BIOC_DOCUMENT]}, indent=1)[:-30], "", "line "),
    "no documents": (json.dumps({"documents": 3}), "line 1", "'documents' is 3 (int)"),
}
BAD_PUBTATOR = {
    "no title": ("8|a|Orsk\n", "line 6", "'8'"),
    "not a line": ("8|t|Orsk\nOrsk\n", "line 7", "'Orsk'"),
    "second title": ("8|t|Orsk\n8|t|Omsk\n", "line 7", "'8|t|Omsk'"),
    "another title": ("8|t|Orsk\n9|t|Orsk\n", "line 7", "'9' begins within the document '8'"),
    "no type": ("8|t|Orsk\n8\t0\t4\tOrsk\n", "line 7", "'8\\t0\\t4\\tOrsk'"),
    "quote": ("8|t|Orsk\n8\t0\t4\tOmsk\tCity\n", "line 7", "quotes 'Omsk'"),
}
BAD_COLUMNS = {
    "fewer": ("a\tO\n", "line 8", "2 columns, 3"),
    "more": ("a\tO\tO\tO\n", "line 8", "4 columns, 3"),
    "a word with #": ("a\tO\tO\n#b\tO\n", "line 9", "2 columns, 3"),
    "encoding": (b"\xe9\tO\tO\n", "line 8", "byte 1", "utf-8"),
    "line ends of old Macs": ("a\tO\tO\rb\tO\tO\r", "line 8", "carriage return"),
    "scheme": ("a\tO\tO\n\n" * 10_000 + "b\tO\tQ-A\n", "line 20008", "column 2 is 'Q-A'"),
}
BAD_CONLLU = {
    "columns": (conllu("(1-a)") + "2\tw\n", "line 2", "'2\\tw'"),
    "number": (conllu("(1-a)").replace("1", "9" * 5000, 1), "line 1", "'9999"),
    "close": (conllu("1)"), "line 1", "'1'"),
    "close another": (conllu("(1-a", "2)"), "line 2", "'2'"),
    "close in another document": (conllu("(1-a") + "\n# newdoc\n" + conllu("1)"), "line 4", "'1'"),
    "neither": (conllu("1-a"), "line 1", "'1-a'"),
    "empty": (conllu("()"), "line 1", "'()'"),
    "twice": (conllu("(1-a))"), "line 1", "'(1-a))'"),
    "no type": ("# global.Entity = eid-head\n" + conllu("(1-a)"), "line 1", "'eid-head'", "etype"),
}
ENTITY = f'<!DOCTYPE set [<!ENTITY e "eeee">]>\n<set>{article("&e;")}</set>'
BAD_XML = {
    "no name": (genia(article("A", name=" ")), "article 1 of the file", "<bibliomisc>"),
    "stray": (genia(article("A"), "<sentence>B</sentence>"), "", "<sentence>", "<article>"),
    "inside": (genia(article("A<sentence>B</sentence>")), "article MEDLINE:1", "<sentence>"),
    "deep": (genia(article("<b>" * 5000 + "</b>" * 5000)), "", "nested", "<b>"),
    "truncated": (genia(article("One two"))[:-30], "line 13"),
    "encoding": (genia(article("A")).replace("UTF-8", "KOI9"), "", "KOI9"),
    "entity": (ENTITY, "line 1", "'e'"),
    "external entity": (ENTITY.replace('"eeee"', 'SYSTEM "/etc/hostname"'), "line 1", "'e'"),
}
BAD_BRAT = {
    "another line": ("X1\tCity 0 3\tThe", "'X1\\tCity 0 3\\tThe'"),
    "spaces": ("T3 City 0 3 The", "'T3 City 0 3 The'"),
    "no text": ("T3\tCity 0 3", "'T3\\tCity 0 3'"),
    "type with a space": ("T3\tBig City 0 3\tThe", "'T3\\tBig City 0 3\\tThe'", "the type without spaces"),
    "no end": ("T3\tCity 0\tThe", "'T3\\tCity 0\\tThe'"),
    "no number": ("T3\tCity 0 -3\tThe", "'T3\\tCity 0 -3\\tThe'"),
    "huge": (f"T3\tCity 0 {'9' * 5000}\tThe", "T3\\tCity 0 99999"),
    "outside": ("T3\tCity 19 99\tOrsk.", "'T3' runs from 19 to 99", "24 characters"),
    "text": ("T3\tCity 0 3\tShe", "'T3' quotes 'She'", "[The] mayor of Orsk"),
}
BOMB = '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)
BAD_ACE = {
    "truncated": (ace_annotations()[:-20], "a.apf.xml, line "),
    "offset": (ace_annotations().replace('END="', 'END="x'), "a.apf.xml, a-Person-0", "START and END"),
    "no extent": (ace_annotations().replace("charseq", "other"), "a.apf.xml, a-Person-0", "START and END"),
    "no type": (ace_annotations().replace('TYPE="Person" ', ""), "a.apf.xml, a-Person-0", "'TYPE'"),
    "quote": (ace_annotations().replace(">Orsk<", ">Omsk<"), "a.apf.xml, a-City-1", "'extent' quotes 'Omsk'"),
    "bomb": (f"{BOMB}]><a>&j;</a>", "a.apf.xml", "'a'"),
}
BAD_ERE = {
    "offset": (ere_annotations().replace('offset="', 'offset="x'), "a.rich_ere.xml, m-0", "offset and length"),
    "no type": (ere_annotations().replace('type="Person" ', ""), "a.rich_ere.xml, m-0", "'type'"),
    "quote": (ere_annotations().replace(">Orsk<", ">Omsk<"), "a.rich_ere.xml, m-1", "quotes 'Omsk'"),
}
JSON_LINE = json.dumps(RECORD) + "\n"
PACKED = gzip.compress("".join(json.dumps({**RECORD, "id": str(n)}) + "\n" for n in range(500)).encode(), mtime=0)
BAD_INCLUSIVE_SPANS = {
    "not an object": ([1], "[1] (list)", "tokenized_text"),
    "no words": ({"ner": []}, "'sentence' is missing"),
    "no spans": ({"sentence": TOKENS}, "'ner' is missing"),
    "words": ({"tokenized_text": "Orsk", "ner": []}, "'tokenized_text' is 'Orsk'"),
    "empty": ({"tokenized_text": [], "ner": []}, "'tokenized_text' is empty"),
    "empty sentence": ({"sentences": [TOKENS, []], "ner": [[], []]}, "'sentences[1]' is empty"),
    "span": ({"tokenized_text": TOKENS, "ner": [[0, 1]]}, "'ner[0]' is [0, 1]"),
    "word": ({"tokenized_text": TOKENS, "ner": [[True, 1, "City"]]}, "'ner[0]' is [True, 1, 'City']"),
    "outside": ({"tokenized_text": TOKENS, "ner": [[5, 6, "City"]]}, "'ner[0]'", "5 to 6", "0 to 5"),
    "reversed": ({"tokenized_text": TOKENS, "ner": [[3, 2, "City"]]}, "'ner[0]'", "3 to 2"),
    "index": ({"sentence": TOKENS, "ner": [{"index": ["0"], "type": "City"}]}, "'ner[0].index'"),
    "type": ({"sentence": TOKENS, "ner": [{"index": [0]}]}, "'ner[0].type' is missing"),
    "lists": ({"sentences": [TOKENS], "ner": []}, "0 lists for 1"),
    "flat": ({"sentences": TOKENS, "ner": [[]] * 6}, "'sentences[0]' is 'The'"),
    "of another sentence": (
        {"sentences": [TOKENS, TOKENS], "ner": [[], [[3, 3, "City"]]]},
        *("'ner[1][0]'", "3 to 3", "6 to 11"),
    ),
}
BAD_MRC = {
    "no answers": ({"context": "Orsk", "entity_label": "City", "query": "?"}, "'span_position' is missing"),
    "span": ({**QUESTIONS[0], "span_position": ["3-3"]}, "'span_position[0]' is '3-3'"),
    "huge": ({**QUESTIONS[0], "span_position": [f"3;{'9' * 5000}"]}, "'span_position[0]' is '3;9999"),
}
BROKEN_FILES = {
    "truncated": ("a.jsonl", JSON_LINE + '{"id": "a:1", "tok', "line 2", "character"),
    "quotes": ("a.jsonl", JSON_LINE + "{'id': 1}", "line 2", "character 2"),
    "nonsense": ("a.jsonl", JSON_LINE + "nonsense", "line 2", "character 1"),
    "encoding": ("a.jsonl", JSON_LINE.encode() + b'{"id": "\xe9"}\n', "line 2", "byte 9", "utf-8"),
    "digits": ("a.jsonl", '{"tokens": [' + "9" * 5000 + '], "entities": []}', "line 1", "digits"),
    "depth": ("a.jsonl", JSON_LINE + "[" * 100_000, "line 2", "nested"),
    "list truncated": ("a.json", json.dumps([PUBLISHED], indent=1)[:-30], "", "line "),
    "list record": ("a.json", json.dumps([PUBLISHED, {**PUBLISHED, "tokens": "Orsk"}]), "record 1", "'tokens' is"),
    "gzip truncated": ("a.jsonl.gz", PACKED[: len(PACKED) // 2], "", "gzip"),
    "ZIP": ("a.jsonl", b"PK\x03\x04" + PACKED, "", "ZIP"),
    "JSON in UTF-16": ("a.jsonl", (2 * JSON_LINE).encode("utf-16"), "line 1", "byte 1", "utf-8"),
    "UTF-16": ("a.conll", COLUMNS.encode("utf-16"), "line 1", "byte 1", "utf-8"),
    "no spans": ("a.jsonl", '{"text": "a", "ents": []}\n' * 2, "", "no text has spans", "'entities'", "without gold"),
    "unknown": ("a.txt", "The mayor of Orsk slept.\n", "", "'The mayor of Orsk slept.", "'json_lines'"),
    "tabs and spaces": ("a.conll", "a B-City\nb\tO\n", "", "B-type", "by tabs, others only by spaces"),
    "no tags": ("a.conll", "a b c\n", "", "B-type"),
    "WebAnno": ("a.tsv", "#FORMAT=WebAnno TSV 3.3\n\n#Text=Orsk\n1-1\t0-4\tOrsk\tCity\t\n", "", "INCEpTION", "CAS"),
    "only comments": ("a.conll", "# only\n", "", "B-type"),
}


def after(first):
    """Puts a value after a good one, as JSON lines."""
    return lambda value: {"a.jsonl": f"{json.dumps(first)}\n{json.dumps(value)}\n"}


# Format → cases, the files with a case in them, and its place.
BAD_VALUES = {
    "json_lines": (BAD_RECORDS, after(RECORD), "line 2"),
    "text_spans": (BAD_TEXTS, after({**TEXT_RECORD, "id": "x"}), "line 2"),
    "mrc": (BAD_MRC, after(QUESTIONS[0]), "line 2"),
    "inclusive_spans": (BAD_INCLUSIVE_SPANS, after(DOCUMENT), "line 2"),
    "bigbio_kb": (BAD_BIGBIO, after(BIGBIO_RECORD), "line 2"),
    "label_studio": (BAD_TASKS, lambda value: {"a.json": json.dumps([value])}, "record 0 (task 5)"),
    "brat": (BAD_BRAT, lambda line: {**SAMPLES["brat"], "a.ann": SAMPLES["brat"]["a.ann"] + line}, "a.ann, line 3"),
}
# Format → cases with their places, and what is in the file before.
BAD_CONTENTS = {
    "iob2": (BAD_COLUMNS, f"{COLUMNS}\n"),
    "pubtator": (BAD_PUBTATOR, PUBTATOR),
    **{"bioc": (BAD_BIOC, ""), "conllu": (BAD_CONLLU, ""), "genia": (BAD_XML, ""), "ace": (BAD_ACE, "")},
    "ere": (BAD_ERE, ""),
}


def bad_files():
    """(format, files, place, facts) of every case."""
    for format, (cases, files, place) in BAD_VALUES.items():
        for name, (value, *facts) in cases.items():
            yield pytest.param(format, files(value), place, facts, id=f"{format}: {name}")
    for format, (cases, before) in BAD_CONTENTS.items():
        for name, (content, place, *facts) in cases.items():
            content = before.encode() + (content if isinstance(content, bytes) else content.encode())
            files = {**SAMPLES[format], list(SAMPLES[format])[-1]: content}
            yield pytest.param(format, files, place, facts, id=f"{format}: {name}")
    for name, (file, content, place, *facts) in BROKEN_FILES.items():
        yield pytest.param(None, {file: content}, place, facts, id=name)
    for format, (text, annotations) in {"brat": ("a.txt", "a.ann"), "ace": ("a.sgm", "a.apf.xml")}.items():
        files = {annotations: SAMPLES[format][annotations]}
        yield pytest.param(format, files, annotations, [text], id=f"{format}: no text")
        files = {text: "caf\xe9".encode("latin-1"), **files}
        yield pytest.param(format, files, text, ["byte 4", "utf-8"], id=f"{format}: encoding")


@pytest.mark.parametrize(("format", "files", "place", "facts"), bad_files())
def test_errors_name_file_place_and_facts(tmp_path, format, files, place, facts):
    path = write_files(tmp_path, files)
    with pytest.raises(CorpusError) as caught:
        read(path, format, labels=["Person", "City", "protein"])
    message = str(caught.value)
    assert message.startswith(f"{path}, {place}" if place else f"{path}: ")
    for fact in facts:
        assert fact in message
    assert "\n" not in message
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


# ---- Any content ----

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.text(st.sampled_from('ab .\n"\ud800😀'), max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["text", "label", "entities", "start", "end", "type"]), inner, max_size=4)
        | st.dictionaries(st.sampled_from(["passages", "offsets", "infons", "locations", "offset"]), inner, max_size=4)
        | st.dictionaries(st.sampled_from(["data", "annotations", "result", "value", "labels"]), inner, max_size=4)
    ),
    max_leaves=12,
)
LINES = st.lists(
    st.text(st.sampled_from("aO\t BI-\r#1.(=)\0\ufeff\x85"), max_size=12)
    | st.sampled_from(["w\tO", "w\tB-A", "# newdoc id = x", "# sent_id = y", "-DOCSTART-\tO", ""])
    | st.sampled_from(conllu("(1-a", "1)").splitlines()),
    max_size=8,
).map("\n".join)
XML = st.lists(
    st.sampled_from(["<set>", "<article>", "<bibliomisc>x</bibliomisc>", "<sentence>", "a b", "</sentence>"])
    | st.sampled_from(["<cons sem='G#DNA_x'>", "</cons>", "</article>", "</set>", "&amp;", "<!ENTITY", "<?xml ?>"]),
    max_size=12,
).map("".join)
BRAT_LINES = st.text(st.sampled_from("T1\tX 023;\r\n\0a"), max_size=40)
SOURCES = st.text(st.sampled_from("<>TEX/&amp;lt \r\n\ufeff\0😀"), max_size=40)
ANY = {
    "json_lines": st.lists(JSON, max_size=3).map(lambda values: "\n".join(map(json.dumps, values))),
    "text_spans": st.lists(JSON, max_size=3).map(json.dumps),
    "label_studio": st.lists(JSON, max_size=3).map(json.dumps),
    "inclusive_spans": st.lists(JSON, max_size=3).map(json.dumps),
    "mrc": st.lists(JSON, max_size=3).map(json.dumps),
    "bigbio_kb": st.lists(JSON, max_size=3).map(json.dumps),
    "bioc": st.lists(JSON, max_size=3).map(json.dumps) | XML,
    "pubtator": st.text(st.sampled_from("71|ta\t 0-\r\n😀"), max_size=40),
    "iob2": LINES,
    "conllu": LINES,
    "genia": XML,
    "brat": BRAT_LINES,
    "ace": st.just(ace_annotations()),
    "ere": st.just(ere_annotations()),
}


@pytest.mark.parametrize("format", ANY)
@given(data=st.data())
def test_any_content_is_read_or_rejected(tmp_path_factory, format, data):
    files = {name: "" for name in SAMPLES[format]}
    *others, last = files
    files[last] = data.draw(ANY[format] | st.binary(max_size=40))
    for name in others:
        files[name] = data.draw(SOURCES)
    path = write_files(tmp_path_factory.mktemp("any"), files)
    try:
        records, check = read(path, format)
    except CorpusError:
        return
    assert check.sentences == len(records)
    if format == "brat":
        text = path.with_suffix(".txt").read_bytes().decode()
        words = "".join(token for record in records for token in record["tokens"])
        assert bare(words) == bare(text)


def bare(text):
    return "".join(text.translate(INVISIBLE_SPACES).split())


@pytest.mark.parametrize("labels", [None, ["City", "caf\xe9"]])
def test_a_label_in_two_normal_forms_is_rejected(tmp_path, labels):
    rows = [{**RECORD, "id": kind, **entity(0, 1, kind)} for kind in ("City", "caf\xe9", "cafe\u0301")]
    with pytest.raises(CorpusError) as caught:
        read(write_json(tmp_path / "a.jsonl", *rows), labels=labels)
    assert r"line 3: field 'entities[0].type' is 'cafe\u0301', which differs from 'caf\xe9' in" in str(caught.value)
