"""Exports a trained model as an ONNX graph from sub-words to scores, for programs without torch.

Parts that torch's exporter cannot translate are replaced in a copy of the model by equivalent ones: modules by
`make_exportable`, functions while `translate` traces the graph. Tokenization and decoding are not part of the graph.
Needs the extra `onnx`.
"""

import copy
import importlib.util
import string
from pathlib import Path
from typing import Any, no_type_check
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import missing_extra
from ..model import span_head_triaffine, triaffine_ops
from ..model.factors_triaffine import TriaffineTensor
from ..model.modeling_triaffine import TriaffineForNestedNER
from ..model.processing_triaffine import TriaffineProcessor
from ..model.triaffine_ops import TriaffineFactor, project

OUTPUTS = ("span_logits", "logits", "candidates", "candidate_mask")
# Larger differences between the scores of graph and model are not rounding errors.
TOLERANCE = 1e-3


def export_onnx(model: TriaffineForNestedNER, processor: TriaffineProcessor, path: Path) -> float:
    """Writes the model to `path` in float32; weights of more than 1.5 GB are in a second file beside it.

    Inputs of the graph, for any number of sentences, words and sub-words (at most `max_subwords`): the output of the
    processor's `pad` with `word_mask` [B, N] (bool, True for words) instead of `num_words` and `packed_words`. Outputs:
    `span_logits` and, with the cross-span stage, `logits`, `candidates`, `candidate_mask`, as those of the model.

    Returns:
        The largest difference between the scores in ONNX Runtime and those of the model, on sentences of other lengths
        than in the export.

    Raises:
        ImportError: the extra `onnx` is not installed.
        ValueError: the model cannot be exported, or the difference is not a rounding error.
    """
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if importlib.util.find_spec(name) is None]
    if missing:
        raise missing_extra(f"Exporting needs {', '.join(missing)}", "onnx")
    pooling = model.config.subword_pooling
    if pooling != "max":
        raise ValueError(
            f'Only models with subword_pooling="max" can be exported to ONNX, and this one has "{pooling}".'
        )
    model = copy.deepcopy(model).float().cpu().eval()
    batch = example_batch(processor, lengths=(13, 1, 9, 13))
    with torch.no_grad():
        expected = model(**batch)
    outputs = [name for name in OUTPUTS if name in expected]
    make_exportable(model)
    encoder = model.encoder.config.model_type
    try:
        program = translate(model, graph_inputs(example_batch(processor, lengths=(7, 5, 6))), outputs)
    except RuntimeError as error:  # of torch.export, and of the translation to ONNX
        reason = str(error).strip().splitlines()[0]
        raise ValueError(
            f"torch cannot export this model, probably because of its encoder ({encoder}): {reason}"
        ) from error
    program.save(path)
    found = run_onnx(path, graph_inputs(batch))
    differences = [np.abs(found[name] - expected[name].numpy()).max() for name in outputs if name.endswith("logits")]
    if not max(differences) <= TOLERANCE:
        raise ValueError(
            f"The scores of the exported graph differ by up to {max(differences):.2g} from those of the model: torch "
            f"mistranslates a part of it, probably of its encoder ({encoder}). This model cannot be exported."
        )
    return float(max(differences))


def example_batch(processor: TriaffineProcessor, lengths: tuple[int, ...]) -> dict[str, Tensor]:
    """Sentences of these lengths in short words, or shorter ones that fit into one window of the encoder."""
    room = (processor.max_subwords - 2) // 3
    letters = string.ascii_letters
    sentences = [[letters[n + k : n + k + 1 + k % 2] for k in range(min(n, room))] for n in lengths]
    return processor.pad(processor.encode(sentences))


