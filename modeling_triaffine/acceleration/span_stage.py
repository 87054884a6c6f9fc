"""The span stage by the Triton kernels: its cubes of scores as the kernels' factors, and whether the kernels work."""

import functools
import warnings

import torch
from torch import Tensor

from ..model.triaffine_blocks import Cube, FullCube, Plan, ProductCube, attend_inside, plan_blocks
from .kernels import Factors, KeyFactors, ProductFactors, triton_is_available, triton_span_scores


def attend_by_kernels(plan: Plan, attention: Cube, scoring: Cube) -> Tensor:
    """p [B, R, N, N] of [`attend_inside`], computed by the Triton kernels."""
    p = triton_span_scores(kernel_factors(plan, attention), kernel_factors(plan, scoring))
    return p.unflatten(0, (plan.batch, -1))


def kernel_factors(plan: Plan, cube: Cube) -> Factors:
    """The scores of a cube in the kernels' form."""
    if isinstance(cube, FullCube):
        return _keys(plan, cube)
    return ProductFactors(*(part.flatten(0, 1) for part in cube))


def _keys(plan: Plan, cube: FullCube) -> KeyFactors:
    """T contracted with the heads, for each (head, inside) word of each sentence and label."""
    labels, sentences, words = cube.shape()[1], plan.packed // plan.num_words, plan.packed % plan.num_words
    by_head = (cube.heads[sentences] @ cube.contracted.flatten(2)).unflatten(2, (labels, -1))  # [n, I, R, e]
    by_head = by_head.permute(2, 0, 1, 3).flatten(0, 1)
    groups = sentences * labels + torch.arange(labels, device=sentences.device).unsqueeze(1)  # [R, n]
    rows = (groups * plan.num_words + words).flatten()
    size = plan.batch * labels * plan.num_words
    keys = by_head.new_zeros(size, *by_head.shape[1:]).index_copy(0, rows, by_head)
    keys = keys.unflatten(0, (plan.batch * labels, -1)).transpose(1, 2)
    tails = cube.tails.unsqueeze(1).expand(-1, labels, -1, -1).flatten(0, 1)
    return KeyFactors(keys, tails)


@functools.cache
def kernels_work(device: torch.device) -> bool:
    """True if the Triton kernels agree with the blocks on this device; tried once, on a small problem."""
    if device.type != "cuda" or not triton_is_available():
        return False
    try:
        try_kernels(device)
    except Exception as error:  # Triton's compiler and the driver have errors of their own
        warnings.warn(f"The Triton kernels do not work on {device} and are not used: {error}", stacklevel=2)
        return False
    return True


def try_kernels(device: torch.device) -> None:
    """Compares values and gradients of kernels and blocks; AssertionError where they differ.

    There are more words, and wider factors, than the kernels take at once; of full tensors one label, as blocks take
    it. Scores are near 1, as softmax in TF32 needs.
    """
    words, width = 34, 40
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).mul(0.5).to(device).requires_grad_()

    # The first call may come from a prediction.
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast(device.type, enabled=False):
        plan = plan_blocks(torch.full((1,), words, device=device), words, None, None, 1)
        full = [FullCube(draw(1, words, width), draw(words, width, 1, width), draw(1, words, width)) for _ in range(2)]
        products = [ProductCube(*(draw(1, 2, words, width) for _ in range(3))) for _ in range(2)]
        for attention, scoring in (full, products):
            results = []
            for p in (attend_by_kernels(plan, attention, scoring), attend_inside(plan, attention, scoring, False)[0]):
                gradients = torch.autograd.grad(p.triu().square().sum(), [*attention, *scoring])
                results.append([p.triu(), *gradients])
            for by_kernels, by_blocks in zip(*results, strict=True):
                torch.testing.assert_close(by_kernels, by_blocks, rtol=0.01, atol=0.01 * by_blocks.abs().max().item())
