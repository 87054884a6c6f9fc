"""Optimizer groups: the learning rate and weight decay of each parameter.

There are three rates: for the pretrained encoder, the word part (static, part-of-speech and character embeddings,
BiLSTM) and the triaffine head. Each part has a group with weight decay and one without (biases, norms, the label bias).
"""

from collections.abc import Collection, Iterable
from typing import Any

from torch import nn

PARTS = ("head", "words", "encoder")


def build_parameter_groups(
    named_parameters: Iterable[tuple[str, nn.Parameter]],
    learning_rates: dict[str, float],
    weight_decay: float,
    decaying: Collection[str],
) -> list[dict[str, Any]]:
    """Puts every trainable parameter into one optimizer group.

    Args:
        named_parameters: their names begin with one of `PARTS`.
        learning_rates: rate of each part.
        weight_decay: for the parameters named in `decaying`.

    Returns:
        Non-empty groups for a torch optimizer, those of the head first, whose rate the Trainer logs.

    Raises:
        ValueError: a parameter is in none of `PARTS`.
    """
    groups: dict[tuple[str, bool], list[nn.Parameter]] = {
        (part, decays): [] for part in PARTS for decays in (True, False)
    }
    for name, parameter in named_parameters:
        if not parameter.requires_grad:
            continue
        part = name.split(".", 1)[0]
        if part not in PARTS:
            raise ValueError(
                f"Parameter {name!r} has no learning rate: it is in none of the model's parts {', '.join(PARTS)}."
            )
        groups[part, name in decaying].append(parameter)
    return [
        {
            "name": f"{part}{'' if decays else '_no_decay'}",
            "params": parameters,
            "lr": learning_rates[part],
            "weight_decay": weight_decay if decays else 0.0,
        }
        for (part, decays), parameters in groups.items()
        if parameters
    ]
