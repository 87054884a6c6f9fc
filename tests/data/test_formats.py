"""Every format: detection and gzip; and the error for each kind of damaged file."""

import gzip
import json
import re
from pathlib import Path

import pytest

from modeling_triaffine.data import FORMATS, CorpusError, load_nested_ner, load_texts
from modeling_triaffine.data.formats import CorpusFormat
from modeling_triaffine.data.loading import find_splits, formats_recognizing
from modeling_triaffine.data.reading import record_keys
from modeling_triaffine.files import JSON_SUFFIXES
from tests.helpers.corpora import BIGBIO_RECORD, PUBLISHED, RECORD, TEXT, TOKENS, conllu, read, spelled, write_files
from tests.helpers.format_cases import CASES, COLUMNS, SAMPLES

SINGLE_FILES = [name for name, files in SAMPLES.items() if len(files) == 1]


@pytest.mark.contract
def test_every_format_has_its_case():
    lacking = set(FORMATS) - set(CASES) - {"genia_all_types", "genia_other_types"}  # which read what "genia" reads
    assert not lacking, f"write a FormatCase for {min(lacking)} in tests/helpers/format_cases.py"
    names = ("docs/corpora.md", "README.md", "CHANGELOG.md")
    page, *others = [(Path(__file__).parents[2] / name).read_text(encoding="utf-8") for name in names]
    headings = "".join(line for line in page.splitlines() if line.startswith("### "))
    assert not [name for name in FORMATS if f"`{name}`" not in headings], "write a paragraph in docs/corpora.md"
    assert not [name for name in FORMATS if f"[`{name}`](#" not in page], "write a line of the table in docs/corpora.md"
    numbers = {int(number) for number in re.findall(r"(\d+) (?:formats|readers)", " ".join(others))}
    assert numbers == {len(FORMATS)}, "correct the number of formats in README and CHANGELOG"


@pytest.mark.contract
def test_formats_of_json_take_all_suffixes_of_json_by_default():
    assert CorpusFormat("own", "", read=list, keys=("bars",)).suffixes == JSON_SUFFIXES
    assert FORMATS["mrc"].suffixes == FORMATS["label_studio"].suffixes == JSON_SUFFIXES
    assert CorpusFormat("own", "", read=list).suffixes == ()


# Those that import spaCy are not quick.
QUICK = [pytest.param(name, marks=[] if name == "docbin" else pytest.mark.contract) for name in CASES]


@pytest.mark.parametrize("format", QUICK)
def test_the_sample_is_detected_and_read(tmp_path, format):
    """As sentences of words, and as a text with entities by characters."""
    path = write_files(tmp_path / "in", CASES[format].sample())
    assert find_splits(path, None)[None].format.name == format
    (record,), check = read(path)
    assert (record["tokens"], sorted(spelled(record), reverse=True)) == (TOKENS, CASES[format].entities)
    for what in CASES[format].noted:
        assert check.counts.pop(what) == 1
    assert not check.report()
    assert list(load_nested_ner(path)["train"]) == [record]
    (document,) = load_texts(path)["train"]
    text = document["text"]
    assert text.strip().replace(" .", ".") == TEXT
    found = [(text[entity["start"] : entity["end"]], entity["type"]) for entity in document["entities"]]
    assert sorted(found, reverse=True) == CASES[format].entities
    assert ([text[start:end] for start, end in document.get("words", ())] or TOKENS) == TOKENS


CHANGES = {
    "no suffix": ("a", lambda text: text),
    "gzip": ("a.dat.gz", lambda text: gzip.compress(text.encode())),
    "line ends of Windows": ("a.txt", lambda text: text.replace("\n", "\r\n")),
    "byte order mark": ("a", lambda text: f"\ufeff{text}"),
}


