"""CUDA graphs: a forward pass, or a step of training, is recorded once for each of a few shapes, and replayed at once.

Batches are padded to these shapes, with empty sentences, and the results of the padding are cut off. Batches that are
larger than all shapes run without a graph. The environment variable `TRIAFFINE_CUDA_GRAPHS=1` switches graphs on.
"""

import contextlib
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor, nn

logger = logging.getLogger(__name__)

SWITCH = "TRIAFFINE_CUDA_GRAPHS"
# Sizes that batches are padded to; larger ones run without a graph.
SENTENCES = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512)
SUBWORDS = (16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 256)
WORDS = (8, 16, 24, 32, 40, 48, 64, 80, 96, 128)
CHARACTERS = (12, 24, 64)
# Batches of a shape that run without a graph first, and graphs of a model: each holds the memory of its results.
EAGER_FIRST, MOST_GRAPHS = 2, 64
FILL = {"word_index": -1, "labels": -100}  # value of the padding, where it is not 0
RESULTS = ("span_logits", "logits", "candidates", "candidate_mask")

Batch = dict[str, Any]
Function = Callable[[Batch], dict[str, Tensor]]

_OF_MODELS: WeakKeyDictionary[Any, "Graphs"] = WeakKeyDictionary()
_LOCK = threading.Lock()


def are_wanted(device: torch.device) -> bool:
    """True if graphs are switched on, and the device has them."""
    return os.environ.get(SWITCH) == "1" and device.type == "cuda"


def run_model(model: Any, inputs: Batch) -> Any:
    """The model's output for a batch, by graphs where they are switched on and a GPU predicts."""
    if not are_wanted(model.device) or model.training or torch.is_grad_enabled():
        return model(**inputs)
    if torch.is_autocast_enabled("cuda"):  # a graph would outlive autocast's copies of the weights
        return model(**inputs)
    with _LOCK:
        if model not in _OF_MODELS or _OF_MODELS[model].device != model.device:
            _OF_MODELS[model] = Graphs(model.config, model.device)
        graphs = _OF_MODELS[model]
    with graphs.lock:
        return predict(model, inputs, graphs)


def predict(model: Any, inputs: Batch, graphs: "Graphs") -> Any:
    """The model's output for a batch, copied from the memory of a graph: other threads replay it, too."""
    reference: Any = ref(model)  # the model would else live as long as its graphs

    def forward(batch: Batch) -> dict[str, Tensor]:
        output = reference()(**{**batch, "return_dict": True})
        return {name: output[name] for name in RESULTS if output.get(name) is not None}

    # What a graph contains as constants, and the addresses of the weights that it reads, also of an adapter's.
    limits = model.config.max_candidates, model.config.max_span_width
    state = *limits, *(weight.data_ptr() for weight in model.parameters())
    rows, found = len(inputs["num_words"]), graphs.run(forward, inputs, state)
    return SimpleNamespace(**{name: found[name][:rows].clone() if name in found else None for name in RESULTS})


