"""Tensor functions: blocks against the whole cube, values and gradients, on odd sizes; selection; masks; pooling."""

import pytest
import torch

from modeling_triaffine.acceleration import full_tensors
from modeling_triaffine.model import triaffine_blocks, triaffine_ops
from modeling_triaffine.model.triaffine_blocks import ACCELERATION, plan_blocks
from modeling_triaffine.model.triaffine_ops import (
    ProductFactor,
    TriaffineFactor,
    candidate_attention,
    masked_softmax,
    select_candidates,
    span_mask,
    span_scores,
    span_scores_reference,
    triaffine_pairs,
    triaffine_pairs_reference,
)
from modeling_triaffine.model.words_triaffine import BiLSTM, pool_subwords

# Sentences, words, labels, width of the triaffine. One word; one label; ragged; a kept cube of attention scores (width²
# above sentences · labels · words²); several blocks (more than 64 words).
SIZES = [(1, 1, 1, 4), (2, 7, 3, 4), (3, 5, 2, 17), (2, 21, 1, 3), (1, 70, 1, 3)]
KINDS = [
    ("full", "full"),
    ("rank", "rank"),
    ("shared", "full"),
    ("shared rank", "rank"),
    ("full", "additive"),
    ("additive", "full"),
    ("additive", "rank"),
    ("rank", "additive"),
]


def make_factor(sizes, kind, seed=0, dtype=torch.double, rounded_to=None):
    """A factor with random vectors, and weights for scores of about unit variance; "shared" has one label for all."""
    batch, words, labels, dim = sizes
    generator = torch.Generator().manual_seed(seed)
    labels = 1 if kind.startswith("shared") else labels

    def draw(*shape, scale=1.0):
        values = scale * torch.randn(*shape, dtype=torch.double, generator=generator)
        return values.to(rounded_to or dtype).to(dtype).requires_grad_()

    if kind == "additive":
        return ProductFactor(draw(2, batch, labels, words, 3), draw(batch, labels, words, 3))
    if kind.endswith("rank"):
        scale = dim ** (-1 / 6)
        ends = draw(2, batch, labels, words, dim, scale=scale)
        return ProductFactor(ends, draw(batch, labels, words, dim, scale=scale))
    weight = draw(labels, dim, dim + 1, dim + 1, scale=dim**-1.5)
    return TriaffineFactor(draw(batch, words, dim + 1), draw(batch, words, dim), draw(batch, words, dim + 1), weight)


def leaves(*factors):
    parts = [part for factor in factors for part in factor]
    return [leaf for part in parts for leaf in (part if isinstance(part, tuple) else (part,))]


def ragged_lengths(sizes):
    return torch.tensor([max(1, sizes[1] - 2 * row) for row in range(sizes[0])])


def span_stage(score, attention, scoring, lengths, max_width=None, packed=None):
    """p of the real spans, α of some candidates, and the gradients of a random function of both."""
    num_words = scoring.insides.shape[2 if isinstance(scoring, ProductFactor) else 1]
    found = score(attention, scoring, lengths, max_width, packed)
    p = found.scores * span_mask(lengths, num_words, max_width).unsqueeze(1)
    candidates = torch.stack([torch.zeros_like(lengths), lengths.clamp(max=max_width or num_words) - 1], -1)
    rows = candidate_attention(attention, candidates.unsqueeze(1), num_words, found.attention_cube)
    total = sum((part.double() * torch.arange(part.numel()).view_as(part).cos()).sum() for part in (p, rows))
    inputs = leaves(attention, scoring)
    gradients = torch.autograd.grad(total, inputs, allow_unused=True)
    # What shifts all scores of a span alike has no gradient, which is told as None or as 0.
    gradients = [torch.zeros_like(leaf) if grad is None else grad for leaf, grad in zip(inputs, gradients, strict=True)]
    return [p, rows, *gradients]


def assert_same(actual, expected, tolerance):
    for one, other in zip(actual, expected, strict=True):
        scale = max(1.0, other.abs().max().item())
        torch.testing.assert_close(one.double(), other.double(), rtol=tolerance, atol=tolerance * scale)


@pytest.fixture(params=["package", "package, recomputing", "without the package"])
def operations(request, monkeypatch):
    """The package's operations, also without memory for the backward pass; plain ones, and smaller blocks there."""
    monkeypatch.setattr(full_tensors, "KEPT_SHARE", 0.0 if "recomputing" in request.param else 0.25)
    if request.param == "without the package":
        for name, operation in vars(triaffine_blocks.Acceleration()).items():
            monkeypatch.setattr(ACCELERATION, name, operation)
        monkeypatch.setattr(triaffine_blocks, "CACHED_NUMBERS", 2000)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("kinds", KINDS, ids=str)
