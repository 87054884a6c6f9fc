"""Which learning rate and weight decay each parameter gets.

Three rates: the pretrained encoder, the word part (static, part-of-speech and character embeddings, BiLSTM) and the
triaffine head. Each is split once more into what decays and what does not (biases, norms, the label bias). What the
rates are is said in `arguments.py`; how they fall over time is the scheduler's business.
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
    """Sorts every trainable parameter into exactly one optimizer group.

    The first part of a parameter's name is one of `PARTS`; each has a learning rate. Only parameters named in
    `decaying` get the `weight_decay`.

    Returns:
        Groups for a torch optimizer, without empty ones, the head's first: its rate is the one the Trainer logs.

    Raises:
        ValueError: a parameter lies in none of `PARTS`, and so would not be trained.
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
                f"parameter {name!r} has no learning rate: it lies in none of the parts {', '.join(PARTS)} of the model"
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
