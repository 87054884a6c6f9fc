from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.checkpoint_to_publish import NAME, save_checkpoint


@pytest.fixture
def checkpoint(encoder, tmp_path) -> Path:
    return save_checkpoint(tmp_path / "checkpoint", encoder)


@pytest.fixture
def publish(checkpoint, command) -> Callable[..., str]:
    """Publishes a model, which must succeed; what was printed."""

    def run(*options: object, name: str = NAME, model: object = checkpoint) -> str:
        result = command("publish", "--model", model, "--repo-id", name, *options)
        assert result.code == 0, result.err
        return result.out

    return run
