"""The ablations as configurations are those of the published arrays."""

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
