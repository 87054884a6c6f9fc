"""The ablations as configurations, and the command that trains them all and tabulates their scores."""

import csv
import json
import runpy
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from modeling_triaffine import TriaffineConfig, TriaffineForNestedNER
from modeling_triaffine.evaluation import Counts
from modeling_triaffine.training import ablations
from tests.helpers.cards import make_evaluation, make_summary
from tests.helpers.micro_training import MICRO_ENCODER, micro_records, write_lines, write_recipe
from tests.reference import load_golden

REPOSITORY = Path(__file__).resolve().parents[2]
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


@pytest.mark.parametrize("name", GOLDEN)
def test_configuration_is_that_of_the_published_arrays(name):
    """Whose values and gradients `test_golden.py` compares."""
    head, _, _ = load_golden(GOLDEN[name])
    config = TriaffineConfig.from_pretrained(REPOSITORY / "hub_configs" / "ablations" / name)
    assert [getattr(config, field) for field in FIELDS] == [getattr(head.config, field) for field in FIELDS]


def test_the_papers_forms_differ_from_the_published_ones_in_their_scoring_alone():
    variants = ablations.read_variants()
    for name in ("a", "f"):
        paper, published = variants[name], variants[f"{name}-published"]
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


def markdown_cells(folder: Path) -> list[list[str]]:
    lines = (folder / "table.md").read_text().splitlines()
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def test_tables_have_what_is_finished_and_which_options_differ(finished):
    ablations.write_tables(finished)
    heading, _, first, second = markdown_cells(finished)
    assert heading == ["", "attention", "scoring", "cross_span", "seeds", "F1", "flat F1", "nested F1"]
    assert first == ["(a)", "none", "biaffine", "false", "1", "50.00", "60.00", "40.00"]
    assert second[2:] == ["triaffine", "true", "2", "75.00 ± 7.07", "85.00 ± 7.07", "65.00 ± 7.07"]
    rows = list(csv.DictReader((finished / "table.csv").open()))
    found = [(row["variant"], row["cross_span"], row["seed"], row["f1"]) for row in rows]
    assert found == [("a", "false", "1", "50.0000"), ("h", "true", "9", "70.0000"), ("h", "true", "10", "80.0000")]
    in_json = json.loads((finished / "table.json").read_text())["rows"]
    assert [(row["name"], row["options"]["attention"]) for row in in_json] == [("a", "none"), ("h", "triaffine")]
    assert (finished / "table.svg").read_text().count("<svg") == 1


def test_a_score_without_entities_on_either_side_is_undefined(finished):
    evaluation = make_evaluation()
    evaluation.scores["nested"] = Counts().scores()
    summary = make_summary(evaluation=evaluation)
    for run in ("a-seed-1", "h-seed-9"):
        summary.save(finished / run)
    ablations.write_tables(finished)
    _, _, first, second = markdown_cells(finished)
    assert (first[-2:], second[-2:]) == (["60.00", "–"], ["85.00 ± 7.07", "70.00"])
    rows = list(csv.DictReader((finished / "table.csv").open()))
    assert [row["nested_f1"] for row in rows] == ["", "", "70.0000"]
    in_json = json.loads((finished / "table.json").read_text())["rows"]
    assert [row["scores"]["nested_f1"] for row in in_json] == [[None], [None, pytest.approx(70)]]
    assert (finished / "table.svg").exists()


def test_options_that_are_the_same_in_all_variants_are_no_columns():
    variants = {"c": {"scoring": "triaffine", "cross_span": False}, "h": {"scoring": "triaffine", "cross_span": True}}
    assert ablations.differing(variants) == {"c": {"cross_span": False}, "h": {"cross_span": True}}
    assert ablations.differing({"h": variants["h"]}) == {"h": variants["h"]}


