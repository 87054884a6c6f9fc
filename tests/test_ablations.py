"""The ablations as configurations, and the benchmark that trains them all and tabulates their scores."""

import json
import sys
from pathlib import Path

import pytest

from modeling_triaffine import TriaffineConfig
from tests.reference import load_golden

REPOSITORY = Path(__file__).resolve().parents[1]
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


@pytest.fixture
def ablations(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    import ablations

    return ablations


def test_the_papers_forms_differ_from_the_published_ones_in_their_scoring_alone(ablations):
    variants = ablations.read_variants()
    for name in ("a", "f"):
        paper, published = variants[name], variants[f"{name}-published"]
        assert published == {**paper, "scoring": f"{paper['scoring']}_shared"}


def test_trains_what_is_missing_and_tabulates_means_over_seeds(ablations, tmp_path, monkeypatch):
    for run, f1 in (("a-seed-1", 0.5), ("h-seed-10", 0.8)):
        (tmp_path / run).mkdir()
        (tmp_path / run / "all_results.json").write_text(json.dumps({"eval_f1": 0, "test_f1": f1}))
    # In place of a training: writes the score of a run.
    program = "import sys, pathlib; run = pathlib.Path(sys.argv[-2].partition('=')[2]); run.mkdir(); "
    program += "(run / 'all_results.json').write_text('{\"eval_f1\": 0.7}'); (run / 'given').write_text(str(sys.argv))"
    monkeypatch.setattr(ablations, "TRAIN", [sys.executable, "-c", program])
    options = ["--variants", "a", "h", "--seeds", "1", "--recipe", "demo"]
    monkeypatch.setattr(sys, "argv", ["ablations.py", str(tmp_path), *options])
    ablations.main()
    assert "'--recipe', 'demo', '--attention=triaffine'" in (tmp_path / "h-seed-1" / "given").read_text()
    lines = (tmp_path / "table.md").read_text().splitlines()
    heading, _, first, second = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    assert heading[:6] == ["", "attention", "scoring", "cross_span", "seeds", "F1"]
    assert first[:6] == ["(a)", "none", "biaffine", "false", "1", "50.00"]
    assert second[3:6] == ["true", "2", "75.00 ± 7.07"]
