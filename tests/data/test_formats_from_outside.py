"""A format of another package, or of a script: recognized, named in commands, and named where it fails."""

import gzip
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from modeling_triaffine.data import FORMATS, CorpusError, detect_format, load_nested_ner, load_texts, register_format
from modeling_triaffine.data.formats import GROUP
from tests.helpers.corpora import COLUMNS, NESTED, spelled, write_files
from tests.helpers.micro_training import run_arguments, write_recipe
from tests.helpers.processes import PATIENCE

OUTSIDE = Path(__file__).parent / "outside"
GUIDE = Path(__file__).parents[2] / "docs" / "corpora.md"
LINE = "[Person: The mayor of [City: Orsk]] slept."


@pytest.fixture
def install(monkeypatch):
    """Puts packages on the path, as installing them would; they are gone after the test."""

    def install(folder: Path) -> None:
        monkeypatch.syspath_prepend(folder)
        monkeypatch.setattr(FORMATS, "_installed", None)
        monkeypatch.setattr(FORMATS, "_loaded", {})

    monkeypatch.setattr(FORMATS, "_registered", {})
    return install


@pytest.fixture
def brackets(install):
    install(OUTSIDE)


def corpus(folder: Path, line: str = LINE) -> Path:
    return write_files(folder, {"train.txt": f"#brackets\n{line}\n", "dev.txt": f"#brackets\n{line}\n"}).parent


def broken(folder: Path, entry: str) -> Path:
    """A package whose entry point is this one."""
    metadata = {"METADATA": "Name: broken-reader\nVersion: 0.3\n", "entry_points.txt": f"[{GROUP}]\n{entry}\n"}
    write_files(folder / "broken_reader-0.3.dist-info", metadata)
    return folder


