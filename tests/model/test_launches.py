"""How many operations a GPU would launch, and that it is never waited for, counted on the meta device."""

import pytest
import torch

from modeling_triaffine import TriaffineConfig, TriaffineForNestedNER
from modeling_triaffine.installed_models import installed_models
from modeling_triaffine.model.decoding_triaffine import CopiedScores
from modeling_triaffine.model.span_head_triaffine import TriaffineSpanHead
from tests.helpers.launches import Launches, as_on_cuda

# MiniLM; rank 64, characters, two layers of LSTM, mixed layers.
GENIA = installed_models()["genia"]
BATCH, SUBWORDS, WORDS, CHARACTERS = 32, 42, 30, 16


def make_batch(**more):
    sizes = dict.fromkeys(("input_ids", "attention_mask", "token_type_ids", "word_index"), (BATCH, SUBWORDS))
    sizes |= {"num_words": (BATCH,), "char_ids": (BATCH, WORDS, CHARACTERS), "packed_words": (BATCH * WORDS,), **more}
    return {name: torch.zeros(size, dtype=torch.long, device="meta") for name, size in sizes.items()}


@pytest.fixture
def model():
    with torch.device("meta"):
        return TriaffineForNestedNER(TriaffineConfig.from_pretrained(GENIA))


def test_prediction_waits_for_nothing_but_one_copy(model):
    model.eval().bfloat16()
    with as_on_cuda(), torch.no_grad(), Launches() as seen:
        output = model(**make_batch(), max_words=WORDS)
        count = len(seen.names)
        CopiedScores(output)
    assert count <= 320
    assert seen.names[count:].count("copy_") == 1


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_step_of_training_waits_for_nothing(model, smoothing):
    model.head.config.boundary_smoothing = smoothing
    with as_on_cuda():
        model.train()(**make_batch(labels=(BATCH, WORDS, WORDS))).loss.backward()


def run_head(what, **fields):
    with torch.device("meta"):
        head = TriaffineSpanHead(TriaffineConfig.from_pretrained(GENIA, **fields))
        hidden, lengths = torch.randn(BATCH, WORDS, 384), torch.zeros(BATCH, dtype=torch.long)
        labels = torch.zeros(BATCH, WORDS, WORDS, dtype=torch.long)
    with as_on_cuda(), Launches() as seen:
        if what == "prediction":
            with torch.no_grad():
                head.eval()(hidden, lengths)
        else:
            head(hidden.requires_grad_(), lengths, labels).loss.backward()
    return len(seen.names)


def test_launches_of_the_head():
    assert run_head("prediction") <= 110
    assert run_head("step") <= 310
    assert run_head("step", boundary_smoothing=0.1) <= 310