class Graphs:
    """The recorded runs of functions of a batch.

    All batches that have a shape are padded, recorded or not: training then draws the same random numbers whenever
    recording begins, such as later in a run that was interrupted. On the CPU a replay runs the function again on the
    same memory: all but the recording itself is the same. All graphs write the gradients of `weights`, if functions
    compute any, to the same memory.
    """

    def __init__(self, config: Any, device: torch.device, weights: Iterable[nn.Parameter] = ()):
        self.config, self.device, self.weights = config, device, [*weights]
        self.lock = threading.Lock()
        self.seen: Counter[Hashable] = Counter()
        self.recorded: dict[Hashable, tuple[Batch, Callable[[], dict[str, Tensor]]]] = {}  # its memory, its replay
        self.most = MOST_GRAPHS
        self.gradients: dict[nn.Parameter, Tensor] = {}
        self.pool, self.stream, self.generator = None, None, torch.default_generator
        if device.type == "cuda":
            self.pool, self.generator = torch.cuda.graph_pool_handle(), torch.cuda.default_generators[device.index or 0]
            self.stream = torch.cuda.Stream(device)  # one for all graphs: on several, they would not share their memory

    def run(self, function: Function, inputs: Batch, state: Hashable = None) -> dict[str, Tensor]:
        """The results of the function for a batch, valid until the next one of its shape, and the gradients.

        `state` is what else a graph contains as constants: for another state, another graph is recorded.
        """
        batch = {name: values for name, values in inputs.items() if torch.is_tensor(values) and name != "packed_words"}
        longest = batch["labels"].shape[1] if "labels" in batch else inputs["max_words"]
        sizes = _padded_sizes(batch, longest, self.config)
        if sizes is None:
            return function(inputs)
        key = tuple(sizes.items()), state
        self.seen[key] += 1
        if known := self.recorded.get(key):
            padded, replay = known
            _fill(padded, batch)
            return replay()
        padded = {name: torch.empty(sizes[name], dtype=batch[name].dtype, device=self.device) for name in batch}
        _fill(padded, batch)
        if "max_words" in inputs:
            padded["max_words"] = sizes["max_words"][0]
        if self.seen[key] <= EAGER_FIRST or len(self.recorded) >= self.most:
            return function(padded)
        replay = self._record(function, padded)
        if self.most:
            self.recorded[key] = padded, replay
        return replay()

    def _record(self, function: Function, padded: Batch) -> Callable[[], dict[str, Tensor]]:
        """Records a run of the function; what it returns repeats the run on the same memory."""
        drawn = self.generator.get_state()
        try:
            if self.stream is None:
                self._run(function, padded)
                return lambda: self._run(function, padded)
            graph, current = torch.cuda.CUDAGraph(), torch.cuda.current_stream(self.device)
            self.stream.wait_stream(current)
            with torch.cuda.stream(self.stream):
                self._run(function, padded)  # libraries prepare themselves outside of the recording
                # Other threads may use the device meanwhile.
                with torch.cuda.graph(graph, self.pool, self.stream, capture_error_mode="thread_local"):
                    results = self._run(function, padded)
            current.wait_stream(self.stream)
        except RuntimeError as error:  # a function that waits for the device, or too little memory
            logger.warning("Batches run without graphs: %s", error)
            self._give_up()
            return partial(function, padded)
        finally:
            self.generator.set_state(drawn)

        def replay() -> dict[str, Tensor]:
            self._attach_gradients()
            graph.replay()
            return results

        return replay

    def _give_up(self) -> None:
        """Ends recording and replay, also in torch's allocator and generator, which a failure leaves recording."""
        self.most = 0
        self.recorded.clear()
        for weight in self.weights:
            weight.grad = None
        if self.pool is not None:
            with contextlib.suppress(AttributeError, RuntimeError):
                torch._C._cuda_endAllocateToPool(self.device.index or 0, self.pool)
            self.generator.graphsafe_set_state(self.generator.clone_state())

    def _run(self, function: Function, padded: Batch) -> dict[str, Tensor]:
        """Runs the function, whose gradients replace those of the last run in the memory of all graphs."""
        self._attach_gradients()
        if self.gradients:
            torch._foreach_zero_([*self.gradients.values()])
        results = function(padded)
        self.gradients = {weight: weight.grad for weight in self.weights if weight.grad is not None}
        return results

    def _attach_gradients(self) -> None:
        for weight, gradient in self.gradients.items():
            weight.grad = gradient


def _padded_sizes(batch: dict[str, Tensor], words: int, config: Any) -> dict[str, tuple[int, ...]] | None:
    """The padded size of each input of a batch; None if the batch is too large for a graph, or has full tensors.

    Full tensors contract the words of a batch without padding, whose number differs from batch to batch.
    """
    is_full = config.triaffine_rank is None and config.scoring_kind.reads_words
    rows, subwords = batch["input_ids"].shape
    characters = batch["char_ids"].shape[2] if "char_ids" in batch else 1
    given = ((rows, SENTENCES), (subwords, SUBWORDS), (words, WORDS), (characters, CHARACTERS))
    padded = [next((size for size in sizes if size >= least), 0) for least, sizes in given]
    if is_full or subwords > config.max_subwords or not all(padded):
        return None
    b, s, n, c = padded
    s = min(s, config.max_subwords)
    own = {"num_words": (b,), "word_ids": (b, n), "pos_ids": (b, n), "char_ids": (b, n, c)}
    if "labels" in batch:
        own["labels"] = (b, n, n, *batch["labels"].shape[3:])
    return {"max_words": (n,)} | {name: own.get(name, (b, s)) for name in batch}


def _fill(static: Batch, batch: dict[str, Tensor]) -> None:
    """Writes a batch into the memory of a graph, padded."""
    for name, values in batch.items():
        static[name].fill_(FILL.get(name, 0))
        static[name][tuple(slice(0, size) for size in values.shape)].copy_(values, non_blocking=True)
    static["attention_mask"][len(batch["num_words"]) :, 0] = 1  # an empty sentence attends to something
