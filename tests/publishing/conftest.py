from pathlib import Path

import pytest

from tests.helpers.checkpoint_to_publish import save_checkpoint


@pytest.fixture
def checkpoint(encoder, tmp_path) -> Path:
    return save_checkpoint(tmp_path / "checkpoint", encoder)
