"""Corpora tagged through Ray: what is read, what is written, and that killed processes lose and double nothing."""

import datetime
import gzip
import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray
import torch
from datasets import Dataset, Features
from huggingface_hub import HfApi
from hypothesis import given
from hypothesis import strategies as st

from modeling_triaffine import NestedNERPipeline
from modeling_triaffine.commands import main
from modeling_triaffine.commands import tag as tag_command
from modeling_triaffine.data import ENTITY_FEATURES
from modeling_triaffine.model import pipeline_triaffine
from modeling_triaffine.tagging import (
    Actors,
    OutputFolder,
    Reading,
    Tagging,
    describe_model,
    find_files,
    run,
    tag_corpus,
)
from modeling_triaffine.tagging import output as output_module
from modeling_triaffine.tagging.chunks import Chunk, rejection
from modeling_triaffine.tagging.reading import read_chunks
from modeling_triaffine.tagging.run import connected
from modeling_triaffine.tagging.tagger import ENTITIES, Tagger

pytest_plugins = ("tests.helpers.hub_server",)

PROGRAM = "from modeling_triaffine.commands import main; main()"
TEXTS = [f"gene {number} binds protein x{number} . Does it ?" for number in range(30)]
DOOM = 17  # the row whose chunk takes its actor down
WAITING_TIME = 300  # seconds


NIGHTLY = pytest.mark.nightly


class DyingTagger(Tagger):
    """Kills its own process, once, after tagging a chunk, before returning it."""

    def tag(self, texts):
        found = super().tag(texts)
        doom = Path(self.tagging.model).with_name("doom")
        if TEXTS[DOOM] in texts and doom.exists():
            doom.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return found


