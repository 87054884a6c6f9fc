"""A ladder of recipes: F1 of a first recipe, of one change at a time and of changes together, with several seeds.

    python benchmarks/accuracy.py outputs/ladder --encoder MINILM \\
        --corpus genia=genia.train.jsonl,genia.dev.jsonl --corpus gum=gum.train.conllu,gum.dev.conllu

A job is one training: a corpus, a variant, a seed. Jobs run one after the other, those of the first seed first; a job
that is finished is skipped and one that was interrupted is resumed, so the same command goes on after any stop. After
each job, `--results` (JSON) and a figure beside it are written anew. The first variant, `start`, is what all others are
compared with.

Nothing is chosen on the data that is scored: training ends with its last update, and the model is scored once.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuring import describe_machine, source_revision

from modeling_triaffine.data import load_nested_ner
from modeling_triaffine.evaluation import score_entities, scores_by_depth
from modeling_triaffine.evaluation.analysis import paired_bootstrap

TRAIN = [sys.executable, str(Path(__file__).resolve().parents[1] / "examples" / "train.py")]
# Options of a training that chooses nothing and is scored after its last update.
SCORED_ONCE = {"do_predict": "true", "do_eval": "false", "eval_strategy": "no", "card_examples": 0}
START = "start"
# The start: of what the recipe of today says, these are set back, by empty values, to what they were before.
START_OPTIONS: dict[str, Any] = {
    "words": "corpus",  # those of the published scores, which the dev sentences are scored on
    "per_device_train_batch_size": 16,
    **dict.fromkeys(("warmup_steps", "ema_decay", "boundary_smoothing", "mix_layers", "cross_span_residual"), ""),
    **dict.fromkeys(("char_vocab_size", "char_embedding_size", "char_lstm_hidden_size"), ""),
}
# The recipe of today.
TOGETHER: dict[str, Any] = {
    "per_device_train_batch_size": 8,
    "warmup_steps": 0.1,
    "boundary_smoothing": 0.1,
    "mix_layers": "true",
    "cross_span_residual": "true",
    "char_embedding_size": 25,
    "char_lstm_hidden_size": 25,
    "ema_decay": 0.99,
}
# Variant → options of training that differ from the start's.
VARIANTS: dict[str, dict[str, Any]] = {
    START: {},
    "boundary-smoothing": {"boundary_smoothing": 0.1},
    "batches-of-8": {"per_device_train_batch_size": 8},
    "warm-up": {"warmup_steps": 0.1},
    "encoder-dropout": {"encoder_dropout": 0.2},
    "characters": {"char_embedding_size": 25, "char_lstm_hidden_size": 25},
    "double-rates": {"learning_rate": 2e-3, "embeddings_learning_rate": 2e-3, "encoder_learning_rate": 2e-4},
    "half-rates": {"learning_rate": 5e-4, "embeddings_learning_rate": 5e-4, "encoder_learning_rate": 5e-5},
    "averaged-weights": {"ema_decay": 0.99},
    "layer-mixing": {"mix_layers": "true"},
    "residual": {"cross_span_residual": "true"},
    "together": TOGETHER,
    "together-batches-of-16": {**TOGETHER, "per_device_train_batch_size": 16},
    "together-without-smoothing-and-averages": {**TOGETHER, "boundary_smoothing": "", "ema_decay": ""},
    "together-without-smoothing-and-averages-16": {
        **TOGETHER,
        "per_device_train_batch_size": 16,
        "boundary_smoothing": "",
        "ema_decay": "",
    },
    "encoder-2e-4": {**TOGETHER, "encoder_learning_rate": 2e-4},
    "one-lstm-layer": {**TOGETHER, "lstm_layers": 1},
    "no-lstm": {**TOGETHER, "lstm_hidden_size": 0},
    "together-query-axis": {**TOGETHER, "cross_span_axis": "query"},
    "together-aux-10": {**TOGETHER, "aux_loss_weight": 10},
    "together-head-2e-3": {**TOGETHER, "learning_rate": 2e-3, "embeddings_learning_rate": 2e-3},
    "together-previous-sentence": {**TOGETHER, "context": "previous_sentence"},
    "together-document": {**TOGETHER, "context": "document"},
    "previous-sentence": {"context": "previous_sentence"},
    "60-candidates": {"max_candidates": 60},
    "full-tensors": {"triaffine_rank": "none"},
    **{f"rank-{rank}": {"triaffine_rank": rank} for rank in (16, 32, 128)},
    # What the published code does otherwise.
    "loss-over-the-batch": {"loss_reduction": "batch"},
    "query-axis": {"cross_span_axis": "query"},
    "plain-shuffling": {"train_sampling_strategy": "random"},
    "words-of-raw-text": {"words": "text"},
    "both-cuttings": {"words": "both"},
    "flat-annotation": {"flat_annotation": "outermost"},  # for a corpus made by `keep_outermost.py`
}
# Options that a corpus needs unless the variant has its own: GUM has sentences of more than 30 entities.
OF_CORPUS = {"gum": {"max_candidates": 50}}
FIGURES = ("f1", "precision", "recall")
MEANS = ("f1", "flat_f1", "nested_f1", "outermost_f1", "inner_f1")


@dataclass(frozen=True)
class Job:
    """One training. `folder` is where it writes; it is finished when `measured.json` is there."""

    corpus: str
    variant: str
    seed: int
    folder: Path

    @property
    def measured(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.json")  # a corpus may be called genia-3.02


def main() -> None:
    arguments = parse_arguments()
    jobs = [
        Job(corpus, variant, seed, arguments.folder / f"{corpus}-{variant}-{seed}")
        for seed in arguments.seeds
        for variant in arguments.variants
        for corpus in arguments.corpus
    ]
    for job in jobs:
        if not job.measured.exists():
            train(job, arguments)
            write_results(jobs, arguments)
    write_results(jobs, arguments)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Where the trainings are written.")
    parser.add_argument("--corpus", action="append", required=True, metavar="NAME=TRAIN,DEV", type=parse_corpus)
    parser.add_argument("--encoder", required=True, help="Folder or Hub name of the encoder.")
    parser.add_argument("--recipe", default="genia-minilm")
    parser.add_argument("--max_train_samples", type=int, default=3000)
    parser.add_argument("--num_train_epochs", type=int, default=3)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS), metavar="VARIANT")
    parser.add_argument("--options", nargs="+", default=[], metavar="NAME=VALUE", help="Of every training: bf16=true.")
    parser.add_argument("--results", type=Path, help="JSON file of the results; default: results.json in the folder.")
    arguments = parser.parse_args()
    arguments.corpus = dict(arguments.corpus)
    return arguments


def parse_corpus(text: str) -> tuple[str, tuple[str, str]]:
    name, _, files = text.partition("=")
    train_file, _, dev_file = files.partition(",")
    if not (name and train_file and dev_file):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=TRAIN,DEV")
    return name, (train_file, dev_file)


# ---- Training ----


def train(job: Job, arguments: argparse.Namespace) -> None:
    """Trains and scores; then writes what was measured, which makes the job a finished one."""
    job.folder.parent.mkdir(parents=True, exist_ok=True)
    train_file, dev_file = arguments.corpus[job.corpus]
    options = {
        "recipe": arguments.recipe,
        "model_name_or_path": arguments.encoder,
        "train_file": train_file,
        "test_file": dev_file,
        "max_train_samples": arguments.max_train_samples,
        "num_train_epochs": arguments.num_train_epochs,
        **SCORED_ONCE,
        **START_OPTIONS,
        **OF_CORPUS.get(job.corpus, {}),
        **VARIANTS[job.variant],
        **dict(option.split("=", 1) for option in arguments.options),
        "seed": job.seed,
        "output_dir": job.folder,
    }
    print(f"{job.corpus}, {job.variant}, seed {job.seed}", flush=True)
    resumed = any(job.folder.glob("checkpoint-*"))
    command = [*TRAIN, *(f"--{name}={value}" for name, value in options.items()), "--resume_from_checkpoint"]
    start = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{job.folder}: training ended with status {os.waitstatus_to_exitcode(status)}.")
    metrics = json.loads((job.folder / "all_results.json").read_text())
    measured = {
        "seconds": time.perf_counter() - start,
        # Beside other work, a better measure than the clock.
        "processor_seconds": usage.ru_utime + usage.ru_stime,
        "prediction_seconds": metrics["test_runtime"],
        "raw_text_f1": metrics.get("test_raw_text_f1"),  # None where the corpus has words only
        "peak_megabytes": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6,
        "resumed": resumed,  # then the seconds are those of the last part only
        **source_revision(Path(__file__)),
    }
    job.measured.write_text(json.dumps(measured, indent=1))


# ---- Results ----


def write_results(jobs: Sequence[Job], arguments: argparse.Namespace) -> None:
    """Writes the table of what is finished, as JSON, and draws it."""
    finished = [job for job in jobs if job.measured.exists()]
    path: Path = arguments.results or arguments.folder / "results.json"
    rows: list[dict[str, Any]] = []
    for corpus, (_, dev_file) in arguments.corpus.items():
        references = read_references(dev_file)
        rows += summarize([job for job in finished if job.corpus == corpus], references)
    terms = {name: getattr(arguments, name) for name in ("recipe", "max_train_samples", "num_train_epochs", "options")}
    path.write_text(json.dumps({**terms, "machine": describe_machine(), "rows": rows}, indent=1) + "\n")
    for row in rows:
        print(format_row(row), flush=True)
    draw(rows, path.with_suffix(".svg"))


def read_references(dev_file: str) -> list[list[Any]]:
    return list(load_nested_ner({"test": dev_file})["test"]["entities"])


def summarize(jobs: Sequence[Job], references: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """A row for each variant: its runs, their mean and deviation, and the difference to the start."""
    predictions = {(job.variant, job.seed): read_predictions(job) for job in jobs}
    for variant in dict.fromkeys(job.variant for job in jobs):
        runs = [describe_run(job, references) for job in jobs if job.variant == variant]
        row: dict[str, Any] = {"corpus": jobs[0].corpus, "variant": variant, "options": VARIANTS[variant], "runs": runs}
        for figure in MEANS:
            values = [run[figure] for run in runs]
            row[figure] = {"mean": statistics.mean(values), "deviation": statistics.stdev(values) if runs[1:] else None}
        seeds = [run["seed"] for run in runs if (START, run["seed"]) in predictions]
        if variant != START and seeds:
            changed, start = (pool([predictions[name, seed] for seed in seeds]) for name in (variant, START))
            difference = paired_bootstrap(changed, start, pool([references] * len(seeds)))
            row["against_start"] = {"seeds": seeds, **difference}
        yield row


def describe_run(job: Job, references: Sequence[Any]) -> dict[str, Any]:
    predictions = read_predictions(job)
    scores = score_entities(predictions, references)
    of_kind = {f"{kind}_{figure}": scores[kind][figure] for kind in ("flat", "nested") for figure in FIGURES}
    by_depth = scores_by_depth(predictions, references)
    outermost = by_depth.pop("1")
    of_depth = {"outermost_f1": outermost["f1"], "inner_f1": micro_f1(by_depth.values())}
    measured = json.loads(job.measured.read_text())
    return {"seed": job.seed, **{figure: scores[figure] for figure in FIGURES}, **of_kind, **of_depth, **measured}


def micro_f1(parts: Iterable[Mapping[str, float]]) -> float:
    parts = list(parts)
    correct, predicted, gold = (sum(part[name] for part in parts) for name in ("correct", "predicted", "gold"))
    return 2 * correct / (predicted + gold) if predicted + gold else 0.0


def read_predictions(job: Job) -> list[list[dict[str, Any]]]:
    lines = (job.folder / "test_predictions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["entities"] for line in lines]


def pool(runs: Sequence[Sequence[Sequence[Mapping[str, Any]]]]) -> list[list[dict[str, Any]]]:
    """The entities of several seeds' runs, sentence by sentence, kept apart by their types.

    A sentence that the bootstrap draws then brings the predictions of all seeds with it.
    """
    return [
        [{**entity, "type": f"{entity['type']} {number}"} for number, found in enumerate(sentence) for entity in found]
        for sentence in zip(*runs, strict=True)
    ]


def format_row(row: Mapping[str, Any]) -> str:
    figures = " ".join(f"{100 * row[name]['mean']:6.2f}" for name in MEANS)
    against = row.get("against_start")
    interval = (
        ""
        if against is None
        else "  {:+.2f} [{:+.2f}, {:+.2f}]".format(
            *(100 * value for value in (against["difference"], *against["interval"]))
        )
    )
    return f"{row['corpus']:8} {row['variant']:28} {len(row['runs'])} seeds  {figures}{interval}"


def draw(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """A panel for each corpus: F1 of every run as a dot, the mean as a line, the start's mean down the panel."""
    import matplotlib.pyplot as plt

    corpora = list(dict.fromkeys(row["corpus"] for row in rows))
    variants = list(dict.fromkeys(row["variant"] for row in rows))
    if not corpora:
        return
    size = (1.5 + 3.5 * len(corpora), 1.5 + 0.35 * len(variants))
    figure, panels = plt.subplots(1, len(corpora), figsize=size, sharey=True, squeeze=False, layout="constrained")
    for corpus, panel in zip(corpora, panels[0], strict=True):
        for row in (row for row in rows if row["corpus"] == corpus):
            place, mean = variants.index(row["variant"]), 100 * row["f1"]["mean"]
            panel.plot([100 * run["f1"] for run in row["runs"]], [place] * len(row["runs"]), "o", color="#56B4E9", ms=4)
            panel.plot([mean, mean], [place - 0.3, place + 0.3], color="#0072B2", lw=2)
            if row["variant"] == START:
                panel.axvline(mean, color="#999999", lw=0.8, zorder=0)
        panel.set_title(f"{corpus}: dev F1", loc="left", fontsize=10)
        panel.set_yticks(range(len(variants)), variants)
        panel.grid(axis="x", alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0][0].invert_yaxis()
    figure.savefig(path)
    plt.close(figure)


if __name__ == "__main__":
    main()
