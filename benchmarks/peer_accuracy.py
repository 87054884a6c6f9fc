"""F1 of other libraries and research codes beside this one's, each at its best: same sentences, same encoder.

    python benchmarks/peer_accuracy.py outputs/peers --encoder MINILM \\
        --corpus genia=genia.train.jsonl,genia.dev.jsonl --corpus gum=gum.train.conllu,gum.dev.conllu \\
        --code w2ner=W2NER --code cnn_nested_ner=CNN_Nested_NER

Each opponent trains with every setting of its grid (`peer_trainings.py`) and seed 1. The setting that is best on the
first half of the dev sentences is chosen and trained with seed 2 as well; what is compared is F1 on the second half.
Ours is the recipe, without any choice. One measure scores all.

A job is one training, in a process and an environment of its own, on one thread. Jobs run one after the other; a job
that is finished is skipped, so the same command goes on after any stop. After each, the results are written anew;
opponents whose grid is not finished are marked. `--peers` runs some opponents only. Rows and tried settings that the
file of results has already stay, so that grids can be spread over folders and machines; ours is trained in each, and
has a row for each kind of products and of processor. An opponent has one for each kind of products, until one is
complete.

`--chosen FILE` trains the settings alone that are the best in the results of earlier grids, and compares on all of the
given sentences, such as those that no choice was ever made on.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accuracy import FIGURES, OF_CORPUS, parse_corpus, pool
from keep_outermost import keep_outermost
from measuring import describe_machine, source_revision
from peer_trainings import PEERS, Peer
from peers import environment

from modeling_triaffine.data import load_nested_ner
from modeling_triaffine.evaluation import score_entities
from modeling_triaffine.evaluation.analysis import paired_bootstrap
from modeling_triaffine.files import write_text

VARIABLES = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
# glibc keeps freed memory: up to a fifth less time for whoever allocates large tensors.
KEPT_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "8000000000"}
OURS = "modeling_triaffine"
SEEDS = (1, 2)
# How matrices are multiplied, and on which device.
DEVICES = {"float32": "cpu", "bfloat16": "cpu", "tf32": "cuda"}
# Reads what to do as one line of JSON. Results are written last, and under another name until they are complete.
CHILD = """
import json, os, resource, sys, time
from importlib.metadata import version
given = json.loads(sys.stdin.readline())
encoder, train, dev, labels, code = (given[name] for name in ("encoder", "train", "dev", "labels", "code"))
seed, folder, options, device = (given[name] for name in ("seed", "folder", "options", "device"))
measured = {name: given[name] for name in ("encoder", "products")}
measured["versions"] = {name: version(name) for name in given["distributions"]}
output = given["output"]
import torch
torch.set_num_threads(1)
if given["products"] == "bfloat16":
    torch.backends.mkldnn.fp32_precision = "bf16"
if given["products"] == "tf32":
    torch.set_float32_matmul_precision("high")
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
with open(output + ".part", "w") as file:
    json.dump({**measured, "predicted": predicted}, file)