@pytest.fixture(scope="module")
def cluster() -> str:
    """The address of a Ray of two CPUs, to which this process is connected."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")  # on a busy machine, Ray's 15 makes actors wait for all others
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


@pytest.fixture(scope="module")
def tag():
    """Runs `triaffine-ner tag` with arguments in this process; its exit code."""

    def call(*arguments: object) -> int:
        try:
            main(["tag", *map(str, arguments)])
        except SystemExit as end:
            return end.code
        return 0

    return call


@pytest.fixture(scope="module")
def expected(saved_model) -> list[list[dict]]:
    """The entities of `TEXTS`, found by the pipeline alone."""
    found = NestedNERPipeline(model=saved_model)(TEXTS, threshold=0.3)
    assert sum(map(len, found)) > len(TEXTS)
    return found


def write_lines(path: Path, lines: list) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    )
    return path


def rounded(found: list[list[dict]]) -> list[list[dict]]:
    """Without what the company of other texts in a batch may change."""
    return [[entity | {"score": pytest.approx(entity["score"], abs=1e-5)} for entity in each] for each in found]


def rejections(folder: Path) -> list[tuple]:
    lines = map(json.loads, (folder / "rejected.jsonl").read_text(encoding="utf-8").splitlines())
    return [(line["file"], line["row"], line["reason"], line["record"]) for line in lines]


def when_written(folder: Path) -> dict[str, int]:
    """Finished outputs and when they were written."""
    return {path.name: path.stat().st_mtime_ns for path in sorted(folder.glob("*.parquet"))}


class TestThroughRay:
    @pytest.fixture(scope="class")
    def corpus(self, tmp_path_factory) -> Path:
        """The same texts as JSON lines, with bad ones between them, and as Parquet; a damaged file and an empty one."""
        folder = tmp_path_factory.mktemp("corpus")
        good = [{"id": number, "text": text} for number, text in enumerate(TEXTS)]
        write_lines(folder / "a.jsonl", [b"{]", *good[:10], {"text": None}, *good[10:], b"[1]"])
        (folder / "b.parquet").write_bytes(b"PAR1 and nothing else")
        write_lines(folder / "c.jsonl", [])
        (folder / "sub").mkdir()
        dates = [datetime.date(2020, 1, 1 + number) for number in range(len(TEXTS))]
        table = pa.table({"when": dates, "text": TEXTS, "lot": pa.array(["x"] * len(TEXTS)).dictionary_encode()})
        pq.write_table(table, folder / "sub" / "d.parquet")
        return folder

    # An actor takes 10 s of processor time to start, and is started again after its death.
    @pytest.fixture(scope="class", params=["alive", *(pytest.param(f"{n} that die", marks=NIGHTLY) for n in (1, 2))])
    def tagged(self, request, cluster, corpus, saved_model, tag, tmp_path_factory) -> tuple[Path, int]:
        """The output folder and the exit code of a run, during which an actor's process may be killed."""
        folder = tmp_path_factory.mktemp("tagged")
        doom = saved_model.with_name("doom")
        actors = 1 if request.param == "alive" else int(request.param[0])
        if request.param != "alive":
            doom.touch()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run, "Tagger", DyingTagger)
            options = ["--output_dir", folder / "out", "--threshold", 0.3, "--chunk_size", 4, "--actors", actors]
            code = tag(corpus, "--model", saved_model, *options)
        assert not doom.exists()
        return folder / "out", code

    def test_entities_are_those_of_the_pipeline(self, tagged, corpus, expected):
        lines, table = pq.read_table(tagged[0] / "a.parquet"), pq.read_table(tagged[0] / "sub" / "d.parquet")
        assert lines["id"].to_pylist() == list(range(len(TEXTS)))
        assert lines["text"].to_pylist() == table["text"].to_pylist() == TEXTS
        assert lines["entities"].to_pylist() == rounded(expected)
        assert table["entities"].to_pylist() == rounded(expected)
        assert table.drop_columns(["entities"]).equals(pq.read_table(corpus / "sub" / "d.parquet"))

    def test_every_other_row_is_rejected_once(self, tagged):
        folder, code = tagged
        found = rejections(folder)
        assert [(file, row) for file, row, _, _ in found] == [
            ("a.jsonl", 1), ("a.jsonl", 12), ("a.jsonl", 33), ("b.parquet", None)
        ]  # fmt: skip
        assert [record for _, _, _, record in found] == ["{]", '{"text": null}', "[1]", None]
        assert code == 3
        assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) == [
            "a.parquet", "c.parquet", "options.json", "rejected.jsonl", "sub/d.parquet"
        ]  # fmt: skip
        assert pq.read_table(folder / "c.parquet").num_rows == 0

    def test_other_options_are_refused(self, tagged, corpus, saved_model, tag, capsys):
        assert tag(corpus, "--model", saved_model, "--output_dir", tagged[0], "--threshold", 0.4) == 2
        assert "threshold was 0.3, now it is 0.4" in capsys.readouterr().err

    @pytest.mark.nightly
    def test_a_killed_script_goes_on(self, cluster, saved_model, expected, tag, tmp_path, capsys):
        """Of three files the first is finished and the second begun when the script is killed."""
        corpus, out = tmp_path / "corpus", tmp_path / "out"
        records = [{"id": number, "text": text} for number, text in enumerate(TEXTS)]
        write_lines(corpus / "a.jsonl", [*records, {"text": 1}])
        write_lines(corpus / "b.jsonl", [{"text": 2}, *records * 30])
        write_lines(corpus / "c.jsonl", records)
        arguments = [corpus, "--model", saved_model, "--output_dir", out, "--threshold", 0.3, "--chunk_size", 5]
        command = [sys.executable, "-c", PROGRAM, "tag", *arguments, "--actors", 1]
        script = subprocess.Popen([*map(str, command)], env={**os.environ, "RAY_ADDRESS": cluster})
        deadline = time.monotonic() + WAITING_TIME
        while not (out / "a.parquet").exists():
            assert script.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        script.kill()
        script.wait()
        first = when_written(out)
        assert list(first) == ["a.parquet"]

        assert tag(*arguments, "--actors", 1) == 3
        assert "tagged rows: 960; files: 3" in capsys.readouterr().out
        finished = when_written(out)
        assert finished["a.parquet"] == first["a.parquet"]
        assert [(file, row) for file, row, _, _ in rejections(out)] == [("a.jsonl", 31), ("b.jsonl", 1)]
        for name, times in (("a", 1), ("b", 30), ("c", 1)):
            table = pq.read_table(out / f"{name}.parquet")
            assert table["id"].to_pylist() == list(range(len(TEXTS))) * times
            assert table["entities"].to_pylist() == rounded(expected) * times
        assert not list(out.rglob("*.incomplete"))

        assert tag(*arguments) == 3
        assert when_written(out) == finished


