"""What a run or a benchmark ran on: hardware, software, and the revision of this package's source."""

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
REVISION = "git revision"


def describe_machine() -> dict[str, str | int | float]:
    """Hardware, date and the versions that timings depend on most."""
    versions = describe_versions()
    return {**describe_hardware(), **{name: versions[name] for name in ("python", "torch", "transformers")}}


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
    if processors.exists():
        hardware |= describe_processor(processors.read_text())
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ()):
        hardware["memory_gb"] = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1)
    if torch.cuda.is_available():
        hardware["gpu"] = torch.cuda.get_device_name()
    return hardware


def describe_processor(cpuinfo: str) -> dict[str, str | int]:
    """Name, family and model (its generation, on which speed depends) of the first processor in /proc/cpuinfo."""
    fields = dict(re.findall(r"^(model name|cpu family|model)\s*:\s*(.+)$", cpuinfo.partition("\n\n")[0], re.MULTILINE))
    name = {"processor": fields["model name"]} if "model name" in fields else {}
    numbers = {"processor_family": fields.get("cpu family", ""), "processor_model": fields.get("model", "")}
    return name | {key: int(value) for key, value in numbers.items() if value.isdigit()}


def describe_versions() -> dict[str, str]:
    """Versions of this package, its source where git has it, Python, and the libraries that a run uses."""
    versions = {"modeling_triaffine": __version__, **source_revision(), "python": platform.python_version()}
    return versions | {name: metadata.version(name) for name in SOFTWARE}


def source_revision(file: Path = Path(__file__)) -> dict[str, str]:
    """The commit of a source file, with "-dirty" for uncommitted changes; empty for a file that git does not track."""
    if _git(file, "ls-files", "--error-unmatch", file.name) is None:
        return {}
    revision = _git(file, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    return {REVISION: revision} if revision else {}


def _git(file: Path, *arguments: str) -> str | None:
    """What git prints when run in the folder of `file`; None if it fails."""
    try:
        command = ["git", "-C", str(file.parent), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
