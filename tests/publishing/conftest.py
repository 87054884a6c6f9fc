"""A checkpoint as a training leaves it, and the command that publishes it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from modeling_triaffine.publishing import RunSummary
from modeling_triaffine.publishing.model_card import card_of_folder
from tests.helpers.cards import make_evaluation
from tests.helpers.tiny import save_tiny_model

NAME = "owner/name"
# Files of the training, of trackers and of the user, in alphabetical order.
LEFT_BEHIND = ["checkpoint-3", "log_history.json", "logo.png", "model.onnx", "patients", "training_args.bin"]


@pytest.fixture
def checkpoint(encoder, tmp_path) -> Path:
    folder = save_tiny_model(tmp_path / "checkpoint", encoder, ["chars"])
    RunSummary(dataset="micro", training_seconds=1.0, evaluation=make_evaluation("DNA")).save(folder)
    (folder / "README.md").write_text(card_of_folder(folder))
    for name in LEFT_BEHIND:
        (folder / name).mkdir() if name in ("checkpoint-3", "patients") else (folder / name).write_text("{}")
    (folder / "checkpoint-3" / "optimizer.pt").write_bytes(b"pickle")
    return folder


@pytest.fixture
def publish(checkpoint, command) -> Callable[..., str]:
    """Publishes a model, which must succeed; what was printed."""

    def run(*options: object, name: str = NAME, model: object = checkpoint) -> str:
        result = command("publish", "--model", model, "--repo-id", name, *options)
        assert result.code == 0, result.err
        return result.out

    return run
