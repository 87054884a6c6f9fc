"""Faults in whole runs, in processes of their own: what the script says, and that the run goes on exactly."""

import os
import re
import runpy
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from transformers import AutoModel

from modeling_triaffine import NestedNERTrainer, TriaffineForNestedNER
from modeling_triaffine.training.interruptions import find_checkpoint, list_checkpoints
from tests.helpers.faults import assert_same_weights
from tests.helpers.micro_training import REPOSITORY, micro_records, task_arguments, write_task
from tests.helpers.processes import PATIENCE, new_process
from tests.helpers.tiny import tiny_model

EVERY_THREE = {"eval_strategy": "steps", "eval_steps": 3, "save_strategy": "steps", "save_steps": 3}
TRAINING = {"max_steps": 9, "per_device_train_batch_size": 4, "learning_rate": 1e-2, **EVERY_THREE}
TRAINING |= {"logging_steps": 1, "use_cpu": True, "disable_tqdm": True}


def fill_disk_at_second_checkpoint() -> None:
    """The system takes no file as large as that of the optimizer, which is written after the weights."""
    import resource

    original = NestedNERTrainer._save_checkpoint

    def save(self, model, trial):
        for checkpoint in list_checkpoints(self.args.output_dir):
            size = sum((checkpoint / name).stat().st_size for name in ("model.safetensors", "optimizer.pt")) // 2
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        original(self, model, trial)

    NestedNERTrainer._save_checkpoint = save


def run_script(
    options: Iterable[object], errors: Path, prepare: Callable[[], None] | None = None
) -> tuple[int | None, str]:
    """Exit code of `examples/train.py`, after `prepare`, a function of a module; and its standard error, in a file."""
    process = new_process(_run_script, [*map(str, options)], errors, prepare)
    process.join(PATIENCE)
    return process.exitcode, errors.read_text(encoding="utf-8")


def _run_script(options: list[str], errors: Path, prepare: Callable[[], None] | None) -> None:
    os.dup2(os.open(errors, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), 2)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    if prepare is not None:
        prepare()
    sys.argv = ["train.py", *options]
    runpy.run_path(str(REPOSITORY / "examples" / "train.py"), run_name="__main__")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("faults"), TRAINING, micro_records(24, seed=1), micro_records(6, seed=2))


@pytest.fixture(scope="module")
def uninterrupted(corpus: Path) -> Path:
    folder = corpus.parent / "uninterrupted"
    options = task_arguments(corpus, folder, "--resume_from_checkpoint")
    code, printed = run_script(options, corpus.parent / "errors.txt")
    assert code == 0, printed
    assert "no complete checkpoint" in printed
    return folder


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of resources")
def test_a_run_that_filled_the_disk_can_be_resumed(tmp_path, corpus, uninterrupted):
    options = task_arguments(corpus, tmp_path / "out")
    code, printed = run_script(options, tmp_path / "errors.txt", fill_disk_at_second_checkpoint)
    assert code == 1, printed
    assert re.search("unexpected pos|file write failed|File too large", printed)
    latest = find_checkpoint("latest", tmp_path / "out")
    assert latest is not None
    TriaffineForNestedNER.from_pretrained(latest)

    code, printed = run_script([*options, "--resume_from_checkpoint"], tmp_path / "errors.txt")
    assert code == 0, printed
    assert "Resuming from" in printed
    assert_same_weights(*(load_file(folder / "model.safetensors") for folder in (tmp_path / "out", uninterrupted)))


# ---- Loading ----


def test_weights_that_are_no_numbers_are_named_when_they_are_loaded(encoder, tmp_path) -> None:
    tiny_model(encoder).save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    weights = load_file(path)
    for name, value in (("head.label_bias", float("nan")), ("encoder.embeddings.word_embeddings.weight", float("inf"))):
        broken = {**weights, name: weights[name].clone()}
        broken[name].flatten()[-1] = value
        save_file(broken, path, metadata={"format": "pt"})
        for load in (TriaffineForNestedNER.from_pretrained, AutoModel.from_pretrained):
            with pytest.raises(ValueError, match=rf"hold numbers that are not finite .* in {name}, so"):
                load(tmp_path)
