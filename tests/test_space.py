"""The Space of the demo page: what it shows, and what it says without a model."""

import runpy
from pathlib import Path

import pytest
import yaml

pytest.importorskip("gradio", reason="needs the extra demo")

from modeling_triaffine import page

REPOSITORY = Path(__file__).resolve().parents[1]
SPACE = REPOSITORY / "examples" / "space"


def test_the_space_shows_its_models_or_says_what_it_lacks(monkeypatch):
    monkeypatch.delenv("TRIAFFINE_MODELS", raising=False)
    with pytest.raises(SystemExit, match="Set its variable TRIAFFINE_MODELS"):
        runpy.run_path(str(SPACE / "app.py"), run_name="__main__")
    served = []
    monkeypatch.setenv("TRIAFFINE_MODELS", "owner/one  owner/two")
    monkeypatch.setattr(page, "build_page", lambda models: models)
    monkeypatch.setattr(page, "serve_page", lambda built, host: served.append((built, host)))
    runpy.run_path(str(SPACE / "app.py"), run_name="__main__")
    assert served == [(["owner/one", "owner/two"], "0.0.0.0")]


def test_the_front_matter_of_the_space():
    _, matter, body = (SPACE / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    fields = yaml.safe_load(matter)
    assert fields["sdk"] == "gradio"
    assert (SPACE / fields["app_file"]).is_file()
    assert len(fields["short_description"]) <= 60  # the Hub takes no longer one
    assert "modeling_triaffine modeling_triaffine" in body  # the package travels with it
