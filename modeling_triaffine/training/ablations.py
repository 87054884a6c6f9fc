"""The paper's ablations: their options, and the training of one with a seed. `ablation_tables.py` tabulates them."""

import difflib
import json
import logging
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..files import write_text
from .recipes import recipe_library

logger = logging.getLogger(__name__)


def read_variants() -> dict[str, dict[str, Any]]:
    """Variant → its options."""
    paths = sorted(recipe_library().glob("ablations/*/config.json"))
    configs = {path.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    return {
        name: {option: config[option] for option in config if option != "model_type"}
        for name, config in configs.items()
    }


def check_variants(names: Sequence[str]) -> Sequence[str]:
    """The names; raises ValueError if there is no such variant."""
    known = read_variants()
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.3)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ValueError(f"--variants: there is no variant {name!r}.{hint} There are {', '.join(known)}.")
    return names


def check_same_options(folder: Path, training_options: list[str]) -> None:
    """Raises ValueError if the runs in the folder have other options, so that scores are not comparable."""
    path = folder / "options.json"
    if any(folder.glob("*-seed-*")) and (before := json.loads(path.read_text(encoding="utf-8"))) != training_options:
        raise ValueError(
            f"The runs in {folder} were trained with {' '.join(before)}; now the options are "
            f"{' '.join(training_options)}. Give the same options, or another --output_dir."
        )
    write_text(path, json.dumps(training_options))


def train_variant(variant: str, seed: int, folder: Path, training_options: list[str]) -> int:
    """Trains or resumes a variant with a seed; returns the exit code."""
    run = folder / f"{variant}-seed-{seed}"
    if (run / "all_results.json").exists():
        return 0
    options = read_variants()[variant]
    changes = [f"--{name}={as_option(value)}" for name, value in options.items()]
    changes += [f"--seed={seed}", f"--output_dir={run}", "--resume_from_checkpoint"]
    logger.info("--- (%s), seed %d: %s", variant, seed, options)
    program = [sys.executable, "-m", "modeling_triaffine.commands.train"]
    return subprocess.run([*program, *training_options, *changes], check=False).returncode


def as_option(value: Any) -> str:
    """A value as an option of `train`: true, none, triaffine."""
    return value if isinstance(value, str) else json.dumps(value).replace("null", "none")
