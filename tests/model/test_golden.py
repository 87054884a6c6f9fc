"""Every golden array of the published implementation, matched in float64 to 1e-9."""

import pytest
import torch

from modeling_triaffine.model.triaffine_ops import candidate_attention, inside_attention_reference, span_mask
from tests.reference import GOLDEN, golden_names, load_golden

ABLATIONS = sorted(file.stem for file in GOLDEN.glob("ablation_*.npz"))
FULL = ["full_shared", "full_separate"]


def close(actual, expected, where=None):
    if where is not None:
        actual, expected = actual[where], expected[where]
    torch.testing.assert_close(actual.double(), expected.double(), rtol=1e-9, atol=1e-9)


def check_gradients(head, arrays, hidden, prefix):
    parameters = dict(head.named_parameters())
    names = {name: ours for name, ours in golden_names(arrays).items() if prefix + name in arrays}
    assert names
    for name, (parameter, axes) in names.items():
        actual, expected = parameters[parameter].grad, arrays[prefix + name].permute(axes)
        torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-9, msg=lambda why, name=name: f"{name}: {why}")
    close(hidden.grad, arrays[f"{prefix}h"])


def attention_cube(head, hidden):
    factor, _ = head.factors(head.project(hidden))
    return inside_attention_reference(factor.whole_cube()).permute(0, 2, 3, 4, 1)  # [b, i, j, k, r]


def inside_mask(lengths, num_words):
    words = torch.arange(num_words)
    return span_mask(lengths, num_words)[..., None] & (words >= words[:, None, None]) & (words <= words[:, None])


@pytest.mark.parametrize("name", ABLATIONS)
@pytest.mark.parametrize("reference", [False, True], ids=["fast", "reference"])
def test_ablation(name, reference):
    head, inputs, expected = load_golden(name)
    head.reference = reference
    hidden = inputs["h"].requires_grad_()
    output = head(hidden, inputs["lengths"], inputs["labels"])
    close(output.span_logits, expected["p"], span_mask(inputs["lengths"], hidden.shape[1]))
    close(output.loss_aux, expected["loss_aux"])
    assert output.candidates is output.logits is output.loss_main is None
    if "alpha" in expected:
        close(attention_cube(head, hidden), expected["alpha"], inside_mask(inputs["lengths"], hidden.shape[1]))
    output.loss.backward()
    check_gradients(head, expected, hidden, next(name.removesuffix("h") for name in expected if name.endswith(".h")))


@pytest.mark.parametrize("name", FULL)
@pytest.mark.parametrize(("axis", "suffix"), [("key", "paper"), ("query", "official")])
@pytest.mark.parametrize("reference", [False, True], ids=["fast", "reference"])
def test_full_model(name, axis, suffix, reference):
    head, inputs, expected = load_golden(name, axis)
    head.reference = reference
    hidden = inputs["h"].requires_grad_()
    num_words = hidden.shape[1]
    output = head(hidden, inputs["lengths"], inputs["labels"])
    spans, insides = span_mask(inputs["lengths"], num_words), inside_mask(inputs["lengths"], num_words)
    factor, scoring = head.factors(head.project(hidden))
    close(factor.whole_cube().permute(0, 2, 3, 4, 1), expected["s_unmasked"], insides)
    close(scoring.whole_cube().permute(0, 2, 3, 4, 1), expected["o"], insides)
    close(attention_cube(head, hidden), expected["alpha"], insides)
    close(output.span_logits, expected["p"], spans)
    assert torch.equal(output.candidates, expected["topm_row_major"])
    assert output.candidate_mask.all()
    of_candidates = (torch.arange(len(insides))[:, None], *output.candidates.unbind(-1))
    close(output.span_attentions, expected["alpha"][of_candidates], insides[of_candidates])
    spans = head.represent(head.project(hidden), candidate_attention(factor, output.candidates, num_words))
    close(spans.transpose(1, 2), expected["span_repr_topm"])
    close(output.cross_span_attentions, expected[f"beta_{suffix}"])
    close(output.logits, expected[f"p_cross_{suffix}"])
    close(output.loss_aux, expected["loss_aux_official"])
    close(output.loss_main, expected[f"loss_main_{suffix}"])
    close(output.loss, expected[f"loss_total_{suffix}"])
    output.loss.backward()
    check_gradients(head, expected, hidden, f"grad_{suffix}.")


def test_sentence_with_fewer_spans_than_candidates():
    """The published code lets invalid spans in here; this model never does, and agrees on all that is valid."""
    head, inputs, expected = load_golden("full_shared_short")
    output = head(inputs["h"], inputs["lengths"], inputs["labels"])
    spans, insides = span_mask(inputs["lengths"], 7), inside_mask(inputs["lengths"], 7)
    close(output.span_logits, expected["p"], spans)
    close(attention_cube(head, inputs["h"]), expected["alpha"], insides)
    close(output.loss_aux, expected["loss_aux_official"])
    assert torch.equal(output.candidates[0], expected["topm_row_major"][0])
    close(output.logits[0], expected["p_cross_paper"][0])
    assert output.candidate_mask.sum(-1).tolist() == [5, 3]
    assert output.candidates[1, :3].tolist() == [[0, 0], [0, 1], [1, 1]]
