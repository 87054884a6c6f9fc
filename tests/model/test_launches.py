"""The number of operations that a GPU would launch, on the meta device; it is never waited for."""

import contextlib
from collections.abc import Iterator, Sequence
from unittest import mock

import pytest
import torch
import transformers.masking_utils
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from modeling_triaffine import TriaffineConfig, TriaffineForNestedNER
from modeling_triaffine.acceleration import span_stage
from modeling_triaffine.installed_models import installed_models
from modeling_triaffine.model.decoding_triaffine import CopiedScores

GENIA = installed_models()["genia"]  # MiniLM; rank 64, characters, two layers of LSTM, mixed layers
BATCH, SUBWORDS, WORDS, CHARACTERS = 32, 42, 30, 16

FREE = frozenset(  # what moves no numbers: views of memory, and memory that is not yet written
    "view _unsafe_view t transpose permute expand slice select unsqueeze squeeze as_strided detach alias split"  # noqa: SIM905
    " split_with_sizes unbind unfold reshape empty empty_like empty_strided new_empty _reshape_alias resize_ lift_fresh"
    " new_empty_strided scalar_tensor movedim unflatten flatten".split()
)


class Launches(TorchDispatchMode):
    """Counts the operations inside the block that are no views, by name; refuses float64, as Apple's GPUs do."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function._schema.name.split("::")[1]
        if name not in FREE:
            self.names.append(name)
        if (
            name in ("copy_", "_to_copy")
            and args[-1].is_meta
            and (kwargs or {}).get("device", args[0].device).type == "cpu"
        ):
            return args[0]  # the meta device has no numbers to copy
        result = function(*args, **(kwargs or {}))
        assert getattr(result, "dtype", None) != torch.float64
        return result


class _OneLaunch(torch.autograd.Function):
    """One kernel in the forward pass, `make`; in the backward pass one for each of the first `counted` gradients."""

    @staticmethod
    def forward(ctx, make, counted, *parts):
        ctx.counted = counted
        ctx.save_for_backward(*parts)
        return make(*parts)

    @staticmethod
    def backward(ctx, gradient):
        parts, counted = ctx.saved_tensors, ctx.counted
        return None, None, *map(torch.zeros_like, parts[:counted]), *map(torch.empty_like, parts[counted:])


def _span_stage(plan: object, attention: Sequence[Tensor], scoring: Sequence[Tensor]) -> Tensor:
    def make(heads: Tensor, *_: Tensor) -> Tensor:
        batch, labels, words, _ = heads.shape
        return heads.new_zeros(batch, labels, words, words, dtype=torch.float32)

    parts = *attention, *scoring
    return _OneLaunch.apply(make, len(parts), *parts)


def _attend(query: Tensor, key: Tensor, value: Tensor, **options: object) -> Tensor:
    return _OneLaunch.apply(lambda query, *_: torch.zeros_like(query), 3, query, key, value)


def _read(lstm: torch.nn.LSTM, values: Tensor) -> tuple[Tensor, None]:
    """A layer of cuDNN's LSTM in one direction, which is one call in each pass."""

    def make(values: Tensor, *_: Tensor) -> Tensor:
        return values.new_zeros(*values.shape[:-1], lstm.hidden_size)

    return _OneLaunch.apply(make, 1, values, *lstm.parameters()), None


@contextlib.contextmanager
def as_on_cuda() -> Iterator[None]:
    """Tensors on the meta device take the way of those on CUDA, whose kernels count one operation each."""
    is_enabled, enter = torch.is_autocast_enabled, torch.autocast

    def autocast(device, *arguments, **options):
        return contextlib.nullcontext() if device == "meta" else enter(device, *arguments, **options)

    with (
        mock.patch.object(span_stage, "uses_kernels", return_value=True),
        mock.patch.object(span_stage, "attend_by_kernels", _span_stage),
        mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", _attend),
        mock.patch.object(torch.nn.LSTM, "forward", _read),
        # transformers waits for whether a batch is padded, but not while a graph is captured.
        mock.patch.object(transformers.masking_utils, "is_tracing", return_value=True),
        mock.patch.object(torch, "is_autocast_enabled", lambda device=None: device != "meta" and is_enabled()),
        mock.patch.object(torch, "autocast", autocast),
    ):
        yield


def make_batch(**more):
    sizes = dict.fromkeys(("input_ids", "attention_mask", "token_type_ids", "word_index"), (BATCH, SUBWORDS))
    sizes |= {"num_words": (BATCH,), "char_ids": (BATCH, WORDS, CHARACTERS), "packed_words": (BATCH * WORDS,), **more}
    return {name: torch.zeros(size, dtype=torch.long, device="meta") for name, size in sizes.items()}


@pytest.fixture
def model():
    with torch.device("meta"):
        return TriaffineForNestedNER(TriaffineConfig.from_pretrained(GENIA))


def test_prediction_waits_for_nothing_but_one_copy(model):
    model.eval().bfloat16()
    with as_on_cuda(), torch.no_grad(), Launches() as seen:
        output = model(**make_batch(), max_words=WORDS)
        count = len(seen.names)
        CopiedScores(output)
    assert count <= 320
    assert seen.names[count:].count("copy_") == 1


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_step_of_training_waits_for_nothing(model, smoothing):
    model.head.config.boundary_smoothing = smoothing
    with as_on_cuda():
        model.train()(**make_batch(labels=(BATCH, WORDS, WORDS))).loss.backward()


def test_launches_of_the_head(model):
    with torch.device("meta"):
        hidden, lengths = torch.randn(BATCH, WORDS, 384), torch.zeros(BATCH, dtype=torch.long)
        labels = torch.zeros(BATCH, WORDS, WORDS, dtype=torch.long)
    with as_on_cuda(), Launches() as step:
        model.head(hidden.requires_grad_(), lengths, labels).loss.backward()  # with boundary smoothing
    with as_on_cuda(), torch.no_grad(), Launches() as prediction:
        model.head.eval()(hidden, lengths)
    assert len(step.names) <= 310
    assert len(prediction.names) <= 110
