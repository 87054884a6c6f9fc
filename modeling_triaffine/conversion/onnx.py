"""ONNX: a trained model as a graph from sub-words to scores, for programs without torch, and a pipeline with the graph.

Parts that torch's exporter cannot translate are replaced in a copy of the model by equivalent ones: modules by
`make_exportable`, functions while `translate` traces the graph. Tokenization and decoding are not part of the graph.
Needs the extra `onnx`.
"""

import copy
import os
import string
from pathlib import Path
from typing import Any, no_type_check
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME

from ..errors import importing_extra
from ..model import span_head_triaffine
from ..model.configuration_triaffine import TriaffineConfig
from ..model.model_triaffine import TriaffineForNestedNER
from ..model.pipeline_triaffine import NestedNERPipeline
from ..model.processing_triaffine import TriaffineProcessor
from ..model.repository_triaffine import ORIGIN_OPTIONS, find_file
from ..model.span_head_triaffine import NestedNEROutput
from ..model.triaffine_blocks import OUTSIDE
from ..model.triaffine_ops import ProductFactor, SpanScores, entity_likelihood

# The file that `triaffine-ner export` writes; weights of more than 1.5 GB are beside it, in model.onnx.data.
GRAPH = "model.onnx"
# Inputs with a row for each row that the encoder reads.
ROWS = {"input_ids", "attention_mask", "token_type_ids", "word_index"}
OUTPUTS = ("span_logits", "logits", "candidates", "candidate_mask")
TOLERANCE = 1e-3  # larger differences between the scores of graph and model are not rounding errors


def export_onnx(model: TriaffineForNestedNER, processor: TriaffineProcessor, path: Path) -> float:
    """Writes the model to `path` in float32; weights of more than 1.5 GB are in a second file beside it.

    Inputs of the graph, for any number of sentences, words and sub-words: [`graph_inputs`] of the output of the
    processor's `pad`. Outputs, as of the model: `span_logits` and, with the cross-span stage, `logits`, `candidates`,
    `candidate_mask`.

    Returns:
        The largest difference between the scores in ONNX Runtime and those of the model, on sentences of other lengths
        than in the export.
    """
    with importing_extra("onnx", "Exporting needs onnx, onnxscript and onnxruntime"):
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    config, encoder = model.config, model.encoder.config.model_type
    has_tensors = config.attention_kind.has_tensor and config.scoring_kind.has_tensor
    if config.subword_pooling != "max" or not has_tensors or config.triaffine_rank is None:
        remedy = "train with --triaffine_rank 64 and the defaults of --attention, --scoring, --subword_pooling"
        raise ValueError(f"Only triaffine models of low rank with the maximum of sub-words can be exported: {remedy}.")
    model = copy.deepcopy(model).float().cpu().eval()
    batch = example_batch(processor, lengths=(13, 1, 9, 13))
    with torch.no_grad():
        expected = model(**batch, return_dict=True)
    outputs = [name for name in OUTPUTS if name in expected]
    make_exportable(model)
    inputs = graph_inputs(example_batch(processor, lengths=(7, 5, 6)), processor.max_subwords)
    try:
        program = translate(model, inputs, outputs)
    except RuntimeError as error:  # of torch.export, and of the translation to ONNX
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"torch cannot export this model, perhaps its encoder ({encoder}): {reason}") from error
    program.save(path)
    found = run_session(open_session(path), graph_inputs(batch, processor.max_subwords))
    scores = [name for name in outputs if name.endswith("logits")]
    difference = float(np.max([np.abs(found[name] - expected[name].numpy()).max() for name in scores]))
    if not difference <= TOLERANCE:  # NaN, too
        problem = f"The scores of the graph differ by up to {difference:.2g} from those of the model"
        raise ValueError(f"{problem}: torch mistranslates a part of it, probably of its encoder ({encoder}).")
    return difference


def example_batch(processor: TriaffineProcessor, lengths: tuple[int, ...]) -> dict[str, Tensor]:
    """Sentences of these lengths in short words, or shorter ones that fit into one window of the encoder."""
    room = (processor.max_subwords - 2) // 3
    letters = string.ascii_letters
    sentences = [[letters[n + k : n + k + 1 + k % 2] for k in range(min(n, room))] for n in lengths]
    return processor.pad(processor.encode(sentences))


