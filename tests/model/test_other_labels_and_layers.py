"""A trained model with other labels or a layer more, as transformers' users make them by `from_pretrained`."""

import pytest
import torch
from torch import nn
from transformers import AutoModelForTokenClassification

from modeling_triaffine import NestedNERTrainer, NestedNERTrainingArguments, TriaffineForNestedNER
from tests.helpers.tiny import save_tiny_model, tiny_pipeline, tiny_processor

LABELS = {0: "PER", 1: "None"}
OWN_LABELS = {"num_labels": 2, "id2label": LABELS, "label2id": {"PER": 0, "None": 1}, "ignore_mismatched_sizes": True}
OF_LABELS = {"head.label_bias", "head.attention.triaffine.weight", "head.scoring.triaffine.weight"}


class WithLayer(TriaffineForNestedNER):
    """A layer more on the whole model, and one inside its head."""

    def __init__(self, config):
        super().__init__(config)
        self.gate = nn.Linear(config.hidden_size, config.hidden_size)
        self.head.norm = nn.LayerNorm(3)
        self.votes = nn.MultiheadAttention(4, 2)
        self.post_init()


@pytest.fixture(scope="module")
def folder(encoder, tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("trained") / "model", encoder)


def trainer_of(model, encoder, folder, label="PER"):
    rates = {"learning_rate": 0.1, "encoder_learning_rate": 1e-3}
    args = NestedNERTrainingArguments(str(folder), max_steps=1, use_cpu=True, **rates)
    records = [{"tokens": ["Ada", "spoke"], "entities": [{"start": 0, "end": 1, "type": label}]}]
    return NestedNERTrainer(model, args, processing_class=tiny_processor(encoder), train_dataset=records)


@pytest.mark.parametrize("load", [AutoModelForTokenClassification, TriaffineForNestedNER])
def test_own_labels_on_a_trained_model(load, folder, encoder, tmp_path, caplog):
    trained = TriaffineForNestedNER.from_pretrained(folder).state_dict()
    model = load.from_pretrained(folder, **OWN_LABELS)
    assert model.config.id2label == LABELS
    (line,) = [record.message for record in caplog.records if "have other shapes in the file" in record.message]
    assert set(line.split(" have ")[0].split(", ")) == OF_LABELS
    same = {name for name, value in model.state_dict().items() if torch.equal(value, trained[name])}
    assert same == set(trained) - OF_LABELS

    trainer = trainer_of(model, encoder, tmp_path)
    trainer.train()
    trainer.save_model()
    again = load.from_pretrained(tmp_path)
    assert again.config.id2label == LABELS
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("labels", [LABELS, {**dict(enumerate("ABCDEF")), 6: "None"}])
def test_labels_that_the_model_has_no_scores_for_are_refused(encoder, labels):
    finder = tiny_pipeline(encoder)
    finder.model.config.id2label = labels
    with pytest.raises(ValueError, match=rf"3 scores .*needs {len(labels)}\. .*ignore_mismatched_sizes=True"):
        finder("The IL-2 gene.")


def test_own_labels_without_the_keyword_that_starts_them(folder):
    with pytest.raises(ValueError, match="If you gave other labels, add ignore_mismatched_sizes=True"):
        TriaffineForNestedNER.from_pretrained(folder, id2label=LABELS)


def test_new_factors_of_low_rank_fit_the_encoders_vectors(encoder, tmp_path):
    """Without a BiLSTM these are many times larger than what the factors are drawn for."""
    fields = {"triaffine_rank": 4, "lstm_hidden_size": 0, "attention": "triaffine_no_label"}
    folder = save_tiny_model(tmp_path / "m", encoder, **fields)
    trained = TriaffineForNestedNER.from_pretrained(folder)
    torch.manual_seed(0)
    model = TriaffineForNestedNER.from_pretrained(folder, **OWN_LABELS)
    assert torch.equal(model.head.attention.triaffine.inside, trained.head.attention.triaffine.inside)
    sizes = [each.head.scoring.triaffine.inside.square().mean().item() for each in (trained, model)]
    assert 0.2 < sizes[0] / sizes[1] < 5


def test_a_layer_more_starts_untrained_and_is_reported(folder, encoder, tmp_path, caplog):
    torch.manual_seed(0)
    caplog.set_level("WARNING", logger="transformers")  # a command that another test ran may have silenced it
    model, report = WithLayer.from_pretrained(folder, output_loading_info=True)
    new = {name for name in model.state_dict() if name.startswith(("gate.", "votes.", "head.norm."))}
    assert report["missing_keys"] == new
    assert "gate.weight" in caplog.text  # by transformers
    assert "MISSING" in caplog.text
    trained = TriaffineForNestedNER.from_pretrained(folder).state_dict()
    assert all(torch.equal(value, trained[name]) for name, value in model.state_dict().items() if name not in new)
    assert 0.1 < model.gate.weight.std() < 0.3  # as torch draws it: uniform in ±1/√16
    assert 0.2 < model.votes.in_proj_weight.std() < 0.7  # uniform in ±√(6/16)
    assert model.head.norm.weight.tolist() == [1, 1, 1]

    optimizer = trainer_of(model, encoder, tmp_path, "DNA").create_optimizer()
    rates = {id(parameter): group["lr"] for group in optimizer.param_groups for parameter in group["params"]}
    parameters = dict(model.named_parameters())
    assert {rates[id(parameters[name])] for name in new} == {0.1}
    assert rates[id(parameters["encoder.embeddings.word_embeddings.weight"])] == 1e-3

    model.save_pretrained(tmp_path)
    again = WithLayer.from_pretrained(tmp_path)
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in model.state_dict().items())
    assert type(TriaffineForNestedNER.from_pretrained(tmp_path)) is TriaffineForNestedNER  # as in transformers


def test_a_subclass_misses_the_weights_of_the_model_itself(folder, tmp_path):
    model = TriaffineForNestedNER.from_pretrained(folder)
    model.save_pretrained(tmp_path, state_dict={k: v for k, v in model.state_dict().items() if k != "head.label_bias"})
    with pytest.raises(ValueError, match=r"lack head\.label_bias, which"):
        WithLayer.from_pretrained(tmp_path)
