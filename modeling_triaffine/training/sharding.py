"""Models whose weights are spread over processes (FSDP): what is sharded, and how the whole is had again."""

from typing import Any

from torch import nn
from transformers import Trainer

from ..model.modeling_triaffine import TriaffineForNestedNER


def check_sharding(fsdp_plugin: Any) -> None:
    """Refuses what would leave no whole model behind.

    Raises:
        ValueError: `fsdp_plugin`, accelerate's `FullyShardedDataParallelPlugin`, is of FSDP 1, or saves shards.
    """
    if fsdp_plugin.fsdp_version != 2:
        raise ValueError(
            f"fsdp_version is {fsdp_plugin.fsdp_version}; this trainer knows FSDP 2 only. Set fsdp_version: 2, as in "
            "examples/accelerate/fsdp.yaml."
        )
    kind = getattr(fsdp_plugin.state_dict_type, "name", fsdp_plugin.state_dict_type)
    if kind != "FULL_STATE_DICT":
        raise ValueError(
            f"fsdp_state_dict_type is {kind}, which saves parts of weights that no model can be loaded from. Set "
            "fsdp_state_dict_type: FULL_STATE_DICT, as in examples/accelerate/fsdp.yaml."
        )


def choose_sharded_layers(fsdp_plugin: Any, encoder: nn.Module) -> None:
    """Names the classes of layers that FSDP gathers one at a time, where the configuration names none.

    accelerate would take all that must stay on one device in `device_map`, embeddings among them, which FSDP 2 then
    shards a second time, and fails.

    Args:
        fsdp_plugin: accelerate's `FullyShardedDataParallelPlugin`.
        encoder: any encoder of transformers.
    """
    if fsdp_plugin.transformer_cls_names_to_wrap is None:
        fsdp_plugin.transformer_cls_names_to_wrap = layer_classes(encoder)


def layer_classes(encoder: nn.Module) -> list[str]:
    """Names of the classes of what stands in the encoder's lists of modules."""
    lists = (module for module in encoder.modules() if isinstance(module, nn.ModuleList))
    layers = (layer for modules in lists for layer in modules if not isinstance(layer, nn.ModuleList | nn.ModuleDict))
    return sorted({type(layer).__name__ for layer in layers})


def whole_model(trainer: Trainer) -> TriaffineForNestedNER | None:
    """The trainer's model, to run in one process alone; of one that is sharded a copy with all weights.

    All processes call this together. Those beside the main one get None of a model that is sharded.
    """
    model: Any = trainer.model
    if not trainer.is_fsdp_enabled:
        return model
    weights = trainer.accelerator.get_state_dict(model)
    if not trainer.is_world_process_zero():
        return None
    whole: Any = TriaffineForNestedNER(model.config)
    whole.load_state_dict(weights)
    return whole.to(trainer.args.device)
