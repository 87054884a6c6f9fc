"""Shared by the benchmarks: interleaved timing, peak memory, the rate of matrix products, results as JSON lines."""

import contextlib
import ctypes
import gc
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from modeling_triaffine.acceleration import onednn
from modeling_triaffine.acceleration.full_tensors import free_bytes
from modeling_triaffine.data import load_nested_ner
from modeling_triaffine.data.demo import demo_corpus
from modeling_triaffine.data.texts import detokenize
from modeling_triaffine.environment import describe_hardware, describe_versions

CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}


def describe_machine() -> dict[str, str | int | float]:
    """Hardware, date and the versions that timings depend on most."""
    versions, hardware = describe_versions(), describe_hardware()
    processors = Path("/proc/cpuinfo")
    if processors.exists():  # speed depends on the family and the model, which is the generation
        for name, number in re.findall(r"^(cpu family|model)\s*:\s*(\d+)$", processors.read_text(), re.MULTILINE):
            hardware[f"processor_{name.removeprefix('cpu ')}"] = int(number)
    return {**hardware, **{name: versions[name] for name in ("python", "torch", "transformers")}}


def source_revision(file: Path) -> dict[str, str]:
    """The commit of a source file, with "-dirty" for uncommitted changes; empty for a file that git does not track."""
    git = ["git", "-C", str(file.parent)]
    try:
        subprocess.run([*git, "ls-files", "--error-unmatch", file.name], check=True, capture_output=True)
        describe = [*git, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
        revision = subprocess.run(describe, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {"git revision": revision}


def read_corpus(path: str | None, demo_split: str = "train") -> list[dict[str, Any]]:
    """The sentences of a corpus's first split, as tokens and entities; without a path those of the demo corpus."""
    records = demo_corpus()[demo_split] if path is None else next(iter(load_nested_ner(path).values()))
    return [{"tokens": record["tokens"], "entities": record["entities"]} for record in records]


def texts_of(records: list[dict[str, Any]], most: int | None = None) -> list[str]:
    """The sentences, at most so many, as raw text."""
    return [detokenize(record["tokens"]) for record in records[:most]]


def time_interleaved(
    calls: dict[str, Callable[[], Any]],
    repeats: int,
    device: str = "cpu",
    least_seconds: float = 0.0,
    clock: Callable[[], float] = time.perf_counter,
    warm_up: bool = True,
) -> dict[str, float]:
    """Median seconds of each call. The calls take turns, so that other load on the machine affects all of them alike.

    Each call gets at least `repeats` rounds and `least_seconds` in total, after an uncounted one to warm up.
    `clock=time.process_time` counts the processor time of this process on all its threads instead of wall-clock time.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    if warm_up:
        for call in calls.values():
            call()
    while any(len(taken) < repeats or sum(taken) < least_seconds for taken in seconds.values()):
        for name, call in calls.items():
            synchronize(device)
            start = clock()
            call()
            synchronize(device)
            seconds[name].append(clock() - start)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def products_by_mkl() -> contextlib.AbstractContextManager[Any]:
    """Inside the block, torch's own library computes all float32 products, also where oneDNN is faster."""
    return mock.patch.object(onednn, "onednn_is_faster", return_value=False)


def synchronize(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def peak_extra_bytes(call: Callable[[], Any], device: str = "cpu") -> int | None:
    """Peak memory during the call beyond what was in use before it; None where the system does not report it."""
    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        return torch.cuda.max_memory_allocated() - before
    if not Path("/proc/self/clear_refs").exists():
        return None
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):  # glibc
        libc.malloc_trim(0)  # so that the call cannot reuse memory freed before it
    Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark
    before = _memory("VmRSS")
    call()
    return _memory("VmHWM") - before


def available_bytes(device: str = "cpu") -> int:
    """Memory that the device can hand out; on Linux the page cache counts as such, unlike in `free_bytes`."""
    if device == "cpu" and Path("/proc/meminfo").exists():
        return _memory("MemAvailable", "/proc/meminfo")
    return free_bytes(torch.device(device))


def _memory(field: str, path: str = "/proc/self/status") -> int:
    lines = Path(path).read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def product_rate(
    rows: int,
    inner: int,
    columns: int,
    dtype: torch.dtype,
    device: str = "cpu",
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Multiplications and additions per second of the three products that make up a contraction and its gradients.

    [rows, inner] × [inner, columns] forward, and backward for either side; the best rate of the three.
    """
    left, right = (torch.randn(shape, dtype=dtype, device=device) for shape in ((rows, inner), (inner, columns)))
    out = torch.randn(rows, columns, dtype=dtype, device=device)
    for_left, for_right = torch.empty_like(left), torch.empty_like(right)
    products = {
        "forward": lambda: torch.mm(left, right, out=out),
        "left": lambda: torch.mm(out, right.mT, out=for_left),
        "right": lambda: torch.mm(left.mT, out, out=for_right),
    }
    best = {name: float("inf") for name in products}
    for _ in range(5):
        for name, seconds in time_interleaved(products, 1, device, clock=clock).items():
            best[name] = min(best[name], seconds)
    return 2 * rows * inner * columns / min(best.values())


class Rows:
    """Rows of a benchmark: each is printed as a JSON line at once; `write` saves all of them, below a header."""

    def __init__(self, title: str):
        self.title = title
        self.machine = describe_machine()
        self.rows: list[dict[str, Any]] = []

    def add(self, **row: Any) -> None:
        self.rows.append(row)
        print(json.dumps(row), flush=True)

    def write(self, path: Path | None) -> None:
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        # Absolute paths mean nothing on other machines.
        command = " ".join(["python", *(Path(part).name if Path(part).is_absolute() else part for part in sys.argv)])
        header = json.dumps({"what": self.title, "command": command, **self.machine})
        path.write_text("\n".join([header, *(json.dumps(row) for row in self.rows)]) + "\n")
