"""p_ij = Σ_k softmax_k(s_ijk) · o_ijk over the inside words i ≤ k ≤ j as Triton kernels: the cube is never in memory.

For a fixed head word i this is attention of queries c_j to keys, whose "values" o_ijk are themselves products of
queries and keys. As in flash attention, the kernels iterate over tiles [tail words, inside words] with a running
softmax, and save p and the log-sum-exp of each span; backward recomputes the tiles. With α the softmax, g = ∂L/∂p:

    ∂L/∂o = α · g        ∂L/∂s = α · g · (o − p)

Every number of a gradient belongs to one program, which adds its parts in a fixed order: without atomics, results are
deterministic. Blocks of words without a triple i ≤ k ≤ j are skipped.

Axes: g group (a sentence and a label), i head word, j tail word, k inside word, w contracted width. The entry point is
`triton_span_scores`. Without Triton the module can still be imported, see [`triton_is_available`].
"""
# ruff: noqa: N803, N806 — in Triton's kernels, compile-time constants are capitalized.

# The kernels' annotations name Triton, which may be missing.
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None


# Tail and inside words of a tile. Sentences have about 30 words: larger tiles would be mostly masked. A tile of scores
# takes 8 float32 registers in each of 128 threads, so that s and o fit beside a gradient's running sum.
BLOCK = 32
# Bytes of a tile's row: of the operands of scores, which are read in pieces of w; and of the columns w whose gradient
# one program keeps in registers. An operand then takes 4 or 8 KB of shared memory, and two running sums 64 registers
# per thread: compiled for compute capability 8.0, no kernel needs over 32 KB at any w, and hardly a register spills.
SCORE_BYTES, GRADIENT_BYTES = 128, 256


def triton_is_available() -> bool:
    """True if the kernels can run: on CUDA tensors; on the CPU only in Triton's interpreter."""
    return triton is not None


def _jit(function: Callable[..., None]) -> Any:
    """`triton.jit`, without a variant of the kernel for each of the lengths 1, 16, 32, …"""
    return triton.jit(function, do_not_specialize=["num_words"]) if triton_is_available() else function


class ProductFactors(NamedTuple):
    """s_ijk = Σ_w a_iw · b_kw · c_jw: heads a, insides b, tails c, each [G, N, w] (low rank)."""

    heads: Tensor
    insides: Tensor
    tails: Tensor


class KeyFactors(NamedTuple):
    """s_ijk = Σ_w U_ikw · c_jw: keys U [G, N, N, w] with axes gikw, tails c [G, N, w] (full tensors)."""

    keys: Tensor
    tails: Tensor


Factors = ProductFactors | KeyFactors


def triton_span_scores(attention: Factors, scoring: Factors) -> Tensor:
    """p_ij of every group without its label bias: [G, N, N] in float32 or float64, 0 where i > j. Differentiable once.

    attention, scoring: the factors of s and of o, of the same G and N; w may differ. Tensors may have any strides;
    `keys` and `insides` are not copied, and `keys` are not used at k < i. Softmax and sums are computed in float32, or
    float64 if a factor is; products in each factor's own type, of float32 by
    `torch.backends.cuda.matmul.fp32_precision`.
    """
    return _SpanScores.apply(type(attention), type(scoring), *attention, *scoring)


class _SpanScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, attention_type: type[Factors], scoring_type: type[Factors], *tensors: Tensor) -> Tensor:
        size = len(attention_type._fields)
        attention, scoring = _dense(attention_type(*tensors[:size])), _dense(scoring_type(*tensors[size:]))
        groups, num_words, _ = attention.tails.shape
        dtype = torch.promote_types(torch.promote_types(attention.tails.dtype, scoring.tails.dtype), torch.float32)
        p = attention.tails.new_empty(groups, num_words, num_words, dtype=dtype)
        log_sums = torch.empty_like(p)
        with torch.cuda.device_of(p):
            _forward_kernel[(groups * num_words, triton.cdiv(num_words, BLOCK))](
                p, log_sums, num_words, *_arguments(attention), *_arguments(scoring), **_tiles(attention, scoring)
            )
        ctx.types = attention_type, scoring_type
        ctx.save_for_backward(p, log_sums, *attention, *scoring)
        return p

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        p, log_sums, *tensors = ctx.saved_tensors
        size, needed = len(ctx.types[0]._fields), ctx.needs_input_grad[2:]
        attention, scoring = ctx.types[0](*tensors[:size]), ctx.types[1](*tensors[size:])
        saved = gradient.contiguous(), p, log_sums
        with torch.cuda.device_of(p):
            for_attention = _gradients(saved, attention, scoring, True, needed[:size])
            for_scoring = _gradients(saved, scoring, attention, False, needed[size:])
        return None, None, *for_attention, *for_scoring


