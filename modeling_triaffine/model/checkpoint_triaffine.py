"""Checks of a saved model's weights before and after they are loaded.

Weights are safetensors, whose headers list the tensors before memory is allocated for them.
"""

import json
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import nn
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME

from .checks_triaffine import check_dtype, check_kind, listed, reading
from .repository_triaffine import find_file


def check_index(name_or_path: str | os.PathLike[str], options: dict[str, Any]) -> None:
    """Raises ValueError for an index that is damaged, or refers to weights outside of the model's folder.

    FileNotFoundError for the folder of an exported graph. `options` are those of `from_pretrained`. As in transformers,
    an index beside weights in a single file is ignored.
    """
    variant = f".{options['variant']}" if options.get("variant") else ""
    options = {**options, "force_download": False}
    try:
        if find_file(name_or_path, SAFE_WEIGHTS_NAME.replace(".safetensors", f"{variant}.safetensors"), options):
            return
        path = find_file(name_or_path, SAFE_WEIGHTS_INDEX_NAME.replace(".json", f"{variant}.json"), options)
    except (ConnectionError, FileNotFoundError):  # there is no model, see `check_available`
        raise
    except OSError:  # transformers looks for the same files, and reports it
        return
    if path is None:
        if any(Path(name_or_path).glob("*.onnx")):
            raise FileNotFoundError(
                f"{name_or_path} has a graph of `triaffine-ner export` and no weights. Load it with OnnxNestedNER, or "
                "give the model that it was exported from."
            )
        return
    with reading(f"{path} is not a valid index of weights (save the model again)"):
        index = json.loads(Path(path).read_text(encoding="utf-8"))
        check_kind("JSON", "index", index, dict, "an object")
        for field in ("metadata", "weight_map"):
            check_kind("index", field, index.get(field), dict, "an object")
        if not index["weight_map"]:
            raise ValueError("its `weight_map` names no tensor")
        check_dtype("metadata", "dtype", index["metadata"].get("dtype", "float32"))
        for name in index["weight_map"].values():
            check_kind("index", "weight_map", name, str, "the name of a file for each tensor")
            if Path(name).name != name or not name.endswith(".safetensors"):
                raise ValueError(
                    f"it names {name}, which is not a safetensors file of its folder; do not use this model"
                )


def check_sizes(model: nn.Module, files: Sequence[str], where: str, own: Collection[str]) -> None:
    """Raises ValueError if a model has more weights than the headers of `files` list, before it is loaded.

    Otherwise it needs no more memory than the files, and loading it reports all other mismatches. `own` names the
    weights to compare: not those of layers that a subclass adds.
    """
    shapes: dict[str, torch.Size] = {}
    for file in files:
        with safe_open(file, framework="pt") as weights:
            shapes |= {name: torch.Size(weights.get_slice(name).get_shape()) for name in weights.keys()}  # noqa: SIM118
    needed = {name: value.shape for name, value in model.named_parameters() if name in own}
    if sum(shape.numel() for shape in needed.values()) <= sum(shape.numel() for shape in shapes.values()):
        return
    refuse_missing(where, set(needed) - set(shapes))
    refuse_shapes(where, [name for name, shape in needed.items() if shape != shapes[name]])


def refuse_missing(where: str, names: set[str]) -> None:
    """Raises ValueError if `names`, of weights that are missing in the files, is not empty."""
    if names:
        raise ValueError(
            f"{where} are missing {listed(sorted(names))}, which would be randomly initialized; save the model "
            "again, or build one on an encoder with from_encoder()."
        )


def refuse_shapes(where: str, names: Sequence[str]) -> None:
    """Raises ValueError: the named tensors do not have the shapes of the configuration."""
    raise ValueError(
        f"{where} do not match the shapes in config.json: {listed(names)}; the two files belong to different models. "
        "Restore the config.json that was saved with the weights, or save the model again. If you gave other labels, "
        "add ignore_mismatched_sizes=True: what depends on them then starts untrained."
    )


@torch.no_grad()
def broken_weights(model: nn.Module) -> list[str]:
    """Names of the weights with NaN or infinity; weights that are quantized or on the meta device are skipped."""
    return [
        name
        for name, weight in model.named_parameters()
        if not weight.is_meta and weight.is_floating_point() and weight.element_size() > 1  # no float8
        if not weight.sum(dtype=torch.float32).isfinite()  # one pass and no copy, unlike isfinite().all()
    ]


def refuse_broken(where: str, model: nn.Module) -> None:
    """Raises ValueError if weights have NaN or infinity."""
    if broken := broken_weights(model):
        raise ValueError(
            f"{where} hold numbers that are not finite (NaN or infinity), in {listed(broken)}: every score would be "
            "one, too. Take an earlier checkpoint, or copy or download the file again."
        )
