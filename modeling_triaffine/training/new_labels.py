"""New labels for a trained model, and targets from the probabilities of another model, the teacher."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ..model.configuration_triaffine import TriaffineConfig
from ..model.kinds_triaffine import NONE_LABEL
from ..model.model_triaffine import TriaffineForNestedNER
from ..model.processing_triaffine import TriaffineProcessor
from ..model.span_head_triaffine import smoothed_targets
from ..model.triaffine_ops import label_probabilities, span_mask
from .plan import TrainingPlan

# How much lower than None the scores of a new label start. With 2, every span that is clearly None would have the new
# label with probability 0.12, and would displace less likely entities as candidates.
START_BELOW = 10.0
# With `multi_label`, the weights to set to 0 so that the scores of a new label are 0: the bias, and all others that its
# scores are a multiple of. Of three low-rank factors only one: if all were 0, none would have a gradient.
OF_SCORES = re.compile(r"(?:scoring|biaffine)(?!.*\.(?:inside|tail)$)|label_bias$")


@torch.no_grad()
def extend_labels(model: TriaffineForNestedNER, new: Sequence[str]) -> TriaffineForNestedNER:
    """A model with new labels after the old ones, which predicts the same as `model` until it is trained.

    The old labels keep their weights. A new one starts with those of None and a bias lower by `START_BELOW`, so that it
    is never more probable than None, and hardly changes the candidates. With `multi_label`, where None has the score 0
    and no weights, a new label starts with weights of the last label, and those of `OF_SCORES` are 0.
    """
    old: Any = model.config
    reported, auxiliary = old.entity_labels, old.auxiliary_labels or []
    names = [*reported, *new, *auxiliary, NONE_LABEL]
    fields = {name: value for name, value in old.to_dict().items() if name != "label2id"}
    extended = TriaffineForNestedNER(TriaffineConfig(**{**fields, "id2label": dict(enumerate(names))}))
    entities, last = len(old.entity_labels), old.num_scores - 1
    rows = [*range(entities), *[last] * len(new), *range(entities, old.num_scores)]
    weights = extended.state_dict()
    for name, value in model.state_dict().items():
        of_labels = value.shape != weights[name].shape
        weights[name] = value[rows] if of_labels else value
        if of_labels and old.multi_label and OF_SCORES.search(name):
            weights[name][entities : entities + len(new)] = 0
        if name.endswith("label_bias"):
            weights[name][entities : entities + len(new)] -= START_BELOW
    extended.load_state_dict(weights)
    extended.name_or_path = extended.config.name_or_path = model.config.name_or_path
    return extended.train(model.training)


class Teacher:
    """A trained model from whose probabilities another one learns.

    If both have the same labels, half of each target is the teacher's probability (Furlanello et al., "Born-Again
    Neural Networks", ICML 2018). If the teacher has labels that the training data does not annotate, which are `kept`,
    the others keep their targets, and the teacher divides the target of None between None and the kept ones (Monaikul
    et al., "Continual Learning for Named Entity Recognition", AAAI 2021).
    """

    def __init__(self, teacher: TriaffineForNestedNER, student: TriaffineForNestedNER, kept: Sequence[str] = ()):
        self.model = teacher.eval().requires_grad_(False)
        self.config: Any = student.config
        self.kept = kept

    @torch.no_grad()
    def targets(self, inputs: Mapping[str, Any]) -> Tensor:
        """Target probabilities [B, N, N, R] of a batch of the collator, for `forward`."""
        labels = inputs["labels"]
        valid = span_mask(inputs["num_words"], labels.shape[1], self.config.max_span_width)
        targets = smoothed_targets(labels, valid, self.config)
        output = self.model(**{**inputs, "labels": None, "return_dict": True})
        probabilities = span_probabilities(output, self.config.multi_label).to(targets.dtype)
        if not self.kept:
            return (targets + probabilities[..., : targets.shape[-1]]) / 2  # with `multi_label`, None is no target
        old: Any = self.model.config.label2id
        kept = probabilities[..., [old[name] for name in self.kept]]
        ours = [self.config.label2id[name] for name in self.kept]
        if self.config.multi_label:
            targets[..., ours] = kept
        else:
            free = targets[..., -1:].clone()
            targets[..., ours] = free * kept
            targets[..., -1:] = free * (1 - kept.sum(-1, keepdim=True))
        return targets


def load_teacher(
    plan: TrainingPlan, model: TriaffineForNestedNER, processor: TriaffineProcessor, types: Collection[str]
) -> Teacher | None:
    """The model of --teacher or, with --keep_labels, the trained model that the run starts from."""
    if not (plan.teacher or plan.keep_labels):
        return None
    source: Any = plan.teacher or plan.model_name_or_path
    trained: Any = TriaffineForNestedNER.from_pretrained(source, dtype=torch.float32).to(plan.training.device)
    if plan.keep_labels:
        kept = [name for name in trained.config.entity_labels if name not in types]
        return Teacher(trained, model, kept) if kept else None
    for name in ("trained_labels", "multi_label", "max_span_width", "max_subwords", "context"):
        theirs, ours = getattr(trained.config, name), getattr(model.config, name)
        if theirs != ours:
            raise ValueError(f"--teacher {source} has {name} {theirs}, and the new model {ours}; use the same.")
    reader: Any = TriaffineProcessor.from_pretrained(source)
    if (reader.tokenizer.get_vocab(), reader.vocabularies) != (processor.tokenizer.get_vocab(), processor.vocabularies):
        raise ValueError(f"--teacher {source} has another vocabulary than the new model; use the same data.")
    return Teacher(trained, model)


def span_probabilities(output: Any, multi_label: bool) -> Tensor:
    """Final probabilities of all spans [B, N, N, R]: candidates have those of the cross-span stage."""
    probabilities = label_probabilities(output.span_logits, multi_label)
    if output.logits is not None:
        sentence, place = output.candidate_mask.nonzero(as_tuple=True)
        first, last = output.candidates[sentence, place].unbind(-1)
        probabilities[sentence, first, last] = label_probabilities(output.logits[sentence, place], multi_label)
    return probabilities
