"""Faults in whole runs: what the script says of them in processes of its own, of folders, checkpoints and settings.

The faults are real ones: files that the system does not take, files that are cut off.
"""

import re
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from transformers import AutoModel

from modeling_triaffine import NestedNERTrainer, TriaffineForNestedNER
from modeling_triaffine.training.interruptions import find_checkpoint, list_checkpoints
from tests.helpers.faults import assert_same_weights
from tests.helpers.micro_training import micro_records, task_arguments, write_task
from tests.helpers.processes import PATIENCE, start_script
from tests.helpers.tiny import tiny_model

# ---- The script, in processes of its own ----


TRAINING = {
    "max_steps": 9,
    "per_device_train_batch_size": 4,
    "eval_strategy": "steps",
    "eval_steps": 3,
    "save_strategy": "steps",
    "save_steps": 3,
    "logging_steps": 1,
    "learning_rate": 1e-2,
    "use_cpu": True,
    "disable_tqdm": True,
}


def limit_files(share: Callable[[int, int], int]) -> Callable[[NestedNERTrainer], None]:
    """No file may grow beyond a size: `share` of that of the weights and of the optimizer's state in a checkpoint."""
    import resource

    def at_save(trainer: NestedNERTrainer) -> None:
        checkpoint, *_ = list_checkpoints(trainer.args.output_dir)
        sizes = [(checkpoint / name).stat().st_size for name in ("model.safetensors", "optimizer.pt")]
        resource.setrlimit(resource.RLIMIT_FSIZE, (share(*sizes), resource.RLIM_INFINITY))

    return at_save


def before_second_checkpoint(act: Callable[[NestedNERTrainer], None]) -> None:
    original, calls = NestedNERTrainer._save_checkpoint, []

    def save(self, model, trial):
        calls.append(1)
        if len(calls) == 2:
            act(self)
        original(self, model, trial)

    NestedNERTrainer._save_checkpoint = save


def before_the_model(act: Callable[[NestedNERTrainer], None]) -> None:
    original = NestedNERTrainer.save_model

    def save(self, *arguments, **options):
        if not arguments and not options:
            act(self)
        original(self, *arguments, **options)

    NestedNERTrainer.save_model = save


def break_fifth_loss() -> None:
    original, calls = NestedNERTrainer.compute_loss, []

    def compute_loss(self, model, *arguments, **options):
        loss = original(self, model, *arguments, **options)
        if not model.training:  # an evaluation, which computes the loss, too
            return loss
        calls.append(1)
        return loss * (float("nan") if len(calls) == 5 else 1)

    NestedNERTrainer.compute_loss = compute_loss


FAULTS: dict[str, tuple[Callable[[], None], str]] = {
    "loss": (break_fifth_loss, r"The loss of update 5 is nan"),
    "weights": (
        lambda: before_second_checkpoint(limit_files(lambda weights, _optimizer: weights // 2)),
        r"could not be written to .*File too large",
    ),
    "optimizer": (
        lambda: before_second_checkpoint(limit_files(lambda weights, optimizer: (weights + optimizer) // 2)),
        r"could not be written to ",
    ),
    "model": (
        lambda: before_the_model(limit_files(lambda weights, _optimizer: weights // 2)),
        r"could not be written to .*File too large",
    ),
}


def introduce(fault: str) -> None:
    FAULTS[fault][0]()


def script(options: Iterable[object], prepare: Callable[[], None] | None, errors: Path) -> tuple[int | None, str]:
    """Exit code of the script and its standard error."""
    process = start_script(options, errors, prepare)
    process.join(PATIENCE)
    return process.exitcode, errors.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("faults"), TRAINING, micro_records(24, seed=1), micro_records(6, seed=2))


@pytest.fixture(scope="module")
def uninterrupted(corpus: Path) -> Path:
    folder = corpus.parent / "uninterrupted"
    options = task_arguments(corpus, folder, "--resume_from_checkpoint")
    code, printed = script(options, None, corpus.parent / "errors.txt")
    assert code == 0, printed
    assert "no complete checkpoint" in printed
    return folder


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of resources")
@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=[pytest.mark.nightly] if fault == "weights" else []) for fault in FAULTS]
)
def test_the_script_explains_a_fault_and_can_be_resumed(tmp_path, corpus, uninterrupted, fault, capfd) -> None:
    options = task_arguments(corpus, tmp_path / "out")
    code, printed = script(options, partial(introduce, fault), tmp_path / "errors.txt")
    assert code == 2, printed
    assert "Traceback" not in printed
    (paragraph,) = (line for line in printed.splitlines() if line.startswith("error: "))
    assert printed.rstrip().endswith(paragraph)
    assert re.search(FAULTS[fault][1], paragraph)
    latest = find_checkpoint("latest", tmp_path / "out")
    assert latest is not None
    TriaffineForNestedNER.from_pretrained(latest)

    code, printed = script([*options, "--resume_from_checkpoint"], None, tmp_path / "errors.txt")
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
