"""The demo: what it removes, and its messages. `make demo` itself takes minutes."""

import sys
from pathlib import Path

import pytest

from modeling_triaffine import demo as module
from modeling_triaffine.training.interruptions import OutOfMemoryError


@pytest.fixture
def demo(monkeypatch, capsys):
    """Runs `main` on a folder, with another function in place of the long work; its exit code and standard error."""

    def call(folder: Path, work=lambda folder: None) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["demo", "--output_dir", str(folder)])
        monkeypatch.setattr(module, "train", work)
        monkeypatch.setattr(module, "installed_models", dict)
        code = 0
        try:
            module.main()
        except SystemExit as end:
            code = end.code
        return code, capsys.readouterr().err

    return call


def make(folder: Path) -> None:
    for name in ("corpus", "model"):
        (folder / name).mkdir()
        (folder / name / "file").touch()


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_another_run_removes_what_the_demo_made_and_nothing_else(demo, tmp_path):
    folder = tmp_path / "new" / "demo"
    assert demo(folder, make) == (0, "")
    (folder / "report").mkdir()
    (folder / "report" / "report.html").touch()
    assert demo(folder) == (0, "")
    assert names(folder) == [module.MARK, "report", "report/report.html"]


def test_a_folder_of_something_else_is_refused_and_kept(demo, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.safetensors").write_text("precious")
    code, message = demo(tmp_path, make)
    assert code == 2
    assert message.startswith(f"error: --output_dir {tmp_path} has files")
    assert names(tmp_path) == ["model", "model/mine.safetensors"]


def test_a_fault_is_one_line_and_the_demo_can_be_run_again(demo, tmp_path):
    def fail(folder):
        (folder / "corpus").mkdir()
        raise OutOfMemoryError("No\nroom")

    code, message = demo(tmp_path, fail)
    assert (code, message.count("\n")) == (2, 1)
    assert demo(tmp_path, make) == (0, "")