@pytest.mark.parametrize(("name", "change"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("format", SINGLE_FILES)
def test_formats_are_detected_by_content_and_read_alike_in_any_file(tmp_path, format, name, change):
    (content,) = SAMPLES[format].values()
    path = write_files(tmp_path, {name: change(content)})
    assert find_splits(path, None)[None].format.name == format
    ((record,), _) = read(path)
    assert (record["tokens"], sorted(spelled(record), reverse=True)) == (TOKENS, CASES[format].entities)


@pytest.mark.contract
@pytest.mark.parametrize("format", sorted(set(SINGLE_FILES)))
def test_exactly_one_format_recognizes_a_sample_best(format):
    (content,) = SAMPLES[format].values()
    values = [content]
    if content.startswith("{"):
        values.append(f"[{content}]" if format != "json_lines" else json.dumps(json.loads(content), indent=1))
    assert [[known.name for known in formats_recognizing(value)] for value in values] == [[format]] * len(values)


@pytest.mark.parametrize("format", ["json_lines", "text_spans", "label_studio", "bigbio_kb", "inclusive_spans"])
def test_one_object_of_several_lines(tmp_path, format):
    (content,) = SAMPLES[format].values()
    value = json.loads(content)
    path = write_files(tmp_path, {"a.json": json.dumps(value[0] if isinstance(value, list) else value, indent=1)})
    assert find_splits(path, None)[None].format.name == format
    assert read(path)[0][0]["tokens"] == TOKENS


def test_xml_may_have_another_encoding(tmp_path):
    content = SAMPLES["bioc"]["a.xml"].replace("?>", ' encoding="UTF-16"?>', 1).replace("<offset>0<", "<offset> 0\n<")
    path = write_files(tmp_path, {"a.xml": content.encode("utf-16")})
    assert find_splits(path, None)[None].format.name == "bioc"
    assert spelled(read(path)[0][0]) == CASES["bioc"].entities


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


@pytest.mark.contract
@pytest.mark.parametrize(("format", "value"), SIMILAR_JSON.values(), ids=SIMILAR_JSON)
def test_similar_json(tmp_path, format, value):
    assert find_splits(write_files(tmp_path, {"a.json": json.dumps(value)}), None)[None].format.name == format


def test_the_name_decides_where_the_content_does_not(tmp_path):
    assert find_splits(write_files(tmp_path, {"a.conllu": json.dumps(RECORD)}), None)[None].format.name == "json_lines"
    assert find_splits(write_files(tmp_path, {"b.conllu": conllu("", "")}), None)[None].format.name == "conllu"


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


# ---- Damaged files ----


JSON_LINE = json.dumps(RECORD) + "\n"
PACKED = gzip.compress("".join(json.dumps({**RECORD, "id": str(n)}) + "\n" for n in range(500)).encode(), mtime=0)
BROKEN_FILES = {
    "truncated": ("a.jsonl", JSON_LINE + '{"id": "a:1", "tok', "line 2", "column"),
    "quotes": ("a.jsonl", JSON_LINE + "{'id': 1}", "line 2", "column 2"),
    "nonsense": ("a.jsonl", JSON_LINE + "nonsense", "line 2", "column 1"),
    "encoding": ("a.jsonl", JSON_LINE.encode() + b'{"id": "\xe9"}\n', "line 2", "byte 9", "utf-8"),
    "digits": ("a.jsonl", JSON_LINE + '{"tokens": [' + "9" * 5000 + '], "entities": []}', "line 2", "digits"),
    "depth": ("a.jsonl", JSON_LINE + "[" * 100_000, "line 2", "depth"),
    "encoding of columns": ("a.conll", COLUMNS.encode() + b"\n\xe9\tO\tO\n", "line 8", "byte 1", "utf-8"),
    "list truncated": ("a.json", json.dumps([PUBLISHED], indent=1)[:-30], "", "line "),
    "list record": ("a.json", json.dumps([PUBLISHED, {**PUBLISHED, "tokens": "Orsk"}]), "record 1", "'tokens' is"),
    "gzip truncated": ("a.jsonl.gz", PACKED[: len(PACKED) // 2], "", "gzip"),
    "ZIP": ("a.jsonl", b"PK\x03\x04" + PACKED, "", "zip"),
    "JSON in UTF-16": ("a.jsonl", (2 * JSON_LINE).encode("utf-16"), "line 1", "NUL byte", "UTF-8"),
    "UTF-16": ("a.conll", SAMPLES["iob2"]["a.conll"].encode("utf-16"), "line 1", "NUL byte", "UTF-8"),
    "unknown": ("a.txt", "The mayor of Orsk slept.\n", "", "'The mayor of Orsk slept.", "docs/corpora.md"),
    "no tags": ("a.conll", "a b c\n", "", "B-type"),
    "WebAnno": ("a.tsv", "#FORMAT=WebAnno TSV 3.3\n\n#Text=Orsk\n1-1\t0-4\tOrsk\tCity\t\n", "", "UIMA CAS"),
    "only comments": ("a.conll", "# only\n", "", "B-type"),
}


def bad_files():
    """(format, files, place, facts) of every case."""
    for format, case in CASES.items():
        for name, (files, place, *facts) in case.bad.items():
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
        read(path, format)
    message = str(caught.value)
    assert message.startswith(f"{path}, {place}" if place else f"{path}: ")
    for fact in facts:
        assert fact in message
    assert "\n" not in message
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("format", [name for name, case in CASES.items() if case.nothing])
def test_a_file_without_entities_is_no_error(tmp_path, format):
    (record,), check = read(write_files(tmp_path, CASES[format].nothing), format)
    assert (record["tokens"], record["entities"]) == (TOKENS, [])
    assert not check.entities_dropped