def test_a_ray_that_does_not_start_is_one_paragraph(monkeypatch):
    """Its processes have 30 seconds, which a machine with much other work can take."""

    def start(**options):
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", start)
    with pytest.raises(OSError, match=r"Ray did not start: The current node timed out .*try again"), connected():
        pass


def test_actors_that_never_start_are_refused():
    machine = {"CPU": 2.0, "GPU": 1.0}
    assert Actors(gpus=0).fitted(machine) == Actors(2, 1, 0)
    assert Actors().fitted(machine) == Actors(1, 1, 1)
    assert Actors(gpus=0.5).fitted(machine) == Actors(2, 1, 0.5)
    assert Actors().fitted({"CPU": 3.0}) == Actors(3, 1, 0)
    assert Actors(2, cpus=0).fitted({"CPU": 1.0}) == Actors(2, 0, 0)  # that wait for nothing
    for actors in (Actors(3, gpus=0), Actors(cpus=4), Actors(gpus=2)):
        with pytest.raises(ValueError, match="do not fit"):
            actors.fitted(machine)


class TestReading:
    def read(self, path: Path, **options) -> list[Chunk]:
        chunks = list(read_chunks("name", str(path), Reading(**options)))
        assert len({str(chunk.table.schema) for chunk in chunks if chunk.failure is None}) <= 1
        for chunk in chunks:
            unpacked = Chunk.unpack(chunk.pack())
            assert unpacked.table.equals(chunk.table)
            assert unpacked.rows == list(chunk.rows)
        return chunks

    def test_bad_lines(self, tmp_path):
        bad = {
            b"{": "invalid JSON",
            b'{"text": "\xff"}': "byte 11 is not valid utf-8",
            b"[" * 100_000: "nested too deeply",
            b'{"text": "a", "n": ' + b"1" * 5000 + b"}": "thousands of digits",
            b'["text"]': "found ['text'] (list)",
            b'{"txt": "a"}': "there is no field 'text'",
            b'{"text": null}': "'text' is null",
            b'{"text": 1}': "'text' is not a string but int",
            b'{"text": "12345678901"}': "'text' has 11 characters, more than 10",
            b'{"text": "\\ud800"}': "'text' contains half of a surrogate pair",
            b'{"text": "a", "\\ud800": 1}': "the name of a field contains half of a surrogate pair",
        }
        good = {"text": "0123456789"}
        lines = [b'\xef\xbb\xbf{"text": "first"}\r', b" ", *bad, good]
        chunks = self.read(write_lines(tmp_path / "a.jsonl", lines), max_characters=10, chunk_size=3)
        rejected = [line for chunk in chunks for line in chunk.rejected]
        assert [line["row"] for line in rejected] == list(range(3, 3 + len(bad)))
        for line, (raw, reason) in zip(rejected, bad.items(), strict=True):
            assert reason in line["reason"]
            assert line["record"] == raw.decode("utf-8", "backslashreplace")
        assert [row for chunk in chunks for row in chunk.rows] == [1, 3 + len(bad)]
        assert pa.concat_tables(chunk.table for chunk in chunks).to_pylist() == [{"text": "first"}, good]

    def test_columns_of_json(self, tmp_path):
        """A type where one holds all values as they are, or else JSON."""
        values = {
            "number": [1, 2.5, None],
            "list": [[], ["a"], None],
            "object": [{"a": 1}, {"b": {"c": "d"}}, None],
            "mixed": [1, "1", [1]],
            "truth": [True, 1, None],
            "empty": [{}, {}, None],
            "large": [2**70, 1, None],
            "before a float": [2**53 + 1, 1, 1.5],
            "after a float": [1.5, 1, 2**53 + 1],
            "inside": [[{"a": 2**53 + 1}], None, [{"a": 1.5}]],
            "half": ["\ud800", "a", None],
            "nothing": [None, None, None],  # another file may have strings
        }
        as_json = {"mixed", "truth", "empty", "large", "half", "before a float", "after a float", "inside"}
        records = [{"text": "a"} | {name: each[row] for name, each in values.items()} for row in range(3)]
        records[0].pop("number")
        records.append({"text": "b", "late": 1})
        chunks = self.read(write_lines(tmp_path / "a.jsonl", records), chunk_size=2)
        table = pa.concat_tables(chunk.table for chunk in chunks)
        assert table["nothing"].type == pa.string()
        for name in as_json:
            found = [None if value is None else json.loads(value) for value in table[name].to_pylist()]
            assert found == [*values[name], None]
        assert table["number"].to_pylist() == [None, 2.5, None, None]
        assert table["list"].to_pylist() == [*values["list"], None]
        assert table["object"].to_pylist()[:2] == [{"a": 1, "b": None}, {"a": None, "b": {"c": "d"}}]
        assert table["late"].to_pylist() == [None, None, None, 1]

    scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
    values = st.recursive(scalars, lambda each: st.lists(each, max_size=2) | st.dictionaries(st.text(max_size=2), each))
    records = values | st.dictionaries(st.sampled_from(["text", "a", "b"]), values | st.text(max_size=3))

    @given(st.lists(records, max_size=8), st.integers(1, 5))
    def test_every_line_is_a_row_or_rejected(self, tmp_path_factory, records, size):
        folder = tmp_path_factory.mktemp("lines")
        chunks = self.read(write_lines(folder / "a.jsonl", records), chunk_size=size)
        assert chunks[-1].failure is None
        rows = [row for chunk in chunks for row in chunk.rows]
        rejected = [line["row"] for chunk in chunks for line in chunk.rejected]
        assert sorted([*rows, *rejected]) == list(range(1, len(records) + 1))
        table = pa.concat_tables(chunk.table for chunk in chunks)
        assert table["text"].to_pylist() == [records[row - 1]["text"] for row in rows]
        pq.write_table(table, folder / "a.parquet")

    @pytest.mark.parametrize("depth", [90, 500, 900])
    def test_deep_objects_become_json(self, tmp_path, depth):
        path = tmp_path / "a.jsonl"
        path.write_text(f'{{"text": "a", "x": {"[" * depth}{"]" * depth}}}\n')
        (chunk,) = self.read(path)
        assert (chunk.failure, chunk.table["text"].to_pylist()) == (None, ["a"])

    def test_views_are_strings_and_bytes(self, tmp_path):
        text, data = pa.array(["a", None, "b"], pa.string_view()), pa.array([b"x"] * 3, pa.binary_view())
        inside = pa.array([{"a": "v"}] * 3, pa.struct({"a": pa.string_view()}))
        table = pa.table({"text": text, "n": [1, 2, 3], "data": data, "inside": inside})
        try:
            pq.write_table(table, tmp_path / "a.parquet")
        except pa.ArrowNotImplementedError:
            pytest.skip("needs a pyarrow that writes string views")
        (chunk,) = self.read(tmp_path / "a.parquet")
        assert chunk.table.to_pylist() == [
            {"text": text, "n": n, "data": b"x", "inside": {"a": "v"}} for text, n in (("a", 1), ("b", 3))
        ]
        assert [line["row"] for line in chunk.rejected] == [2]

    def test_rows_of_parquet(self, tmp_path):
        table = pa.table({"id": [1, 2, 3, 4], "text": ["a", None, "long", "b"], "day": [datetime.date(2020, 1, 1)] * 4})
        table = table.replace_schema_metadata({"made by": "somebody"})
        pq.write_table(table, tmp_path / "a.parquet")
        chunks = self.read(tmp_path / "a.parquet", max_characters=3, chunk_size=3)
        assert chunks[0].table.schema.metadata == table.schema.metadata
        assert [list(chunk.rows) for chunk in chunks] == [[1], [4]]
        assert pa.concat_tables(chunk.table for chunk in chunks).equals(table.take([0, 3]))
        packed = Chunk.unpack(chunks[0].pack()).rejected
        assert [line["row"] for line in packed] == [2, 3]
        assert packed[0] == {
            "file": "name",
            "row": 2,
            "reason": "'text' is null",
            "record": {"id": 2, "text": None, "day": "2020-01-01"},
        }

    @pytest.mark.parametrize("texts", [["a", None], []])
    def test_a_column_of_tensors_is_kept(self, tmp_path, texts):
        tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((2, 3, 4)))[: len(texts)]
        table = pa.table({"text": pa.array(texts, pa.string()), "tensor": tensors})
        pq.write_table(table, tmp_path / "a.parquet")
        (chunk,) = self.read(tmp_path / "a.parquet")
        assert chunk.table.equals(table.slice(0, 1))

    @pytest.mark.parametrize(
        ("table", "reason"),
        [
            ({"txt": ["a"]}, "must be one column 'text' of strings; its columns are 'txt' (string)"),
            ({"text": [1]}, "must be one column 'text' of strings; its columns are 'text' (int64)"),
            ({"text": ["a"], "entities": [1]}, "there is a column 'entities' already"),
        ],
    )
    def test_files_that_cannot_be_read(self, tmp_path, table, reason):
        pq.write_table(pa.table(table), tmp_path / "a.parquet")
        (chunk,) = self.read(tmp_path / "a.parquet")
        assert reason in chunk.failure

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (gzip.compress(b'{"text": "a"}', mtime=0), "the file is compressed with gzip. Uncompress it"),
            (b'[\n{"text": "a"},\n{"text": "b"}\n]\n', "a JSON value goes on in the next line. Give JSON lines"),
            (b'\n{\n"text": "a"\n}\n', "a JSON value goes on in the next line. Give JSON lines"),
        ],
        ids=["gzip", "list", "object"],  # without the number of a system that gzip writes
    )
    def test_files_that_are_no_json_lines(self, tmp_path, content, reason):
        (tmp_path / "a.jsonl").write_bytes(content)
        (chunk,) = self.read(tmp_path / "a.jsonl")
        assert chunk.failure.startswith(reason)

    def test_json_lines_with_entities_keep_them(self, tmp_path):
        path = write_lines(tmp_path / "a.jsonl", [{"text": "a", "entities": [1]}])
        assert "entities_column" in self.read(path)[-1].failure
        assert self.read(path, entities_column="found")[-1].failure is None

    def test_a_link_is_read_as_its_name_says(self, tmp_path):
        """What the caches of the Hub and of DVC link to has a hash as its name."""
        pq.write_table(pa.table({"text": ["a"]}), tmp_path / "5f3a")
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "a.parquet").symlink_to(tmp_path / "5f3a")
        (path,) = find_files([str(tmp_path / "in")], tmp_path / "out").values()
        (chunk,) = self.read(Path(path))
        assert (chunk.failure, chunk.table.to_pylist()) == (None, [{"text": "a"}])

    def test_files_are_found(self, tmp_path, caplog):
        names = ("in/a.jsonl", "in/b/a.parquet", "in/_a.json", "in/note.txt", "in/out/a.parquet", "c/a.parquet")
        hidden = ("in/.git/a.json", "in/b/_temporary/0/a.parquet", "in/b/.ipynb_checkpoints/c/a.jsonl")
        for name in (*names, *hidden, "c/b.ndjson"):
            write_lines(tmp_path / name, [])
        folder, other, out = tmp_path / "in", tmp_path / "c", tmp_path / "in" / "out"
        assert find_files([str(folder)], out) == {name: str(folder / name) for name in ("a.jsonl", "b/a.parquet")}
        assert caplog.messages == [f"{folder}: files left out: 1 (note.txt)."]
        assert list(find_files([f"{folder}/*.*", f"{other}/*.ndjson"], out)) == ["_a.json", "a.jsonl", "b.ndjson"]
        assert caplog.messages[1:] == [f"{folder}/*.*: files left out: 1 (note.txt)."]
        for inputs, reason in (
            (["nowhere"], "nowhere: there is no"),
            ([str(out)], "file outside of the output folder"),
            ([f"{folder}/note.txt"], "note.txt: there is no"),
            ([str(folder), str(other)], "would have the same output"),
            ([f"{other}/a.parquet", f"{folder}/b/a.parquet"], "would have the same output"),
            ([f"{tmp_path}/*/a.*"], "would have the same output"),
        ):
            with pytest.raises(ValueError, match=reason):
                find_files(inputs, out)


