"""The ablations as configurations, and the script that trains them all and writes their table."""

import csv
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from modeling_triaffine import TriaffineConfig, TriaffineForNestedNER
from tests.helpers.micro_training import MICRO_ENCODER, micro_records, script_environment, write_lines, write_recipe
from tests.helpers.reference import load_golden

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = REPOSITORY / "examples" / "ablate.py"
FIELDS = ("attention", "scoring", "cross_span")
# Where printed equation and published code are one.
GOLDEN = {
    "a-published": "ablation_a_biaffine",
    "b": "ablation_b_no_boundary_in_scoring",
    "c": "ablation_c_no_label_in_attention",
    "d": "ablation_d_no_boundary_in_attention",
    "e": "ablation_e_linear_attention",
    "f-published": "ablation_f_linear_scoring",
    "g": "ablation_g_triaffine_no_cross",
    "h": "full_shared",
}


@pytest.fixture(scope="module")
def script():
    specification = importlib.util.spec_from_file_location("ablate", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", GOLDEN)
def test_configuration_is_that_of_the_published_arrays(shared, name):
    """Whose values and gradients `test_golden.py` compares."""
    head, _, _ = load_golden(shared / "golden" / f"{GOLDEN[name]}.npz")
    config = TriaffineConfig.from_pretrained(REPOSITORY / "hub_configs" / "ablations" / name)
    assert [getattr(config, field) for field in FIELDS] == [getattr(head.config, field) for field in FIELDS]


def test_the_papers_forms_differ_from_the_published_ones_in_their_scoring_alone(script):
    for name in ("a", "f"):
        paper, published = script.read_changes(name), script.read_changes(f"{name}-published")
        assert published == {**paper, "scoring": f"{paper['scoring']}_shared"}


@pytest.fixture
def finished(tmp_path):
    """Scores of three runs, as trainings leave them."""
    for run, split, f1 in (("a-seed-1", "eval", 0.5), ("h-seed-10", "test", 0.8), ("h-seed-9", "test", 0.7)):
        (tmp_path / run).mkdir()
        scores = {f"{split}_f1": f1, f"{split}_flat_f1": f1 + 0.1, f"{split}_nested_f1": f1 - 0.1, "eval_loss": 1}
        scores = {"eval_f1": 0, "eval_flat_f1": 0, "eval_nested_f1": 0, **scores}
        (tmp_path / run / "all_results.json").write_text(json.dumps(scores))
    (tmp_path / "g-seed-1").mkdir()  # not finished
    return tmp_path


def test_table_holds_what_is_finished(script, finished):
    script.write_tables(finished)
    lines = (finished / "table.md").read_text().splitlines()
    assert [line.count("|") for line in lines] == [7] * 4
    assert lines[2] == "| (a) | attention none, scoring biaffine | 1 | 50.00 | 60.00 | 40.00 |"
    assert lines[3].endswith("related spans | 2 | 75.00 ± 7.07 | 85.00 ± 7.07 | 65.00 ± 7.07 |")
    rows = list(csv.DictReader((finished / "table.csv").open()))
    found = [(row["variant"], row["seed"], row["f1"]) for row in rows]
    assert found == [("a", "1", "50.0000"), ("h", "9", "70.0000"), ("h", "10", "80.0000")]
    assert [row["name"] for row in json.loads((finished / "table.json").read_text())["rows"]] == ["a", "h"]
    assert (finished / "table.svg").read_text().count("<svg") == 1


def test_what_is_no_run_with_scores_is_told_and_left_out(script, finished, capsys):
    (finished / "h-seed-9" / "all_results.json").write_text('{"train_loss": 1.0}')
    shutil.copytree(finished / "h-seed-10", finished / "h-seed-10-old")
    script.write_tables(finished)
    assert (finished / "table.md").read_text().splitlines()[3].endswith("related spans | 1 | 80.00 | 90.00 | 70.00 |")
    told = sorted(capsys.readouterr().err.splitlines())
    assert told == [f"{finished / run} is not in the table: it is no run with a seed and an F1." for run in
                    ("h-seed-10-old", "h-seed-9")]  # fmt: skip


@pytest.fixture
def ended(script, tmp_path, monkeypatch, capsys):
    """How `main` ends, its exit code and what it tells, when this is what becomes of the first training."""

    def run_training(run):
        monkeypatch.setattr(script.subprocess, "run", run)
        monkeypatch.setattr(sys, "argv", ["ablate.py", "--variants", "a", "--output_dir", str(tmp_path / "runs")])
        with pytest.raises(SystemExit) as end:
            script.main()
        return end.value.code, capsys.readouterr().err.splitlines()[1:]

    return run_training


def test_ends_with_its_training(ended):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    assert ended(lambda command, **_: subprocess.CompletedProcess(command, 3)) == (3, [])
    assert ended(interrupt) == (130, [])


def test_runs_under_other_options_are_not_mixed(script, finished):
    script.check_same_options(finished / "new", ["--recipe", "x"])
    (finished / "options.json").write_text('["--recipe", "x"]')
    script.check_same_options(finished, ["--recipe", "x"])
    with pytest.raises(ValueError, match=r"were trained with --recipe x; now the options are --recipe y.*another"):
        script.check_same_options(finished, ["--recipe", "y"])


def test_trains_what_is_missing(tmp_path):
    options = {
        "--recipe": write_recipe(tmp_path / "recipe", training={"num_train_epochs": 1, "use_cpu": True}),
        "--train_file": write_lines(tmp_path / "train.jsonl", micro_records(12)),
        "--validation_file": write_lines(tmp_path / "dev.jsonl", micro_records(4, seed=1)),
        "--output_dir": tmp_path / "runs",
    }
    command = [sys.executable, str(SCRIPT), *(str(part) for option in options.items() for part in option)]
    done = tmp_path / "runs" / "a-seed-3"
    done.mkdir(parents=True)
    (done / "all_results.json").write_text('{"eval_f1": 0.5, "eval_flat_f1": 0.5, "eval_nested_f1": 0.5}')
    (tmp_path / "runs" / "options.json").write_text(json.dumps(command[2:-2]))
    environment = script_environment(tmp_path)
    result = subprocess.run(
        [*command, "--variants", "a", "d", "--seeds", "3"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert [path.name for path in done.iterdir()] == ["all_results.json"]
    trained = TriaffineForNestedNER.from_pretrained(tmp_path / "runs" / "d-seed-3")
    assert trained.config.attention == "label"
    assert not trained.config.cross_span
    assert trained.config.encoder_config.hidden_size == MICRO_ENCODER["hidden_size"]
    assert [line[:5] for line in result.stdout.splitlines()[-2:]] == ["| (a)", "| (d)"]
