"""Corpora tagged through Ray: what is read, what is written, and that killed processes lose and double nothing."""

import datetime
import gzip
import inspect
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray
import torch
from datasets import Dataset
from filelock import FileLock
from huggingface_hub import HfApi

from modeling_triaffine import NestedNERPipeline
from modeling_triaffine.commands import main
from modeling_triaffine.commands.predict import tag as command
from modeling_triaffine.documents import Row, check_usable
from modeling_triaffine.model import pipeline_triaffine
from modeling_triaffine.tagging import TagOptions, files, find_files, run, tag_corpus
from modeling_triaffine.tagging.files import LOCK, OutputFolder, read_all
from modeling_triaffine.tagging.run import HARMLESS_TEXT, Tagger, identify_model
from tests.helpers.corpora import json_lines, write_files
from tests.helpers.portable import near

pytest_plugins = ("tests.helpers.hub_server",)

PROGRAM = "from modeling_triaffine.commands import main; main()"
TEXTS = [f"gene {number} binds protein x{number} . Does it ?" for number in range(30)]
REPOSITORY = Path(__file__).resolve().parents[2]
WAITING_TIME = 300  # seconds


@pytest.fixture(scope="module")
def cluster() -> str:
    """The address of a Ray of two CPUs, to which this process is connected."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")  # on a busy machine, Ray's 15 makes actors wait for all others
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


def tag(*arguments: object) -> int:
    """The exit code of `triaffine-ner tag` in this process, where it finds something to reject or to refuse."""
    with pytest.raises(SystemExit) as end:
        main(["tag", *map(str, arguments)])
    return end.value.code


@pytest.fixture(scope="module")
def expected(saved_model) -> list[list[dict]]:
    """The entities of `TEXTS`, found by the pipeline alone."""
    found = NestedNERPipeline(model=saved_model)(TEXTS, threshold=0.3)
    assert sum(map(len, found)) > len(TEXTS)
    return found


def write_lines(path: Path, lines: list) -> Path:
    return write_files(path.parent, {path.name: json_lines(*lines)})


def read_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def rejections(folder: Path) -> list[tuple]:
    return [tuple(line.values()) for line in read_lines(folder / "rejected.jsonl")]


class TestThroughRay:
    @pytest.fixture(scope="class")
    def corpus(self, tmp_path_factory) -> Path:
        """The same texts as JSON lines, with bad ones between them, and as Parquet; a damaged file and an empty one."""
        folder = tmp_path_factory.mktemp("corpus")
        good = [{"id": number, "body": text} for number, text in enumerate(TEXTS)]
        write_lines(folder / "a.jsonl", ["{]", *good[:10], {"body": None}, *good[10:], "[1]"])
        (folder / "b.parquet").write_bytes(b"PAR1 and nothing else")
        write_lines(folder / "c.jsonl", [])
        for number, text in enumerate(TEXTS[:3]):
            (folder / f"{number}.txt").write_text(text)
        (folder / "report.pdf").write_bytes(b"%PDF-1.7")
        (folder / "sub").mkdir()
        dates = [datetime.date(2020, 1, 1 + number) for number in range(len(TEXTS))]
        table = pa.table({"when": dates, "body": TEXTS, "lot": pa.array(["x"] * len(TEXTS)).dictionary_encode()})
        pq.write_table(table, folder / "sub" / "d.parquet")
        return folder

    @pytest.fixture(scope="class")
    def tagged(self, cluster, corpus, saved_model, tmp_path_factory) -> tuple[Path, int]:
        """The output folder and the exit code of a run."""
        folder = tmp_path_factory.mktemp("tagged") / "out"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run, "CHUNK", 4)
            options = ["--text-column", "body", "--entities_column", "found", "--gpus-per-actor", 0, "--actors", 1]
            return folder, tag(corpus, "--model", saved_model, "--output_dir", folder, "--threshold", 0.3, *options)

    def test_entities_are_those_of_the_pipeline(self, tagged, corpus, expected):
        lines, table = read_lines(tagged[0] / "a.jsonl"), pq.read_table(tagged[0] / "sub" / "d.parquet")
        entities = near(expected)
        assert lines == [{"id": n, "body": text, "found": entities[n]} for n, text in enumerate(TEXTS)]
        assert table["found"].to_pylist() == entities
        documents = read_lines(tagged[0] / "texts-00000.jsonl")
        assert documents == [{"id": f"{n}.txt", "body": TEXTS[n], "found": entities[n]} for n in range(3)]
        assert table.drop_columns(["found"]).equals(pq.read_table(corpus / "sub" / "d.parquet"))

    def test_every_other_row_is_rejected_once(self, tagged):
        folder, code = tagged
        places = [("a.jsonl", 1), ("a.jsonl", 12), ("a.jsonl", 33), ("b.parquet", None), ("report.pdf", None)]
        assert [(file, row) for file, row, _ in rejections(folder)] == places
        assert code == 3
        assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) == [
            ".lock", "a.jsonl", "options.json", "rejected.jsonl", "sub/d.parquet", "texts-00000.jsonl"
        ]  # fmt: skip

    def test_other_options_are_refused(self, tagged, corpus, saved_model, capsys):
        assert tag(corpus, "--model", saved_model, "--output_dir", tagged[0], "--text-column", "body") == 2
        assert "entities_column was found, now it is entities" in capsys.readouterr().err

    @pytest.mark.nightly
    def test_a_killed_script_goes_on(self, cluster, saved_model, expected, tmp_path, capsys):
        """Of three files the first is finished and the second begun when the script is killed."""
        corpus, out = tmp_path / "corpus", tmp_path / "out"
        records = [{"id": number, "text": text} for number, text in enumerate(TEXTS)]
        write_lines(corpus / "a.jsonl", [*records, {"text": 1}])
        write_lines(corpus / "b.jsonl", [{"text": 2}, *records * 30])
        write_lines(corpus / "c.jsonl", records)
        arguments = [corpus, "--model", saved_model, "--output_dir", out, "--threshold", 0.3]
        script = [sys.executable, "-c", PROGRAM, "tag", *arguments, "--actors", 1]
        script = subprocess.Popen([*map(str, script)], env={**os.environ, "RAY_ADDRESS": cluster})
        deadline = time.monotonic() + WAITING_TIME
        while not (out / "a.jsonl").exists():
            assert script.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        script.kill()
        script.wait()
        assert [path.name for path in out.glob("?.jsonl")] == ["a.jsonl"]
        finished = (out / "a.jsonl").stat()
        assert tag(*arguments, "--actors", 1) == 3
        assert "Documents: 930." in capsys.readouterr().out
        assert (out / "a.jsonl").stat().st_mtime_ns == finished.st_mtime_ns
        assert [(file, row) for file, row, _ in rejections(out)] == [("a.jsonl", 31), ("b.jsonl", 1)]
        for name, times in (("a", 1), ("b", 30), ("c", 1)):
            found = read_lines(out / f"{name}.jsonl")
            assert [record["id"] for record in found] == list(range(len(TEXTS))) * times
            assert [record["entities"] for record in found] == near(expected) * times
        assert not list(out.rglob("*.incomplete"))


def test_actors_that_never_start_are_refused():
    machine = {"CPU": 2.0, "GPU": 1.0}
    for resources, options, fitted in (
        (machine, {"gpus_per_actor": 0}, (2, 0)),
        (machine, {}, (1, 1)),
        (machine, {"gpus_per_actor": 0.5}, (2, 0.5)),
        ({"CPU": 3.0}, {}, (3, 0)),
    ):
        found = TagOptions("m", **options).fitted(resources)
        assert (found.actors, found.gpus_per_actor) == fitted
    for options in ({"actors": 3, "gpus_per_actor": 0}, {"gpus_per_actor": 2}):
        with pytest.raises(ValueError, match="do not fit"):
            TagOptions("m", **options).fitted(machine)


def test_the_defaults_of_the_command_are_those_of_tag_corpus():
    """They stand twice: the command has its help without Ray."""
    of_command = {name: one.default for name, one in inspect.signature(command).parameters.items()}
    of_corpus = vars(TagOptions("m"))
    shared = of_corpus.keys() - {"model", "revision"}
    assert {name: of_command[name] for name in shared} == {name: of_corpus[name] for name in shared}


class FakeActor:
    """Answers at once, and dies with the third text, or with one that kills."""

    def __init__(self, started: list):
        started.append(self)
        self.left, self.tag = 3 if len(started) == 1 else 1000, self

    def remote(self, texts):
        return self, texts

    def answer(self, texts):
        self.left = 0 if texts == ["kill"] else self.left - 1
        if self.left <= 0:
            raise ray.exceptions.ActorDiedError
        return [[text] for text in texts]


def test_rows_of_an_actor_that_dies_go_to_another(monkeypatch):
    started = []
    fake = SimpleNamespace(remote=lambda *_: FakeActor(started))
    monkeypatch.setattr(ray, "remote", lambda **_: lambda _: fake)
    monkeypatch.setattr(ray, "get", lambda asked: asked[0].answer(asked[1]))
    monkeypatch.setattr(run, "CHUNK", 2)
    rows = [Row("a", number, {}, str(number), "bad" if number % 2 else None) for number in range(80)]
    found = run.tag_rows(iter(rows), TagOptions("m", actors=2))
    expected = [(number, "bad" if number % 2 else [str(number)]) for number in range(80)]
    assert [(row.number, row.outcome) for row in found] == expected
    assert len(started) == 2
    with pytest.raises(ray.exceptions.RayActorError):
        list(run.tag_rows(iter([Row("a", 1, {}, "kill")]), TagOptions("m", actors=1)))
    assert len(started) == 2 + 4


@pytest.mark.nightly
def test_code_of_a_model_does_not_run_when_tagging_starts_in_its_folder(saved_model, tmp_path):
    """Ray puts the working directory first on its workers' path."""
    folder = shutil.copytree(saved_model, tmp_path / "model")
    for name in ("modeling_triaffine", "model_triaffine", "json", "torch"):
        (folder / f"{name}.py").write_text("from pathlib import Path\nPath(__file__).with_name('RAN').touch()\n")
    write_lines(tmp_path / "a.jsonl", [{"text": TEXTS[0]}])
    script = Path(sys.executable).with_name("triaffine-ner")
    tagging = [script, "tag", tmp_path / "a.jsonl", "--model", ".", "--actors", 1]
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    done = subprocess.run(
        [*map(str, tagging), "--output_dir", str(tmp_path / "out")],
        cwd=folder, env={**environment, "PYTHONPATH": str(REPOSITORY)}, capture_output=True, timeout=WAITING_TIME,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(read_lines(tmp_path / "out" / "a.jsonl")) == 1
    assert not (folder / "RAN").exists()


def read(path: Path, **options) -> list[Row]:
    return list(read_all({path.name: str(path)}, TagOptions("m", **options)))


class TestReading:
    def test_rows_of_parquet(self, tmp_path, monkeypatch):
        monkeypatch.setattr(files, "ROWS_OF_A_BATCH", 3)
        table = pa.table({"id": [1, 2, 3, 4], "text": ["a", None, "long", "b"]})
        table = table.replace_schema_metadata({"made by": "somebody"})
        pq.write_table(table, tmp_path / "a.parquet")
        rows = read(tmp_path / "a.parquet")
        reasons = [None, "expected a text under 'text', found null.", None, None]
        assert [(row.number, row.outcome) for row in rows] == [*enumerate(reasons, 1)]
        whole = pa.concat_tables(row.record for row in rows)
        assert (whole, whole.schema.metadata) == (table, table.schema.metadata)

    def test_files_that_cannot_be_read(self, tmp_path):
        contents = {
            "a.jsonl": (gzip.compress(b'{"text": "a"}', mtime=0), "gzip"),
            "b.jsonl": (b'[\n{"text": "a"},\n{"text": "b"}\n]\n', "it is a list, or an object on several lines."),
            "c.parquet": (b"PAR1 and nothing else", "arquet"),
            "d.txt": (b"\xff", "byte 1 is not valid utf-8"),
            "e.txt": (b"%PDF-1.7 \xff", "PDF"),
            "f.docx": (b"PK", "it is no .txt, .jsonl or .parquet file"),
        }
        for name, (content, expected) in contents.items():
            (tmp_path / name).write_bytes(content)
            assert expected in read(tmp_path / name)[-1].outcome

    def test_finished_files_and_documents_are_not_read_again(self, tmp_path, monkeypatch):
        monkeypatch.setattr(files, "TEXTS_OF_AN_OUTPUT", 2)
        names = [f"{number}.txt" for number in range(5)]
        outputs = [f"texts-0000{number}.jsonl" for number in (0, 0, 1, 1, 2, 2)]
        folder = OutputFolder(tmp_path, {}, "entities")
        first = folder.outputs_to_write(["a.jsonl", *names])
        assert [*first.items()] == [("a.jsonl", "a.jsonl"), *zip(names, outputs, strict=False)]
        write_lines(tmp_path / outputs[0], [{"id": name} for name in names[:2]])
        write_lines(tmp_path / "a.jsonl", [])
        second = folder.outputs_to_write(["a.jsonl", "00.txt", *names])
        assert [*second.items()] == [*zip(["00.txt", *names[2:]], outputs[2:], strict=True)]

    def test_files_without_a_usable_row_are_refused_at_once(self, tmp_path):
        lines = write_lines(tmp_path / "a.jsonl", [{"txt": "a", "id": 1}])
        given = {"0.parquet": "/nowhere.parquet", "1.txt": "/nowhere.txt", "a.jsonl": str(lines)}
        check_usable(read(write_lines(tmp_path / "empty.jsonl", [])))
        check_usable(read_all(given, TagOptions("m", text_column="txt")))
        for options, problem in (
            ({}, "no 'text', but 'txt', 'id'"),
            ({"text_column": "txt", "entities_column": "id"}, "'id' already"),
        ):
            with pytest.raises(ValueError, match=problem):
                check_usable(read(lines, **options))
        with pytest.raises(ValueError, match=r"No text can be read\. 0\.parquet: "):
            check_usable(read_all(given, TagOptions("m")))

    def test_files_are_found(self, tmp_path):
        names = ("in/a.jsonl", "in/b/a.parquet", "in/_a.json", "in/note.pdf", "in/out/a.parquet", "c/a.jsonl")
        hidden = ("in/.git/a.json", "in/b/_temporary/0/a.parquet", "in/b/.ipynb_checkpoints/c/a.jsonl")
        for name in (*names, *hidden, "c/b.ndjson", "d/texts-1.jsonl", "e/options.json", "hash"):
            write_lines(tmp_path / name, [])
        (tmp_path / "in" / "link.parquet").symlink_to(tmp_path / "hash")  # as in the caches of the Hub
        (tmp_path / "in" / "lost.txt").symlink_to(tmp_path / "nowhere")  # which is rejected
        folder, other, out = tmp_path / "in", tmp_path / "c", tmp_path / "in" / "out"
        expected = {
            name: str(folder / name) for name in ("a.jsonl", "b/a.parquet", "link.parquet", "lost.txt", "note.pdf")
        }
        assert find_files([str(folder)], out) == expected
        assert list(find_files([f"{folder}/*.js*", f"{other}/*.ndjson"], out)) == ["a.jsonl", "b.ndjson"]
        assert list(find_files([f"{folder}/**/*.parquet"], out)) == ["b/a.parquet", "link.parquet"]
        for inputs, reason in (
            (["nowhere"], "nowhere: no such file"),
            ([str(out)], "no file in it"),
            ([str(folder), str(other)], "would have the same output"),
            ([str(tmp_path / "d")], r"texts-1\.jsonl has the name of a file of the output"),
            ([str(tmp_path / "e")], r"options\.json has the name of a file of the output"),
        ):
            with pytest.raises(ValueError, match=reason):
                find_files(inputs, out)


def row(number: int | None, record: object = None, outcome: list | str = "bad", name: str = "a.jsonl") -> Row:
    return Row(name, number, record, None, outcome)


class TestOutput:
    def test_an_unfinished_file_leaves_nothing(self, tmp_path):
        folder = OutputFolder(tmp_path, {}, "found")
        names = {"a.jsonl": "a.jsonl"}
        found = [{"entity_group": "A"}]
        good = [row(number, {"n": number}, found) for number in (1, 3, 4)]

        def breaking():
            yield from (good[0], row(2))
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            folder.write(breaking(), names)
        folder.write([good[0], row(2), row(None, outcome="damaged")], names)
        folder.write([row(1), row(2)], names)  # nothing to write
        assert folder.counts.documents == 0
        assert not list(tmp_path.rglob("a.jsonl*"))
        with open(folder.rejections, "a", encoding="utf-8") as file:
            file.write('{"file": "a.js')  # as a killed process leaves it
        folder.write([*good, row(2)], names)
        assert read_lines(tmp_path / "a.jsonl") == [{"n": number, "found": found} for number in (1, 3, 4)]
        assert rejections(tmp_path) == [("a.jsonl", 2, "bad")]
        assert folder.describe() == "Documents: 3. Entities: 3 (A 3). Rejected: 1.\n  1: bad"
        later = OutputFolder(tmp_path, {}, "found").describe()
        assert later == "Documents: 0. Entities: 0. Rejected: 1.\n  1: bad"

    def test_rows_of_tables_are_joined_to_row_groups(self, tmp_path, monkeypatch):
        monkeypatch.setattr(files, "ROWS_OF_A_BATCH", 3)
        entity = {"start": 0, "end": 1, "entity_group": "A", "score": 1.0, "word": "x"}
        rows = [row(n, pa.table({"n": [n]}), [entity] if n > 2 else [], "sub/a.parquet") for n in range(1, 8)]
        names = {"sub/a.parquet": "sub/a.parquet"}
        OutputFolder(tmp_path, {}, "found").write([*rows, row(8, name="sub/a.parquet")], names)
        with pq.ParquetFile(tmp_path / "sub" / "a.parquet") as file:
            assert file.num_row_groups == 3
        table = Dataset.from_parquet(str(tmp_path / "sub" / "a.parquet"), cache_dir=str(tmp_path / "cache"))
        assert table["n"][:] == list(range(1, 8))
        assert table["found"][:] == [[]] * 2 + [[entity]] * 5

    def test_folders_of_something_else_or_in_use_are_refused(self, saved_model, tmp_path):
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "thesis.tex").touch()
        with pytest.raises(ValueError, match="other files"):
            OutputFolder(tmp_path / "other", {}, "entities")
        with FileLock(tmp_path / LOCK), pytest.raises(ValueError, match="Another run is writing"):
            tag_corpus({}, tmp_path, TagOptions(str(saved_model)))


