"""Triton's kernels against the dense cube: values and gradients in Triton's interpreter, and what a GPU would be given.

Triton decides between compiler and interpreter when functions are defined, its own library's when it is imported, which
another test of this process may have done long ago. So the interpreter runs in a process of its own, started with
TRITON_INTERPRET=1, and checks are sent there; this process compiles. Neither disturbs the other, nor other tests.

The interpreter takes seconds for each call: `make test` has each property once; the other types, forms and sizes, and
the compilation, are nightly.
"""

import importlib.util
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version

import pytest
import torch
from packaging.version import Version
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from modeling_triaffine.acceleration import full_tensors, kernels, span_stage
from modeling_triaffine.acceleration.kernels import KeyFactors, ProductFactors, triton_is_available, triton_span_scores
from modeling_triaffine.model import triaffine_ops
from modeling_triaffine.model.triaffine_blocks import ACCELERATION, pack_words
from tests.model import test_triaffine_ops as test_ops
from tests.model.test_span_head import make_head

nightly = pytest.mark.nightly
# Before 3.7, Triton's interpreter makes numbers of arrays in a way that NumPy 2.4 refuses.
is_interpreted = triton_is_available() and (
    Version(version("triton")) >= Version("3.7") or Version(version("numpy")) < Version("2.4")
)
needs_triton = pytest.mark.skipif(not is_interpreted, reason="needs Triton 3.7, or NumPy before 2.4")
FORMS = [(attention, scoring) for attention in ("product", "keys") for scoring in ("product", "keys")]
# Largest deviation from float64 of the same inputs, as part of the largest number. Products a · b and gradients of
# scores are rounded to the inputs' type before they are multiplied on: half a unit in the 8th bit in bfloat16, in the
# 11th in float16, of parts that may cancel; seen are 1.5 % and 0.07 %.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


@pytest.fixture(scope="module")
def interpreted():
    """Calls a function of this module in a process where Triton interprets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), prepare_interpreter) as pool:
            yield lambda function, *arguments: pool.submit(function, *arguments).result()


def prepare_interpreter():
    """Triton's interpreter stores bfloat16 as integers and `tl.dot` would multiply these: shows it the numbers."""
    import numpy
    import triton.language as tl
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    torch.set_num_threads(1)
    multiply = InterpreterBuilder.create_dot

    def numbers(handle):
        if handle.dtype != tl.bfloat16:
            return handle
        return TensorHandle((handle.data.astype(numpy.uint32) << 16).view(numpy.float32), tl.float32)

    def create_dot(self, left, right, *arguments):
        return multiply(self, numbers(left), numbers(right), *arguments)

    InterpreterBuilder.create_dot = create_dot


def draw(form, groups, words, width, dtype, device="cpu"):
    """Factors of scores of about unit variance; the strided ones have their axes in another order in memory."""

    def normal(*shape):
        return torch.randn(*shape, dtype=torch.float64)

    tails = normal(groups, words, width) / width**0.5
    if form == "product":
        factors = ProductFactors(normal(groups, words, width), normal(groups, words, width), tails)
    elif form == "strided product":
        heads, insides = normal(words, groups, width).transpose(0, 1), normal(width, words).T.expand(groups, -1, -1)
        factors = ProductFactors(heads, insides, tails)
    elif form == "keys":
        factors = KeyFactors(normal(groups, words, words, width), tails)
    else:
        factors = KeyFactors(normal(words, width, groups, words).permute(2, 3, 0, 1), tails)
    return type(factors)(*(part.to(device, dtype).requires_grad_() for part in factors))


def dense_span_scores(attention, scoring):
    """The definition, the whole cube [G, N, N, N] at once."""
    s, o = (
        torch.einsum("giw,gkw,gjw->gijk", *factors)
        if isinstance(factors, ProductFactors)
        else torch.einsum("gikw,gjw->gijk", *factors)
        for factors in (attention, scoring)
    )
    words = torch.arange(s.shape[1], device=s.device)
    inside = (words >= words[:, None, None]) & (words <= words[:, None])
    return (s.masked_fill(~inside, -torch.inf).softmax(-1).where(inside, 0) * o).sum(-1)


def in_double(factors):
    return type(factors)(*(part.detach().double().requires_grad_() for part in factors))


def values_and_gradients(scores, attention, scoring):
    """p and the gradients of all factors, from a gradient of p that is the same at every call, for i > j as well."""
    p = scores(attention, scoring)
    upstream = torch.arange(p.numel(), device=p.device, dtype=p.dtype).cos().view_as(p)
    return [p, *torch.autograd.grad(p, [*attention, *scoring], upstream)]


def check_agreement(attention, scoring, tolerance):
    actual = values_and_gradients(triton_span_scores, attention, scoring)
    expected = values_and_gradients(dense_span_scores, in_double(attention), in_double(scoring))
    assert actual[0].tril(-1).count_nonzero() == 0
    assert [part.dtype for part in actual[1:]] == [part.dtype for part in (*attention, *scoring)]
    for one, other in zip(actual, expected, strict=True):
        largest = max(1.0, other.abs().max().item())
        torch.testing.assert_close(one.double(), other, rtol=0, atol=tolerance * largest)


