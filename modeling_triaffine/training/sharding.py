"""What FSDP shards by itself: the encoder's layers, one by one."""

from typing import Any

from torch import nn


def choose_sharded_layers(fsdp_plugin: Any, encoder: nn.Module) -> None:
    """Names the classes of layers that FSDP gathers one at a time, where the configuration names none.

    accelerate would take all that must stay on one device in `device_map`, embeddings among them, which FSDP2 then
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
