"""Sentences a second from raw text to entities and in training, and which part of the model the time goes to.

    python benchmarks/throughput.py --model_name_or_path ENCODER --data genia.dev.jsonl

One row for each form of the triaffine tensors, for prediction and for training. `times_encoder` compares with the
encoder alone, run on the very batches it was given; the two are timed in turn. `share` is measured in a run of its own:
`words` is what makes words of sub-words, `rest` all that is outside the model (tokenizing, padding, decoding, updates).
Rows also have the operations that the model's forward pass launches in a batch and how often it waits for the device;
predictions the host's time for a sentence, and transformers' token classification with an encoder of the same sizes on
the same batches.

`--graphs` times replays of CUDA graphs; all but the times of the whole is then of runs without them.

With `--peers FOLDER` other libraries are compared instead (`peers.py`).
"""

import argparse
import contextlib
import copy
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from datasets import Dataset
from measuring import CLOCKS, Rows, products_by_mkl, read_corpus, synchronize, texts_of, time_interleaved
from peers import compare
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForTokenClassification
from transformers.utils import logging

from modeling_triaffine import (
    DataCollatorForNestedNER,
    NestedNERPipeline,
    TriaffineForNestedNER,
    TriaffineProcessor,
    start_from_recipe,
)
from modeling_triaffine.acceleration import graphs
from modeling_triaffine.data.collator import encode_records
from modeling_triaffine.model.batches_triaffine import feature_size
from modeling_triaffine.training.batching import TrainingBatchSampler

RANKS = {"low rank": 64, "full": None}
# Entities in a sentence, about as in GENIA: random weights find one at each candidate, for which decoding pays.
ENTITIES = 3.0
# Sentences a second from raw text of genia-minilm that docs/speed_and_memory.md predicts for an H200.
PREDICTED = {"batches that fit": 3200, "with graphs": 4200}


def main() -> None:
    arguments = parse_arguments()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    rows = Rows("sentences a second, whole model")
    corpus = read_corpus(arguments.data)  # whose labels and widest entity the model has
    records = corpus[: arguments.max_samples]
    if arguments.peers:
        rows.title = "sentences a second and first answer, beside other libraries; processor time, one thread"
        for row in measure_peers(corpus, records, arguments):
            rows.add(**row)
        rows.write(arguments.output)
        return
    for name in arguments.tensors:
        for measure in (measure_prediction, measure_training):
            torch.manual_seed(0)
            model, processor = build_model(RANKS[name], corpus, arguments)
            with products_by_mkl() if arguments.by_mkl else contextlib.nullcontext():
                row = measure(model, processor, records, arguments)
            row |= {"by_mkl": True} if arguments.by_mkl else {}
            rows.add(tensors=name, rank=RANKS[name], dtype=arguments.dtype, device=arguments.device, **row)
    rows.write(arguments.output)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model_name_or_path", required=True, help="Pretrained encoder: a folder or a Hub name.")
    parser.add_argument("--data", help="Corpus file or folder, the first split of it; default: the demo corpus.")
    parser.add_argument("--recipe", default="genia-minilm", help="Whose sizes the rest of the model has.")
    parser.add_argument("--graphs", action="store_true")
    parser.add_argument("--tensors", nargs="+", choices=list(RANKS), default=list(RANKS))
    parser.add_argument("--max_samples", type=int, default=256, help="Sentences to measure.")
    parser.add_argument(
        "--batch_size", type=int, default=None, help="Default: 32; on a GPU, prediction as many as fit."
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall", help="Processor time is of all threads.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--dtype",
        choices=["float32", "bfloat16"],
        default="float32",
        help="Half: weights to predict, autocast to train.",
    )
    parser.add_argument("--by_mkl", action="store_true", help="float32 by torch's own library where oneDNN is faster.")
    parser.add_argument("--peers", type=Path, metavar="FOLDER", help="Compare libraries, installed in this folder.")
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


