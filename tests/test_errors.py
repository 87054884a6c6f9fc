"""The messages of commands on standard error, about progress and end, and their exit codes."""

import importlib
import io
import logging
import sys

import pytest

from modeling_triaffine import documents
from modeling_triaffine.errors import INTERRUPTED, ending_plainly
from modeling_triaffine.files import open_output
from modeling_triaffine.nesting import nesting_depths


def test_standard_output_is_utf_8_whatever_the_terminal(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="latin-1"))
    with ending_plainly(), open_output(None) as output:
        output.write("é € \ud800")
    assert written.getvalue() == "é € \\ud800".encode()


class FaultError(Exception):
    pass


@pytest.mark.parametrize("error", [ValueError, OSError, ImportError, FaultError, KeyboardInterrupt])
def test_mistakes_faults_and_interruptions_are_one_paragraph(error, capsys):
    with pytest.raises(SystemExit) as end, ending_plainly(FaultError):
        raise error("It is so.\nDo  that.")
    is_interrupted = error is KeyboardInterrupt
    assert end.value.code == (INTERRUPTED if is_interrupted else 2)
    out, err = capsys.readouterr()
    place = f" (ValueError in {__file__}, line " if error is ValueError else ""  # since the package does not raise it
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("Interrupted." if is_interrupted else f"error: It is so. Do that.{place}")
    with pytest.raises(FaultError), ending_plainly():  # one of the program keeps its traceback
        raise FaultError
    with pytest.raises(SystemExit), ending_plainly():
        nesting_depths([(0, 1, 2)])  # where Python raises a ValueError, whose message says little
    assert "nesting.py, line " in capsys.readouterr().err


def test_no_control_character_of_a_message_or_a_log_reaches_the_terminal(capsys, caplog, monkeypatch):
    monkeypatch.setattr(logging, "_logRecordFactory", logging.getLogRecordFactory())  # undone after the test
    with ending_plainly():
        logging.getLogger("modeling_triaffine").warning("label %s\nnext line", "\x1b[31m\x9b")
    with pytest.raises(SystemExit), ending_plainly():
        raise OSError("bad\x1b[2J.conll \x07")
    assert capsys.readouterr().err == "error: bad\N{SYMBOL FOR ESCAPE}[2J.conll \N{SYMBOL FOR BELL}\n"
    assert caplog.messages == ["label \N{SYMBOL FOR ESCAPE}[31m\N{REPLACEMENT CHARACTER}\nnext line"]


def test_of_several_processes_the_first_prints(monkeypatch, capsys):
    """The first of each machine: RANK counts those of all."""
    for ranks, printed in (({"RANK": "1"}, ""), ({"RANK": "8", "LOCAL_RANK": "0"}, "error: It is so.\n")):
        for name, value in ranks.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit), ending_plainly():
            raise OSError("It is so.")
        assert capsys.readouterr() == ("", printed)


@pytest.mark.parametrize(
    ("module", "library", "need", "extra"),
    [
        ("page", "gradio", "The page needs Gradio", "demo"),
        ("serving", "fastapi", "Serving a model needs FastAPI", "serve"),
        ("spacy_component", "spacy", 'The component "triaffine_ner" needs spaCy', "spacy"),
        ("tagging", "ray", "Tagging a corpus needs Ray", "ray"),
    ],
)
def test_a_missing_extra_is_named_with_the_way_to_install_it(monkeypatch, module, library, need, extra):
    name = f"modeling_triaffine.{module}"
    monkeypatch.delitem(sys.modules, name, raising=False)
    for loaded in [part for part in sys.modules if part.startswith(f"{library}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"{need}.*, of the extra `{extra}`.*pip install '\.\[{extra}\]'"):
        importlib.import_module(name)


def test_elsewhere_than_on_a_terminal_a_line_says_rate_and_time_left(monkeypatch, capsys):
    assert list(documents.with_progress("abc", total=3)) == [*"abc"]
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(documents, "SECONDS", 0)
    assert list(documents.with_progress("abcdefg", total=7)) == [*"abcdefg"]
    assert "3 documents of 7, 00:00 left, " in capsys.readouterr().err
