"""The hardware and software of a run or a benchmark, with the revision of this package's source."""

import datetime
import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

import torch

from .model.triaffine_weights import multiplies_bfloat16
from .version import __version__

SOFTWARE = ("torch", "transformers", "accelerate", "datasets", "tokenizers")


def describe_hardware() -> dict[str, str | int | float]:
    """Date, processor, instructions, cores, threads, memory and GPU, as far as the system reports them."""
    hardware: dict[str, str | int | float] = {
        "date": datetime.date.today().isoformat(),
        "processor": platform.processor() or platform.machine(),
        "instructions": torch.backends.cpu.get_cpu_capability() + (", bfloat16" if multiplies_bfloat16() else ""),
        "cores": os.cpu_count() or 1,
        "torch_threads": torch.get_num_threads(),
    }
    processors = Path("/proc/cpuinfo")
    if processors.exists():  # speed depends on the family and the model, which is the generation
        fields = dict(re.findall(r"^(model name|cpu family|model)\s*:\s*(.+)$", processors.read_text(), re.MULTILINE))
        hardware["processor"] = fields.pop("model name", hardware["processor"])
        hardware |= {
            f"processor_{name.removeprefix('cpu ')}": int(number) for name, number in fields.items() if number.isdigit()
        }
    if hasattr(os, "sysconf"):
        hardware["memory_gb"] = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1)
    if torch.cuda.is_available():
        hardware["gpu"] = torch.cuda.get_device_name()
    return hardware


def describe_versions() -> dict[str, str]:
    """Versions of this package, its source where git has it, Python, and the libraries that a run uses."""
    versions = {"modeling_triaffine": __version__, **source_revision(), "python": platform.python_version()}
    return versions | {name: metadata.version(name) for name in SOFTWARE}


def source_revision(file: Path = Path(__file__)) -> dict[str, str]:
    """The commit of a source file, with "-dirty" for uncommitted changes; empty for a file that git does not track."""
    git = ["git", "-C", str(file.parent)]
    try:
        subprocess.run([*git, "ls-files", "--error-unmatch", file.name], check=True, capture_output=True)
        describe = [*git, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
        revision = subprocess.run(describe, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {"git revision": revision}
