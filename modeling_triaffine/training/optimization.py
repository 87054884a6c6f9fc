"""The optimizer: the learning rate and weight decay of each parameter, and a moving average of the weights.

There are three rates: for the pretrained encoder, the word part (static, part-of-speech and character embeddings,
BiLSTM) and the triaffine head, with the layers that a subclass of the model adds. Each part has a group with weight
decay and one without (biases, norms, the label bias).

With an exponential moving average, training uses the weights, evaluation and saved models use the average. As in
schedule-free optimizers, `eval()` puts the average into the model and `train()` the weights; the other one is in the
optimizer's state. A checkpoint therefore has both, and resuming is exact.
"""

from collections.abc import Collection, Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

# Where PEFT, torch.compile and data parallelism hold the model that they wrap.
WRAPPERS = ("base_model", "_orig_mod", "module")
AVERAGE = "average"
# Keys of the parameter groups, which are saved: number of averaged updates; whether the average is in the model.
UPDATES, IN_MODEL = "averaged_updates", "average_in_model"


def build_parameter_groups(
    named_parameters: Iterable[tuple[str, nn.Parameter]],
    learning_rates: dict[str, float],
    weight_decay: float,
    decaying: Collection[str],
) -> list[dict[str, Any]]:
    """Puts every trainable parameter into a group of its part; a layer without a rate of its own has the head's."""
    groups: dict[tuple[str, bool], list[nn.Parameter]] = {
        (part, decays): [] for part in learning_rates for decays in (True, False)
    }
    for name, parameter in named_parameters:
        part = name.split(".", 1)[0]
        if part in WRAPPERS:
            remedy = "Wrap model.encoder alone, with peft.get_peft_model or torch.compile"
            raise ValueError(f"The model is wrapped as a whole, so its parts have no learning rates. {remedy}.")
        if parameter.requires_grad:
            groups[part if part in learning_rates else "head", name in decaying].append(parameter)
    if not any(groups.values()):
        raise ValueError("No weight of the model is trained: `requires_grad` is False for all parameters.")
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


def averaging(optimizer_class: type[Optimizer], decay: float) -> type[Optimizer]:
    """Returns `optimizer_class` with an average of the weights.

    After update t, average ← δ · average + (1 - δ) · weights with δ = min(decay, t / (t + 9)), so that early weights
    count little. The average starts with the weights after the first update.
    """
    if hasattr(optimizer_class, "eval"):
        raise ValueError(f"{optimizer_class.__name__} averages the weights itself; leave out ema_decay.")

    class AveragingOptimizer(optimizer_class):  # type: ignore[misc, valid-type]
        @torch.no_grad()
        def step(self, closure: Any = None) -> Any:
            self.train()
            loss = super().step(closure)
            for group in self.param_groups:
                updates = group[UPDATES] = group.get(UPDATES, 0) + 1
                averaged = [weights for weights in group["params"] if AVERAGE in self.state[weights]]
                if averaged:  # one launch for all, in place of one each
                    averages = [self.state[weights][AVERAGE] for weights in averaged]
                    torch._foreach_lerp_(averages, averaged, 1 - min(decay, updates / (updates + 9)))
                for weights in group["params"]:
                    if AVERAGE not in self.state[weights] and weights.grad is not None:  # else it has no state yet
                        self.state[weights][AVERAGE] = weights.clone()
            return loss

        def train(self) -> None:
            """Puts the weights in training into the model."""
            self._exchange(average_in_model=False)

        def eval(self) -> None:
            """Puts the average into the model, if there has been an update."""
            self._exchange(average_in_model=True)

        @torch.no_grad()
        def _exchange(self, average_in_model: bool) -> None:
            for group in self.param_groups:
                if UPDATES in group and group.get(IN_MODEL, False) != average_in_model:
                    group[IN_MODEL] = average_in_model
                    for weights in group["params"]:
                        average = self.state[weights].get(AVERAGE)
                        if average is not None:
                            other = weights.clone()
                            weights.copy_(average)
                            average.copy_(other)

    return AveragingOptimizer
