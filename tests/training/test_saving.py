"""The recipe in a run's folder, from which the run is repeated."""

import json

from modeling_triaffine.training.plan import training_options
from modeling_triaffine.training.saving import _as_yaml


def test_json_in_an_option_may_be_longer_than_a_path():
    given = json.dumps({"zero_optimization": {"stage": 2, "comment": "x" * 300}})
    assert _as_yaml(training_options()["deepspeed"], given) == given
