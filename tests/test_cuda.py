"""On a GPU: the numbers of the CPU, from models, explanations and commands. Kernels have tests of their own."""

import json

import pytest
import torch

from modeling_triaffine import NestedNERPipeline
from modeling_triaffine.acceleration import graphs
from modeling_triaffine.evaluation.prediction import predict_words
from modeling_triaffine.explanation import explain
from tests.helpers.corpora import write_json
from tests.helpers.micro_training import micro_records, micro_trainer, task_arguments, write_task
from tests.helpers.portable import near
from tests.helpers.tiny import save_tiny_model, tiny_model, tiny_processor
from tests.model.test_modeling import VARIANTS, make_batch

DEVICE = "cuda"
pytestmark = pytest.mark.gpu
TEXTS = ["The gene binds DNA. It works.", "", "protein", "IL2 gene protein binds " * 30]
TOLERANCE = {"rtol": 0, "atol": 1e-4}


@pytest.mark.parametrize("variant", VARIANTS)
def test_losses_scores_and_gradients_are_those_of_the_cpu(encoder, variant):
    model = tiny_model(encoder, **VARIANTS[variant]).train()  # cuDNN has no gradient of an LSTM in evaluation mode
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    batch = make_batch(encoder, model)
    results = []
    for device in ("cpu", DEVICE):
        model.to(device).zero_grad()
        output = model(**{name: values.to(device) for name, values in batch.items()})
        output.loss.backward()
        results.append([output.loss, output.span_logits, *(value.grad.clone() for value in model.parameters())])
    for one, other in zip(*results, strict=True):
        assert other.device.type == DEVICE
        scale = max(1.0, one.abs().max().item())
        torch.testing.assert_close(other.cpu() / scale, one / scale, **TOLERANCE)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("rank", [None, 3], ids=["full", "rank3"])
def test_raw_text_has_the_entities_of_the_cpu(encoder, tmp_path, rank, dtype):
    saved = save_tiny_model(tmp_path, encoder, triaffine_rank=rank)
    expected = NestedNERPipeline(model=saved, device="cpu")(TEXTS, threshold=0.0)
    found = NestedNERPipeline(model=saved, device=DEVICE, dtype=dtype)(TEXTS, threshold=0.0)
    if dtype == "float32":
        assert found == near(expected)
    best, best_of_cpu = (
        [max((e["score"] for e in entities), default=0) for entities in side] for side in (found, expected)
    )
    assert best == pytest.approx(best_of_cpu, abs=0.05)


@torch.no_grad()
def test_graphs_find_the_entities_of_the_plain_path(encoder, tmp_path, monkeypatch):
    find_entities = NestedNERPipeline(save_tiny_model(tmp_path, encoder, triaffine_rank=3), device=DEVICE)
    expected = find_entities(TEXTS, threshold=0.0)
    monkeypatch.setenv(graphs.SWITCH, "1")
    for _ in range(graphs.EAGER_FIRST + 2):
        assert find_entities(TEXTS, threshold=0.0) == near(expected)
    assert graphs._OF_MODELS[find_entities.model].recorded


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_a_resumed_training_by_graphs_ends_with_the_weights_of_the_whole(tmp_path, monkeypatch, precision):
    options = {"train": micro_records(48), "config": {"mlp_dropout": 0.3}, "use_cpu": False, "num_train_epochs": 4}
    options |= {"save_strategy": "steps", "save_steps": 7, "save_total_limit": 9, "bf16": precision == "bf16"}
    plain = micro_trainer(tmp_path / "plain", **options)
    plain.train()
    monkeypatch.setenv(graphs.SWITCH, "1")
    whole, resumed = (micro_trainer(tmp_path / name, **options) for name in ("whole", "resumed"))
    whole.train()
    assert whole._graphs.recorded
    resumed.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-7"))
    # Weights whose gradients are 0 but for rounding differ by more: Adam divides these by themselves.
    torch.testing.assert_close(resumed.model.state_dict(), whole.model.state_dict(), rtol=0, atol=2e-2)
    assert whole.state.log_history[-1]["train_loss"] == pytest.approx(plain.state.log_history[-1]["train_loss"], 0.2)


def test_explanations_and_predicted_words_are_those_of_the_cpu(encoder):
    records = micro_records(6)
    results = []
    for device in ("cpu", DEVICE):
        model, processor = tiny_model(encoder).to(device), tiny_processor(encoder)
        explanation = explain(NestedNERPipeline(model=model, processor=processor, device=device), TEXTS[0], (4, 8))
        words = predict_words(model, processor, records, threshold=0.0)
        results.append([explanation.to_dict(), words])
    assert results[1] == near(results[0])


@pytest.mark.parametrize("precision", [(), ("--bf16",), ("--fp16",)], ids=["float32", "bfloat16", "float16"])
def test_commands_use_the_gpu_without_being_told(command, tmp_path, precision):
    options = {"num_train_epochs": 4, "learning_rate": 1e-2, "encoder_learning_rate": 1e-2}
    corpus = write_task(tmp_path, options, micro_records(60), micro_records(20, seed=1))
    trained = command("train", *task_arguments(corpus, tmp_path / "run", *precision))
    assert trained.code == 0, trained.err
    (tmp_path / "texts.txt").write_text("the kappa binds alpha gene\n")
    assert torch.cuda.get_device_name() in (tmp_path / "run" / "README.md").read_text()
    others = write_json(tmp_path / "others.jsonl", *micro_records(20, seed=2))
    for device in ((), ("--device", "cpu")):
        found = command("predict", "--model", tmp_path / "run", tmp_path / "texts.txt", *device)
        assert "entities" in json.loads(found.out)
        report = ("--report", tmp_path / f"report {len(device)}")
        for name, *arguments in (("evaluate", corpus, *report), ("calibrate", others)):
            done = command(name, "--model", tmp_path / "run", *arguments, *device)
            assert done.code == 0, done.err
