"""Checks and times on a GPU: kernels, the head, whole models, training under accelerate, what happens without memory.

    benchmarks/gpu_visit.sh outputs/gpu --encoder MINILM --corpus genia.train.jsonl

The parts run one after the other, each with a time limit and a log of its own; one that fails or runs over its limit
does not stop the next. `visit.jsonl` has a line for each part and each measurement, `visit.md` the same as tables.
`--rehearse` runs the parts on the CPU in tiny sizes, so that no part fails for a trifle when a GPU is there.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from measuring import describe_machine
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel

from modeling_triaffine.data.demo import write_demo_corpus
from modeling_triaffine.drawing.tables import Table

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
# Fields of BERT-large, and of its stand-in in a rehearsal.
LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
TINY = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
REHEARSAL_SLOWER = 10  # times as long as on a GPU's machine, which has nothing else to do
MEMORY_SHARE = 0.03  # of a GPU's memory, for the parts that are to run out of it
# A training whose process may take only a share of the GPU's memory (0: all of it).
LITTLE_MEMORY = """
import sys, torch
from modeling_triaffine.commands import main
if float(sys.argv[1]):
    torch.cuda.set_per_process_memory_fraction(float(sys.argv[1]))
main(["train", *sys.argv[2:]])
"""


@dataclass(frozen=True)
class Part:
    """A command with a time limit in seconds. `measured`: the JSON lines or JSON file that it writes."""

    name: str
    limit: float
    command: Sequence[str | Path]
    measured: Path | None = None
    expected_message: str = ""
    """Pattern of what the log must hold; the part passes with it, whatever the status."""


def main() -> None:
    arguments = parse_arguments()
    if not (arguments.rehearse or torch.cuda.is_available()):
        sys.exit("torch finds no CUDA device. --rehearse runs every part on the CPU, in tiny sizes.")
    folder: Path = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    corpus = prepare(folder, arguments)
    results: list[dict[str, Any]] = [describe_machine()]
    for part in parts(folder, corpus, arguments.rehearse):
        if arguments.parts and part.name not in arguments.parts:
            continue
        limit = part.limit * (REHEARSAL_SLOWER if arguments.rehearse else 1)
        for result in run(part, folder, limit):
            print(json.dumps(result), flush=True)
            results.append(result)
        # Written after each part: what is measured survives whatever comes next.
        (folder / "visit.jsonl").write_text("".join(json.dumps(result) + "\n" for result in results))
        (folder / "visit.md").write_text(report(results))
    sys.exit(any(result.get("outcome", "passed") != "passed" for result in results))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Where logs, models and results are written.")
    parser.add_argument("--encoder", required=True, help="Folder of a small pretrained encoder, in any precision.")
    parser.add_argument("--corpus", help="Corpus to train on; default: the embedded one.")
    parser.add_argument("--parts", nargs="+", metavar="PART", help="Run these parts only, named as in the report.")
    parser.add_argument("--rehearse", action="store_true", help="On the CPU, in tiny sizes.")
    arguments = parser.parse_args()
    known = [part.name for part in parts(arguments.folder, arguments.folder, arguments.rehearse)]
    if unknown := set(arguments.parts or ()) - set(known):
        parser.error(f"--parts {' '.join(sorted(unknown))}: there is no such part, only {', '.join(known)}")
    return arguments


def prepare(folder: Path, arguments: argparse.Namespace) -> Path:
    """Writes the encoders, in float32, and the corpus; returns its path."""
    tokenizer = AutoTokenizer.from_pretrained(arguments.encoder)
    encoders = {
        "encoder": AutoModel.from_pretrained(arguments.encoder, dtype=torch.float32),
        "large": BertModel(BertConfig(vocab_size=len(tokenizer), **(TINY if arguments.rehearse else LARGE))),
    }
    for name, encoder in encoders.items():
        encoder.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    if arguments.corpus:
        return Path(arguments.corpus).resolve()
    write_demo_corpus(folder / "corpus", sentences=40 if arguments.rehearse else 1500)
    return folder / "corpus"


def parts(folder: Path, corpus: Path, rehearse: bool) -> Iterator[Part]:
    """The parts, in the order of what to know first; 590 seconds at most."""
    python = sys.executable
    device = ["--device", "cpu" if rehearse else "cuda"]
    heads = ["--dims", "8", "--sizes", "1x5", "2x7"] if rehearse else ["--dims", "256", "--sizes"]
    heads += [] if rehearse else ["1x30", "8x30", "1x120", "8x120"]
    repeats = ["--repeats", "1"] if rehearse else []
    yield Part("tests", 100, [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *gpu_tests(rehearse)])
    for dtype in ("bfloat16", "tf32"):
        rows = folder / f"head-{dtype}.jsonl"
        command = [python, BENCHMARKS / "triaffine.py", *device, *heads, *repeats, "--dtype", dtype, "--output", rows]
        yield Part(rows.stem, 45, command, rows)
    samples = ["--max_samples", "4", "--batch_size", "2"] if rehearse else ["--max_samples", "1024"]
    for encoder, *graphs in (("encoder",), ("encoder", "--graphs", "--tensors", "low rank"), ("large",)):
        rows = folder / f"throughput-{encoder}{'-graphs' if graphs else ''}.jsonl"
        command = [python, BENCHMARKS / "throughput.py", *device, *samples, *repeats, *graphs, "--dtype", "bfloat16"]
        command += ["--model_name_or_path", folder / encoder, "--data", corpus, "--output", rows]
        yield Part(rows.stem, 30 if graphs else 50, command, rows)
    yield from training_parts(folder, corpus, rehearse)


def gpu_tests(rehearse: bool) -> list[str]:
    """Those that need a GPU. Several processes at once, because most of the time goes to compiling kernels."""
    files = ["tests/acceleration", "tests/test_cuda.py"]
    return [files[0], "-k", "without_triton"] if rehearse else [*files, "-m", "gpu", "-n", "8"]


def training_parts(folder: Path, corpus: Path, rehearse: bool) -> Iterator[Part]:
    """An epoch under accelerate in half precision, and training with little memory."""
    options = {"recipe": "genia-minilm", "model_name_or_path": folder / "encoder", "train_file": corpus}
    options |= {"num_train_epochs": 1, "eval_strategy": "no", "save_strategy": "no"}
    options |= {"card_examples": 0, "words": "corpus"}
    options |= {"max_train_samples": 4000}  # of genia.train, half a minute
    if rehearse:
        options |= {"max_train_samples": 8, "triaffine_dim": 8, "lstm_hidden_size": 8, "use_cpu": "true"}
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--num_processes", "1"]
    module = ["-m", "modeling_triaffine.commands.train"]
    precisions = ("no",) if rehearse else ("bf16", "fp16")
    for precision in precisions:
        output = folder / f"train-{precision}"
        command = [*launch, "--mixed_precision", precision, *module, *flags(options | {"output_dir": output})]
        yield Part(output.name, 80, command, output / "all_results.json")

    # torch's allocator keeps a process to a fraction of the GPU; the CPU has no such limit, and a batch fits.
    with_little_memory = [sys.executable, "-c", LITTLE_MEMORY, "0" if rehearse else str(MEMORY_SHARE)]
    options |= {"per_device_train_batch_size": 4096, "max_steps": 2}
    output = folder / "out-of-memory"
    pattern = "" if rehearse else "Out of memory.*"
    command = [*with_little_memory, *flags(options | {"output_dir": output})]
    yield Part(output.name, 35, command, expected_message=pattern)
    output = folder / "batch-search"
    command = [*with_little_memory, *flags(options | {"output_dir": output, "auto_find_batch_size": "true"})]
    yield Part(output.name, 55, command, output / "all_results.json")


def flags(options: dict[str, Any]) -> list[str]:
    return [f"--{name}={value}" for name, value in options.items()]


def run(part: Part, folder: Path, limit: float) -> Iterator[dict[str, Any]]:
    """Runs a part; returns its outcome and what it measured."""
    log = folder / f"{part.name}.log"
    start = time.perf_counter()
    with log.open("w") as output:
        command = [str(word) for word in part.command]
        environment = os.environ | {"TRIAFFINE_TEST_GPU": "1"}  # without it, tests hide the GPU
        streams = {"stdout": output, "stderr": output}
        process = subprocess.Popen(command, **streams, cwd=ROOT, env=environment, start_new_session=True)
        try:
            status = process.wait(limit)
            outcome = f"failed with status {status}" if status else "passed"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the processes that accelerate started
            process.wait()
            outcome = f"stopped after its {limit:g} s"
    text = log.read_text(errors="replace")
    quoted = re.search(part.expected_message, text) if part.expected_message else None
    if part.expected_message:
        outcome = "passed" if quoted else "failed: the log lacks the expected message"
    row = {"part": part.name, "outcome": outcome, "seconds": round(time.perf_counter() - start, 1)}
    row |= {"message": quoted[0] if quoted else last_line(text)}
    yield row
    if part.measured and part.measured.exists():
        lines = part.measured.read_text().splitlines()
        rows = [json.loads("".join(lines))] if part.measured.suffix == ".json" else map(json.loads, lines[1:])
    else:  # stopped at its limit, it has printed what it had
        rows = [json.loads(line) for line in text.splitlines() if line.startswith('{"')]
    for measurement in rows:
        yield {"measured by": part.name, **measurement}


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else ""


def report(results: Sequence[dict[str, Any]]) -> str:
    """The results as Markdown tables: the machine, the parts, then the measurements of each part."""
    machine, *results = results
    tables = [Table(["", ""], [[name, str(value)] for name, value in machine.items()], "Machine")]
    columns = ["part", "outcome", "seconds", "message"]
    outcomes = [result for result in results if "part" in result]
    tables.append(Table(columns, [[str(result[name]) for name in columns] for result in outcomes], "Parts"))
    for part in dict.fromkeys(result["measured by"] for result in results if "measured by" in result):
        rows = [result for result in results if result.get("measured by") == part]
        names = [name for name in dict.fromkeys(name for row in rows for name in row) if name != "measured by"]
        cells = [[cell(row.get(name)) for name in names] for row in rows]
        tables.append(Table(names, cells, part))
    return "\n\n".join(table.markdown() for table in tables) + "\n"


def cell(value: Any) -> str | None:
    if isinstance(value, dict):
        return ", ".join(f"{name} {number}" for name, number in value.items())
    return None if value is None else str(value)


if __name__ == "__main__":
    main()