os.replace(output + ".part", output)
"""


@dataclass(frozen=True)
class Job:
    """One training: `setting` is its number in the grid of the peer. It is finished when its file is there."""

    corpus: str
    peer: str
    setting: int
    seed: int

    def file(self, folder: Path) -> Path:
        return folder / f"{self.corpus}-{self.peer}-{self.setting}-seed{self.seed}.json"


@dataclass(frozen=True)
class Corpus:
    """The sentences of one corpus; the setting is chosen on the first half of `dev`, F1 compared on the second.

    If the setting `is_chosen` already, F1 is compared on all of them.
    """

    name: str
    train: Sequence[dict[str, Any]]
    dev: Sequence[dict[str, Any]]
    is_chosen: bool

    def halves(self) -> tuple[slice, slice]:
        middle = 0 if self.is_chosen else len(self.dev) // 2
        return slice(None, middle), slice(middle, None)


def main() -> None:
    arguments = parse_arguments()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    corpora = [read_corpus(name, files, arguments) for name, files in arguments.corpus]
    for peer in arguments.peers:
        for corpus in corpora:
            if peer != OURS and is_complete(corpus, peer, arguments):
                continue
            for setting in range(len(PEERS[peer].grid)) if not corpus.is_chosen else ():
                if setting not in finished_settings(corpus, peer, arguments):
                    run(Job(corpus.name, peer, setting, SEEDS[0]), corpus, arguments)
                    write_results(corpora, arguments)
            for seed in SEEDS:
                run(Job(corpus.name, peer, choose(corpus, peer, arguments), seed), corpus, arguments)
            write_results(corpora, arguments)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="For the trainings and what they predict.")
    parser.add_argument("--encoder", required=True, help="Folder of the encoder.")
    parser.add_argument("--corpus", action="append", required=True, metavar="NAME=TRAIN,DEV", type=parse_corpus)
    parser.add_argument("--max_train_samples", type=int, default=1000)
    parser.add_argument("--max_dev_samples", type=int, help="Score the first N sentences only.")
    parser.add_argument(
        "--products",
        choices=list(DEVICES),
        default="float32",
        help="bfloat16 and tf32: factors of matrix products are rounded, sums and all else stay float32. bfloat16 is "
        "several times as fast where the processor multiplies bfloat16 matrices (AMX). tf32 trains on a GPU.",
    )
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS), metavar="PEER")
    parser.add_argument("--code", action="append", default=[], metavar="PEER=FOLDER", help="A research code's folder.")
    parser.add_argument("--environments", type=Path, help="Folder of their environments; default: in the folder.")
    parser.add_argument("--chosen", type=Path, help="JSON file of the results that the settings are taken from.")
    parser.add_argument("--results", type=Path, help="JSON file of the results; default: results.json in the folder.")
    arguments = parser.parse_args()
    arguments.results = arguments.results or arguments.folder / "results.json"
    arguments.code = dict(pair.split("=", 1) for pair in arguments.code)
    for name in arguments.peers:
        if PEERS[name].repository and not Path(arguments.code.get(name, "missing")).is_dir():
            parser.error(f"{name} has no package: give --code {name}=FOLDER, a clone of {PEERS[name].repository}")
        if arguments.products == "tf32" and not PEERS[name].on_gpu:
            parser.error(f"{name} is only set up for the CPU: give it other --products than tf32.")
    return arguments


def read_corpus(name: str, files: tuple[str, str], arguments: argparse.Namespace) -> Corpus:
    loaded = load_nested_ner(dict(zip(("train", "test"), files, strict=True)))
    train, dev = (loaded[split].select_columns(["tokens", "entities"]).to_list() for split in ("train", "test"))
    return Corpus(name, train[: arguments.max_train_samples], dev[: arguments.max_dev_samples], bool(arguments.chosen))


# ---- Training ----


def run(job: Job, corpus: Corpus, arguments: argparse.Namespace) -> None:
    """Trains and predicts, unless that was done before with the same encoder."""
    file = job.file(arguments.folder)
    same = {"encoder": str(Path(arguments.encoder).resolve()), "products": arguments.products}
    if file.exists():
        done = json.loads(file.read_text())
        if others := {name: done[name] for name, value in same.items() if done[name] != value}:
            raise SystemExit(f"{file} was made with other settings, {others}. Give another folder for these.")
        return
    peer = PEERS[job.peer]
    train = corpus.train
    if peer.flat:
        train = [{**record, "entities": keep_outermost(record["entities"])} for record in train]
    given = {
        **same,
        "train": train,
        "dev": [record["tokens"] for record in corpus.dev],
        "labels": sorted({entity["type"] for record in train for entity in record["entities"]}),
        "seed": job.seed,
        "options": options_of(job),
        "device": DEVICES[arguments.products],
        "folder": str(file.with_suffix("").resolve()),
        "code": str(Path(arguments.code[job.peer]).resolve()) if peer.repository else None,
        "distributions": distributions(peer),
        "output": str(file.resolve()),
    }
    environments = arguments.environments or arguments.folder / "environments"
    try:
        python = environment(environments / peer.library, peer.requirements)
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"The environment of {job.peer}, {environments / peer.library}, could not be made.") from error
    print(file.stem, given["options"], flush=True)
    code = CHILD.replace("{setup}", peer.setup)
    variables = os.environ | VARIABLES | (KEPT_MEMORY if peer.keeps_memory else {})
    done = subprocess.run([python, "-c", code], input=json.dumps(given), text=True, env=variables)
    if done.returncode:
        raise SystemExit(f"{file.stem} ended with status {done.returncode}; the same command goes on from here.")


def options_of(job: Job) -> dict[str, Any]:
    of_corpus = OF_CORPUS.get(job.corpus, {}) if PEERS[job.peer].library == OURS else {}
    return {**PEERS[job.peer].grid[job.setting], **of_corpus}


def distributions(peer: Peer) -> list[str]:
    names = ("torch", "transformers", *(re.split(r"[<=\[]", requirement)[0] for requirement in peer.requirements))
    return list(dict.fromkeys(names))


# ---- Results ----


def read_rows(arguments: argparse.Namespace) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The rows in the file of results, by their keys."""
    if not arguments.results.exists():
        return {}
    return {key(row): row for row in json.loads(arguments.results.read_text())["rows"]}


