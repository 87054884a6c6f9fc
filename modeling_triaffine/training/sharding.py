"""Models sharded over processes by FSDP: checks, the layers to shard, and gathering the whole model."""

from typing import Any, cast

from torch import nn
from transformers import Trainer

from ..model.modeling_triaffine import TriaffineForNestedNER


def check_sharding(fsdp_plugin: Any) -> None:
    """Checks accelerate's `FullyShardedDataParallelPlugin`.

    Raises:
        ValueError: it is of FSDP 1, or saves shards instead of the whole model.
    """
    kind = getattr(fsdp_plugin.state_dict_type, "name", fsdp_plugin.state_dict_type)
    given, needed = {"fsdp_version": fsdp_plugin.fsdp_version, "fsdp_state_dict_type": kind}, (2, "FULL_STATE_DICT")
    for (name, value), wanted in zip(given.items(), needed, strict=True):
        if value != wanted:
            raise ValueError(
                f"{name} is {value}; this trainer supports FSDP 2 that saves whole models only, because shards cannot "
                f"be loaded as a model. Set {name}: {wanted}, as in examples/accelerate/fsdp.yaml."
            )


def choose_sharded_layers(fsdp_plugin: Any, encoder: nn.Module) -> None:
    """Sets the layer classes that FSDP gathers one at a time, unless the configuration names them.

    By default accelerate takes all modules that must not be split in a `device_map`, embeddings included, which FSDP 2
    then shards twice, and fails.
    """
    if fsdp_plugin.transformer_cls_names_to_wrap is None:
        fsdp_plugin.transformer_cls_names_to_wrap = layer_classes(encoder)


def layer_classes(encoder: nn.Module) -> list[str]:
    """Returns the names of the classes of the modules in the encoder's module lists."""
    lists = (module for module in encoder.modules() if isinstance(module, nn.ModuleList))
    layers = (layer for modules in lists for layer in modules if not isinstance(layer, nn.ModuleList | nn.ModuleDict))
    return sorted({type(layer).__name__ for layer in layers})


def whole_model(trainer: Trainer) -> TriaffineForNestedNER | None:
    """Returns the trainer's model, or if it is sharded a copy with all weights, on the main process only (else None).

    All processes must call this together.
    """
    model = cast(TriaffineForNestedNER, trainer.model)
    if not trainer.is_fsdp_enabled:
        return model
    weights = trainer.accelerator.get_state_dict(model)
    if not trainer.is_world_process_zero():
        return None
    whole = TriaffineForNestedNER(model.config)
    whole.load_state_dict(weights)
    place: Any = whole.to
    place(trainer.args.device)
    return whole
