"""A trained model goes on with other labels: new ones beside its own, and own ones that the data does not annotate."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ..model.configuration_triaffine import NONE_LABEL, TriaffineConfig
from ..model.losses_triaffine import smooth_boundaries
from ..model.modeling_triaffine import NestedNEROutput, TriaffineForNestedNER
from ..model.triaffine_ops import label_probabilities

logger = logging.getLogger(__name__)

# How much lower a new label's scores start than those of the label whose weights it has.
START_BELOW = 2.0


def continue_with_labels(
    model: TriaffineForNestedNER, labels: Sequence[str], keep_labels: bool
) -> TriaffineForNestedNER:
    """The model to train on data with these labels, None among them; warns of new ones, and of those that it lacks.

    With `keep_labels`, labels of the model that the data lacks are kept by the model's own predictions.

    Raises:
        ValueError: there is nothing to keep.
    """
    known = model.config.entity_labels
    new, gone = [name for name in labels if name not in (*known, NONE_LABEL)], missing_labels(model, labels)
    if keep_labels and not gone:
        raise ValueError(
            f"--keep_labels: the training data has all labels of the model ({', '.join(known)}), so there is none to "
            "keep; leave it out."
        )
    if new:
        logger.warning("New labels, beside the model's %s: %s.", ", ".join(known), ", ".join(new))
        model = extend_labels(model, new)
    if gone:
        fate = "kept by the model's own predictions" if keep_labels else "unlearned; to keep them, add --keep_labels"
        logger.warning("The training data has no entity of %s, labels of the model: %s.", ", ".join(gone), fate)
    if model.config.label_thresholds or model.config.temperature != 1.0:
        logger.warning("The model's calibration does not hold after further training and is dropped; calibrate again.")
        model.config.temperature, model.config.label_thresholds = 1.0, None
    return model


def missing_labels(model: TriaffineForNestedNER, labels: Sequence[str]) -> list[str]:
    """The labels of the model that are not among these."""
    return [name for name in model.config.entity_labels if name not in labels]


@torch.no_grad()
def extend_labels(model: TriaffineForNestedNER, new: Sequence[str]) -> TriaffineForNestedNER:
    """A model with new labels behind the old ones, which finds exactly what `model` finds until it is trained.

    The old labels keep their weights. A new one starts with those of None, or of the last label where None has none,
    and a bias lower by `START_BELOW`: it is below None wherever None decides.
    """
    old: Any = model.config
    names = [*old.entity_labels, *new, NONE_LABEL]
    fields = {name: value for name, value in old.to_dict().items() if name != "label2id"}
    extended = TriaffineForNestedNER(TriaffineConfig(**{**fields, "id2label": dict(enumerate(names))}))
    entities, last = len(old.entity_labels), old.num_scores - 1
    rows = [*range(entities), *[last] * len(new), *range(entities, old.num_scores)]
    weights = extended.state_dict()
    for name, value in model.state_dict().items():
        of_labels = value.shape != weights[name].shape
        weights[name] = value[rows] if of_labels else value
        if name.endswith("label_bias"):
            weights[name][entities : entities + len(new)] -= START_BELOW
    extended.load_state_dict(weights)
    extended.name_or_path = extended.config.name_or_path = model.config.name_or_path
    return extended.train(model.training)


class Teacher:
    """A trained model from which another learns the labels that the training data does not annotate.

    Source: Monaikul et al., "Continual Learning for Named Entity Recognition" (AAAI 2021). The `teacher` is the model
    that training started from, as it was; `labels` are those of the training data.
    """

    def __init__(self, teacher: TriaffineForNestedNER, student: TriaffineForNestedNER, labels: Sequence[str]):
        self.model = teacher.eval().requires_grad_(False)
        self.config: Any = student.config
        names = missing_labels(teacher, labels)
        old: Any = teacher.config.label2id
        new: Any = student.config.label2id
        self.labels = [old[name] for name in names], [new[name] for name in names]

    @torch.no_grad()
    def targets(self, inputs: Mapping[str, Any]) -> Tensor:
        """Probabilities to learn from a batch of the collator, as `forward` takes them.

        What the data says of its own labels stays. Where it has None, that probability is shared out as the teacher
        does between the labels that the data lacks and None.
        """
        smoothing = self.config.boundary_smoothing, self.config.boundary_smoothing_distance
        targets = smooth_boundaries(inputs["labels"], self.config.num_labels, *smoothing)
        output = self.model(**{name: value for name, value in inputs.items() if name != "labels"})
        theirs, ours = self.labels
        kept = span_probabilities(output, self.config.multi_label)[..., theirs].to(targets.dtype)
        if self.config.multi_label:
            targets[..., ours] = kept
        else:
            free = targets[..., -1:].clone()
            targets[..., ours] = free * kept
            targets[..., -1:] = free * (1 - kept.sum(-1, keepdim=True))
        return targets


def span_probabilities(output: NestedNEROutput, multi_label: bool) -> Tensor:
    """The final probabilities of all spans [B, N, N, R]: of candidates by their final scores, else by span scores."""
    assert output.span_logits is not None
    probabilities = label_probabilities(output.span_logits, multi_label)
    if output.logits is not None:
        assert output.candidates is not None
        assert output.candidate_mask is not None
        sentence, place = output.candidate_mask.nonzero(as_tuple=True)
        first, last = output.candidates[sentence, place].unbind(-1)
        probabilities[sentence, first, last] = label_probabilities(output.logits[sentence, place], multi_label)
    return probabilities
