"""F1 of other libraries beside this one's: trained on the same sentences, with the same encoder, for as many epochs.

    python benchmarks/peer_accuracy.py outputs/peers --encoder MINILM \\
        --train_file genia.train.jsonl --dev_file genia.dev.jsonl

Each library trains in a process and a virtual environment of its own, on one thread, as its own documentation
recommends. What it predicts for the words of the dev sentences is scored here, by one measure for all. Those that are
finished are skipped, so the same command goes on after a stop; `--peers` runs some of them only.
"""

import argparse
import json
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accuracy import FIGURES
from keep_outermost import keep_outermost
from peers import environment

from modeling_triaffine.data import load_nested_ner
from modeling_triaffine.evaluation import score_entities
from modeling_triaffine.machine import describe_machine

VARIABLES = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
# Reads what to do as one line of JSON. A setup trains and leaves `predict(sentences)`, from lists of words to lists of
# (first word, word after the last, type).
CHILD = """
import json, os, resource, sys, time
from importlib.metadata import version
given = json.loads(sys.stdin.readline())
encoder, train, dev, labels = (given[name] for name in ("encoder", "train", "dev", "labels"))
epochs, seed, folder, options = (given[name] for name in ("epochs", "seed", "folder", "options"))
measured = {"versions": {name: version(name) for name in given["distributions"]}}
output = given["output"]
import torch
torch.set_num_threads(1)
def measure(name, start):
    measured[name + "_processor_seconds"] = time.process_time() - start
    measured[name + "_peak_kilobytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return time.process_time()
start = measure("import", 0)
{setup}
start = measure("training", start)
predicted = [
    [{"start": int(first), "end": int(end), "type": label} for first, end, label in entities]
    for entities in predict(dev)
]
measure("prediction", start)
with open(output, "w") as file:
    json.dump({**measured, "predicted": predicted}, file)
"""


@dataclass(frozen=True)
class Peer:
    """A library: what to install (nothing: this environment), how to train, and what the setup takes as `options`.

    An environment is shared by all peers of one `library`. `flat`: it cannot have nested entities in its training data,
    and gets the outermost ones.
    """

    library: str
    requirements: tuple[str, ...]
    setup: str
    options: dict[str, Any]
    flat: bool = False


