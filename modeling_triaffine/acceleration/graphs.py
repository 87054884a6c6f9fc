"""Prediction by CUDA graphs: a forward pass is recorded once for each of a few shapes, and replayed in one launch.

Batches are padded to these shapes, with empty sentences, and the results of the padding are cut off. What has no shape
of the list, and the first batches of a shape, run as ever. The variable `TRIAFFINE_CUDA_GRAPHS=1` switches it on.
"""

import os
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor

SWITCH = "TRIAFFINE_CUDA_GRAPHS"
# Sizes that batches are padded to; larger ones run without a graph.
SENTENCES = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512)
SUBWORDS = (16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 256)
WORDS = (8, 16, 24, 32, 40, 48, 64, 80, 96, 128)
CHARACTERS = (12, 24, 64)
# Batches of a shape that run without a graph first, and graphs of a model: each holds the memory of its results.
EAGER_FIRST, MOST_GRAPHS = 2, 64
# Value of the padding, where it is not 0.
FILL = {"word_index": -1}
RESULTS = ("span_logits", "logits", "candidates", "candidate_mask")

_OF_MODELS: WeakKeyDictionary[Any, "Graphs"] = WeakKeyDictionary()
_LOCK = threading.Lock()


def run_model(model: Any, inputs: dict[str, Any]) -> Any:
    """The model's output for a batch, by graphs where they are switched on and a GPU predicts."""
    wanted = os.environ.get(SWITCH) == "1" and model.device.type == "cuda"
    if not wanted or model.training or torch.is_grad_enabled():
        return model(**inputs)
    with _LOCK:
        graphs = _OF_MODELS.setdefault(model, Graphs(model))
        return graphs.run(inputs)


class Graphs:
    """The recorded forward passes of one model.

    On the CPU a replay runs the model again on the same memory: all but the recording itself is the same.
    """

    def __init__(self, model: Any):
        self.model = ref(model)  # which would else live as long as its graphs
        self.seen: Counter[Any] = Counter()
        self.recorded: dict[Any, tuple[dict[str, Tensor], Callable[[], None], dict[str, Tensor]]] = {}
        self.pool = torch.cuda.graph_pool_handle() if model.device.type == "cuda" else None

    def run(self, inputs: dict[str, Any]) -> Any:
        """The model's output for a batch, valid until the next batch of its shape."""
        model: Any = self.model()
        batch = {name: values for name, values in inputs.items() if torch.is_tensor(values) and name != "packed_words"}
        sizes = _padded_sizes(batch, inputs["max_words"], model.config)
        if sizes is None:
            return model(**inputs)
        # What a graph has as constants, or reads in place.
        state = model.config.max_candidates, model.head.label_bias.data_ptr(), torch.is_autocast_enabled("cuda")
        key = tuple(sizes.items()), state
        self.seen[key] += 1
        if key not in self.recorded:
            if self.seen[key] <= EAGER_FIRST or len(self.recorded) >= MOST_GRAPHS:
                return model(**inputs)
            self.recorded[key] = self._record(model, batch, sizes)
        static, replay, results = self.recorded[key]
        _fill(static, batch)
        replay()
        rows = len(batch["num_words"])
        cut = {name: values[:rows] for name, values in results.items()}
        if self.pool is None:
            cut = {name: values.clone() for name, values in cut.items()}
        return SimpleNamespace(**{name: cut.get(name) for name in RESULTS})

    def _record(self, model: Any, batch: dict[str, Tensor], sizes: dict[str, tuple[int, ...]]) -> Any:
        static = {name: values.new_empty(sizes[name]) for name, values in batch.items()}
        _fill(static, batch)
        longest = sizes["max_words"][0]

        def forward() -> dict[str, Tensor]:
            output = model(**static, max_words=longest, return_dict=True)
            return {name: output[name] for name in RESULTS if output.get(name) is not None}

        if self.pool is None:
            results = forward()

            def replay() -> None:
                for name, values in forward().items():
                    results[name].copy_(values)

            return static, replay, results
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            forward()  # libraries prepare themselves outside of the recording
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            results = forward()
        return static, graph.replay, results


def _padded_sizes(batch: dict[str, Tensor], words: int, config: Any) -> dict[str, tuple[int, ...]] | None:
    """The size of each input in the graph of a batch; None if it has none.

    Full tensors contract the words of a batch without padding, whose number differs from batch to batch.
    """
    is_full = config.triaffine_rank is None and config.scoring_kind.reads_words
    rows, subwords = batch["input_ids"].shape
    characters = batch["char_ids"].shape[2] if "char_ids" in batch else 1
    given = ((rows, SENTENCES), (subwords, SUBWORDS), (words, WORDS), (characters, CHARACTERS))
    places = [bisect_left(sizes, size) for size, sizes in given]
    if is_full or subwords > config.max_subwords or any(p == len(s) for p, (_, s) in zip(places, given, strict=True)):
        return None
    b, s, n, c = (sizes[place] for place, (_, sizes) in zip(places, given, strict=True))
    s = min(s, config.max_subwords)
    own = {"num_words": (b,), "word_ids": (b, n), "pos_ids": (b, n), "char_ids": (b, n, c)}
    return {"max_words": (n,)} | {name: own.get(name, (b, s)) for name in batch}


def _fill(static: dict[str, Tensor], batch: dict[str, Tensor]) -> None:
    """Writes a batch into the memory of a graph, padded."""
    for name, values in batch.items():
        static[name].fill_(FILL.get(name, 0))
        static[name][tuple(slice(0, size) for size in values.shape)].copy_(values, non_blocking=True)
    static["attention_mask"][len(batch["num_words"]) :, 0] = 1  # an empty sentence attends to something
