"""Puts a trained model into the package, as a folder of `hub_configs/`: weights in bfloat16, without code and records.

    python benchmarks/ship_model.py outputs/names-en names-en [--calibrated outputs/other]

`--calibrated` takes temperature and thresholds of another run: of the same recipe, with a dev set of its own.
The folder then is what a repository on the Hub has, but for the code, which `triaffine-ner publish` adds. README.md and
the licence are written by hand.
"""

import argparse
from pathlib import Path

import torch

from modeling_triaffine import TriaffineConfig, TriaffineForNestedNER, TriaffineProcessor
from modeling_triaffine.installed_models import library


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("name")
    parser.add_argument("--calibrated", type=Path)
    given = parser.parse_args()
    target = library() / given.name
    model = TriaffineForNestedNER.from_pretrained(given.folder, dtype=torch.bfloat16)
    if given.calibrated:
        other = TriaffineConfig.from_pretrained(given.calibrated)
        model.config.temperature, model.config.label_thresholds = other.temperature, other.label_thresholds
    model.save_pretrained(target)
    TriaffineProcessor.from_pretrained(given.folder).save_pretrained(target)
    # transformers loads weights in the type that the configuration names.
    config = target / "config.json"
    config.write_text(config.read_text(encoding="utf-8").replace('"dtype": "bfloat16"', '"dtype": "float32"'))
    for code in (*target.glob("*.py"), target / "requirements.txt"):
        code.unlink(missing_ok=True)
    for path in sorted(target.iterdir()):
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
