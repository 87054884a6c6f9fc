"""Two processes that share one model (`examples/accelerate/fsdp.yaml`) train, score, save and resume as one does.

They are real processes, on the CPU.
"""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from safetensors.torch import load_file
from transformers import AutoModel

from modeling_triaffine import NestedNERPipeline
from modeling_triaffine.publishing.run_summary import SUMMARY_FILE
from modeling_triaffine.training.trainer import layer_classes
from tests.helpers.encoders import FIELDS, save_encoder
from tests.helpers.faults import assert_same_weights
from tests.helpers.micro_training import REPOSITORY, micro_records, write_task
from tests.helpers.processes import launch_two
from tests.helpers.sharded_processes import CONFIG, TRAINING, train, train_sharded


def launch(folder: Path) -> list[dict]:
    """The results of the two processes."""
    configuration = yaml.safe_load((REPOSITORY / "examples" / "accelerate" / "fsdp.yaml").read_text())
    on_cpu = folder.parent / "fsdp_on_cpu.yaml"
    on_cpu.write_text(yaml.safe_dump({**configuration, "use_cpu": True, "mixed_precision": "no"}))
    launch_two(train_sharded, folder, configuration=on_cpu)
    results = [json.loads(path.read_text()) for path in sorted(folder.glob("process_*.json"))]
    assert [result["processes"] for result in results] == [2, 2]
    return results


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict]]:
    task = tmp_path_factory.mktemp("sharded")
    write_task(task, TRAINING, micro_records(40, seed=2), micro_records(7, seed=1), CONFIG)
    return task / "run", launch(task / "run")


def test_they_train_and_score_as_one_does(sharded):
    folder, results = sharded
    alone = train(folder.parent / "alone", batch_size=8)
    assert len(alone["losses"]) == 20
    for result in results:
        assert result["sharded"]
        assert result["losses"] == pytest.approx(alone["losses"], abs=1e-5)
        assert result["metrics"]["eval_loss"] == pytest.approx(alone["metrics"]["eval_loss"], abs=1e-5)
    summaries = [json.loads((run / SUMMARY_FILE).read_text()) for run in (folder, folder.parent / "alone")]
    assert any(example["entities"] for example in summaries[0]["examples"])
    for fact in ("evaluation", "parameters", "training_sentences"):
        assert summaries[0][fact] == summaries[1][fact]


def test_what_they_saved_is_the_whole_model(sharded):
    folder, _ = sharded
    texts = [" ".join(record["tokens"]) for record in micro_records(7, seed=1)]
    find_entities = NestedNERPipeline(model=folder)
    weights = load_file(folder / "model.safetensors")
    assert {name: value.shape for name, value in weights.items()} == {
        name: value.shape for name, value in find_entities.model.state_dict().items()
    }
    assert len(find_entities(texts, threshold=0.0)) == len(texts)


@pytest.mark.nightly
def test_they_resume_to_the_same_weights(sharded):
    folder, _ = sharded
    resumed = folder.parent / "resumed"
    shutil.copytree(folder / "checkpoint-10", resumed / "checkpoint-10")
    launch(resumed)
    assert_same_weights(*(load_file(run / "model.safetensors") for run in (resumed, folder)))


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