OURS = Peer(
    "modeling_triaffine",
    (),
    """
from modeling_triaffine import TriaffineForNestedNER, TriaffineProcessor
from modeling_triaffine.commands import main
from modeling_triaffine.evaluation.prediction import predict_words
os.makedirs(folder, exist_ok=True)
train_file = folder + "/train.jsonl"
with open(train_file, "w") as file:
    file.writelines(json.dumps(record) + "\\n" for record in train)
options |= {
    "model_name_or_path": encoder, "train_file": train_file, "output_dir": folder, "num_train_epochs": epochs,
    "seed": seed, "do_eval": "false", "eval_strategy": "no", "save_strategy": "no", "load_best_model_at_end": "false",
    "card_examples": 0,
}
main(["train", *(f"--{name}={value}" for name, value in options.items())])
def predict(sentences):
    model = TriaffineForNestedNER.from_pretrained(folder)
    processor = TriaffineProcessor.from_pretrained(folder)
    records = [{"tokens": words} for words in sentences]
    for entities in predict_words(model, processor, records):
        yield [(entity["start"], entity["end"], entity["type"]) for entity in entities]
""",
    {"recipe": "genia-minilm", "words": "corpus"},
)
# Its README's training arguments. Samples are shorter than there (256 tokens, 128 pairs of markers), which only saves
# padding.
SPAN_MARKER = Peer(
    "span_marker",
    ("torch==2.13.0", "transformers<5", "span-marker==1.8.1"),
    """
from datasets import Dataset
from span_marker import SpanMarkerModel, Trainer
from transformers import TrainingArguments, set_seed
set_seed(seed)
tags = ["O", *(border + label for label in labels for border in ("B-", "I-"))]
def tagged(record):
    found = [0] * len(record["tokens"])
    for entity in record["entities"]:
        inside = tags.index("I-" + entity["type"])
        found[entity["start"] : entity["end"]] = [inside] * (entity["end"] - entity["start"])
        found[entity["start"]] = inside - 1
    return {"tokens": record["tokens"], "ner_tags": found}
limits = {"model_max_length": 128, "marker_max_length": 64, "entity_max_length": 8}
model = SpanMarkerModel.from_pretrained(encoder, labels=tags, **limits)
arguments = TrainingArguments(
    folder, num_train_epochs=epochs, seed=seed, use_cpu=True, report_to="none", save_strategy="no", **options,
)
Trainer(model, arguments, Dataset.from_list([tagged(record) for record in train])).train()
def predict(sentences):
    for entities in model.predict(sentences, batch_size=32):
        yield [(entity["word_start_index"], entity["word_end_index"], entity["label"]) for entity in entities]
""",
    {"per_device_train_batch_size": 32, "learning_rate": 5e-5, "weight_decay": 0.01, "warmup_ratio": 0.1},
    flat=True,
)
# The configuration that its training guide starts from. Every sentence is asked for all labels, as the guide advises
# for a fixed set of them.
GLINER = Peer(
    "gliner",
    ("torch==2.13.0", "gliner[training]==0.2.29"),
    """
import re
from gliner import GLiNER
from transformers import set_seed
set_seed(seed)
hidden = json.load(open(encoder + "/config.json"))["hidden_size"]
model = GLiNER.from_config({"model_name": encoder, "hidden_size": hidden, "span_mode": "markerV0", "max_width": 12})
def example(record):
    entities = [[entity["start"], entity["end"] - 1, entity["type"]] for entity in record["entities"]]
    return {"tokenized_text": record["tokens"], "ner": entities, "ner_labels": labels}
model.train_model(
    [example(record) for record in train], None, output_dir=folder, max_steps=-1, num_train_epochs=epochs, seed=seed,
    use_cpu=True, save_strategy="no", dataloader_num_workers=0, lr_scheduler_type="cosine", **options,
)
def split(text):
    return ((match.group(), match.start(), match.end()) for match in re.finditer(r"\\S+", text))
def predict(sentences):
    model.data_processor.words_splitter = split
    texts = [" ".join(words) for words in sentences]
    for text, entities in zip(texts, model.inference(texts, labels, flat_ner=False, batch_size=32)):
        words_before = lambda place: len(text[:place].split())
        yield [(words_before(found["start"]), words_before(found["end"]), found["label"]) for found in entities]
""",
    {"per_device_train_batch_size": 8, "learning_rate": 1e-5, "others_lr": 5e-5},
)
# `spacy init config --lang en --pipeline spancat --gpu`, but for spans of up to 12 words instead of 3.
SPANCAT = Peer(
    "spancat",
    ("torch==2.13.0", "spacy==3.8.18", "spacy-transformers==1.4.0"),
    """
from spacy.cli.init_config import init_config
from spacy.tokens import Doc, DocBin, Span
from spacy.training.initialize import init_nlp
from spacy.training.loop import train as train_pipeline
from spacy.util import load_config_from_str
from spacy.vocab import Vocab
def write(path, records):
    docs = DocBin()
    for record in records:
        doc = Doc(Vocab(), words=record["tokens"])
        entities = record["entities"]
        doc.spans["sc"] = [Span(doc, entity["start"], entity["end"], entity["type"]) for entity in entities]
        docs.add(doc)
    docs.to_disk(path)
os.makedirs(folder, exist_ok=True)
write(folder + "/train.spacy", train)
write(folder + "/dev.spacy", train[:1])
config = init_config(lang="en", pipeline=["spancat"], optimize="efficiency", gpu=True)
given = {
    "paths.train": folder + "/train.spacy", "paths.dev": folder + "/dev.spacy", "system.seed": seed,
    "components.transformer.model.name": encoder,
    "components.spancat.suggester": {"@misc": "spacy.ngram_range_suggester.v1", "min_size": 1, "max_size": 12},
    "training.max_epochs": epochs, "training.eval_frequency": 100000, "training.patience": 0,
}
if options:
    updates = epochs * -(-len(train) // options["batch_size"])
    optimizer = "training.optimizer.learn_rate."
    given |= {
        "training.accumulate_gradient": 1,
        "training.batcher": {"@batchers": "spacy.batch_by_sequence.v1", "size": options["batch_size"]},
        optimizer + "initial_rate": options["learning_rate"],
        optimizer + "warmup_steps": updates // 10, optimizer + "total_steps": updates,
    }
for name, value in given.items():
    *sections, last = name.split(".")
    section = config
    for part in sections:
        section = section[part]
    section[last] = value
nlp = init_nlp(load_config_from_str(config.to_str()))
train_pipeline(nlp)
def predict(sentences):
    for doc in nlp.pipe([Doc(nlp.vocab, words=words) for words in sentences], batch_size=32):
        yield [(span.start, span.end, span.label_) for span in doc.spans["sc"]]
""",
    {},
)
# What is documented for GLiNER and spaCy is for longer trainings: three epochs of few sentences are too few updates at
# such rates. So they also run with the batches and rates of our recipe; spaCy has one rate for all, here the encoder's.
PEERS = {
    "modeling_triaffine": OURS,
    "span_marker": SPAN_MARKER,
    "gliner": GLINER,
    "gliner-our-rates": replace(
        GLINER, options={"per_device_train_batch_size": 8, "learning_rate": 1e-4, "others_lr": 1e-3}
    ),
    "spancat": SPANCAT,
    "spancat-our-rates": replace(SPANCAT, options={"batch_size": 8, "learning_rate": 1e-4}),
}