def check_form(forms, groups, words, widths, dtypes, tolerance, device="cpu"):
    torch.manual_seed(0)
    attention, scoring = (
        draw(form, groups, words, width, dtype, device)
        for form, width, dtype in zip(forms, widths, dtypes, strict=True)
    )
    check_agreement(attention, scoring, tolerance)


DOUBLE, HALF = (torch.float64,) * 2, (torch.bfloat16, torch.float32)
CASES = [
    *((forms, *sizes, DOUBLE) for forms in FORMS for sizes in [(3, 1, (16, 1)), (1, 3, (3, 40))]),
    (("strided product", "strided keys"), 2, 3, (3, 16), DOUBLE),
    (("product", "keys"), 1, 3, (16, 40), HALF),
    (("keys", "product"), 1, 2, (16, 40), HALF),
]
NIGHTLY_CASES = [
    *((forms, 1, 17, (3, 16), DOUBLE) for forms in FORMS),
    (("product", "keys"), 1, kernels.BLOCK + 1, (3, 1), DOUBLE),
    (("strided keys", "strided product"), 2, 3, (3, 16), DOUBLE),
    *((("product", "keys"), 1, 3, (16, 40), (dtype,) * 2) for dtype in TOLERANCE if dtype != torch.float64),
    *((("keys", "product"), 1, 2, (16, 40), (dtype,) * 2) for dtype in TOLERANCE if dtype != torch.float64),
]


@needs_triton
@pytest.mark.parametrize(
    ("forms", "groups", "words", "widths", "dtypes"),
    [*CASES, *(pytest.param(*case, marks=nightly) for case in NIGHTLY_CASES)],
    ids=str,
)
def test_every_form_agrees_with_the_dense_cube(interpreted, forms, groups, words, widths, dtypes):
    """Also with axes in another order in memory, spans longer than a block, and in lower precision."""
    interpreted(check_form, forms, groups, words, widths, dtypes, max(TOLERANCE[dtype] for dtype in dtypes))


def check_rising_scores():
    """The maximum of the softmax rises from block to block."""
    torch.manual_seed(0)
    attention, scoring = draw("keys", 1, 34, 3, torch.float64), draw("product", 1, 34, 3, torch.float64)
    with torch.no_grad():
        attention.tails[..., 0] = 1
        attention.keys[..., 0] += torch.arange(34) / 8
        found, expected = (score(attention, scoring) for score in (triton_span_scores, dense_span_scores))
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def check_extremes(form):
    """Scores of ±10,000 and more: p is a mean of o still, and nothing is infinite or NaN."""
    torch.manual_seed(0)
    attention, scoring = (draw(form, 1, 4, 3, torch.float32) for form in (form, "keys"))
    with torch.no_grad():
        for part in attention[:-1]:
            part *= 1e4 if form == "keys" else 1e2
    p, *gradients = values_and_gradients(triton_span_scores, attention, scoring)
    o = torch.einsum("gikw,gjw->gijk", *scoring).detach()
    assert all(part.isfinite().all() for part in (p, *gradients))
    assert p.tril(-1).count_nonzero() == 0
    assert o.min() - 1e-5 <= p.min()
    assert p.max() <= o.max() + 1e-5


@needs_triton
@pytest.mark.parametrize("form", [pytest.param("product", marks=nightly), "keys"])
def test_extreme_scores(interpreted, form):
    interpreted(check_extremes, form)


def check_outside_is_not_read():
    """The keys where k < i change nothing, not even NaN."""
    torch.manual_seed(0)
    attention, scoring = draw("keys", 1, 3, 3, torch.float64), draw("keys", 1, 3, 3, torch.float64)
    expected = values_and_gradients(triton_span_scores, attention, scoring)
    words = torch.arange(3)
    with torch.no_grad():
        for factors in (attention, scoring):
            factors.keys[:, words[:, None] > words] = torch.nan
    actual = values_and_gradients(triton_span_scores, attention, scoring)
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


class LargestTensor(TorchDispatchMode):
    """Notes the size, in bytes, of the largest tensor that an operation returns."""

    size = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.size = max([self.size, *(leaf.nbytes for leaf in tree_leaves(result) if torch.is_tensor(leaf))])
        return result


def check_largest_tensor_is_p():
    attention, scoring = draw("product", 1, 4, 3, torch.float32), draw("product", 1, 4, 3, torch.float32)
    with LargestTensor() as largest:
        values_and_gradients(triton_span_scores, attention, scoring)
    assert largest.size == 4 * 4 * torch.float32.itemsize


@needs_triton
@pytest.mark.parametrize("check", [check_rising_scores, check_outside_is_not_read, check_largest_tensor_is_p])
def test_in_the_interpreter(interpreted, check):
    interpreted(check)


class Compiler:
    """Stands for Triton's driver: a GPU of compute capability 8.0, for which kernels are compiled but not run."""

    def get_current_target(self):
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 80, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0


