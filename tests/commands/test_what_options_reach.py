"""Options of `serve` and `tag` reach what they are for: each is given a number of its own."""

import inspect
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from modeling_triaffine import serving, tagging
from modeling_triaffine.commands import tag
from modeling_triaffine.conversion import onnx_predictor
from modeling_triaffine.documents import Counts


def flags(**options: object) -> list[str]:
    return [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]


def test_options_of_serve(command, monkeypatch):
    limits, server = MagicMock(), MagicMock()
    monkeypatch.setattr(onnx_predictor, "open_pipeline", MagicMock())
    monkeypatch.setattr(serving, "create_application", MagicMock())
    monkeypatch.setattr(serving, "Batcher", MagicMock())
    monkeypatch.setattr(serving, "Limits", limits)
    monkeypatch.setattr(serving, "Server", server)
    of_requests = {"max_body_bytes": 5, "max_texts": 6, "max_text_characters": 7}
    of_requests |= {"max_waiting": 4, "label_studio_seconds": 8}
    others = {"stop_seconds": 10, "model": "o/m", "port": 0}
    assert command("serve", *flags(**of_requests, **others)).code == 0
    assert [*limits.call_args.kwargs.values()] == [*of_requests.values()]
    assert server.call_args.args[2:] == (10,)


def test_options_of_tag(command, monkeypatch, tmp_path):
    pytest.importorskip("ray")
    (tmp_path / "a.jsonl").write_text("")
    calls, folder = [], SimpleNamespace(describe=str, counts=Counts())
    monkeypatch.setattr(tagging, "tag_corpus", lambda *given: calls.append(given) or folder)
    given = {"text_column": "t", "entities_column": "e", "actors": 5, "gpus_per_actor": 0.5}
    given["model"] = "o/m"
    assert command("tag", tmp_path / "a.jsonl", *flags(**given, output_dir=tmp_path / "out")).code == 0
    options = vars(calls[0][-1])
    assert {name: options[name] for name in given} == given


def test_the_defaults_of_tag_are_those_of_tag_corpus():
    """They stand twice: the command has its help without Ray."""
    of_command = {name: one.default for name, one in inspect.signature(tag.command).parameters.items()}
    of_corpus = vars(tagging.TagOptions("m"))
    shared = of_corpus.keys() & of_command.keys() - {"model"}
    assert shared == of_corpus.keys() - {"model", "revision"}
    assert {name: of_command[name] for name in shared} == {name: of_corpus[name] for name in shared}
