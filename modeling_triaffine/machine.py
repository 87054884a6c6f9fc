"""The machine that a run or a benchmark was seen on."""

import datetime
import os
import platform
from pathlib import Path

import torch
import transformers


def describe_machine() -> dict[str, str | int | float]:
    """What recorded figures were seen on: processor, cores, memory, GPU, versions and date."""
    machine: dict[str, str | int | float] = {
        "date": datetime.date.today().isoformat(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count() or 1,
        "torch_threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    processors = Path("/proc/cpuinfo")
    if processors.exists():
        names = [line.split(":")[1].strip() for line in processors.read_text().splitlines() if "model name" in line]
        machine["processor"] = names[0] if names else machine["processor"]
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ()):
        machine["memory_gb"] = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1)
    if torch.cuda.is_available():
        machine["gpu"] = torch.cuda.get_device_name()
    return machine
