"""Runs an exported graph in ONNX Runtime: its inputs from the processor's batch, its outputs by name."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

# Inputs that have a row for each of the encoder's.
ROWS = {"input_ids", "attention_mask", "token_type_ids", "word_index"}


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
