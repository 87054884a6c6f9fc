"""A trained model goes on with other labels: new ones beside its own, and own ones that the data does not annotate."""

import logging
from collections.abc import Sequence
from typing import Any

import torch
from datasets import Dataset

from ..evaluation.prediction import predict_words
from ..model.configuration_triaffine import NONE_LABEL, TriaffineConfig
from ..model.modeling_triaffine import TriaffineForNestedNER
from ..model.processing_triaffine import TriaffineProcessor

logger = logging.getLogger(__name__)

# How much lower a new label's scores start than those of the label whose weights it has.
START_BELOW = 2.0
# Of the entities that the old model finds, those of at least this probability are kept.
LIKELY = 0.4


def continue_with_labels(
    model: TriaffineForNestedNER, labels: Sequence[str], keep_labels: bool
) -> TriaffineForNestedNER:
    """The model to train on data with these labels; warns of the new ones and of those that the data does not have.

    Args:
        labels: of the training data, None among them.
        keep_labels: whether the model's labels that the data does not have are kept by its own predictions.

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


def keep_old_labels(model: TriaffineForNestedNER, processor: TriaffineProcessor, records: Dataset) -> Dataset:
    """The records with what a model finds of the labels that they do not have, as `kept`; see the collator.

    Args:
        model: the one that training started from, as it was.
        records: with the context that the model reads.
    """
    types = {entity["type"] for entities in records["entities"] for entity in entities}
    gone = missing_labels(model, sorted(types))
    threshold = {name: LIKELY if name in gone else 1.0 for name in model.config.entity_labels}
    found = predict_words(model, processor, list(records), threshold=threshold)
    kept = [[entity for entity in entities if entity["type"] in gone] for entities in found]
    logger.info("Kept of %s: %d likely entities.", ", ".join(gone), sum(map(len, kept)))
    return records.add_column("kept", kept)