def test_a_column_of_entities_has_its_features(saved_model):
    """The first batch, which would decide otherwise, has no entities."""
    rows = Dataset.from_dict({"text": ["", TEXTS[0]]})
    ner = NestedNERPipeline(model=saved_model)
    features = Features({**rows.features, "entities": ENTITY_FEATURES})
    options = {"batched": True, "batch_size": 1, "features": features}
    tagged = rows.map(lambda batch: {"entities": ner(batch["text"], threshold=0.3)}, **options)
    assert tagged["entities"][:] == rounded([[], *ner([TEXTS[0]], threshold=0.3)])
    assert features.arrow_schema.field("entities").type == ENTITIES


class TestOutput:
    def chunk(self, numbers: list[int], **fields) -> Chunk:
        return Chunk("a.jsonl", pa.table({"n": numbers}), **fields)

    def test_an_unfinished_file_leaves_nothing(self, tmp_path):
        folder = OutputFolder(tmp_path, {})
        line = {"file": "a.jsonl", "row": 1, "reason": "bad", "record": None}

        def breaking():
            yield self.chunk([1], rejected=[line])
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            folder.write("a.jsonl", breaking())
        with open(folder.rejections, "a", encoding="utf-8") as file:
            file.write('{"file": "a.js')  # as a killed process leaves it
        folder = OutputFolder(tmp_path, {})
        assert rejections(tmp_path) == []
        folder.write("a.jsonl", [self.chunk([1], rejected=[line]), self.chunk([2])])
        assert OutputFolder(tmp_path, {}).totals() == (1, 2, 1, 0)

    def test_an_output_that_outlives_a_power_failure_has_its_rejections(self, tmp_path, monkeypatch):
        on_disk = {}

        def sync(number):
            found = os.fstat(number)
            on_disk[found.st_ino] = found.st_size

        monkeypatch.setattr(os, "fsync", sync)
        folder = OutputFolder(tmp_path, {})
        folder.write("a.jsonl", [self.chunk([1], rejected=[rejection("a.jsonl", 2, "bad", None)])])
        written = [path.stat() for path in (folder.path("a.jsonl"), folder.rejections)]
        assert on_disk == {found.st_ino: found.st_size for found in written}

    def test_a_file_that_cannot_be_read_to_its_end_is_tried_again(self, tmp_path):
        folder = OutputFolder(tmp_path, {})
        folder.write("a.jsonl", [self.chunk([1]), self.chunk([], failure="damaged")])
        assert folder.totals() == (0, 0, 0, 1)
        assert not list(tmp_path.rglob("*.parquet*"))
        folder = OutputFolder(tmp_path, {})
        folder.write("a.jsonl", [self.chunk([1])])
        assert folder.totals() == (1, 1, 0, 0)

    def test_chunks_are_joined_to_row_groups(self, tmp_path, monkeypatch):
        monkeypatch.setattr(output_module, "ROW_GROUP_BYTES", 24)  # three integers
        folder = OutputFolder(tmp_path, {})
        folder.write("sub/a.jsonl", [self.chunk([number]) for number in range(7)])
        with pq.ParquetFile(tmp_path / "sub" / "a.parquet") as file:
            assert file.num_row_groups == 3
            assert file.read()["n"].to_pylist() == list(range(7))

    def test_an_output_without_rows_can_be_read_with_others(self, tmp_path):
        """By `datasets`, which refuses row groups without rows."""
        folder = OutputFolder(tmp_path, {})
        folder.write("a.jsonl", [self.chunk([1])])
        folder.write("b.jsonl", [Chunk("b.jsonl", pa.table({"n": pa.array([], pa.int64())}))])
        files = [str(folder.path(name)) for name in ("a.jsonl", "b.jsonl")]
        assert Dataset.from_parquet(files, cache_dir=str(tmp_path / "cache"))["n"] == [1]

    def test_rejected_rows_are_json(self, tmp_path):
        """Of Parquet that pandas has written, with NaN for a missing number."""
        folder = OutputFolder(tmp_path, {})
        line = rejection("a.parquet", 1, "why", {"text": None, "number": float("nan")})
        folder.write("a.parquet", [self.chunk([1], rejected=[line])])
        (found,) = (tmp_path / "rejected.jsonl").read_text().splitlines()
        assert json.loads(found, parse_constant=pytest.fail)["record"] == {"text": None, "number": None}

    def test_a_damaged_output_is_named(self, tmp_path):
        folder = OutputFolder(tmp_path, {})
        folder.path("a.jsonl").touch()
        with pytest.raises(ValueError, match=r"a\.parquet is damaged .* Delete it and run again"):
            folder.totals()

    def test_folders_that_are_named_as_files_are_not_counted(self, tmp_path):
        """Spark and pandas write a table to a folder of this name."""
        folder = OutputFolder(tmp_path, {})
        folder.write("table.parquet/part-0.parquet", [self.chunk([1])])
        assert folder.totals() == (1, 1, 0, 0)

    def test_folders_of_something_else_are_refused(self, tmp_path):
        (tmp_path / "thesis.tex").touch()
        with pytest.raises(ValueError, match="other files"):
            OutputFolder(tmp_path, {})

    def test_a_run_that_was_killed_at_its_start_can_be_repeated(self, tmp_path):
        (tmp_path / "options.json.incomplete").touch()
        OutputFolder(tmp_path, {"threshold": 0.5})
        assert [path.name for path in sorted(tmp_path.iterdir())] == ["options.json", "rejected.jsonl"]


