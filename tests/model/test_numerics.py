"""Numbers stay finite and repeatable where they could not: half precision, extreme sizes, deterministic algorithms."""

import pytest
import torch

from modeling_triaffine import NestedNERPipeline, TriaffineForNestedNER
from tests.helpers.tiny import tiny_model, tiny_processor
from tests.model.test_span_head import make_head, random_labels

RANKS = pytest.mark.parametrize("rank", [None, 3], ids=["full", "low rank"])
HUGE = 60000.0  # float16 ends at 65504


def check_finite(output) -> None:
    for name, values in output.items():
        assert values.isfinite().all(), name


def words(*sentences: str) -> dict[str, list[list[str]]]:
    return {"words": [sentence.split() for sentence in sentences]}


@RANKS
@pytest.mark.parametrize("scale", [1e-7, 1.0, 100.0, HUGE])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bfloat16", "autocast to float16"])
def test_head_is_finite_for_inputs_of_any_size(rank, scale, dtype):
    head, hidden, lengths = make_head(triaffine_rank=rank)
    is_autocast = dtype == torch.float16
    head.to(torch.float32 if is_autocast else dtype)
    hidden = (scale * hidden).clamp(-HUGE, HUGE).to(dtype).requires_grad_()
    with torch.autocast("cpu", dtype, enabled=is_autocast):
        output = head(hidden, lengths, random_labels(lengths, 4, 5))
    check_finite(output)
    output.loss.backward()
    gradients = [parameter.grad for parameter in head.parameters()] + [hidden.grad] * (not is_autocast)
    assert all(gradient.isfinite().all() for gradient in gradients)


@RANKS
def test_autocast_changes_nothing_for_a_head_in_float16(rank):
    head, hidden, lengths = make_head(triaffine_rank=rank)
    head, hidden = head.half(), hidden.half()
    with torch.autocast("cpu", torch.float16):
        scores = head(hidden, lengths).span_logits
    torch.testing.assert_close(scores, head(hidden, lengths).span_logits)


@RANKS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_model_loaded_in_half_precision_is_finite(encoder, tmp_path, dtype, rank):
    """With encoder outputs as large as its last layer norm can make them, and one sentence of one word repeated."""
    model = tiny_model(encoder, triaffine_rank=rank)
    with torch.no_grad():
        model.encoder.encoder.layer[-1].output.LayerNorm.weight.fill_(1e3)
    model.save_pretrained(tmp_path)
    loaded = TriaffineForNestedNER.from_pretrained(tmp_path, dtype=dtype).eval()
    assert loaded.encoder.dtype == dtype
    assert loaded.head.label_bias.dtype == (torch.float32 if dtype == torch.float16 else dtype)
    inputs = tiny_processor(encoder)(**words("gene binds protein", "gene " * 40, "x"))
    with torch.no_grad():
        check_finite(loaded(**inputs))
    pipeline = NestedNERPipeline(model=loaded, processor=tiny_processor(encoder))
    assert all(0 <= entity["score"] <= 1 for entity in pipeline("gene binds gene", threshold=0.0))


@RANKS
@pytest.mark.parametrize("num_labels", [2, 200])
def test_few_and_many_labels(encoder, num_labels, rank):
    names = {**{number: f"L{number}" for number in range(num_labels - 1)}, num_labels - 1: "None"}
    model = tiny_model(encoder, id2label=names, triaffine_rank=rank, max_candidates=300)
    inputs = tiny_processor(encoder)(**words("gene " * 12, "protein"))
    labels = torch.full((2, 12, 12), -100)
    labels[:, 0, 0] = 0
    output = model(**inputs, labels=labels)
    check_finite(output)
    # More candidates allowed than there are spans: every span of both sentences is one, and nothing else.
    assert output.candidate_mask.sum(1).tolist() == [12 * 13 // 2, 1]
    output.loss.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@RANKS
@pytest.mark.parametrize("reference", [False, True], ids=["fast", "reference"])
def test_bfloat16_autocast_changes_a_model_little(encoder, rank, reference):
    """On any processor: where bfloat16 has no instructions, torch's LSTM itself raises under autocast."""
    fields = {"lstm_hidden_size": 4, "char_embedding_size": 3, "char_lstm_hidden_size": 2, "char_vocab_size": 30}
    model = tiny_model(encoder, triaffine_rank=rank, **fields).eval()
    model.head.reference = reference
    inputs = tiny_processor(encoder)(**words("gene binds protein", "x"))
    inputs["char_ids"] = torch.ones(2, 3, 2, dtype=torch.long)
    exact = model(**inputs)
    with torch.autocast("cpu", torch.bfloat16):
        output = model(**inputs)
    valid = exact.span_logits.isfinite()
    torch.testing.assert_close(output.span_logits[valid], exact.span_logits[valid], rtol=0.05, atol=0.05)
    output.logits.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)