class InferenceGraph(nn.Module):
    """The model from inputs to scores, without losses and attentions."""

    def __init__(self, model: TriaffineForNestedNER, outputs: list[str]):
        super().__init__()
        self.model, self.outputs = model, outputs

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        word_index: Tensor,
        sentence_index: Tensor,
        word_mask: Tensor,
        token_type_ids: Tensor | None = None,
        word_ids: Tensor | None = None,
        pos_ids: Tensor | None = None,
        char_ids: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        num_words, longest = word_mask.sum(-1), word_mask.shape[1]
        # All sub-words in one row: the encoder's rows are windows of sentences.
        places = torch.where(word_index < 0, word_index, word_index + longest * sentence_index[:, None])
        parts = token_type_ids, word_ids, pos_ids, char_ids
        hidden, _ = self.model.represent_words(
            input_ids, attention_mask, places.flatten().unsqueeze(0), num_words, *parts, longest
        )
        scores = self.model.head(hidden, num_words)
        return tuple(scores[name] for name in self.outputs)


def make_exportable(model: TriaffineForNestedNER) -> None:
    """Replaces modules of a model in place by exportable ones; the model is then of no other use."""
    model.set_attn_implementation("eager")
    for name, module in list(model.words.named_modules()):
        if isinstance(module, nn.LSTM):
            model.words.set_submodule(name, OnnxLSTM(module))


def translate(model: TriaffineForNestedNER, inputs: dict[str, Tensor], outputs: list[str]) -> Any:
    """The exportable model as torch's `ONNXProgram`."""
    from onnxscript import opset18

    # Without annotations, from which the exporter would distinguish attributes from inputs.
    @no_type_check
    def remainder(values, divisor):
        return opset18.Mod(values, divisor)

    batch, rows, words, characters = (torch.export.Dim(name) for name in ("batch", "rows", "words", "characters"))
    subwords = torch.export.Dim("subwords", max=model.config.max_subwords)
    of_words = {0: batch, 1: words}
    sizes = {name: {0: rows, 1: subwords} for name in ROWS} | {"sentence_index": {0: rows}}
    shapes = {name: sizes.get(name, of_words) for name in inputs}
    if "char_ids" in inputs:
        shapes["char_ids"] = of_words | {2: characters}
    with (
        patch.object(span_head_triaffine, "span_scores", span_scores_at_once),
        patch.object(span_head_triaffine, "select_candidates", candidates_by_topk),
        torch.backends.opt_einsum.flags(enabled=False),
    ):
        graph = InferenceGraph(model, outputs)
        # Strict, because otherwise len() and min() of sizes become constants.
        options: Any = {"strict": True, "prefer_deferred_runtime_asserts_over_guards": True}
        program = torch.export.export(graph, (), inputs, dynamic_shapes=shapes, **options)
    translations: Any = {torch.ops.aten.remainder.Scalar: remainder}
    options = {"dynamic_shapes": shapes, "output_names": outputs, "custom_translation_table": translations}
    return torch.onnx.export(program, dynamo=True, verbose=False, **options)