class TestTagger:
    def test_computes_in_bfloat16_if_wanted(self, saved_model, monkeypatch):
        monkeypatch.setattr(pipeline_triaffine, "multiplies_bfloat16", lambda: True)
        tagger = Tagger(Tagging(str(saved_model), bf16=True), Reading(), "cpu")
        assert tagger.find_entities.model.dtype == torch.bfloat16

    def make(self, saved_model, monkeypatch, fails) -> Tagger:
        """A tagger whose model fails on texts of which `fails` is true."""
        tagger = Tagger(Tagging(str(saved_model)), Reading(), "cpu")
        tag = tagger.tag

        def failing(texts):
            if any(map(fails, texts)):
                raise RuntimeError("out of memory")
            return tag(texts)

        monkeypatch.setattr(tagger, "tag", failing)
        return tagger

    def test_a_text_that_the_model_fails_on_is_rejected(self, saved_model, monkeypatch):
        chunk = Chunk("a", pa.table({"text": ["gene", "bad", "protein"]}), [1, 3, 4], [{"row": 2}])
        tagged = self.make(saved_model, monkeypatch, lambda text: text == "bad").tag_chunk(chunk)
        assert tagged.rows == [1, 4]
        assert tagged.table["text"].to_pylist() == ["gene", "protein"]
        assert tagged.rejected == [
            {"row": 2},
            {"file": "a", "row": 3, "reason": "the model failed: out of memory", "record": {"text": "bad"}},
        ]

    def test_a_machine_that_fails_is_not_the_fault_of_texts(self, saved_model, monkeypatch):
        tagger = self.make(saved_model, monkeypatch, lambda text: True)
        with pytest.raises(RuntimeError, match="out of memory"):
            tagger.tag_chunk(Chunk("a", pa.table({"text": ["gene"]}), [1]))

    def test_another_state_of_a_model_is_another_model(self, saved_model, tmp_path):
        copy = shutil.copytree(saved_model, tmp_path / "renamed")
        assert describe_model(str(copy)) == describe_model(str(saved_model))
        (copy / "README.md").write_text("Another card.")
        assert describe_model(str(copy)) == describe_model(str(saved_model))
        with open(copy / "tokenizer_config.json", "a") as tokenizer_config:
            tokenizer_config.write("\n")
        described = describe_model(str(copy))
        assert described != describe_model(str(saved_model))
        weights = bytearray((copy / "model.safetensors").read_bytes())
        weights[-1] ^= 1
        (copy / "model.safetensors").write_bytes(weights)
        assert describe_model(str(copy)) != described
        with pytest.raises(OSError, match="nowhere"):
            describe_model(str(tmp_path / "nowhere"))
        (copy / "model.safetensors").rename(copy / "model.onnx")
        with pytest.raises(FileNotFoundError, match="has a graph"):
            describe_model(str(copy))

    def test_a_model_on_the_hub_is_known_by_its_contents_and_loaded_from_its_commit(
        self, saved_model, online, tmp_path
    ):
        api = HfApi()
        api.create_repo("owner/name")
        commit = api.upload_folder(repo_id="owner/name", folder_path=saved_model).oid
        description, revision = describe_model("owner/name")
        assert revision == commit
        assert (description, None) == describe_model(str(saved_model))
        tag_corpus({}, tmp_path / "out", Tagging("owner/name"))
        api.upload_file(path_or_fileobj=b"Another card.", path_in_repo="README.md", repo_id="owner/name")
        assert describe_model("owner/name")[0] == description
        tag_corpus({}, tmp_path / "out", Tagging("owner/name"))
        config = json.loads((saved_model / "config.json").read_text()) | {"threshold": 0.9}
        api.upload_file(path_or_fileobj=json.dumps(config).encode(), path_in_repo="config.json", repo_id="owner/name")
        with pytest.raises(ValueError, match="model"):
            tag_corpus({}, tmp_path / "out", Tagging("owner/name"))
        tag_corpus({}, tmp_path / "out", Tagging("owner/name", revision=commit))
        tagger = Tagger(Tagging("owner/name", revision=commit), Reading(), "cpu")
        assert tagger.find_entities.model.origin["revision"] == commit


def test_the_command_has_the_defaults_of_what_it_calls():
    defaults = {name: one.default for name, one in inspect.signature(tag_command.command).parameters.items()}
    assert {one.name: one.default for one in fields(Reading) if one.name in defaults}.items() <= defaults.items()
    assert defaults["cpus_per_actor"] == Actors.cpus