class TestTagger:
    def test_options_reach_the_pipeline(self, saved_model, monkeypatch):
        monkeypatch.setattr(pipeline_triaffine, "multiplies_bfloat16", lambda: True)
        assert Tagger(TagOptions(str(saved_model), bf16=True)).pipeline.model.dtype == torch.bfloat16

    def test_a_text_that_the_model_fails_on_is_rejected_but_not_the_fault_of_a_machine(self, saved_model):
        class PanicError(BaseException):
            """As those of the tokenizer's Rust code."""

        bad, tagger = {"bad"}, Tagger(TagOptions(str(saved_model)))
        find = tagger.pipeline

        def fail(texts, **options):
            if bad & {*texts}:
                raise PanicError("not again")
            return find(texts, **options)

        tagger.pipeline = fail
        first, second, third = tagger.tag(["gene", "bad", "protein"])
        assert second == "the model failed: PanicError: not again"
        assert [first, third] == find(["gene", "protein"])
        bad.add(HARMLESS_TEXT)
        with pytest.raises(RuntimeError, match="not again"):
            tagger.tag(["bad"])

    def test_weights_do_not_change_with_their_file(self, saved_model, tmp_path):
        folder = shutil.copytree(saved_model, tmp_path / "model")
        tagger = Tagger(TagOptions(str(folder), threshold=0.3))
        before = tagger.tag(TEXTS)
        (folder / "model.safetensors").write_bytes(bytes((folder / "model.safetensors").stat().st_size))
        assert tagger.tag(TEXTS) == before
        assert any(before)

    def test_another_state_of_a_model_is_another_model(self, saved_model, tmp_path):
        copy = shutil.copytree(saved_model, tmp_path / "renamed")
        (copy / "README.md").write_text("Another card.")
        described = [identify_model(str(saved_model), None), identify_model(str(copy), None)]
        assert described[0] == described[1]
        with open(copy / "tokenizer_config.json", "a") as tokenizer_config:
            tokenizer_config.write("\n")
        described.append(identify_model(str(copy), None))
        weights = bytearray((copy / "model.safetensors").read_bytes())
        weights[-1] ^= 1
        (copy / "model.safetensors").write_bytes(weights)
        described.append(identify_model(str(copy), None))
        assert len({*described[1:]}) == 3

    def test_a_model_on_the_hub_is_known_by_contents_and_loaded_from_its_commit(self, saved_model, online, tmp_path):
        api = HfApi()
        api.create_repo("owner/name")
        commit = api.upload_folder(repo_id="owner/name", folder_path=saved_model).oid
        assert identify_model("owner/name", None) == (identify_model(str(saved_model), None)[0], commit)
        tag_corpus({}, tmp_path / "out", TagOptions("owner/name"))
        config = json.loads((saved_model / "config.json").read_text()) | {"threshold": 0.9}
        api.upload_file(path_or_fileobj=json.dumps(config).encode(), path_in_repo="config.json", repo_id="owner/name")
        with pytest.raises(ValueError, match="model"):
            tag_corpus({}, tmp_path / "out", TagOptions("owner/name"))
        tag_corpus({}, tmp_path / "out", TagOptions("owner/name", revision=commit))
        tagger = Tagger(TagOptions("owner/name", revision=commit))
        assert tagger.pipeline.model.origin["revision"] == commit
