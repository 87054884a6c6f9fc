"""How commands end: exit codes and messages."""

import importlib
import io
import logging
import os
import sys

import pytest
import torch

from modeling_triaffine.acceleration.full_tensors import free_bytes
from modeling_triaffine.environment import describe_machine, describe_processor
from modeling_triaffine.errors import INTERRUPTED, ending_plainly
from modeling_triaffine.files import open_output


def test_standard_output_is_utf_8_whatever_the_terminal(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="latin-1"))
    with ending_plainly(), open_output(None) as output:
        output.write("é € \ud800")
    assert written.getvalue() == "é € \\ud800".encode()


class FaultError(Exception):
    pass


@pytest.mark.parametrize("error", [ValueError, OSError, ImportError, FaultError])
def test_mistakes_and_faults_are_one_paragraph(error, capsys):
    with pytest.raises(SystemExit) as end, ending_plainly(FaultError):
        raise error("It is so.\nDo  that.")
    assert end.value.code == 2
    assert capsys.readouterr().err == "error: It is so. Do that.\n"
    with pytest.raises(FaultError), ending_plainly():  # one of the program keeps its traceback
        raise FaultError


def test_no_control_character_of_a_message_or_a_log_reaches_the_terminal(capsys, caplog, monkeypatch):
    monkeypatch.setattr(logging, "_logRecordFactory", logging.getLogRecordFactory())  # undone after the test
    with ending_plainly():
        logging.getLogger("modeling_triaffine").warning("label %s\nnext line", "\x1b[31m\x9b")
    with pytest.raises(SystemExit), ending_plainly():
        raise ValueError("bad\x1b[2J.conll \x07")
    assert capsys.readouterr().err == "error: bad\N{SYMBOL FOR ESCAPE}[2J.conll \N{SYMBOL FOR BELL}\n"
    assert caplog.messages == ["label \N{SYMBOL FOR ESCAPE}[31m\N{REPLACEMENT CHARACTER}\nnext line"]


def test_an_interruption_is_one_line(capsys):
    with pytest.raises(SystemExit) as end, ending_plainly():
        raise KeyboardInterrupt
    assert end.value.code == INTERRUPTED
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)


def test_of_several_processes_the_first_prints(monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(SystemExit), ending_plainly():
        raise ValueError("It is so.")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("RANK", "8")  # the first of the second machine
    monkeypatch.setenv("LOCAL_RANK", "0")
    with pytest.raises(SystemExit), ending_plainly():
        raise ValueError("It is so.")
    assert capsys.readouterr() == ("", "error: It is so.\n")


@pytest.mark.parametrize(
    ("module", "library", "need", "extra"),
    [
        ("page", "gradio", "The page needs Gradio", "demo"),
        ("serving", "fastapi", "Serving a model needs FastAPI", "serve"),
        ("serving", "prometheus_client", "prometheus-client", "serve"),
        ("spacy_component", "spacy", 'The component "triaffine_ner" needs spaCy', "spacy"),
        ("tagging", "ray.data", "Tagging a corpus needs Ray Data", "ray"),
    ],
)
def test_a_missing_extra_is_named_with_the_way_to_install_it(monkeypatch, module, library, need, extra):
    name = f"modeling_triaffine.{module}"
    monkeypatch.delitem(sys.modules, name, raising=False)
    for loaded in [part for part in sys.modules if part.startswith(f"{library}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"{need}.*, of the extra `{extra}`: .*pip install -e '\.\[{extra}\]'"):
        importlib.import_module(name)


def test_a_processor_is_named_with_its_generation():
    """A virtual machine's processor may have no other name than its maker's."""
    lines = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n"
    assert describe_processor(f"{lines}\n{lines.replace('17', '1')}") == {
        "processor": "AMD EPYC",
        "processor_family": 25,
        "processor_model": 17,
    }
    assert describe_processor("processor\t: 0\nBogoMIPS\t: 50.00\nCPU part\t: 0xd0c\n") == {}


def test_systems_that_do_not_report_their_memory(monkeypatch):
    """As Windows, where Python has no `sysconf`."""
    monkeypatch.delattr(os, "sysconf_names")
    assert "memory_gb" not in describe_machine()
    assert free_bytes(torch.device("cpu")) == 0
