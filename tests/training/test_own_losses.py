"""A loss of one's own, as in transformers' Trainer: `compute_loss`, `prediction_step`, `compute_loss_func`."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import TrainerCallback

from modeling_triaffine import NestedNERTrainer, TriaffineForNestedNER
from modeling_triaffine.data.collator import encode_records
from tests.helpers.micro_training import micro_records, micro_trainer, trainer_like

WEIGHTS = (3.0, 2.0, 0.5)  # of the labels
SENTENCES = 16


def weighted(output: Any, labels: Tensor) -> Tensor:
    """Mean over sentences of the weighted cross-entropy, summed over the sentence's spans."""
    scores = output.span_logits.movedim(-1, 1)
    return cross_entropy(scores, labels, torch.tensor(WEIGHTS), reduction="none").sum((1, 2)).mean()


class ClassWeights:
    """As the documentation of transformers shows it; divides by `num_items_in_batch` if it gets one."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        loss = weighted(outputs, inputs["labels"])
        loss = loss if num_items_in_batch is None else loss / num_items_in_batch
        return (loss, outputs) if return_outputs else loss


class Penalty:
    """Adds to the model's own loss."""

    def compute_loss(self, model, inputs, return_outputs=False, *arguments, **options):
        loss, outputs = super().compute_loss(model, inputs, True, *arguments, **options)  # type: ignore[misc]
        loss = loss + sum(weights.square().sum() for weights in model.head.parameters())
        return (loss, outputs) if return_outputs else loss

    def training_step(self, model, inputs, num_items_in_batch=None):
        return super().training_step(model, inputs, num_items_in_batch=num_items_in_batch)  # type: ignore[misc]


class Watch(TrainerCallback):
    """The gradients of an update."""

    def on_pre_optimizer_step(self, args, state, control, model=None, **others):
        self.gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def equal_records() -> list[dict]:
    """Sentences of one length, so that their order does not matter to the losses that are sums over padded spans."""
    return [record for record in micro_records(400) if len(record["tokens"]) == 8][:SENTENCES]


def one_update(batch: int, accumulation: int) -> dict[str, int]:
    """Options of a training of one update."""
    sizes = {"per_device_train_batch_size": batch, "gradient_accumulation_steps": accumulation}
    return {**sizes, "max_steps": 1, "logging_steps": 1}


def loss_in_training(trainer: NestedNERTrainer) -> float:
    trainer.train()
    (loss,) = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return loss


@pytest.mark.parametrize("ways", [ClassWeights, Penalty])
def test_loss_and_gradients_are_those_of_all_sentences_at_any_accumulation(ways, tmp_path):
    whole = micro_trainer(tmp_path, equal_records(), config={"cross_span": False})
    whole.__class__ = kind = type("Ours", (ways, NestedNERTrainer), {})
    inputs = whole.data_collator(encode_records(whole.processing_class, equal_records()))
    expected = whole.compute_loss(whole.model.train(), inputs)
    expected.backward()
    for batch, accumulation in ((16, 1), (4, 4), (2, 8)):
        options = {**one_update(batch, accumulation), "max_grad_norm": 0}
        trainer = micro_trainer(tmp_path, equal_records(), config={"cross_span": False}, **options)
        trainer.__class__ = kind
        watch = Watch()
        trainer.add_callback(watch)
        assert loss_in_training(trainer) == pytest.approx(expected.item(), rel=1e-4)
        gradients = {name: p.grad for name, p in whole.model.named_parameters() if p.grad is not None}
        torch.testing.assert_close(watch.gradients, gradients, rtol=1e-3, atol=1e-5)


def summed(output: Any, labels: Tensor, num_items_in_batch: Tensor | None = None) -> Tensor:
    """A loss function in the form that transformers asks for: it divides by the labels of the whole update itself."""
    scores = output.span_logits.movedim(-1, 1)
    return cross_entropy(scores, labels, torch.tensor(WEIGHTS), reduction="none").sum() / num_items_in_batch


@pytest.mark.parametrize(("batch", "accumulation"), [(16, 1), (4, 4), (2, 8)])
def test_a_loss_function_gets_output_and_labels(batch, accumulation, tmp_path):
    trainer = micro_trainer(tmp_path, equal_records(), equal_records(), **one_update(batch, accumulation))
    trainer = trainer_like(trainer, compute_loss_func=summed)
    spans = SENTENCES * 8 * 9 / 2
    inputs = trainer.data_collator(encode_records(trainer.processing_class, equal_records()))
    labels = inputs.pop("labels")
    with torch.no_grad():
        expected = summed(trainer.model(**inputs), labels, spans).item()
    assert trainer.evaluate()["eval_loss"] == pytest.approx(expected, rel=1e-4)
    assert loss_in_training(trainer) == pytest.approx(expected, rel=1e-4)


class Doubled(NestedNERTrainer):
    def prediction_step(self, *arguments, **options):
        loss, scores, labels = super().prediction_step(*arguments, **options)
        return 2 * loss, scores, labels

    def evaluation_loop(self, dataloader, description, metric_key_prefix="eval", **others):
        return super().evaluation_loop(dataloader, description, None, None, metric_key_prefix)


def test_a_prediction_step_of_ones_own(tmp_path):
    trainer = micro_trainer(tmp_path, micro_records(8), micro_records(8, seed=1), max_steps=1)
    trainer.train()
    scores = trainer.evaluate()
    trainer.__class__ = Doubled
    doubled = trainer.evaluate()
    assert doubled["eval_loss"] == pytest.approx(2 * scores["eval_loss"])
    assert doubled["eval_f1"] == scores["eval_f1"]
    assert not trainer.model._forward_hooks


class TakesAnything(TriaffineForNestedNER):
    """A forward pass from which transformers would infer that the model divides its loss itself."""

    def forward(self, input_ids, attention_mask, word_index=None, num_words=None, **others):
        return super().forward(input_ids, attention_mask, word_index, num_words, **others)


def test_a_model_whose_forward_takes_anything_has_the_same_loss_at_any_accumulation(tmp_path):
    losses = []
    for batch, accumulation in ((12, 1), (4, 3)):
        like = micro_trainer(tmp_path, micro_records(12), **one_update(batch, accumulation))
        like.model.__class__ = TakesAnything
        losses.append(loss_in_training(trainer_like(like)))
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