@nightly
@needs_triton
@pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
@pytest.mark.skipif(torch.cuda.is_available(), reason="the test on CUDA compiles what it runs")
def test_kernels_compile_for_a_gpu(monkeypatch, tmp_path):
    from triton.runtime import JITFunction, driver

    if not isinstance(kernels._forward_kernel, JITFunction):
        pytest.skip("TRITON_INTERPRET is set: nothing is compiled")
    compiled = {}
    run = JITFunction.run

    def compile_only(kernel, *arguments, **options):
        options["warmup"] = True
        compiled[kernel.__name__] = run(kernel, *arguments, **options)

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(driver, "_active", Compiler())
    monkeypatch.setattr(JITFunction, "run", compile_only)
    attention, scoring = draw("keys", 1, 2, 256, torch.bfloat16), draw("product", 1, 2, 64, torch.bfloat16)
    values_and_gradients(triton_span_scores, attention, scoring)
    assert compiled.keys() == {"_forward_kernel", "_insides_kernel", "_tails_kernel"}
    for kernel in compiled.values():
        assert "mma.sync" in kernel.asm["ptx"]  # on tensor cores
        assert kernel.metadata.shared <= 32 * 1024  # as the module says


@pytest.mark.gpu
@pytest.mark.skipif(not triton_is_available(), reason="needs Triton")
@pytest.mark.parametrize("forms", FORMS, ids="-".join)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(("groups", "words", "widths"), [(3, 17, (40, 3)), (2, 100, (256, 64))], ids=str)
def test_on_cuda(dtype, forms, groups, words, widths):
    check_form(forms, groups, words, widths, (dtype,) * 2, TOLERANCE[dtype], "cuda")
    torch.manual_seed(0)
    attention, scoring = (draw(form, 3, 65, 16, dtype, "cuda") for form in forms)
    first, second = (values_and_gradients(triton_span_scores, attention, scoring) for _ in range(2))
    assert all(map(torch.equal, first, second))


def check_span_stage(kinds):
    """The whole span stage by the kernels against the reference, from factors to p, α and their gradients.

    Full tensors as on CUDA: padded, and two labels at once, which leaves one, unless labels share their attention.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(full_tensors, "_padding", lambda values: -values.shape[-1] % full_tensors.ALIGNMENT)
        patch.setattr(full_tensors, "_labels_at_once", lambda *_: 2)
        patch.setattr(full_tensors, "uses_kernels", lambda device: True)
        patch.setattr(ACCELERATION, "attend_inside", lambda *cubes: (span_stage.attend_by_kernels(*cubes[:3]), None))
        attention, scoring = (test_ops.make_factor((2, 3, 3, 4), kind, seed) for seed, kind in enumerate(kinds))
        lengths = torch.tensor([3, 2])
        actual = test_ops.span_stage(triaffine_ops.span_scores, attention, scoring, lengths)
        expected = test_ops.span_stage(triaffine_ops.span_scores_reference, attention, scoring, lengths)
        test_ops.assert_same(actual, expected, 1e-10)


@needs_triton
@pytest.mark.parametrize(
    "kinds",
    [
        ("full", "additive"),
        pytest.param(("full", "full"), marks=nightly),
        pytest.param(("shared full", "full"), marks=nightly),
        pytest.param(("shared rank", "rank"), marks=nightly),
    ],
    ids=str,
)
def test_span_stage_by_the_kernels(interpreted, kinds):
    interpreted(check_span_stage, kinds)


def check_trial():
    """As it comes about in a prediction in half precision; kernels that are wrong are found out."""
    device = torch.device("cpu")
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        span_stage.try_kernels(device)
        with pytest.MonkeyPatch.context() as patch:
            scores = kernels.triton_span_scores
            patch.setattr(kernels, "triton_span_scores", lambda *factors: 1.1 * scores(*factors))
            with pytest.raises(AssertionError):
                span_stage.try_kernels(device)


@nightly
@needs_triton
def test_kernels_are_tried_before_they_are_used(interpreted):
    interpreted(check_trial)
    assert not span_stage.uses_kernels(torch.device("cpu"))


@pytest.mark.gpu
@pytest.mark.parametrize("rank", [None, 3], ids=["full", "rank3"])
def test_head_never_waits_for_the_device(rank):
    head, hidden, lengths = make_head(triaffine_rank=rank)
    head, hidden, lengths = head.float().cuda(), hidden.float().cuda(), lengths.cuda()
    labels = torch.zeros(*hidden.shape[:2], hidden.shape[1], dtype=torch.long, device="cuda")
    packed = pack_words(lengths.cpu(), hidden.shape[1])[0].cuda()
    head(hidden, lengths, labels, packed).loss.backward()  # tries and compiles the kernels
    torch.cuda.set_sync_debug_mode("error")
    try:
        head(hidden, lengths, labels, packed).loss.backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_without_triton(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    spec = importlib.util.spec_from_file_location("kernels_without_triton", kernels.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert not module.triton_is_available()