def candidates_by_topk(
    span_logits: Tensor, valid: Tensor, max_candidates: int, max_width: int | None = None, multi_label: bool = False
) -> tuple[Tensor, Tensor]:
    """[`select_candidates`] by ONNX's TopK, which takes the first of equals; ONNX has no access to bits of floats."""
    batch, num_words = valid.shape[:2]
    width = num_words if max_width is None else min(max_width, num_words)
    scores = entity_likelihood(span_logits, multi_label).masked_fill(~valid, -torch.inf).view(batch, -1)
    best = scores.topk(min(max_candidates, width * num_words - width * (width - 1) // 2))
    order = torch.where(best.values > -torch.inf, best.indices, num_words * num_words).sort().values
    mask = order < num_words * num_words
    order = order * mask
    return torch.stack([order // num_words, order % num_words], dim=-1), mask


def span_scores_at_once(
    attention: ProductFactor, scoring: ProductFactor, lengths: Tensor, max_width: int | None, *options: Any
) -> SpanScores:
    """[`span_scores`] of tensors of low rank as one block, with any value where there is no span.

    Each head word has the `max_width` words from itself on as tail and inside words: N · width² scores in place of N³,
    where the width is at most N.
    """
    batch, labels, num_words, _ = scoring.insides.shape
    # A short sentence has no spans as wide as the limit.
    width = torch.sym_min(num_words, num_words if max_width is None else max_width)
    words, band = torch.arange(num_words), torch.arange(width)
    reach = torch.minimum(words[:, None] + band, words[-1])  # [N, w]; spans past the end are masked by the head

    def pair_scores(factor: ProductFactor) -> Tensor:
        parts = factor.ends[0], factor.insides, factor.ends[1]
        heads, *others = (part.expand(-1, labels, -1, -1).flatten(0, 1) for part in parts)  # [M, N, w] of M = B · R
        insides, tails = (other.index_select(1, reach.flatten()).unflatten(1, reach.shape) for other in others)
        return (heads.unsqueeze(2) * tails) @ insides.mT  # [M, N, J, K]

    outside = (band > band[:, None]).float() * OUTSIDE
    p = (torch.softmax(pair_scores(attention) + outside, -1) * pair_scores(scoring)).sum(-1)
    spans = words[:, None] * width + (words - words[:, None]).clamp(0, width - 1)
    scores = p.flatten(1).index_select(1, spans.flatten()).unflatten(1, spans.shape)
    return SpanScores(scores.unflatten(0, (batch, labels)))


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


def quantize_onnx(path: Path) -> None:
    """Quantizes the linear layers of the encoder to int8; replaces the graph at `path`, in one file."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    graph = onnx.load(path, load_external_data=False).graph
    weights = {weight.name for weight in graph.initializer}
    # The exporter notes in which modules of the model a node is.
    linear = [
        node.name
        for node in graph.node
        if node.op_type in ("MatMul", "Gemm")
        and weights.intersection(node.input)
        and any("'model.encoder'" in note.value for note in node.metadata_props)
    ]
    # 7 bits (`reduce_range`): processors without VNNI add two products in 16 bits, which 8 bits would overflow.
    options: Any = {"weight_type": QuantType.QInt8, "per_channel": True, "reduce_range": True}
    quantize_dynamic(path, path, nodes_to_quantize=linear, **options)
    path.with_name(f"{path.name}.data").unlink(missing_ok=True)  # the floats of a large graph


# ---- Prediction ----


class OnnxModel(nn.Module):
    """Stands for a [`TriaffineForNestedNER`] in a pipeline: the graph at `path` in ONNX Runtime on the CPU."""

    device = torch.device("cpu")
    dtype = torch.float32
    input_modalities = output_modalities = ("text",)

    def __init__(self, path: str, config: TriaffineConfig):
        super().__init__()
        self.config, self.path = config, path
        self.session = open_session(path, torch.get_num_threads())

    def __getstate__(self) -> dict[str, Any]:
        """The state for pickle and copies, without the session, which they open anew."""
        return {**super().__getstate__(), "session": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.session = open_session(self.path, torch.get_num_threads())

    def can_generate(self) -> bool:
        """Never: transformers asks it of every model in a pipeline."""
        return False

    def forward(self, **batch: Tensor) -> NestedNEROutput:
        """The outputs of the graph for a batch of the processor."""
        found = run_session(self.session, graph_inputs(batch, self.config.max_subwords))
        tensors: dict[str, Any] = {name: torch.from_numpy(values) for name, values in found.items()}
        return NestedNEROutput(**tensors)


class OnnxNestedNER(NestedNERPipeline):
    """Finds nested entities in raw text as [`NestedNERPipeline`] does, with ONNX Runtime on the CPU (extra `onnx`).

    Args:
        model: folder or Hub name of what `triaffine-ner export` wrote.
        device, dtype: may be left out; only the CPU and float32 are possible.
        options: other keywords of [`NestedNERPipeline`].

    Raises:
        FileNotFoundError: the folder has no `model.onnx`.
        ValueError: another `device` or `dtype`, or an invalid option.

    Examples:
        >>> from modeling_triaffine import OnnxNestedNER
        >>> find_entities = OnnxNestedNER("outputs/demo/onnx")
        >>> entities = find_entities("The mayor of Port Velmar resigned.")
    """

    def __init__(self, model: str | os.PathLike[str], *, device: Any = None, dtype: Any = None, **options: Any):
        if device not in (None, -1, "cpu", torch.device("cpu")) or dtype not in (None, "float32", torch.float32):
            problem = f"`device` is {device!r} and `dtype` {dtype}; leave them (--device, --bf16) out"
            raise ValueError(f"{problem}: OnnxNestedNER computes on the CPU in float32.")
        origin = {name: options.pop(name) for name in ORIGIN_OPTIONS if name in options}
        path = find_file(model, GRAPH, origin)
        if path is None:
            raise FileNotFoundError(f"{model} has no {GRAPH}; `triaffine-ner export` writes it.")
        find_file(model, f"{GRAPH}.data", origin)  # from the Hub it must lie beside the graph
        graph = OnnxModel(path, TriaffineConfig.from_pretrained(model, **origin))
        processor = options.pop("processor", None) or TriaffineProcessor.from_pretrained(model, **origin)
        super().__init__(graph, processor, device="cpu", **options)


def open_pipeline(model: str | os.PathLike[str], *, disable_mmap: bool = False, **options: Any) -> NestedNERPipeline:
    """The pipeline of what `triaffine-ner export` wrote, in a folder or on the Hub, or of any other model.

    A folder with weights is opened with torch, even if it has a graph, too. `disable_mmap` copies the weights into
    memory, so that the file may change; `options` are those of both pipelines.
    """
    TriaffineConfig.get_config_dict(model)  # a Hub that cannot be reached is an error now, not after each file
    weights = (find_file(model, name, {}) for name in (SAFE_WEIGHTS_NAME, SAFE_WEIGHTS_INDEX_NAME))
    if not any(weights) and find_file(model, GRAPH, {}):
        return OnnxNestedNER(model, **options)
    return NestedNERPipeline(model, disable_mmap=disable_mmap, **options)


# ---- Graphs ----


def graph_inputs(batch: dict[str, Tensor], max_subwords: int) -> dict[str, Tensor]:
    """Converts the processor's batch to inputs of the graph, whose sizes are shapes: word counts become a mask.

    The encoder's rows are the sentences, or where one has more than `max_subwords` sub-words, the windows of all;
    `sentence_index` [rows] is the sentence of each row.
    """
    num_words = batch["num_words"].unsqueeze(1)
    inputs = {name: values for name, values in batch.items() if name != "num_words"}
    sentences, subwords = batch["input_ids"].shape
    windows = max(1, -(-subwords // max_subwords))
    sentence_index = torch.arange(sentences).repeat_interleave(windows)
    if windows > 1:
        filled = batch["attention_mask"].view(len(sentence_index), -1).any(1)
        for name in ROWS & inputs.keys():
            inputs[name] = inputs[name].reshape(len(filled), -1)[filled]
        sentence_index = sentence_index[filled]
    words = torch.arange(max(1, int(num_words.max())))
    return inputs | {"sentence_index": sentence_index, "word_mask": words < num_words}


def open_session(path: Path | str, threads: int = 0) -> Any:
    """ONNX Runtime on the CPU, with so many threads; 0: one for each core. Raises ValueError for a damaged graph."""
    with importing_extra("onnx", "Graphs need onnxruntime"):
        import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no class in common
        raise ValueError(f"{path}, or the file with its weights, cannot be opened: {error}") from error


def run_session(session: Any, inputs: dict[str, Tensor]) -> dict[str, np.ndarray]:
    """The outputs of a graph by name."""
    found = session.run(None, {given.name: inputs[given.name].numpy() for given in session.get_inputs()})
    return {output.name: values for output, values in zip(session.get_outputs(), found, strict=True)}
