"""What the scripts share: how they end, where their output goes, what they say of a device or a missing library."""

import io
import os
import runpy
import sys
import threading
from pathlib import Path

import pytest
import torch

from modeling_triaffine.commands.arguments import check_device
from modeling_triaffine.errors import INTERRUPTED, ending_plainly, missing_extra
from modeling_triaffine.files import open_output
from modeling_triaffine.machine import describe_machine
from modeling_triaffine.model.triaffine_ops import free_bytes

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
# What each script must be given before the name of its output folder.
OPTIONS = {
    "export_onnx": ["--model", "model", "--output"],
    "convert_published": ["model.pth", "--corpus", "genia", "--encoder", "encoder", "--output"],
}


def test_output_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "folder" / "out.txt"

    def stop_half_way():
        with open_output(path) as output:
            output.write("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        stop_half_way()
    assert list(path.parent.iterdir()) == []
    with open_output(path) as output:
        output.write("\ud800")
    assert path.read_text() == "\\ud800"
    with pytest.raises(ValueError, match="is a folder"), open_output(tmp_path):
        pass


def test_unknown_device_is_told():
    check_device(None)
    check_device("cpu")
    with pytest.raises(ValueError, match="--device bogus"):
        check_device("bogus")


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path):
    target, link, dangling = tmp_path / "folder" / "target", tmp_path / "link", tmp_path / "dangling"
    target.parent.mkdir()
    target.write_text("old")
    link.symlink_to(target)
    dangling.symlink_to(tmp_path / "new")
    for path in (link, dangling):
        with open_output(path) as output:
            output.write("new")
        assert path.is_symlink()
        assert path.read_text() == "new"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["dangling", "folder", "link", "new", "target"]


@pytest.mark.parametrize("name", ["pipe", "link"])
def test_a_pipe_is_written_to_and_stays_one(tmp_path, name):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")), daemon=True)
    reader.start()
    with open_output(tmp_path / name) as output:
        output.write("é\ud800")
    assert pipe.is_fifo()
    reader.join()
    assert read == ["é\\ud800"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


def test_standard_output_is_utf_8_whatever_the_terminal(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="latin-1"))
    with ending_plainly(), open_output(None) as output:
        output.write("é € \ud800")
    assert written.getvalue() == "é € \\ud800".encode()


class FaultError(Exception):
    pass


@pytest.mark.parametrize("error", [ValueError, OSError, ImportError, FaultError])
def test_mistakes_and_faults_are_told_in_one_paragraph(error, capsys):
    with pytest.raises(SystemExit) as end, ending_plainly(FaultError):
        raise error("It is so.\nDo  that.")
    assert end.value.code == 2
    assert capsys.readouterr().err == "error: It is so. Do that.\n"


def test_errors_of_the_program_keep_their_traceback():
    with pytest.raises(FaultError), ending_plainly():
        raise FaultError


def test_an_interrupted_script_says_nothing(capsys):
    with pytest.raises(SystemExit) as end, ending_plainly():
        raise KeyboardInterrupt
    assert end.value.code == INTERRUPTED
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("name", "work"), [("export_onnx", "run"), ("convert_published", "convert")])
def test_scripts_end_plainly(name, work, monkeypatch, capsys, tmp_path):
    def interrupt(_):
        raise KeyboardInterrupt

    script = runpy.run_path(str(EXAMPLES / f"{name}.py"))
    monkeypatch.setitem(script["main"].__globals__, work, interrupt)
    monkeypatch.setattr(sys, "argv", [name, *OPTIONS[name], str(tmp_path / "new")])
    with pytest.raises(SystemExit) as end:
        script["main"]()
    assert end.value.code == INTERRUPTED
    assert capsys.readouterr() == ("", "")


def test_a_missing_extra_is_installed_from_the_checkout():
    told = str(missing_extra("Serving needs FastAPI", "serve"))
    assert "Serving needs FastAPI" in told
    assert "pip install -e '.[serve]'" in told


def test_systems_that_tell_nothing_of_their_memory(monkeypatch):
    """As Windows, where Python has no `sysconf`."""
    monkeypatch.delattr(os, "sysconf_names")
    assert "memory_gb" not in describe_machine()
    assert free_bytes(torch.device("cpu")) == 0