def build_model(
    rank: int | None, records: list[dict[str, Any]], arguments: argparse.Namespace
) -> tuple[TriaffineForNestedNER, TriaffineProcessor]:
    """The model that the recipe starts with: the pretrained encoder under random weights."""
    corpus = {"train": Dataset.from_list(records)}
    options = {"model_name_or_path": arguments.model_name_or_path, "triaffine_rank": rank}
    model, processor, _ = start_from_recipe(arguments.recipe, corpus, "outputs", **options)
    return model.to(arguments.device), processor


def measure_peers(
    corpus: list[dict[str, Any]], records: list[dict[str, Any]], arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    torch.manual_seed(0)
    model, processor = build_model(RANKS["low rank"], corpus, arguments)
    os.environ["OMP_NUM_THREADS"] = "1"  # of the libraries' processes
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        processor.save_pretrained(folder)
        return compare(
            arguments.peers,
            arguments.repeats,
            encoder=arguments.model_name_or_path,
            model=folder,
            texts=texts_of(records),
            labels=model.config.entity_labels,
            batch_size=arguments.batch_size or 32,
        )


def measure_prediction(
    model: TriaffineForNestedNER,
    processor: TriaffineProcessor,
    records: list[dict[str, Any]],
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    texts = texts_of(records)
    if arguments.dtype == "bfloat16":
        model.bfloat16()  # as `dtype="bfloat16"` of the pipeline: weights are rounded once, not at every call
    model.eval()  # the pipeline does so for a call, which the encoder alone, without it, would run with dropout
    pipeline = NestedNERPipeline(
        model=model,
        processor=processor,
        batch_size=arguments.batch_size,
        device=arguments.device,
    )

    entities = find_about(ENTITIES, pipeline, texts)

    def predict() -> None:
        pipeline(texts)

    row = {"what": "raw text to entities", "batch_size": arguments.batch_size, "entities_a_sentence": entities}
    row |= measure_run(predict, pipeline.model, arguments, step=run_encoder)
    row["host_microseconds"] = round(1e6 * row["seconds"] * row["share"]["rest"] / row["sentences"], 1)
    row |= count_operations(pipeline.model, predict)
    return row | ({"predicted": PREDICTED} if arguments.device.startswith("cuda") else {})


def find_about(wanted: float, pipeline: NestedNERPipeline, texts: list[str]) -> float:
    """Sets the bias of None so that random weights find about so many entities in a sentence; returns how many."""
    bias = pipeline.model.head.label_bias
    low, high, found = -50.0, 50.0, 0.0
    for _ in range(12):
        with torch.no_grad():
            bias[-1] = (low + high) / 2
        found = sum(map(len, pipeline(texts[:64]))) / len(texts[:64])
        low, high = ((low + high) / 2, high) if found > wanted else (low, (low + high) / 2)
    return round(found, 2)


class Operations(TorchDispatchMode):
    """Counts what the host does in a batch of the model: operations by the part that launches them, and its waits.

    Views launch nothing, and what a kernel of the package launches is not seen. The host waits for a value that it
    reads, for a shape that depends on values, and for a copy to it.
    """

    WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "is_nonzero")

    def __init__(self, model: TriaffineForNestedNER) -> None:
        super().__init__()
        self.parts = {model.encoder: "encoder", model.words: "words", model.head: "head", model: "rest of the model"}
        self.launches = dict.fromkeys(self.parts.values(), 0)
        self.waits = self.batches = 0
        self.inside: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.launches[self.inside[-1]] += not function.is_view
        self.waits += function.overloadpacket.__name__ in self.WAITS
        output = function(*args, **(kwargs or {}))
        if function.overloadpacket.__name__ == "_to_copy":
            self.waits += args[0].device.type != "cpu" and output.device.type == "cpu"
        return output

    def enter(self, module: nn.Module, *_: Any) -> None:
        if not self.inside:
            self.batches += 1
            self.__enter__()
        self.inside.append(self.parts[module])

    def leave(self, *_: Any) -> None:
        self.inside.pop()
        if not self.inside:
            self.__exit__(None, None, None)


def count_operations(model: TriaffineForNestedNER, run: Callable[[], None]) -> dict[str, Any]:
    """Launches and waits of the model's forward pass in a batch of a run, on average."""
    seen = Operations(model)
    hooks = [
        hook
        for part in seen.parts
        for hook in (part.register_forward_pre_hook(seen.enter), part.register_forward_hook(seen.leave))
    ]
    run()
    for hook in hooks:
        hook.remove()
    launches = {part: round(count / seen.batches) for part, count in seen.launches.items()}
    return {"launches": sum(launches.values()), "launches_by_part": launches, "waits": seen.waits / seen.batches}


def measure_training(
    model: TriaffineForNestedNER,
    processor: TriaffineProcessor,
    records: list[dict[str, Any]],
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    label2id: Any = model.config.label2id
    collate = DataCollatorForNestedNER(processor, label2id)
    encoded = encode_records(processor, records)  # once, as the Trainer does
    sizes = [feature_size(feature) for feature in encoded]
    batches = TrainingBatchSampler(sizes, arguments.batch_size or 32, seed=0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)  # the Trainer's
    model.train()
    recorded = graphs.Graphs(model.config, model.device, model.parameters())

    def step(batch: dict[str, Any]) -> dict[str, torch.Tensor]:
        with autocast(arguments):
            loss = model(**batch).loss
        loss.backward()
        return {"loss": loss.detach()}

    def train() -> None:
        for rows in batches:
            batch = collate([encoded[row] for row in rows])
            on_device = {name: values.to(arguments.device) for name, values in batch.items()}
            recorded.run(step, on_device) if graphs.are_wanted(model.device) else step(on_device)
            optimizer.step()
            optimizer.zero_grad()

    row = {"what": "training", "batch_size": arguments.batch_size}
    row |= measure_run(train, model, arguments, step=train_encoder)
    return row | count_operations(model, train)


def measure_run(
    run: Callable[[], None],
    model: TriaffineForNestedNER,
    arguments: argparse.Namespace,
    step: Callable[[nn.Module, dict[str, Any]], None],
) -> dict[str, Any]:
    """Times `run` in turn with the encoder alone (`step`) on the batches that `run` gives it."""
    inputs = record_inputs(model.encoder, run)
    sentences = sum(len(batch["input_ids"]) for batch in inputs)
    padded = sum(batch["input_ids"].numel() for batch in inputs)
    subwords = sum(int(batch["attention_mask"].sum()) for batch in inputs)

    def run_encoder_alone() -> None:
        with autocast(arguments) if step is train_encoder else contextlib.nullcontext():
            for batch in inputs:
                step(model.encoder, batch)

    calls = {"whole": run, "encoder": run_encoder_alone}
    if step is run_encoder:
        calls["token_classification"] = classify_tokens(model, inputs)
    if arguments.graphs:
        os.environ[graphs.SWITCH] = "1"
        for _ in range(graphs.EAGER_FIRST + 1):
            run()  # which records them
    seconds = time_interleaved(calls, arguments.repeats, arguments.device, clock=CLOCKS[arguments.clock])
    os.environ[graphs.SWITCH] = "0"
    return {
        "clock": arguments.clock,
        "graphs": arguments.graphs,
        "max_span_width": model.config.max_span_width,
        "sentences": sentences,
        "subwords": subwords,
        "padded_over_subwords": round(padded / subwords, 3),
        "sentences_a_second": round(sentences / seconds["whole"], 1),
        "seconds": round(seconds["whole"], 3),
        "encoder_seconds": round(seconds["encoder"], 3),
        **(
            {"token_classification_seconds": round(seconds["token_classification"], 3)}
            if "token_classification" in seconds
            else {}
        ),
        "times_encoder": round(seconds["whole"] / seconds["encoder"], 3),
        **measure_parts(model, run, arguments.device, len(inputs)),
    }


def classify_tokens(model: TriaffineForNestedNER, inputs: list[dict[str, Any]]) -> Callable[[], None]:
    """transformers' token classification with an encoder of the same sizes, on the same batches: scores on the host."""
    config = copy.deepcopy(model.encoder.config)
    config.num_labels = 2 * len(model.config.entity_labels) + 1
    peer = AutoModelForTokenClassification.from_config(config).to(model.device, model.encoder.dtype).eval()
    names = ("input_ids", "attention_mask", "token_type_ids")

    @torch.no_grad()
    def run() -> None:
        for batch in inputs:
            peer(**{name: batch[name] for name in names if name in batch}).logits.float().softmax(-1).cpu()

    return run


def record_inputs(encoder: nn.Module, run: Callable[[], None]) -> list[dict[str, Any]]:
    inputs: list[dict[str, Any]] = []
    hook = encoder.register_forward_pre_hook(lambda _module, _args, given: inputs.append(given), with_kwargs=True)
    run()
    hook.remove()
    return inputs


@torch.no_grad()
def run_encoder(encoder: nn.Module, batch: dict[str, Any]) -> None:
    encoder(**batch)


def train_encoder(encoder: nn.Module, batch: dict[str, Any]) -> None:
    """Forward and backward; the updates belong to the rest."""
    states = encoder(**batch).last_hidden_state
    states.backward(torch.ones_like(states))
    encoder.zero_grad()


def measure_parts(
    model: TriaffineForNestedNER, run: Callable[[], None], device: str, batches: int
) -> dict[str, dict[str, float]]:
    """Times each part of the model, forward and backward: its share of the time, and milliseconds a batch.

    The parts follow one another, so the time from one mark to the next belongs to the part between them. On a GPU, the
    host waits at each mark, so that a part has the time of its kernels or of their launches, whichever is longer.
    """
    seconds = dict.fromkeys(("encoder", "words", "head", "rest"), 0.0)
    last = 0.0

    def mark(part: str) -> None:
        nonlocal last
        synchronize(device)
        now = perf_counter()
        seconds[part] += now - last
        last = now

    def mark_backward(output: torch.Tensor, part: str) -> None:
        """The gradient of a part's output is there when the part after it, `part`, has done its work."""
        if output.requires_grad:
            output.register_hook(lambda _gradient: mark(part))

    def after_encoder(_module: nn.Module, _args: Any, output: Any) -> None:
        mark("encoder")
        mark_backward(output.last_hidden_state, "words")

    def after_words(_module: nn.Module, _args: Any, output: torch.Tensor) -> None:
        mark("words")
        mark_backward(output, "head")

    embeddings: Any = model.get_input_embeddings()
    hooks = [
        model.encoder.register_forward_pre_hook(lambda *_: mark("rest")),
        model.encoder.register_forward_hook(after_encoder),
        model.words.register_forward_hook(after_words),
        model.head.register_forward_hook(lambda *_: mark("head")),
        # The last gradient of all.
        embeddings.weight.register_post_accumulate_grad_hook(lambda _weight: mark("encoder")),
    ]
    last = perf_counter()
    run()
    mark("rest")
    for hook in hooks:
        hook.remove()
    total = sum(seconds.values())
    return {
        "share": {part: round(taken / total, 3) for part, taken in seconds.items()},
        "milliseconds_a_batch": {part: round(1e3 * taken / batches, 3) for part, taken in seconds.items()},
    }


def autocast(arguments: argparse.Namespace) -> torch.autocast:
    return torch.autocast(arguments.device.split(":")[0], torch.bfloat16, enabled=arguments.dtype == "bfloat16")


if __name__ == "__main__":
    main()
