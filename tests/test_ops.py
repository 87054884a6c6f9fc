"""Tensor functions: blocks against the whole cube, values and gradients, on odd sizes; selection; masks; pooling."""

import pytest
import torch

from modeling_triaffine.triaffine_ops import (
    AdditiveFactor,
    TriaffineFactor,
    candidate_attention,
    inside_attention,
    masked_softmax,
    select_candidates,
    span_loss,
    span_mask,
    span_scores,
    span_scores_reference,
    triaffine_cube,
    triaffine_cube_reference,
    triaffine_pairs,
    triaffine_pairs_reference,
)
from modeling_triaffine.words_triaffine import BiLSTM, pool_subwords

SIZES = [(1, 1, 1), (2, 7, 3), (1, 63, 1), (3, 10, 2)]


def make_factors(batch, words, labels, kind, seed=0):
    torch.manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, dtype=torch.double, requires_grad=True)

    if kind == "additive":
        factor = AdditiveFactor(draw(batch, words, labels), draw(batch, words, labels), draw(batch, words, labels))
    else:
        weight = draw(labels, 4, 5, 5)
        if kind == "rank":
            weight = draw(labels, 5, 3), draw(labels, 4, 3), draw(labels, 5, 3)
        factor = TriaffineFactor(draw(batch, words, 5), draw(batch, words, 4), draw(batch, words, 5), weight)
    return factor


def leaves(factor):
    return [leaf for part in factor for leaf in (part if isinstance(part, tuple) else (part,))]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(
    "kinds", [("full", "full"), ("rank", "rank"), ("full", "additive"), ("additive", "rank")], ids=str
)
@pytest.mark.parametrize("block", [1, 500], ids=["rows", "blocks"])
def test_blocks_agree_with_the_whole_cube(sizes, kinds, block):
    attention, scoring = (make_factors(*sizes, kind, seed) for seed, kind in enumerate(kinds))
    inputs = [*leaves(attention), *leaves(scoring)]
    spans = span_mask(torch.full((sizes[0],), sizes[1]), sizes[1]).unsqueeze(1)

    def run(scores):
        scores = scores * spans
        gradients = torch.autograd.grad((scores * torch.arange(scores.numel()).view_as(scores).cos()).sum(), inputs)
        return scores, gradients

    expected, expected_gradients = run(span_scores_reference(attention, scoring, sizes[1]))
    actual, gradients = run(span_scores(attention, scoring, sizes[1], block_numbers=block * sizes[0] * sizes[2]))
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)
    for one, other in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("width", [1, 3, 10, 20])
def test_narrow_spans_are_the_same_in_blocks(width):
    attention, scoring = make_factors(2, 10, 3, "rank"), make_factors(2, 10, 3, "full", 1)
    spans = span_mask(torch.tensor([10, 10]), 10, width).unsqueeze(1)
    narrow = span_scores(attention, scoring, 10, max_width=width, block_numbers=300)
    torch.testing.assert_close(narrow * spans, span_scores_reference(attention, scoring, 10) * spans)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("kind", ["full", "rank"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.double, 1e-10), (torch.float, 1e-5), (torch.bfloat16, 0.05)])
def test_triaffine_is_its_definition(sizes, kind, dtype, tolerance):
    """Values and gradients; in half precision against the float64 reference of the same inputs."""
    factor = make_factors(*sizes, kind)
    related = torch.randn(sizes[0], sizes[2], 5, 4, dtype=torch.double, requires_grad=True)
    leaf_tensors = [*leaves(factor), related]

    def results(cube, pairs, convert):
        heads, insides, tails = (convert(part) for part in factor[:3])
        weight = tuple(map(convert, factor.weight)) if kind == "rank" else convert(factor.weight)
        made = [cube(heads, insides, tails, weight), pairs(heads, convert(related), tails, weight)]
        total = sum((one.double() * torch.arange(one.numel()).view_as(one).cos()).sum() for one in made)
        return made, torch.autograd.grad(total, leaf_tensors)

    def scale(value):
        return tolerance * max(1.0, value.abs().max().item())

    made, gradients = results(triaffine_cube, triaffine_pairs, lambda value: value.to(dtype))
    expected, expected_gradients = results(
        triaffine_cube_reference, triaffine_pairs_reference, lambda value: value.to(dtype).double()
    )
    for one, other in zip([*made, *gradients], [*expected, *expected_gradients], strict=True):
        torch.testing.assert_close(one.double(), other.double(), rtol=tolerance, atol=scale(other))


@pytest.mark.parametrize("kind", ["full", "rank", "additive"])
def test_attention_of_candidates_is_that_of_the_cube(kind):
    factor = make_factors(2, 6, 3, kind)
    everything = slice(0, 6)
    cube = inside_attention(factor, everything, everything)
    candidates = torch.tensor([[[0, 0], [1, 4], [5, 5]], [[0, 5], [2, 3], [0, 0]]])
    rows = candidate_attention(factor, candidates, 6)
    for sentence in range(2):
        for row, (i, j) in enumerate(candidates[sentence].tolist()):
            torch.testing.assert_close(rows[sentence, :, row], cube[sentence, :, i, j])
            torch.testing.assert_close(rows[sentence, :, row].sum(-1), torch.ones(3, dtype=torch.double))
            assert (rows[sentence, :, row, :i] == 0).all()
            assert (rows[sentence, :, row, j + 1 :] == 0).all()


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


def test_loss_ignores_sentences_without_spans():
    logits, labels = torch.randn(2, 3, 4), torch.tensor([[0, 1, -100], [-100, -100, -100]])
    mask = torch.ones(2, 3, dtype=torch.bool)
    alone = span_loss(logits[:1], labels[:1], mask[:1], "sentence")
    torch.testing.assert_close(span_loss(logits, labels, mask, "sentence"), alone)
    assert span_loss(logits[1:], labels[1:], mask[1:], "sentence") == 0


@pytest.mark.parametrize(
    ("how", "expected"),
    [("max", [[3.0, 5.0], [0.0, 0.0], [7.0, 8.0]]), ("first", [[1.0, 5.0], [0.0, 0.0], [7.0, 8.0]])],
)
def test_pooling(how, expected):
    states = torch.tensor([[[9.0, 9.0], [1.0, 5.0], [3.0, 2.0], [7.0, 8.0], [9.0, 9.0]]])
    pooled = pool_subwords(states, torch.tensor([[-1, 0, 0, 2, -1]]), 3, how)
    assert pooled.tolist() == [expected]
    mean = pool_subwords(states, torch.tensor([[-1, 0, 0, 2, -1]]), 3, "mean")
    assert mean.tolist() == [[[2.0, 3.5], [0.0, 0.0], [7.0, 8.0]]]


def test_first_subword_of_a_word_that_is_spread_over_windows():
    index = torch.tensor([[-1, 0, 1, 1, -1, -1, 1, 1, 2, -1]])
    states = torch.arange(10.0).view(1, 10, 1)
    assert pool_subwords(states, index, 3, "first").flatten().tolist() == [1, 2, 8]


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