def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The key of a row. An opponent is compared with ours of the same products and processor, so ours has several."""
    processor = (row["machine"].get("processor_family"), row["machine"].get("processor_model"))
    return row["corpus"], row["peer"], row["products"], *(processor if row["peer"] == OURS else ())


def earlier_rows(corpus: Corpus, peer: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """The results of a peer on the same sentences, of this folder or of another one."""
    wanted = {"corpus": corpus.name, "peer": peer, **sentences_of(corpus)}
    return [row for row in read_rows(arguments).values() if wanted.items() <= row.items()]


def sentences_of(corpus: Corpus) -> dict[str, int]:
    return {"train_sentences": len(corpus.train), "dev_sentences": len(corpus.dev)}


def is_complete(corpus: Corpus, peer: str, arguments: argparse.Namespace) -> bool:
    return any(row["complete"] for row in earlier_rows(corpus, peer, arguments))


def finished_settings(corpus: Corpus, peer: str, arguments: argparse.Namespace) -> dict[int, float]:
    """F1 on the first half of dev with each setting that was tried."""
    earlier = (tried for row in earlier_rows(corpus, peer, arguments) for tried in row["settings"])
    grid = PEERS[peer].grid
    found = {grid.index(tried["options"]): tried["choosing_f1"] for tried in earlier if tried["options"] in grid}
    half, _ = corpus.halves()
    for setting in range(len(grid)) if not corpus.is_chosen else ():
        job = Job(corpus.name, peer, setting, SEEDS[0])
        if job.file(arguments.folder).exists():
            found[setting] = f1(predictions_of(job, arguments)[half], references_of(corpus)[half])
    return found


def choose(corpus: Corpus, peer: str, arguments: argparse.Namespace) -> int:
    """The setting with the best F1 on the first half of dev, among those that are finished, or in the given results."""
    if corpus.is_chosen:
        rows = json.loads(arguments.chosen.read_text())["rows"]
        wanted = {"corpus": corpus.name, "peer": peer, "complete": True}
        given = next(row["options"] for row in rows if wanted.items() <= row.items())
        jobs = (Job(corpus.name, peer, setting, SEEDS[0]) for setting in range(len(PEERS[peer].grid)))
        return next(job.setting for job in jobs if options_of(job) == given)
    found = finished_settings(corpus, peer, arguments)
    return max(found, key=lambda setting: found[setting])


def write_results(corpora: Sequence[Corpus], arguments: argparse.Namespace) -> None:
    """Scores all that is finished and writes it as JSON.

    An opponent's complete row takes the place of all that it has, and stays until another one is complete.
    """
    rows = read_rows(arguments)
    for corpus in corpora:
        for name in PEERS:
            if any(arguments.folder.glob(f"{corpus.name}-{name}-*-seed{SEEDS[0]}.json")):
                row = describe(corpus, name, arguments)
                if row["complete"] and name != OURS:
                    rows = {other: old for other, old in rows.items() if other[:2] != key(row)[:2]}
                if row["complete"] or not is_complete(corpus, name, arguments):
                    rows[key(row)] = row
    ordered = sorted(rows.values(), key=lambda row: (row["corpus"], list(PEERS).index(row["peer"])))
    write_text(arguments.results, json.dumps({"rows": ordered}, indent=1) + "\n")
    for row in ordered:
        means = (f"{part} {100 * figures['f1']['mean']:.1f}" for part, figures in row["scores"].items())
        print(f"{row['corpus']:6} {row['peer']:18}", *means, "" if row["complete"] else "(incomplete)", flush=True)


def describe(corpus: Corpus, peer: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """A row of the results: every setting's F1 on the first half, and the chosen one's scores on the second."""
    _, second = corpus.halves()
    references = references_of(corpus)
    settings = finished_settings(corpus, peer, arguments)
    best = choose(corpus, peer, arguments)
    jobs = [job for seed in SEEDS if (job := Job(corpus.name, peer, best, seed)).file(arguments.folder).exists()]
    scored = [score_parts(predictions_of(job, arguments)[second], references[second]) for job in jobs]
    row = {
        "corpus": corpus.name,
        "peer": peer,
        **sentences_of(corpus),
        "products": arguments.products,
        "options": options_of(Job(corpus.name, peer, best, SEEDS[0])),
        "complete": (corpus.is_chosen or len(settings) == len(PEERS[peer].grid)) and len(jobs) == len(SEEDS),
        "seeds": [job.seed for job in jobs],
        "settings": [
            {"options": PEERS[peer].grid[setting], "choosing_f1": settings[setting]} for setting in sorted(settings)
        ],
        "scores": {
            part: {figure: spread([one[part][figure] for one in scored]) for figure in FIGURES}
            for part in (scored[0] if scored else ())
        },
        "measured": [measured_by(job, arguments) for job in jobs],
        "machine": describe_machine(),
        **source_revision(Path(__file__)),
    }
    return row | compare_with_ours(corpus, jobs, arguments)


def compare_with_ours(corpus: Corpus, jobs: Sequence[Job], arguments: argparse.Namespace) -> dict[str, Any]:
    """The difference of our F1 to that of these jobs, over the seeds that both have.

    For a flat peer also that of outermost entities alone.
    """
    pairs = [(Job(corpus.name, OURS, 0, job.seed), job) for job in jobs if job.peer != OURS]
    pairs = [pair for pair in pairs if pair[0].file(arguments.folder).exists()]
    if not pairs:
        return {}
    _, second = corpus.halves()
    ours, theirs = ([predictions_of(job, arguments)[second] for job in side] for side in zip(*pairs, strict=True))
    sides = (ours, theirs, [references_of(corpus)[second]] * len(pairs))
    difference = {"ours_minus_theirs": paired_bootstrap(*map(pool, sides))}
    if PEERS[pairs[0][1].peer].flat:  # outermost in its own run: pooled, an entity may be inside one of another seed
        outermost = ([[keep_outermost(found) for found in run] for run in side] for side in sides)
        difference["ours_minus_theirs_outermost"] = paired_bootstrap(*map(pool, outermost))
    return difference


def score_parts(predictions: Sequence[Any], references: Sequence[Any]) -> dict[str, Mapping[str, float]]:
    """Scores of all entities and of parts of them.

    `outermost` compares what is inside no other one on either side, so that flat predictions can be right in all of it.
    """
    scores = score_entities(predictions, references)
    outermost = score_entities(*([keep_outermost(found) for found in side] for side in (predictions, references)))
    return {"all": scores, "flat": scores["flat"], "nested": scores["nested"], "outermost": outermost}


def spread(values: Sequence[float]) -> dict[str, Any]:
    return {"mean": statistics.mean(values), "values": list(values)}


def f1(predictions: Sequence[Any], references: Sequence[Any]) -> float:
    return float(score_entities(predictions, references)["f1"])


def predictions_of(job: Job, arguments: argparse.Namespace) -> list[list[dict[str, Any]]]:
    return list(json.loads(job.file(arguments.folder).read_text())["predicted"])


def measured_by(job: Job, arguments: argparse.Namespace) -> dict[str, Any]:
    measured = json.loads(job.file(arguments.folder).read_text())
    return {name: value for name, value in measured.items() if name not in ("predicted", "encoder")}


def references_of(corpus: Corpus) -> list[list[dict[str, Any]]]:
    return [record["entities"] for record in corpus.dev]


if __name__ == "__main__":
    main()
