"""The ladder of recipes: which trainings run, and what is made of their predictions."""

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
SENTENCES = 12
# In place of a training: predicts the gold entities but for the first sentences, 6 of them, or with boundary smoothing
# as many as the seed says.
PREDICT = """
import json, sys
from pathlib import Path

options = dict(argument.removeprefix("--").partition("=")[::2] for argument in sys.argv[1:])
records = [json.loads(line) for line in Path(options["test_file"]).read_text(encoding="utf-8").splitlines()]
for record in records[: int(options["seed"]) if options["boundary_smoothing"] else 6]:
    record["entities"] = []
folder = Path(options["output_dir"])
folder.mkdir()
(folder / "test_predictions.jsonl").write_text("\\n".join(map(json.dumps, records)), encoding="utf-8")
(folder / "all_results.json").write_text(json.dumps({"test_runtime": 1.0}), encoding="utf-8")
with open(folder.parent / "trained.txt", "a", encoding="utf-8") as log:
    print(folder.name, file=log)
"""


@pytest.fixture
def run_ladder(monkeypatch, tmp_path):
    """Runs the ladder on two variants with the given seeds; returns its rows and the trainings that took place."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import accuracy

    script, corpus, folder = tmp_path / "predict.py", tmp_path / "dev.jsonl", tmp_path / "ladder"
    script.write_text(PREDICT, encoding="utf-8")
    record = {"tokens": ["a", "b"], "entities": [{"start": 0, "end": 2, "type": "DNA"}]}
    corpus.write_text(f"{json.dumps(record)}\n" * SENTENCES, encoding="utf-8")
    monkeypatch.setattr(accuracy, "TRAIN", [sys.executable, str(script)])

    def run(*seeds):
        options = ["--corpus", f"demo-1.0={corpus},{corpus}", "--encoder=none", "--seeds", *map(str, seeds)]
        variants = ["--variants", "start", "boundary-smoothing"]
        monkeypatch.setattr(sys, "argv", ["accuracy.py", str(folder), *options, *variants])
        accuracy.main()
        rows = json.loads((folder / "results.json").read_text())["rows"]
        assert (folder / "results.svg").is_file()
        return {row["variant"]: row for row in rows}, (folder / "trained.txt").read_text().split()

    return run


def test_rows_hold_every_run_and_the_difference_to_the_start(run_ladder):
    assert len(run_ladder(1)[1]) == 2
    rows, trained = run_ladder(1, 2)  # does not repeat the trainings of seed 1
    names = [f"demo-1.0-{variant}-{seed}" for seed in (1, 2) for variant in ("start", "boundary-smoothing")]
    assert trained == names
    changed = rows["boundary-smoothing"]

    def f1(missing):
        return 2 * (SENTENCES - missing) / (2 * SENTENCES - missing)

    assert changed["f1"]["mean"] == pytest.approx((f1(1) + f1(2)) / 2)
    against = changed["against_start"]
    assert against["difference"] == pytest.approx(2 * 21 / (24 + 21) - f1(6))  # over both seeds' predictions together
    assert 0 < against["interval"][0] < against["difference"] < against["interval"][1]
