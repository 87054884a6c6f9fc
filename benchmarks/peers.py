"""Other libraries that find nested or overlapping entities, beside this one: `throughput.py --peers FOLDER`.

Each library runs in a process and a virtual environment of its own, on the same encoder and texts, its head with random
weights: speed does not depend on what was learned. Thresholds, where there are any, leave hardly an entity to decode.
The processes take turns, so that other load on the machine affects all of them alike; time is processor time.
"""

import json
import statistics
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Sent one line, what to run on; answers with the processor time and memory of the first answer, then of every round.
CHILD = """
import json, resource, sys, time
given = json.loads(sys.stdin.readline())
encoder, model, texts, labels, batch = (given[name] for name in ("encoder", "model", "texts", "labels", "batch_size"))
answers, sys.stdout = sys.stdout, sys.stderr
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
{setup}
def answer(seconds):
    print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]), file=answers, flush=True)
predict(texts[:1])
answer(time.process_time())
for _ in sys.stdin:
    start = time.process_time()
    predict(texts)
    answer(time.process_time() - start)
"""


@dataclass(frozen=True)
class Peer:
    """A library: what to install (nothing: this environment), how to make `predict(texts)`, and what that does."""

    requirements: tuple[str, ...]
    setup: str
    what: str


OURS = """
from modeling_triaffine import NestedNERPipeline
pipeline = NestedNERPipeline(model=model, batch_size=batch, threshold=0.99{options})
predict = pipeline
"""
PEERS = {
    "modeling_triaffine": Peer(
        (), OURS.format(options=""), "every span as wide as the model allows, triaffine attention over its words"
    ),
    "modeling_triaffine bfloat16": Peer((), OURS.format(options=", dtype='bfloat16'"), "the same, all in bfloat16"),
    "gliner": Peer(
        ("torch==2.13.0", "gliner==0.2.29"),
        """
from gliner import GLiNER
hidden = json.load(open(encoder + "/config.json"))["hidden_size"]
config = {"model_name": encoder, "hidden_size": hidden, "span_mode": "markerV0", "max_width": 12}
model = GLiNER.from_config(config)
predict = lambda texts: model.inference(texts, labels, flat_ner=False, threshold=0.99, batch_size=batch)
""",
        "the names of the labels before each sentence, a BiLSTM, spans of up to 12 words from their two borders",
    ),
    "span_marker": Peer(
        ("torch==2.13.0", "span-marker==1.8.1"),
        """
from span_marker import SpanMarkerModel
limits = {"model_max_length": 256, "entity_max_length": 8}
model = SpanMarkerModel.from_pretrained(encoder, labels=["O", *labels], **limits).eval()
predict = lambda texts: model.predict(texts, batch_size=batch)
""",
        "spans of up to 8 words, two marker tokens for each read by the encoder beside the sentence",
    ),
}


def compare(folder: Path, rounds: int, **given: Any) -> list[dict[str, Any]]:
    """One row for each library. folder: for the environments; given: encoder, model, texts, labels, batch_size."""
    children = {
        name: _start(peer, environment(folder / name, peer.requirements), given) for name, peer in PEERS.items()
    }
    first = {name: _read(child) for name, child in children.items()}
    runs: dict[str, list[tuple[float, int]]] = {name: [] for name in children}
    for _ in range(rounds):
        for name, child in children.items():
            _write(child, "go")
            runs[name].append(_read(child))
    for child in children.values():
        child.communicate()
    ours = [seconds for seconds, _ in runs["modeling_triaffine"]]
    rows = []
    for name, answers in runs.items():
        seconds = [taken for taken, _ in answers]
        ratios = sorted(taken / own for taken, own in zip(seconds, ours, strict=True))
        rows.append(
            {
                "library": (PEERS[name].requirements or (name,))[-1],
                "what": PEERS[name].what,
                "sentences_a_second": round(len(given["texts"]) / statistics.median(seconds), 1),
                "times_ours": round(statistics.median(ratios), 2),
                "times_ours_range": [round(ratios[0], 2), round(ratios[-1], 2)],
                "first_answer_seconds": round(first[name][0], 1),
                "peak_megabytes": round(max(kilobytes for _, kilobytes in answers) / 1024),
            }
        )
    return rows


def environment(folder: Path, requirements: Sequence[str]) -> str:
    """The Python interpreter that has the requirements: this one for none, else that of an environment in `folder`.

    What is missing there is installed, as after an installation that failed, or for other requirements.
    """
    if not requirements:
        return sys.executable
    python, installed = folder / "bin" / "python", folder / "installed.txt"
    found = installed.read_text().splitlines() if installed.exists() else []
    if not {*requirements} <= {*found}:
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
        installed.write_text("".join(f"{requirement}\n" for requirement in sorted({*found, *requirements})))
    return str(python)


def _start(peer: Peer, python: str, given: dict[str, Any]) -> "subprocess.Popen[str]":
    code = CHILD.replace("{setup}", peer.setup)
    child = subprocess.Popen([python, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    _write(child, json.dumps(given))
    return child


def _write(child: "subprocess.Popen[str]", line: str) -> None:
    assert child.stdin is not None
    child.stdin.write(line + "\n")
    child.stdin.flush()


def _read(child: "subprocess.Popen[str]") -> tuple[float, int]:
    """Seconds and kilobytes of a child's next answer."""
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        raise SystemExit(f"A library stopped with status {child.wait()}; its messages are above.")
    seconds, kilobytes = json.loads(line)
    return seconds, kilobytes
