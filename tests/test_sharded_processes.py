"""Two processes that share one model (`examples/accelerate/fsdp.yaml`) train, score, save and resume as one does.

They are real processes, on the CPU.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import AutoModel

from modeling_triaffine.training.sharding import layer_classes
from tests.encoders import FIELDS, save_encoder
from tests.micro_training import REPOSITORY, micro_trainer, script_environment
from tests.sharded_processes import CONFIG, TRAINING
from tests.two_processes import TWENTY_RECORDS, losses


def launch(folder: Path) -> list[dict]:
    """What each of the two processes tells."""
    configuration = yaml.safe_load((REPOSITORY / "examples" / "accelerate" / "fsdp.yaml").read_text())
    on_cpu = folder.parent / "fsdp_on_cpu.yaml"
    on_cpu.write_text(yaml.safe_dump({**configuration, "use_cpu": True, "mixed_precision": "no"}))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(on_cpu)),
            *(str(REPOSITORY / "tests" / "sharded_processes.py"), str(folder)),
        ],
        env=script_environment(folder.parent),
        capture_output=True,
        text=True,
        timeout=300,
    )
    results = [json.loads(path.read_text()) for path in sorted(folder.glob("process_*.json"))]
    assert [result["processes"] for result in results] == [2, 2], done.stderr
    return results


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict]]:
    folder = tmp_path_factory.mktemp("sharded") / "run"
    return folder, launch(folder)


def test_they_train_and_score_as_one_does(tmp_path, sharded):
    folder, results = sharded
    options = {**TRAINING, "per_device_train_batch_size": 8}
    alone = micro_trainer(tmp_path, TWENTY_RECORDS, TWENTY_RECORDS[:7], CONFIG, **options)
    alone.train()
    best = min((row for row in alone.state.log_history if "eval_loss" in row), key=lambda row: row["eval_loss"])
    for result in results:
        assert result["sharded"]
        assert result["losses"] == pytest.approx(losses(alone), abs=1e-5)
        assert result["metrics"]["eval_loss"] == pytest.approx(best["eval_loss"], abs=1e-5)
    saved = micro_trainer(tmp_path, TWENTY_RECORDS, TWENTY_RECORDS[:7], CONFIG)
    saved.model.load_state_dict(load_file(folder / "model.safetensors"))
    assert saved.evaluate()["eval_loss"] == pytest.approx(best["eval_loss"], abs=1e-5)


def test_they_resume_to_the_same_weights(sharded):
    folder, _ = sharded
    whole = load_file(folder / "model.safetensors")
    resumed = folder.parent / "resumed"
    shutil.copytree(folder / "checkpoint-10", resumed / "checkpoint-10")
    launch(resumed)
    for name, values in load_file(resumed / "model.safetensors").items():
        assert torch.equal(values, whole[name]), name


def test_only_the_main_process_writes(sharded):
    _, results = sharded
    assert {"config.json", "trainer_state.json", "rng_state_0.pth"} <= set(results[0]["written"])
    assert results[1]["written"] == ["rng_state_1.pth"]


@pytest.mark.parametrize("architecture", FIELDS)
def test_the_layers_of_an_encoder_are_found(tmp_path, architecture):
    encoder = AutoModel.from_pretrained(save_encoder(architecture, tmp_path))
    layers = layer_classes(encoder)
    assert layers
    for module in encoder.modules():
        if type(module).__name__ in layers:
            assert encoder.get_input_embeddings() not in set(module.modules())
