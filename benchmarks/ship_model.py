"""Puts a trained model into the package, as a folder of `hub_configs/`: weights in bfloat16, without code and records.

    python benchmarks/ship_model.py outputs/mine names-en [--calibrated outputs/other] \
        [--averaged outputs/before --share 0.33 --validation FILE]

`--calibrated` takes temperature and thresholds of another run: of the same recipe, with a dev set of its own.
`--averaged` names the model that the training began with: the weights are then a mean of both, in which it has
`--share`. That finds more in other texts than those of the last corpus (Wortsman et al., "Robust fine-tuning of
zero-shot models", CVPR 2022).
The sentences of `--validation` then choose temperature and threshold, as `train --calibrate_threshold` does.
The folder then is what a repository on the Hub has, but for the code, which `triaffine-ner publish` adds. README.md and
the licence are written by hand.
"""

import argparse
from pathlib import Path

import torch

from modeling_triaffine import TriaffineConfig, TriaffineForNestedNER, TriaffineProcessor
from modeling_triaffine.commands.options import load_split
from modeling_triaffine.evaluation.calibration import fit_temperature, score_spans, shared_threshold
from modeling_triaffine.installed_models import library


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("name")
    parser.add_argument("--calibrated", type=Path)
    parser.add_argument("--averaged", type=Path)
    parser.add_argument("--share", type=float, default=0.5)
    parser.add_argument("--validation")
    given = parser.parse_args()
    target = library() / given.name
    model = TriaffineForNestedNER.from_pretrained(given.folder, dtype=torch.bfloat16)
    if given.calibrated:
        other = TriaffineConfig.from_pretrained(given.calibrated)
        model.config.temperature, model.config.label_thresholds = other.temperature, other.label_thresholds
    if given.averaged:
        ends = [TriaffineForNestedNER.from_pretrained(f, dtype=torch.float32) for f in (given.folder, given.averaged)]
        weights = zip(*(end.state_dict().values() for end in ends), strict=True)
        means = (after.lerp(before, given.share) for after, before in weights)
        model.load_state_dict(dict(zip(model.state_dict(), means, strict=True)))
    processor = TriaffineProcessor.from_pretrained(given.folder)
    if given.validation:
        model.float().eval()
        _, records, _ = load_split([given.validation], None, None, processor, 0)
        spans = score_spans(model, processor, list(records), 32)
        model.config.temperature = fit_temperature(spans)
        threshold = shared_threshold(spans, model.config.temperature)
        model.config.label_thresholds = threshold and dict.fromkeys(model.config.entity_labels, threshold)
        model.bfloat16()
    model.save_pretrained(target)
    processor.save_pretrained(target)
    # transformers loads weights in the type that the configuration names.
    config = target / "config.json"
    config.write_text(config.read_text(encoding="utf-8").replace('"dtype": "bfloat16"', '"dtype": "float32"'))
    for code in (*target.glob("*.py"), target / "requirements.txt"):
        code.unlink(missing_ok=True)
    for path in sorted(target.iterdir()):
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