def _gradients(
    saved: Sequence[Tensor], own: Factors, other: Factors, of_attention: bool, needed: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    """Gradients of the tensors of `own`, the factors of s if `of_attention`, else of o; `other` is the other one."""
    groups, num_words, width = own.tails.shape
    blocks = triton.cdiv(num_words, BLOCK)
    tiles = _tiles(own, other)
    tiles["BLOCK_COLUMNS"] = min(_tile_width(width), GRADIENT_BYTES // own.tails.element_size())
    grid = (groups, blocks, triton.cdiv(width, tiles["BLOCK_COLUMNS"]))
    arguments = (*saved, num_words, *_arguments(own), *_arguments(other), of_attention)
    for_others: list[Tensor | None] = [None] * (len(own) - 1)
    for_tails = None
    if any(needed[:-1]):
        if isinstance(own, ProductFactors):
            for_insides = torch.empty_like(own.insides, memory_format=torch.contiguous_format)
            # A head word's gradient is the sum of one part from each block of inside words.
            parts = saved[0].new_zeros(groups, blocks, num_words, width)
            _insides_kernel[grid](for_insides, parts, *arguments, **tiles)
            for_others = [parts.sum(1).to(own.heads.dtype), for_insides]
        else:
            # Blocks without any k ≥ i are skipped, and stay 0.
            for_keys = torch.zeros_like(own.keys, memory_format=torch.contiguous_format)
            _insides_kernel[grid](for_keys, for_keys, *arguments, **tiles)
            for_others = [for_keys]
    if needed[-1]:
        for_tails = torch.empty_like(own.tails)
        _tails_kernel[grid](for_tails, *arguments, **tiles)
    return *for_others, for_tails


def _dense(factors: Factors) -> Factors:
    """Makes the small tensors contiguous; the large ones, keys and insides, keep their strides."""
    if isinstance(factors, ProductFactors):
        return ProductFactors(factors.heads.contiguous(), factors.insides, factors.tails.contiguous())
    return KeyFactors(factors.keys, factors.tails.contiguous())


def _arguments(factors: Factors) -> tuple[Any, ...]:
    """A factor's arguments to the kernels; in product form the keys are b_k for every head word, hence stride 0.

    Only the product form has heads: the kernels do not read what stands in their place.
    """
    width = factors.tails.shape[-1]
    if isinstance(factors, ProductFactors):
        group, inside, column = factors.insides.stride()
        return factors.insides, factors.heads, factors.tails, group, 0, inside, column, width, True
    return factors.keys, factors.keys, factors.tails, *factors.keys.stride(), width, False


def _tiles(*factors: Factors) -> dict[str, Any]:
    """Tile sizes and precision of float32 products; equal for all lengths, so that a kernel is compiled once."""
    widest = max(of_one.tails.shape[-1] for of_one in factors)
    largest = max(of_one.tails.element_size() for of_one in factors)
    return {
        "BLOCK": BLOCK,
        "BLOCK_WIDTH": min(_tile_width(widest), SCORE_BYTES // largest),
        "PRECISION": "tf32" if torch.backends.cuda.matmul.fp32_precision == "tf32" else "ieee",
        "num_warps": 4,
        "num_stages": 2,
    }


def _tile_width(width: int) -> int:
    """Smallest tile for `width` numbers: a power of two, at least the minimum of `tl.dot`."""
    return max(16, triton.next_power_of_2(width))


# The kernels' arguments are grouped, a line or two for each factor.
# fmt: off


@_jit
def _forward_kernel(
    p_out, log_sums_out, num_words,
    s_keys, s_heads, s_tails, s_group: tl.int64, s_head: tl.int64, s_inside: tl.int64, s_column,
    S_WIDTH: tl.constexpr, S_PRODUCT: tl.constexpr,
    o_keys, o_heads, o_tails, o_group: tl.int64, o_head: tl.int64, o_inside: tl.int64, o_column,
    O_WIDTH: tl.constexpr, O_PRODUCT: tl.constexpr,
    BLOCK: tl.constexpr, BLOCK_WIDTH: tl.constexpr, PRECISION: tl.constexpr,
):
    """p_ij and the log-sum-exp of s_ijk over k. A program has one head word and a block of tail words."""
    SUM: tl.constexpr = p_out.dtype.element_ty
    attention = (s_keys, s_heads, s_tails, s_group, s_head, s_inside, s_column)
    scoring = (o_keys, o_heads, o_tails, o_group, o_head, o_inside, o_column)
    group = (tl.program_id(0) // num_words).to(tl.int64)
    head = tl.program_id(0) % num_words
    first_tail = tl.program_id(1) * BLOCK
    tails = first_tail + tl.arange(0, BLOCK)
    # Below any score, yet finite: a row without spans must not make NaN of inf - inf.
    peak = tl.full([BLOCK], -1e38, SUM)
    total = tl.zeros([BLOCK], SUM)
    weighted = tl.zeros([BLOCK], SUM)
    for first_inside in range(head, min(num_words, first_tail + BLOCK), BLOCK):
        insides = first_inside + tl.arange(0, BLOCK)
        inside = _inside(head, tails, insides, num_words)
        s = _scores(attention, S_WIDTH, S_PRODUCT, group, head, tails, insides, num_words, BLOCK_WIDTH, PRECISION)
        o = _scores(scoring, O_WIDTH, O_PRODUCT, group, head, tails, insides, num_words, BLOCK_WIDTH, PRECISION)
        s = tl.where(inside, s, float("-inf")).to(SUM)
        highest = tl.maximum(peak, tl.max(s, 1))
        weights = tl.exp(s - highest[:, None])
        shrink = tl.exp(peak - highest)
        total = total * shrink + tl.sum(weights, 1)
        weighted = weighted * shrink + tl.sum(weights * tl.where(inside, o, 0.0), 1)
        peak = highest
    is_span = (head <= tails) & (tails < num_words)
    total = tl.where(is_span, total, 1.0)
    places = (group * num_words + head) * num_words + tails
    tl.store(p_out + places, tl.where(is_span, weighted / total, 0.0), mask=tails < num_words)
    tl.store(log_sums_out + places, tl.where(is_span, peak + tl.log(total), 0.0), mask=tails < num_words)


@_jit
def _insides_kernel(
    for_keys, for_heads, upstream, p, log_sums, num_words,
    own_keys, own_heads, own_tails, own_group: tl.int64, own_head: tl.int64, own_inside: tl.int64, own_column,
    OWN_WIDTH: tl.constexpr, OWN_PRODUCT: tl.constexpr,
    other_keys, other_heads, other_tails,
    other_group: tl.int64, other_head: tl.int64, other_inside: tl.int64, other_column,
    OTHER_WIDTH: tl.constexpr, OTHER_PRODUCT: tl.constexpr, OF_ATTENTION: tl.constexpr,
    BLOCK: tl.constexpr, BLOCK_WIDTH: tl.constexpr, BLOCK_COLUMNS: tl.constexpr, PRECISION: tl.constexpr,
):
    """Gradients of keys, or of insides and heads. A program has a block of inside words and of columns w.

    All come from m_kw = Σ_j ∂L/∂s_ijk · c_jw of a head word i: it is the gradient of U_ikw; a_iw · m_kw summed over i
    is that of b_kw; and b_kw · m_kw summed over k is that of a_iw, here the part of the block's k.
    """
    SUM: tl.constexpr = p.dtype.element_ty
    saved = (upstream, p, log_sums)
    own = (own_keys, own_heads, own_tails, own_group, own_head, own_inside, own_column)
    other = (other_keys, other_heads, other_tails, other_group, other_head, other_inside, other_column)
    group = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    insides = block * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(2) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS)
    real = (insides < num_words)[:, None] & (columns < OWN_WIDTH)[None, :]
    inside_sum = tl.zeros([BLOCK, BLOCK_COLUMNS], SUM)
    for head in range(0, min(num_words, block * BLOCK + BLOCK)):
        key_sum = tl.zeros([BLOCK, BLOCK_COLUMNS], SUM)
        for first_tail in range(block * BLOCK, num_words, BLOCK):
            tails = first_tail + tl.arange(0, BLOCK)
            for_scores = _score_gradient(
                saved, own, OWN_WIDTH, OWN_PRODUCT, other, OTHER_WIDTH, OTHER_PRODUCT, OF_ATTENTION,
                group, head, tails, insides, num_words, BLOCK_WIDTH, PRECISION,
            )
            tail_tile = _word_tile(own_tails, group, tails, columns, num_words, OWN_WIDTH)
            key_sum += _dot(tl.trans(for_scores).to(tail_tile.dtype), tail_tile, PRECISION)
        if OWN_PRODUCT:
            head_row = _head_row(own_heads, group, head, columns, num_words, OWN_WIDTH).to(SUM)
            inside_tile = _key_tile(own, OWN_WIDTH, False, group, head, insides, columns, num_words).to(SUM)
            inside_sum += head_row[None, :] * key_sum
            part = (group * tl.num_programs(1) + block) * num_words + head
            head_sum = tl.sum(inside_tile * key_sum, 0)
            tl.store(for_heads + part * OWN_WIDTH + columns, head_sum, mask=columns < OWN_WIDTH)
        else:
            places = (group * num_words + head) * num_words + insides
            tl.store(for_keys + places[:, None] * OWN_WIDTH + columns[None, :], key_sum, mask=real)
    if OWN_PRODUCT:
        places = group * num_words + insides
        tl.store(for_keys + places[:, None] * OWN_WIDTH + columns[None, :], inside_sum, mask=real)


@_jit
def _tails_kernel(
    for_tails, upstream, p, log_sums, num_words,
    own_keys, own_heads, own_tails, own_group: tl.int64, own_head: tl.int64, own_inside: tl.int64, own_column,
    OWN_WIDTH: tl.constexpr, OWN_PRODUCT: tl.constexpr,
    other_keys, other_heads, other_tails,
    other_group: tl.int64, other_head: tl.int64, other_inside: tl.int64, other_column,
    OTHER_WIDTH: tl.constexpr, OTHER_PRODUCT: tl.constexpr, OF_ATTENTION: tl.constexpr,
    BLOCK: tl.constexpr, BLOCK_WIDTH: tl.constexpr, BLOCK_COLUMNS: tl.constexpr, PRECISION: tl.constexpr,
):
    """Gradient of the tails, Σ_ik ∂L/∂s_ijk · U_ikw. A program has a block of tail words and of columns w."""
    saved = (upstream, p, log_sums)
    own = (own_keys, own_heads, own_tails, own_group, own_head, own_inside, own_column)
    other = (other_keys, other_heads, other_tails, other_group, other_head, other_inside, other_column)
    group = tl.program_id(0).to(tl.int64)
    first_tail = tl.program_id(1) * BLOCK
    tails = first_tail + tl.arange(0, BLOCK)
    columns = tl.program_id(2) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS)
    last = min(num_words, first_tail + BLOCK)
    tail_sum = tl.zeros([BLOCK, BLOCK_COLUMNS], p.dtype.element_ty)
    for head in range(0, last):
        for first_inside in range(head, last, BLOCK):
            insides = first_inside + tl.arange(0, BLOCK)
            for_scores = _score_gradient(
                saved, own, OWN_WIDTH, OWN_PRODUCT, other, OTHER_WIDTH, OTHER_PRODUCT, OF_ATTENTION,
                group, head, tails, insides, num_words, BLOCK_WIDTH, PRECISION,
            )
            key_tile = _key_tile(own, OWN_WIDTH, OWN_PRODUCT, group, head, insides, columns, num_words)
            tail_sum += _dot(for_scores.to(key_tile.dtype), key_tile, PRECISION)
    places = (group * num_words + tails)[:, None] * OWN_WIDTH + columns[None, :]
    tl.store(for_tails + places, tail_sum, mask=(tails < num_words)[:, None] & (columns < OWN_WIDTH)[None, :])


@_jit
def _score_gradient(
    saved, own, OWN_WIDTH: tl.constexpr, OWN_PRODUCT: tl.constexpr,
    other, OTHER_WIDTH: tl.constexpr, OTHER_PRODUCT: tl.constexpr, OF_ATTENTION: tl.constexpr,
    group, head, tails, insides, num_words, BLOCK_WIDTH: tl.constexpr, PRECISION: tl.constexpr,
):
    """∂L/∂s_ijk if `own` is the attention, else ∂L/∂o_ijk, of one head word: [tails, insides], 0 if k is not inside."""
    upstream, p, log_sums = saved
    inside = _inside(head, tails, insides, num_words)
    places = (group * num_words + head) * num_words + tails
    is_span = (head <= tails) & (tails < num_words)
    gradient = tl.load(upstream + places, mask=is_span, other=0.0)
    log_sum = tl.load(log_sums + places, mask=is_span, other=0.0)
    if OF_ATTENTION:
        s = _scores(own, OWN_WIDTH, OWN_PRODUCT, group, head, tails, insides, num_words, BLOCK_WIDTH, PRECISION)
        o = _scores(other, OTHER_WIDTH, OTHER_PRODUCT, group, head, tails, insides, num_words, BLOCK_WIDTH, PRECISION)
        mean = tl.load(p + places, mask=is_span, other=0.0)
        factor = gradient[:, None] * (o - mean[:, None])
    else:
        s = _scores(other, OTHER_WIDTH, OTHER_PRODUCT, group, head, tails, insides, num_words, BLOCK_WIDTH, PRECISION)
        factor = gradient[:, None]
    return tl.where(inside, tl.exp(tl.where(inside, s - log_sum[:, None], 0.0)) * factor, 0.0)


@_jit
def _scores(
    factor, WIDTH: tl.constexpr, PRODUCT: tl.constexpr, group, head, tails, insides, num_words,
    BLOCK_WIDTH: tl.constexpr, PRECISION: tl.constexpr,
):
    """s_ijk of one head word: [tails, insides]. In pieces of w, so that any width fits into shared memory."""
    keys, _, tail_vectors, _, _, _, _ = factor
    SUM: tl.constexpr = tl.float64 if keys.dtype.element_ty == tl.float64 else tl.float32
    scores = tl.zeros([tails.shape[0], insides.shape[0]], SUM)
    for first in range(0, WIDTH, BLOCK_WIDTH):
        columns = first + tl.arange(0, BLOCK_WIDTH)
        tail_tile = _word_tile(tail_vectors, group, tails, columns, num_words, WIDTH)
        key_tile = _key_tile(factor, WIDTH, PRODUCT, group, head, insides, columns, num_words)
        scores += _dot(tail_tile, tl.trans(key_tile), PRECISION)
    return scores


@_jit
def _key_tile(factor, WIDTH: tl.constexpr, PRODUCT: tl.constexpr, group, head, insides, columns, num_words):
    """U_ikw of one head word, in product form a_iw · b_kw: [insides, columns], 0 outside the tensor."""
    keys, heads, _, group_stride, head_stride, inside_stride, column_stride = factor
    start = keys + group * group_stride + head * head_stride
    places = insides[:, None] * inside_stride + columns.to(tl.int64)[None, :] * column_stride
    tile = tl.load(start + places, mask=(insides < num_words)[:, None] & (columns < WIDTH)[None, :], other=0.0)
    if PRODUCT:
        tile = _times(tile, _head_row(heads, group, head, columns, num_words, WIDTH)[None, :])
    return tile


@_jit
def _word_tile(vectors, group, words, columns, num_words, WIDTH: tl.constexpr):
    """Rows `words` of contiguous vectors [G, N, w]: [words, columns], 0 outside the tensor."""
    places = (group * num_words + words)[:, None] * WIDTH + columns[None, :]
    return tl.load(vectors + places, mask=(words < num_words)[:, None] & (columns < WIDTH)[None, :], other=0.0)


@_jit
def _head_row(vectors, group, head, columns, num_words, WIDTH: tl.constexpr):
    """Row `head` of contiguous vectors [G, N, w]: [columns], 0 outside the tensor."""
    return tl.load(vectors + (group * num_words + head) * WIDTH + columns, mask=columns < WIDTH, other=0.0)


@_jit
def _inside(head, tails, insides, num_words):
    """True where i ≤ k ≤ j < N: [tails, insides]."""
    return (insides >= head)[None, :] & (insides[None, :] <= tails[:, None]) & (tails < num_words)[:, None]


@_jit
def _times(left, right):
    """Elementwise product, rounded to the operands' type once."""
    SUM: tl.constexpr = tl.float64 if left.dtype == tl.float64 else tl.float32
    return (left.to(SUM) * right.to(SUM)).to(left.dtype)


@_jit
def _dot(left, right, PRECISION: tl.constexpr):
    """Matrix product with sums in at least float32."""
    SUM: tl.constexpr = tl.float64 if left.dtype == tl.float64 else tl.float32
    return tl.dot(left, right, input_precision=PRECISION, out_dtype=SUM)