def test_folders_without_scores_are_reported_and_left_out(finished, caplog):
    (finished / "h-seed-9" / "all_results.json").write_text('{"train_loss": 1.0}')
    shutil.copytree(finished / "h-seed-10", finished / "h-seed-10-old")
    ablations.write_tables(finished)
    assert markdown_cells(finished)[3][3:] == ["true", "1", "80.00", "90.00", "70.00"]
    reported = [line.split()[0] for line in sorted(caplog.messages)]
    assert reported == [str(finished / "h-seed-10-old"), str(finished / "h-seed-9")]


def test_ends_with_the_exit_code_of_its_training(command, tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda program, **_: subprocess.CompletedProcess(program, 3))
    result = command("ablate", "--variants", "a", "--output_dir", tmp_path / "runs")
    assert result.code == 3
    assert "Traceback" not in result.err


def test_unknown_variants_are_named(command, tmp_path):
    result = command("ablate", "--variants", "a", "f-publish", "--output_dir", tmp_path / "runs")
    assert result.code == 2
    assert "'f-publish'. Did you mean f-published?" in result.err


@pytest.mark.parametrize("option", ["--seed=7", "--attention=none", "--hub-token=hf_x", "--push_to_hub"])
def test_options_of_the_variants_cannot_be_given(command, tmp_path, option):
    result = command("ablate", "--variants", "a", option, "--output_dir", tmp_path / "runs")
    assert result.code == 2
    assert option.partition("=")[0].replace("-token", "_token") in result.err
    assert not (tmp_path / "runs").exists()


def test_runs_under_other_options_are_not_mixed(finished):
    ablations.check_same_options(finished / "new", ["--recipe", "x"])
    (finished / "options.json").write_text('["--recipe", "x"]')
    ablations.check_same_options(finished, ["--recipe", "x"])
    (finished / "options.json").write_text('["--recipe", "x", "--num_train_epochs", "3"]')
    ablations.check_same_options(finished, ["--num-train-epochs=3", "--resume_from_checkpoint", "--recipe", "x"])
    with pytest.raises(ValueError, match=r"were trained with .*--recipe x; now the options are --recipe y.*another"):
        ablations.check_same_options(finished, ["--recipe", "y"])
    (finished / "options.json").unlink()
    with pytest.raises(ValueError, match=r"has runs, but no options\.json"):
        ablations.check_same_options(finished, ["--recipe", "x"])


def run_here(program: list[str], check: bool) -> subprocess.CompletedProcess:
    """`python -m …` in this process."""
    _, _, module, *options = program
    with mock.patch("sys.argv", [module, *options]):
        runpy.run_module(module, run_name="__main__")
    return subprocess.CompletedProcess(program, 0)


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_trains_what_is_missing(command, tmp_path, monkeypatch):
    options = {
        "--recipe": write_recipe(tmp_path / "recipe", training={"num_train_epochs": 1, "use_cpu": True}),
        "--train_file": write_lines(tmp_path / "train.jsonl", micro_records(12)),
        "--validation_file": write_lines(tmp_path / "dev.jsonl", micro_records(4, seed=1)),
        "--output_dir": tmp_path / "runs",
    }
    given = [str(part) for option in options.items() for part in option]
    done = tmp_path / "runs" / "a-seed-3"
    done.mkdir(parents=True)
    (done / "all_results.json").write_text('{"eval_f1": 0.5, "eval_flat_f1": 0.5, "eval_nested_f1": 0.5}')
    (tmp_path / "runs" / "options.json").write_text(json.dumps(given[:-2]))
    monkeypatch.setattr(ablations, "subprocess", SimpleNamespace(run=run_here))
    result = command("ablate", *given, "--variants", "a", "d", "--seeds", "3")
    assert result.code == 0, result.err[-3000:]
    assert [path.name for path in done.iterdir()] == ["all_results.json"]
    trained = TriaffineForNestedNER.from_pretrained(tmp_path / "runs" / "d-seed-3")
    assert trained.config.attention == "label"
    assert not trained.config.cross_span
    assert trained.config.encoder_config.hidden_size == MICRO_ENCODER["hidden_size"]
    assert [line[:5] for line in result.out.splitlines()[-2:]] == ["| (a)", "| (d)"]