@pytest.mark.parametrize("width", [None, 1, 3])
def test_blocks_agree_with_the_whole_cube(sizes, kinds, operations, width):
    attention, scoring = (make_factor(sizes, kind, seed) for seed, kind in enumerate(kinds))
    lengths = ragged_lengths(sizes)
    expected = span_stage(span_scores_reference, attention, scoring, lengths, width)
    actual = span_stage(span_scores, attention, scoring, lengths, width)
    assert_same(actual, expected, 1e-10)
    with torch.no_grad():
        scores = span_scores(attention, scoring, lengths, width).scores
    assert scores.isfinite().all()
    assert_same([scores * span_mask(lengths, sizes[1], width).unsqueeze(1)], expected[:1], 1e-10)


@pytest.mark.parametrize("kinds", [("full", "full"), ("rank", "rank"), ("additive", "full")], ids=str)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float, 1e-5), (torch.bfloat16, 0.05)], ids=str)
@pytest.mark.parametrize("sizes", [(2, 7, 3, 8), (1, 33, 2, 8)], ids=str)
def test_lower_precision(kinds, dtype, tolerance, sizes):
    """Against the float64 reference of the same numbers, relative to the largest of each kind."""
    attention, scoring = (make_factor(sizes, kind, seed, dtype) for seed, kind in enumerate(kinds))
    exact = [make_factor(sizes, kind, seed, rounded_to=dtype) for seed, kind in enumerate(kinds)]
    lengths = ragged_lengths(sizes)
    expected = span_stage(span_scores_reference, *exact, lengths)
    actual = span_stage(span_scores, attention, scoring, lengths)
    assert actual[0].dtype == actual[1].dtype == torch.float32  # softmax and sums
    for one, other in zip(actual, expected, strict=True):
        assert (one.double() - other).abs().max() <= tolerance * other.abs().max().clamp(min=1)


@pytest.mark.parametrize("kinds", [("full", "full"), ("rank", "rank")], ids=str)
def test_autocast_computes_products_in_half_precision_and_gives_gradients_in_full(kinds):
    attention, scoring = (make_factor((2, 9, 2, 8), kind, seed, torch.float) for seed, kind in enumerate(kinds))
    lengths = torch.tensor([9, 4])
    expected = span_stage(span_scores_reference, attention, scoring, lengths)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        actual = span_stage(span_scores, attention, scoring, lengths)
    assert {part.dtype for part in actual} == {torch.float32}
    for one, other in zip(actual, expected, strict=True):
        assert 0 < (one - other).abs().max() <= 0.05 * other.abs().max()


@pytest.mark.parametrize("sizes", [(1, 1, 1, 4), (2, 7, 3, 4), (1, 63, 1, 3)], ids=str)
@pytest.mark.parametrize("kind", ["full", "rank"])
def test_pairs_of_candidates_are_their_definition(sizes, kind):
    batch, candidates, labels, dim = sizes

    def draw(*shape):
        return torch.randn(*shape, dtype=torch.double, requires_grad=True)

    ends, spans = draw(2, batch, candidates, dim), draw(batch, labels, candidates, dim)
    places = torch.randint(candidates, (batch, candidates, 2))
    weight = draw(labels, dim, dim + 1, dim + 1)
    if kind == "rank":
        weight = tuple(draw(labels, width, 3) for width in (dim + 1, dim, dim + 1))
    inputs = [ends, spans, *(weight if kind == "rank" else [weight])]

    def run(pairs):
        scores = pairs(ends, spans, weight, places)
        return [scores, *torch.autograd.grad(scores.sin().sum(), inputs)]

    assert_same(run(triaffine_pairs), run(triaffine_pairs_reference), 1e-10)


@pytest.mark.parametrize(("dtype", "kept"), [(torch.float, [0, 0, 1e-10]), (torch.double, [1e-40, 1e-20, 1e-10])])
def test_gradients_on_a_cpu_have_no_denormal_numbers(dtype, kept):
    """A product with these takes many times as long."""
    values = torch.zeros(3, dtype=dtype, requires_grad=True)
    triaffine_blocks.without_tiny_gradients(values).backward(torch.tensor([1e-40, 1e-20, 1e-10], dtype=dtype))
    assert values.grad.tolist() == pytest.approx(kept, rel=1e-5, abs=0)


@pytest.mark.parametrize("layout", ["padded", "packed by the host"])
@pytest.mark.parametrize("kinds", [("full", "full"), ("full", "additive"), ("rank", "rank")], ids=str)
def test_layouts_of_other_devices_change_nothing(layout, kinds, monkeypatch):
    """The host does not know the lengths there: words are padded, or packed by an index that came with the batch."""
    attention, scoring = (make_factor((3, 10, 2, 4), kind, seed) for seed, kind in enumerate(kinds))
    lengths = torch.tensor([10, 2, 9])
    expected = span_stage(span_scores, attention, scoring, lengths)

    packed = None
    if layout == "padded":
        padded = torch.arange(30).view(3, 10).T.flatten(), [3] * 10
        monkeypatch.setattr(triaffine_blocks, "pack_words", lambda *_: padded)
    else:
        packed = torch.tensor([b * 10 + k for k in range(10) for b in range(3) if lengths[b] > k])
        assert torch.equal(triaffine_blocks.pack_words(lengths, 10)[0], packed)
        monkeypatch.setattr(triaffine_ops, "plan_blocks", lambda lengths, *rest: plan_blocks(lengths.to("meta"), *rest))
    assert_same(span_stage(span_scores, attention, scoring, lengths, packed=packed), expected, 1e-12)


