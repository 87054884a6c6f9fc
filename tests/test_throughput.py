"""The benchmark of the whole model runs and counts what it says it counts."""

import json
import sys
from pathlib import Path

import pytest

from modeling_triaffine.data.demo import demo_corpus

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


def test_rows_tell_what_ran_and_where_the_time_went(encoder, monkeypatch, capsys, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import throughput

    output = tmp_path / "rows.jsonl"
    options = {"model_name_or_path": encoder, "max_samples": 6, "batch_size": 4, "repeats": 1, "output": output}
    monkeypatch.setattr(sys, "argv", ["throughput.py", *(f"--{name}={value}" for name, value in options.items())])
    throughput.main()

    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["what"], row["tensors"]) for row in rows] == [
        (what, tensors) for tensors in ("low rank", "full") for what in ("raw text to entities", "training")
    ]
    words = [len(record["tokens"]) for record in demo_corpus()["train"][:6]]
    for row in rows:
        assert row["sentences"] == len(words)
        assert row["subwords"] >= sum(words) + 2 * len(words)
        assert row["padded_over_subwords"] >= 1
        assert row["sentences_a_second"] > 0
        assert list(row["share"]) == ["encoder", "words", "head", "rest"]
        assert min(row["share"].values()) > 0
        assert sum(row["share"].values()) == pytest.approx(1, abs=0.01)
    header, *written = map(json.loads, output.read_text().splitlines())
    assert written == rows
    assert "torch" in header
