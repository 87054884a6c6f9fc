"""OnnxNestedNER: [`NestedNERPipeline`] with the exported graph in ONNX Runtime in place of the torch model."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME

from ..errors import importing_extra
from ..model.configuration_triaffine import TriaffineConfig
from ..model.pipeline_triaffine import NestedNERPipeline
from ..model.processing_triaffine import TriaffineProcessor
from ..model.repository_triaffine import ORIGIN_OPTIONS, find_file
from ..model.span_head_triaffine import NestedNEROutput

# As `triaffine-ner export` writes it. A graph of more than 1.5 GB has its weights in a second file, model.onnx.data.
GRAPH = "model.onnx"
# Inputs that have a row for each of the encoder's.
ROWS = {"input_ids", "attention_mask", "token_type_ids", "word_index"}


class OnnxModel(nn.Module):
    """Stands for a [`TriaffineForNestedNER`] in a pipeline: the graph at `path` in ONNX Runtime on the CPU."""

    device = torch.device("cpu")
    dtype = torch.float32
    input_modalities = output_modalities = ("text",)

    def __init__(self, path: str, config: TriaffineConfig):
        super().__init__()
        self.config = config
        self.session = open_session(path, torch.get_num_threads())

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

    Examples:
        >>> from modeling_triaffine import OnnxNestedNER
        >>> find_entities = OnnxNestedNER("outputs/demo/onnx")
        >>> entities = find_entities("The mayor of Port Velmar resigned.")
    """

    def __init__(self, model: str | os.PathLike[str], *, device: Any = None, dtype: Any = None, **options: Any):
        if device not in (None, -1, "cpu", torch.device("cpu")) or dtype not in (None, "float32", torch.float32):
            raise ValueError(
                f"`device` is {device!r} and `dtype` {dtype}, but OnnxNestedNER computes on the CPU in float32; leave "
                "them (--device, --bf16) out."
            )
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

    What has weights beside the graph is a model. `disable_mmap` copies its weights into memory, so that the file may
    change; `options` are those of both pipelines.
    """
    weights = (find_file(model, name, {}) for name in (SAFE_WEIGHTS_NAME, SAFE_WEIGHTS_INDEX_NAME))
    if not any(weights) and find_file(model, GRAPH, {}):
        return OnnxNestedNER(model, **options)
    return NestedNERPipeline(model, disable_mmap=disable_mmap, **options)


def graph_inputs(batch: dict[str, Tensor], max_subwords: int) -> dict[str, Tensor]:
    """Converts the processor's batch to inputs of the graph, whose sizes are shapes: word counts become a mask.

    The encoder's rows are the sentences, or where one has more than `max_subwords` sub-words, the windows of all;
    `sentence_index` [rows] is the sentence of each row.
    """
    num_words = batch["num_words"].unsqueeze(1)
    inputs = {name: values for name, values in batch.items() if name not in ("num_words", "packed_words")}
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