@pytest.mark.usefixtures("brackets")
class TestInstalled:
    def test_is_recognized_by_its_content(self, tmp_path):
        splits = load_nested_ner(corpus(tmp_path))
        assert {split: spelled(rows[0]) for split, rows in splits.items()} == {
            "train": NESTED[::-1],
            "validation": NESTED[::-1],
        }
        assert load_texts(tmp_path)["train"][0]["text"] == "The mayor of Orsk slept."

    def test_in_commands(self, tmp_path, command):
        counted = command("statistics", corpus(tmp_path / "in"))
        assert (counted.code, re.search(r"entities +2 +2 +4\n", counted.out) is not None) == (0, True)
        for named in ([], ["--format", "brackets"]):
            out = tmp_path / f"out{len(named)}"
            assert command("convert", tmp_path / "in", out, "--to", "iob2", *named).code == 0
            assert "Orsk\tI-Person\tB-City" in (out / "train.conll").read_text()

    @pytest.mark.parametrize("named", [[], ["--data_format", "brackets"]])
    def test_in_training(self, tmp_path, command, named):
        recipe = write_recipe(tmp_path / "recipe", training={"num_train_epochs": 1, "learning_rate": 1e-3})
        arguments = run_arguments(recipe, corpus(tmp_path / "in"), tmp_path / "out", *named)
        trained = command("train", *arguments)
        assert trained.code == 0, trained.err
        assert "City" in (tmp_path / "out" / "README.md").read_text()

    def test_of_the_command_line_in_a_process_of_its_own(self, tmp_path):
        program = "from modeling_triaffine.commands import main; main()"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(OUTSIDE), *filter(None, sys.path)])}
        for arguments, said in (
            ([corpus(tmp_path), "--format", "brackets", "--json"], '"entities": 2'),
            (["--help"], "brackets"),
        ):
            line = [sys.executable, "-c", program, "statistics", *arguments]
            run = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=PATIENCE)
            assert said in run.stdout, run.stderr

    def test_an_error_of_the_reader_names_the_place(self, tmp_path):
        with pytest.raises(CorpusError, match=r"train\.txt, line 2: a bracket closes at character 1\. Open it before"):
            load_nested_ner(corpus(tmp_path, "x] y"))

    def test_a_reader_that_fails_says_whose_it_is(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sys.modules["brackets_reader"], "document", lambda *_: 1 // 0)
        facts = r"train\.txt: .* 'brackets', of the package brackets-reader 1\.0, failed \(ZeroDivisionError.*--format"
        with pytest.raises(CorpusError, match=facts):
            load_nested_ner(corpus(tmp_path, "not in the cache"))

    def test_a_changed_reader_reads_again(self, tmp_path, monkeypatch):
        assert len(load_nested_ner(corpus(tmp_path))["train"]) == 1
        copy = tmp_path / "copy.py"
        copy.write_text(Path(sys.modules["brackets_reader"].__file__).read_text() + "\n# changed\n")
        first = load_nested_ner(tmp_path)["train"].cache_files
        monkeypatch.setattr(sys.modules["brackets_reader"], "__file__", str(copy))
        assert load_nested_ner(tmp_path)["train"].cache_files != first


HELPER = "def changed(text):\n    return {}\n"
READER = """
from modeling_triaffine.data import CorpusFormat, Document

def read(path, check):
    yield Document("1", "", changed(path.read_text("utf-8")), [])

FORMAT = CorpusFormat("ours", "ours", read, True, False, False, recognizes=lambda head: head.startswith("#ours"))
"""
PARTIAL = READER.replace("read, True", "partial(read), True")
LOAD = """
from modeling_triaffine.data import load_nested_ner, register_format

register_format(FORMAT)
print(*load_nested_ner("corpus.txt")["train"][0]["tokens"])
"""


@pytest.mark.parametrize(
    ("files", "arguments"),
    [
        (
            {
                "own/parts/helper.py": HELPER,
                "own/reader.py": f"from own.parts.helper import changed\n{READER}",
                "start.py": f"from own.reader import FORMAT\n{LOAD}",
            },
            ["start.py"],
        ),
        (
            {
                "own/helper.py": HELPER,
                "own/reader.py": f"from functools import partial\nfrom own.helper import changed\n{PARTIAL}",
                "start.py": f"from own.reader import FORMAT\n{LOAD}",
            },
            ["start.py"],
        ),
        pytest.param(
            {"helper.py": HELPER, "script.py": f"from helper import changed\n{READER}{LOAD}"},
            ["script.py"],
            marks=pytest.mark.nightly,
        ),
        ({}, ["-c", f"{HELPER}{READER}{LOAD}"]),
    ],
    ids=["package", "package, some arguments given", "script", "no file"],
)
def test_a_changed_reader_reads_again_wherever_it_is(tmp_path, files, arguments):
    """A module that the reader imports is part of it; without a file, nobody can tell whether it is the same."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONDONTWRITEBYTECODE": "1"}

    def loaded(value: str) -> str:
        changed = {name: content.replace("{}", value) for name, content in files.items()}
        write_files(tmp_path, {"corpus.txt": "#ours Orsk slept.", **changed})
        line = [sys.executable, *(argument.replace("{}", value) for argument in arguments)]
        run = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE)
        assert run.returncode == 0, run.stderr
        return run.stdout.strip()

    assert loaded("text") == "# ours Orsk slept ."
    assert loaded("text.upper()") == "# OURS ORSK SLEPT ."


@pytest.mark.parametrize("entry", ["broken = no_such_module:X", "broken = json:loads"])
def test_a_format_that_cannot_be_loaded(install, tmp_path, caplog, command, entry):
    """It is in nobody's way, until it is asked for."""
    install(broken(tmp_path / "site", entry))
    path = write_files(tmp_path, {"a.conll": COLUMNS})
    assert detect_format(path).name == "iob2"
    assert any("'broken' of the package broken-reader 0.3" in message for message in caplog.messages)
    assert "broken-reader 0.3" in command("statistics", path, "--format", "broken").err


@pytest.mark.contract
def test_a_name_of_this_package_cannot_be_taken(install, tmp_path, caplog):
    install(broken(tmp_path, "brat = json:loads"))
    assert FORMATS["brat"].read.__module__.endswith("formats.brat")
    assert FORMATS.get("unknown") is None
    assert "brat" in [*FORMATS]
    assert any("'brat', of the package broken-reader 0.3, is left out" in message for message in caplog.messages)
    with pytest.raises(ValueError, match="There is a format 'brat' already"):
        register_format(FORMATS["brat"])


@pytest.mark.contract
def test_a_format_of_a_script(install, tmp_path):
    """A second registration replaces the first: cells of a notebook are run again."""
    install(tmp_path / "nothing")
    ours = replace(FORMATS["iob2"], name="ours", recognizes=lambda head: head.startswith("%"))
    for _time in range(2):
        register_format(ours)
    with pytest.raises(ValueError, match="There is a format 'ours' already"):
        register_format(replace(FORMATS["brat"], name="ours"))  # whose reader is of another module
    path = write_files(tmp_path, {"a.conll": COLUMNS, "b.txt": f"% B-X O\n{COLUMNS}"})
    assert detect_format(path).name == "ours"
    assert detect_format(path.with_name("a.conll")).name == "iob2"
    assert "ours" in FORMATS


@pytest.mark.contract
def test_two_formats_that_recognize_the_same_files(install, tmp_path, caplog):
    """The one of this package reads them; nothing else would say which of the two was meant."""
    install(tmp_path / "nothing")
    register_format(replace(FORMATS["iob2"], name="our_columns", recognizes=lambda head: "\t" in head))
    register_format(replace(FORMATS["brat"], name="our_brat"))
    folder = tmp_path / "in"
    write_files(folder, {"a.conll": COLUMNS, "b.conll": COLUMNS, "texts/a.txt": "Orsk", "texts/a.ann": ""})
    load_nested_ner([folder / "a.conll", folder / "b.conll"])
    assert detect_format(folder / "texts").name == "brat"
    assert [message for message in caplog.messages if "registered" in message] == [
        f"{place}: the formats {first!r} and {second!r} (registered by {module}) recognize the same files, which are "
        f"read as {first!r}; --format (format=) names another."
        for place, first, second, module in (
            (folder, "iob2", "our_columns", FORMATS["iob2"].read.__module__),
            (folder / "texts", "brat", "our_brat", FORMATS["brat"].read.__module__),
        )
    ]
    assert load_nested_ner(folder / "a.conll", format="our_columns")["train"].num_rows == 1


@pytest.mark.contract
def test_the_reader_in_the_documentation_reads_what_all_others_read(install, tmp_path):
    """gzip, a byte order mark, line ends of Windows, other separators inside a line, files of one name."""
    install(tmp_path / "nothing")
    (code,) = re.findall(r"```python\n(import re\n.*?)with open", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    exec(code, {"__name__": "documented"})
    content = "\ufeff#bars\r\nOrsk\u2028 slept. | 0-4 City\r\nIt rained. | \r\n".encode()
    write_files(tmp_path / "in", {"a/x.txt": content, "b/x.txt.gz": gzip.compress(content.replace(b".", b"!"))})
    rows = load_nested_ner(tmp_path / "in")["train"]
    assert rows["doc_id"][:] == [f"{folder}/x:{number}" for folder in "ab" for number in (2, 3)]
    assert [spelled(row) for row in rows] == 2 * [[("Orsk", "City")], []]
    (broken := tmp_path / "broken.txt").write_text("#bars\nOrsk")
    with pytest.raises(CorpusError, match=r"broken\.txt, line 2: there is no bar\. Write"):
        load_nested_ner(broken)