def test_softmax_over_nothing_is_zero_and_has_finite_gradients():
    scores = torch.randn(2, 3, requires_grad=True)
    mask = torch.tensor([[True, False, True], [False, False, False]])
    result = masked_softmax(scores, mask, dim=-1)
    assert result[1].tolist() == [0, 0, 0]
    result.square().sum().backward()
    assert scores.grad.isfinite().all()


def test_equal_scores_are_ranked_by_position_whatever_the_padding():
    lengths = torch.tensor([4, 2])
    for width in (4, 9):
        candidates, mask = select_candidates(torch.zeros(2, width, width, 3), span_mask(lengths, width), 5)
        assert candidates[0][mask[0]].tolist() == [[0, 0], [0, 1], [0, 2], [0, 3], [1, 1]]
        assert candidates[1][mask[1]].tolist() == [[0, 0], [0, 1], [1, 1]]


def test_candidates_of_several_labels_are_ranked_where_sigmoids_saturate():
    logits = torch.zeros(1, 4, 4, 2)
    logits[0, 0, 0], logits[0, 0, 1], logits[0, 2, 3] = 30.0, 40.0, 50.0
    candidates, _ = select_candidates(logits, span_mask(torch.tensor([4]), 4), 1, multi_label=True)
    assert candidates.tolist() == [[[2, 3]]]


@pytest.mark.parametrize(("how", "word"), [("max", [3.0, 5.0]), ("first", [1.0, 5.0]), ("mean", [2.0, 3.5])])
def test_pooling(how, word):
    states = torch.tensor([[[9.0, 9.0], [1.0, 5.0], [3.0, 2.0], [7.0, 8.0], [9.0, 9.0]]])
    pooled = pool_subwords(states, torch.tensor([[-1, 0, 0, 2, -1]]), (1, 3), how)
    assert pooled.tolist() == [[word, [0.0, 0.0], [7.0, 8.0]]]


def test_first_subword_of_a_word_that_is_spread_over_windows():
    index = torch.tensor([[-1, 0, 1, 1, -1, -1, 1, 1, 2, -1]])
    states = torch.arange(10.0).view(1, 10, 1)
    assert pool_subwords(states, index, (1, 3), "first").flatten().tolist() == [1, 2, 8]


def test_bilstm_is_torchs_own_over_packed_rows():
    torch.manual_seed(0)
    ours = BiLSTM(3, 4, 2, 0.0).double()
    torchs = torch.nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True).double()
    with torch.no_grad():
        for layer, (ahead, back) in enumerate(zip(ours.forward_layers, ours.backward_layers, strict=True)):
            for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                getattr(torchs, f"{part}_l{layer}").copy_(getattr(ahead, f"{part}_l0"))
                getattr(torchs, f"{part}_l{layer}_reverse").copy_(getattr(back, f"{part}_l0"))
    values, lengths = torch.randn(3, 6, 3, dtype=torch.double), torch.tensor([6, 1, 4])
    packed = torch.nn.utils.rnn.pack_padded_sequence(values, lengths, batch_first=True, enforce_sorted=False)
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(torchs(packed)[0], batch_first=True)
    actual = ours(values, lengths)
    for row, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(actual[row, :length], expected[row, :length])


@pytest.mark.parametrize(("kept", "expected"), [(9, [4, 1]), (2, [2, 2, 1]), (0, [1] * 5)])
def test_where_memory_is_short_fewer_labels_are_computed_at_once(monkeypatch, kept, expected):
    sizes = []

    def attend(plan, attention, scoring, keep):
        batch, labels, words = scoring.shape()
        sizes.append(labels)
        return scoring.tails.new_zeros(batch, labels, words, words), None

    monkeypatch.setattr(ACCELERATION, "attend_inside", attend)
    monkeypatch.setattr(full_tensors, "uses_kernels", lambda _: True)
    monkeypatch.setattr(full_tensors, "_labels_at_once", lambda *_: 4)
    attention, scoring = (make_factor((2, 3, 5, 4), "full", seed) for seed in (0, 1))
    of_label = 5 * 2 * scoring.width**2 * scoring.insides.element_size()  # of five words
    monkeypatch.setattr(full_tensors, "free_bytes", lambda _: kept * of_label / full_tensors.KEPT_SHARE)
    lengths = torch.tensor([3, 2])
    scores = triaffine_ops.span_scores(attention, scoring, lengths).scores
    assert (sizes, scores.shape[1]) == (expected, 5)
    for labels, is_stored in full_tensors.label_chunks(attention, scoring, plan_blocks(lengths, 3, None, None, 1)):
        assert is_stored == (labels.stop <= kept)
