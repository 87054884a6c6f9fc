"""Corpora and model folders with damage: read, or told to be damaged; nothing else, and no end of it.

Each reader gets a good file in which bytes are changed, cut out, repeated and put in, and values of JSON replaced, by
hypothesis. `make nightly` tries more files, and longer texts.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modeling_triaffine import NestedNERPipeline, TriaffineForNestedNER
from modeling_triaffine.data import CorpusError
from modeling_triaffine.files import JSON_SUFFIXES
from tests.conftest import EXAMPLES
from tests.helpers.corpora import bare, read, write_files
from tests.helpers.format_cases import CASES
from tests.helpers.tiny import save_tiny_model, tiny_pipeline

FUZZED = settings(suppress_health_check=list(HealthCheck), database=None, derandomize=True)
PIECES = [  # what has broken readers: ends of lines, marks of every format, halves of UTF-8, numbers out of range
    *(b"\n", b"\r\n", b"\0", b"\t", b" ", b"\xff", b"\xc3", b"\xef\xbb\xbf", b"R1\t", b"9" * 25),
    *rb'" \ \ud800 { ] < > &#0; &x; -1 1e999 null T1 B- I-X Entity=( ) % .. /'.split(),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.text(st.sampled_from('ab .\n"\ud800😀'), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["start", "text"]), inner),
    max_leaves=6,
)


@st.composite
def damage(draw) -> Callable[[bytes], bytes]:
    """A function that damages bytes in one to four places."""
    edit = st.tuples(
        st.sampled_from(["change", "cut", "repeat", "insert"]),
        st.floats(0, 1, exclude_max=True),
        st.integers(1, 40),
        st.sampled_from(PIECES) | st.binary(min_size=1, max_size=4),
    )
    edits = draw(st.lists(edit, min_size=1, max_size=4))

    def damaged(content: bytes) -> bytes:
        for kind, place, size, piece in edits:
            start = int(place * len(content))
            before, part, after = content[:start], content[start : start + size], content[start + size :]
            new = {"change": piece, "cut": b"", "repeat": part * 3, "insert": piece + part}[kind]
            content = before + new + after
        return content

    return damaged


@st.composite
def another_value(draw) -> Callable[[bytes], bytes]:
    """A function that replaces a value somewhere in JSON."""
    place, value = draw(st.floats(0, 1, exclude_max=True)), draw(JSON)

    def changed(content: bytes) -> bytes:
        data = json.loads(content)
        places = list(places_in(data))
        container, key = places[int(place * len(places))]
        container[key] = value
        return json.dumps(data).encode()

    return changed


def places_in(data: Any) -> Iterator[tuple[Any, Any]]:
    """Each value in JSON, as what contains it and its key or number there."""
    if isinstance(data, dict | list):
        for key, value in list(data.items() if isinstance(data, dict) else enumerate(data)):
            yield data, key
            yield from places_in(value)


@pytest.fixture(scope="module", params=CASES)
def seed(request, tmp_path_factory) -> tuple[str, Path, dict[Path, bytes]]:
    """Name of a format, a good file or folder of it, and what its files hold."""
    folder = tmp_path_factory.mktemp(request.param)
    path = write_files(folder, CASES[request.param].sample())
    return request.param, path, {file: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}


@FUZZED
@given(st.data())
def test_damaged_corpora_are_read_or_refused(seed, data):
    name, path, files = seed
    is_json = path.suffix in JSON_SUFFIXES
    damaged, which = data.draw(damage() | another_value() if is_json else damage()), data.draw(st.integers(0, 10))
    for number, (file, content) in enumerate(files.items()):
        file.write_bytes(damaged(content) if number == which % len(files) else content)
    try:
        records, check = read(path, name)
    except CorpusError:
        return
    assert check.sentences == len(records)
    for record in records:
        size = len(record["tokens"])
        assert size > 0
        assert all(0 <= entity["start"] < entity["end"] <= size for entity in record["entities"])
        json.dumps(record, ensure_ascii=False).encode()  # no half of a character
    if name == "brat":
        words = "".join(token for record in records for token in record["tokens"])
        assert bare(words) == bare(path.with_suffix(".txt").read_bytes().decode())


MODEL_FILES = [
    *("config.json", "processor_config.json", "vocabularies.json", "tokenizer_config.json", "tokenizer.json"),
    *("model.safetensors", "model.safetensors.index.json"),
]


@pytest.fixture(scope="module")
def model_folders(encoder, tmp_path_factory) -> dict[bool, Path]:
    """A model, and the same with its weights in several files and an index (True)."""
    whole = save_tiny_model(tmp_path_factory.mktemp("fuzzed") / "model", encoder, ["chars"])
    parts = whole.with_name("parts")
    shutil.copytree(whole, parts, ignore=shutil.ignore_patterns("*.safetensors"))
    TriaffineForNestedNER.from_pretrained(whole).save_pretrained(parts, max_shard_size="20KB")
    return {False: whole, True: parts}


@pytest.mark.parametrize("name", MODEL_FILES)
@settings(parent=FUZZED, max_examples=max(10, EXAMPLES // 4))
@given(damaged=damage())
def test_damaged_models_are_used_or_refused(model_folders, tmp_path_factory, name, damaged):
    """Damage may leave a file that still means something; what it must not do is crash, hang or reach out."""
    folder = tmp_path_factory.mktemp("damaged") / "model"
    shutil.copytree(model_folders["index" in name], folder)
    (folder / name).write_bytes(damaged((folder / name).read_bytes()))
    try:
        pipeline = NestedNERPipeline(model=folder)
    except (ValueError, OSError):
        return
    finally:
        shutil.rmtree(folder.parent)
    for entity in pipeline("gene binds protein", threshold=0.0):
        assert "gene binds protein"[entity["start"] : entity["end"]] == entity["word"]


TIMES = min(EXAMPLES, 100)
HOSTILE = {
    "one long token": "x" * 1_000 * TIMES,
    "combining marks": "e" + "\u0301" * 500 * TIMES,
    "lone surrogates": "\ud800 gene \udfff" * 5 * TIMES,
    "full stops": "." * 30 * TIMES,
    "white space": " \n\t\u3000\x85" * 200 * TIMES,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_come_to_an_end(encoder, text):
    for entity in tiny_pipeline(encoder)(text, threshold=0.3):  # the random model would find nothing by itself
        assert text[entity["start"] : entity["end"]] == entity["word"]
