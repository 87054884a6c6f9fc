"""The hardware and software of a run or a benchmark."""

import datetime
import os
import platform
import re
from importlib import metadata
from pathlib import Path

import torch

from .model.triaffine_blocks import multiplies_bfloat16
from .version import __version__

SOFTWARE = ("torch", "transformers", "accelerate", "datasets", "tokenizers")


def describe_hardware() -> dict[str, str | int | float]:
    """Date, processor, instructions, cores, threads, memory and GPU, as far as the system reports them."""
    processors = Path("/proc/cpuinfo")
    name = processors.exists() and re.search(r"^model name\s*:\s*(.+)$", processors.read_text("utf-8"), re.MULTILINE)
    hardware: dict[str, str | int | float] = {
        "date": datetime.date.today().isoformat(),
        "processor": name[1] if name else platform.processor() or platform.machine(),
        "instructions": torch.backends.cpu.get_cpu_capability() + (", bfloat16" if multiplies_bfloat16() else ""),
        "cores": os.cpu_count() or 1,
        "torch_threads": torch.get_num_threads(),
    }
    if hasattr(os, "sysconf"):
        hardware["memory_gb"] = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1)
    if torch.cuda.is_available():
        hardware["gpu"] = torch.cuda.get_device_name()
    return hardware


def describe_versions() -> dict[str, str]:
    """Versions of this package, Python, and the libraries that a run uses."""
    versions = {"modeling_triaffine": __version__, "python": platform.python_version()}
    return versions | {name: metadata.version(name) for name in SOFTWARE}