def main() -> None:
    arguments = parse_arguments()
    corpus = load_nested_ner({"train": arguments.train_file, "test": arguments.dev_file})
    train, dev = (corpus[split].select_columns(["tokens", "entities"]).to_list() for split in ("train", "test"))
    train, dev = train[: arguments.max_train_samples], dev[: arguments.max_dev_samples]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.peers:
        if not finished(arguments.folder, name).exists():
            run(name, train, dev, arguments)
        write_results(dev, arguments)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="For the trainings and what they predict.")
    parser.add_argument("--encoder", required=True, help="Folder of the encoder.")
    parser.add_argument("--train_file", required=True)
    parser.add_argument("--dev_file", required=True)
    parser.add_argument("--max_train_samples", type=int, default=1000)
    parser.add_argument("--max_dev_samples", type=int, help="Score the first N sentences only.")
    parser.add_argument("--num_train_epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS), metavar="PEER")
    parser.add_argument("--environments", type=Path, help="Folder of their environments; default: in the folder.")
    parser.add_argument("--results", type=Path, help="JSON file of the results; default: results.json in the folder.")
    return parser.parse_args()


def finished(folder: Path, name: str) -> Path:
    """What a training measured and predicted; it is written last."""
    return folder / f"{name}.json"


def run(name: str, train: Sequence[Any], dev: Sequence[Any], arguments: argparse.Namespace) -> None:
    peer = PEERS[name]
    if peer.flat:
        train = [{**record, "entities": keep_outermost(record["entities"])} for record in train]
    names = ("torch", "transformers", *(re.split(r"[<=\[]", requirement)[0] for requirement in peer.requirements))
    given = {
        "encoder": str(Path(arguments.encoder).resolve()),
        "train": train,
        "dev": [record["tokens"] for record in dev],
        "labels": sorted({entity["type"] for record in train for entity in record["entities"]}),
        "epochs": arguments.num_train_epochs,
        "seed": arguments.seed,
        "options": peer.options,
        "folder": str((arguments.folder / name).resolve()),
        "distributions": list(dict.fromkeys(names)),
        "output": str(finished(arguments.folder, name).resolve()),
    }
    environments = arguments.environments or arguments.folder / "environments"
    python = environment(environments / peer.library, peer.requirements)
    code = CHILD.replace("{setup}", peer.setup)
    subprocess.run([python, "-c", code], input=json.dumps(given), text=True, check=True, env=os.environ | VARIABLES)


def write_results(dev: Sequence[Any], arguments: argparse.Namespace) -> None:
    """Scores all that is finished, and writes it as JSON."""
    references = [record["entities"] for record in dev]
    rows = [
        {"peer": name, "options": peer.options, **describe(finished(arguments.folder, name), references)}
        for name, peer in PEERS.items()
        if finished(arguments.folder, name).exists()
    ]
    terms = {name: getattr(arguments, name) for name in ("max_train_samples", "num_train_epochs", "seed")}
    path: Path = arguments.results or arguments.folder / "results.json"
    path.write_text(
        json.dumps({**terms, "dev_sentences": len(dev), "machine": describe_machine(), "rows": rows}, indent=1) + "\n"
    )
    for row in rows:
        figures = (f"{name} {100 * part['f1']:.1f}" for name, part in row["scores"].items())
        print(f"{row['peer']:20}", *figures, flush=True)


def describe(path: Path, references: Sequence[Any]) -> dict[str, Any]:
    """What was measured, with scores in place of the predictions.

    `outermost` compares what is inside no other one on either side, so that flat predictions can be right in all of it.
    """
    measured = json.loads(path.read_text())
    predictions = measured.pop("predicted")
    scores = score_entities(predictions, references)
    outermost = score_entities(*([keep_outermost(found) for found in side] for side in (predictions, references)))
    parts = {"all": scores, "flat": scores["flat"], "nested": scores["nested"], "outermost": outermost}
    return {**measured, "scores": {name: {figure: part[figure] for figure in FIGURES} for name, part in parts.items()}}


if __name__ == "__main__":
    main()
