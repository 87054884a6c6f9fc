"""The golden arrays of the published implementation, put into the span head of this project.

`tests/data/golden/` holds its numbers for random weights: a file for the whole head, with shared and with own tensors,
and one for each ablation, whose recipe in `hub_configs/ablations/` says what it is. Weights and inputs are numbers of
float32, outputs and gradients were computed in float64. `load_golden(name)` returns the head with those weights, the
inputs, and everything else the file holds.

Arrays have the axes sentence b, head word i, tail word j, inside word k, label r, None the last, and candidate m, in
the order of (i, j); those of the tensors W and V are head, inside, tail, label. Names with `paper` and `official` have
the softmax of the cross-span stage over g and over l.
"""

import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from modeling_triaffine.model.configuration_triaffine import TriaffineConfig
from modeling_triaffine.model.span_head_triaffine import TriaffineSpanHead

GOLDEN = Path(__file__).parent / "data" / "golden"
ABLATIONS = Path(__file__).parents[1] / "hub_configs" / "ablations"
INPUTS = ("h", "lengths", "labels")
LABEL_FIRST = (3, 1, 0, 2)  # [head, inside, tail, label] → [label, inside, head, tail]


def load_golden(name: str, axis: str = "key") -> tuple[TriaffineSpanHead, dict[str, Tensor], dict[str, Tensor]]:
    """Span head (float64, eval mode) with the weights of the file `name`, its inputs, and the expected values.

    inputs: h [B, N, H], lengths [B], labels [B, N, N]. expected: every other array of the file under its own name.
    """
    with np.load(GOLDEN / f"{name}.npz") as archive:
        arrays = {array: torch.from_numpy(archive[array]) for array in archive.files}
    head = TriaffineSpanHead(golden_config(name, arrays, axis)).double().eval()
    if head.config.attention == "linear" and head.config.scoring == "linear_boundary_shared":
        # Linear attention with linear scoring exists in the published code only, and there the score reads the
        # attention's inside words too; its own MLPs lie in the file unused, with gradients of zero.
        head.scoring.inside = head.attention.inside
    parameters = dict(head.named_parameters())
    for array, (parameter, axes) in golden_names(arrays).items():
        value = arrays[array].double().permute(axes)
        assert parameters[parameter].shape == value.shape, array
        parameters.pop(parameter).data.copy_(value)
    assert not parameters
    inputs = {name: arrays[name].double() if name == "h" else arrays[name].long() for name in INPUTS}
    expected = {name: value for name, value in arrays.items() if name not in INPUTS}
    return head, inputs, expected


def golden_config(name: str, arrays: dict[str, Tensor], axis: str) -> TriaffineConfig:
    """The configuration of the recipe of the file `name`, with the sizes of the arrays."""
    kind, letter, *_ = name.split("_")
    variant = "h" if kind == "full" else {"a": "a-published", "f": "f-published"}.get(letter, letter)
    recipe = {"attention": "linear", "scoring": "linear_boundary_shared", "cross_span": False}  # x, without a recipe
    if variant != "x":
        recipe = json.loads((ABLATIONS / variant / "config.json").read_text())
        recipe.pop("model_type")
    sizes = {"num_labels": 4, "hidden_size": 32, "triaffine_dim": 8, "max_candidates": 5}
    choices = {"cross_span_axis": axis, "share_triaffine": "W_cross" not in arrays, "loss_reduction": "batch"}
    return TriaffineConfig(**recipe, **sizes, **choices)


def golden_names(arrays: dict[str, Tensor]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Name of each weight array → parameter of the head, and the order of the array's axes in it."""
    modules = {
        "mlp_attn_head": "attention.boundaries.head",
        "mlp_attn_tail": "attention.boundaries.tail",
        "mlp_attn_token": "attention.inside",
        "mlp_score_head": "scoring.boundaries.head",
        "mlp_score_tail": "scoring.boundaries.tail",
        "mlp_value_token": "scoring.inside",
        "mlp_cross_attn_head": "cross_span.attention_boundaries.head",
        "mlp_cross_attn_tail": "cross_span.attention_boundaries.tail",
        "mlp_cross_attn_span": "cross_span.attention_span",
        "mlp_cross_score_head": "cross_span.scoring_boundaries.head",
        "mlp_cross_score_tail": "cross_span.scoring_boundaries.tail",
        "mlp_cross_value_span": "cross_span.scoring_span",
    }
    # Positions in the sequences: Linear, ReLU, Dropout, Linear; the shared projection has no ReLU.
    layers = {f"{array}_layer{n}": f"{name}.{3 * n}" for array, name in modules.items() for n in (0, 1)}
    layers |= {f"shared_projection_layer{n}": f"biaffine.projection.{2 * n}" for n in (0, 1)}
    for part, ours in (("head", "head"), ("tail", "tail"), ("token", "inside"), ("span", "inside")):
        layers[f"linear_attn_{part}"] = f"attention.linear_{ours}"
        layers[f"linear_score_{part}"] = f"scoring.linear_{ours}"
    names = {f"{array}_{kind}": f"{name}.{kind}" for array, name in layers.items() for kind in ("weight", "bias")}
    names |= {
        "W": "attention.triaffine.weight",
        "V": "scoring.triaffine.weight",
        "W_cross": "cross_span.attention_triaffine.weight",
        "V_cross": "cross_span.scoring_triaffine.weight",
        "label_bias": "label_bias",
        "label_bias_cross": "cross_span.label_bias",
        "q_label": "attention.query",
        "V_biaffine": "biaffine.weight",
        "linear_head_plus_tail": "biaffine.linear",
    }
    turned = dict.fromkeys(("W", "V", "W_cross", "V_cross"), LABEL_FIRST) | {"linear_head_plus_tail": (1, 0)}
    is_linear = {"linear_attn_head_bias", "linear_score_head_bias"} <= arrays.keys()
    unused = ("mlp_score_", "mlp_value_") if is_linear else ()
    return {
        name: (parameter, turned.get(name, tuple(range(arrays[name].ndim))))
        for name, parameter in names.items()
        if name in arrays and not name.startswith(unused)
    }