def graph_inputs(batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """Converts the processor's batch to inputs of the graph, whose sizes are shapes: word counts become a mask."""
    num_words = batch["num_words"].unsqueeze(1)
    inputs = {name: values for name, values in batch.items() if name not in ("num_words", "packed_words")}
    return inputs | {"word_mask": torch.arange(int(num_words.max())) < num_words}


class InferenceGraph(nn.Module):
    """The model from inputs to scores, without losses, attentions and windows for long sentences."""

    def __init__(self, model: TriaffineForNestedNER, outputs: list[str]):
        super().__init__()
        self.model, self.outputs = model, outputs

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        word_index: Tensor,
        word_mask: Tensor,
        token_type_ids: Tensor | None = None,
        word_ids: Tensor | None = None,
        pos_ids: Tensor | None = None,
        char_ids: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        num_words, longest = word_mask.sum(-1), word_mask.shape[1]
        encoded = self.model._encode(input_ids, attention_mask, token_type_ids, output_hidden_states=False)
        hidden = self.model._represent_words(encoded, word_index, num_words, word_ids, pos_ids, char_ids, longest)
        scores = self.model.head(hidden, num_words)
        return tuple(scores[name] for name in self.outputs)


def make_exportable(model: TriaffineForNestedNER) -> None:
    """Replaces modules of a model in place by exportable ones; the model is then of no other use."""
    model.set_attn_implementation("eager")
    # The fast form of full tensors is optimized for their gradients.
    model.head.reference = model.config.triaffine_rank is None
    for name, module in list(model.head.named_modules()):
        if isinstance(module, TriaffineTensor) and module.rank is None:
            model.head.set_submodule(name, PlainTensor(module))
    for name, module in list(model.words.named_modules()):
        if isinstance(module, nn.LSTM):
            model.words.set_submodule(name, OnnxLSTM(module))


def translate(model: TriaffineForNestedNER, inputs: dict[str, Tensor], outputs: list[str]) -> Any:
    """The exportable model as torch's `ONNXProgram`."""
    from onnxscript import opset18

    # Without annotations, from which the exporter would distinguish attributes from inputs.
    @no_type_check
    def sort(values, stable=None, dim=-1, descending=False):
        # Of equal values TopK returns the first one, so it is stable.
        return opset18.TopK(values, opset18.Shape(values, start=dim), axis=dim, largest=int(descending))

    @no_type_check
    def remainder(values, divisor):
        return opset18.Mod(values, divisor)

    batch, words, characters = (torch.export.Dim(name) for name in ("batch", "words", "characters"))
    subwords = torch.export.Dim("subwords", max=model.config.max_subwords)
    of_words = {0: batch, 1: words}
    sizes = {"word_mask": of_words, "word_ids": of_words, "pos_ids": of_words, "char_ids": of_words | {2: characters}}
    shapes = {name: sizes.get(name, {0: batch, 1: subwords}) for name in inputs}
    cube = TriaffineFactor.whole_cube if model.head.reference else low_rank_cube
    with (
        patch.object(span_head_triaffine, "span_scores", triaffine_ops.span_scores_reference),
        patch.object(TriaffineFactor, "whole_cube", cube),
        patch.object(triaffine_ops, "contract", torch.einsum),
        torch.backends.opt_einsum.flags(enabled=False),
    ):
        graph = InferenceGraph(model, outputs)
        # Strict, so that len() and min() of sizes remain symbolic.
        options: Any = {"strict": True, "prefer_deferred_runtime_asserts_over_guards": True}
        program = torch.export.export(graph, (), inputs, dynamic_shapes=shapes, **options)
    translations: Any = {torch.ops.aten.sort.stable: sort, torch.ops.aten.remainder.Scalar: remainder}
    options = {"dynamic_shapes": shapes, "output_names": outputs, "custom_translation_table": translations}
    return torch.onnx.export(program, dynamo=True, verbose=False, **options)


def low_rank_cube(factor: TriaffineFactor) -> Tensor:
    """[`TriaffineFactor.whole_cube`] of low-rank factors without their full tensor: [B, R, i, j, k]."""
    heads, insides, tails = (project(*part) for part in zip(factor[:3], factor.weight, strict=True))
    pairs = (heads.unsqueeze(3) * tails.unsqueeze(2)).flatten(2, 3)
    cube: Tensor = (pairs @ insides.mT).unflatten(2, (heads.shape[2], tails.shape[2]))
    return cube


class PlainTensor(nn.Module):
    """A full triaffine tensor without a buffer for its gradient."""

    def __init__(self, tensor: TriaffineTensor):
        super().__init__()
        self.weight = tensor.weight

    def forward(self) -> Tensor:
        return self.weight


class OnnxLSTM(nn.Module):
    """One direction of a [`BiLSTM`] layer as ONNX's operator; torch would unroll it to a fixed number of words."""

    def __init__(self, layer: nn.LSTM):
        super().__init__()
        # The order of the gates is i, f, c, o in torch and i, o, f, c in ONNX.
        order = torch.arange(4 * layer.hidden_size).view(4, -1)[[0, 3, 1, 2]].flatten()
        weights = [weight.detach()[order].unsqueeze(0) for weight in layer.parameters()]
        self.from_input, self.from_state = nn.Parameter(weights[0]), nn.Parameter(weights[1])
        self.bias = nn.Parameter(torch.cat(weights[2:], dim=1))

    def forward(self, values: Tensor) -> tuple[Tensor, None]:
        """values [B, N, D] → states [B, N, size] and None in place of the last state."""
        states = _onnx_lstm(values.transpose(0, 1), self.from_input, self.from_state, self.bias)
        return states.squeeze(1).transpose(0, 1), None


@torch.compiler.allow_in_graph
def _onnx_lstm(values: Tensor, from_input: Tensor, from_state: Tensor, bias: Tensor) -> Tensor:
    """values [N, B, D] → [N, 1, B, size]."""
    size = from_state.shape[-1]
    shape = [values.shape[0], 1, values.shape[1], size]
    inputs = values, from_input, from_state, bias
    return torch.onnx.ops.symbolic("LSTM", inputs, {"hidden_size": size}, dtype=values.dtype, shape=shape)


def run_onnx(path: Path, inputs: dict[str, Tensor]) -> dict[str, np.ndarray]:
    """Runs a graph in ONNX Runtime on the CPU."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    read = [given.name for given in session.get_inputs()]
    found = session.run(None, {name: inputs[name].numpy() for name in read})
    return {output.name: values for output, values in zip(session.get_outputs(), found, strict=True)}
