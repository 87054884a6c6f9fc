"""Models for the demo page, what is asked of them, and the page as a visitor uses it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from tests.helpers.tiny import tiny_pipeline

if TYPE_CHECKING:
    from playwright.sync_api import Page

TEXT = "The gene binds DNA."
MARKUP = "<script>window.hurt=1</script> gene <img src=x onerror=window.hurt=2> ${window.hurt=3} {{x}} `"
# A model from a stranger: its name, its labels and its card are markup.
HOSTILE = '<img src=x onerror=window.hurt=4> "c"'
HOSTILE_LABELS = ["<img src=x onerror=window.hurt=7>", "\"'><svg onload=window.hurt=5>", "None"]
LAPTOP, PHONE = {"width": 1366, "height": 768}, {"width": 390, "height": 844}
# Results of a fresh browser on a busy machine.
PATIENCE = 60_000  # milliseconds


def save_model(folder: Path, encoder: str, examples: list[str], **fields) -> Path:
    """A tiny model that takes every candidate for an entity, and its card."""
    pipeline = tiny_pipeline(encoder, **fields)
    pipeline.model.head.label_bias.data[-1] -= 3
    pipeline.save_pretrained(folder)
    widget = yaml.safe_dump({"widget": [{"text": example} for example in examples]})
    (folder / "README.md").write_text(f"---\n{widget}---\n# Model\n", encoding="utf-8")
    return folder


@contextlib.contextmanager
def answered(page: "Page") -> Iterator[None]:
    """Waits until Gradio's stream of answers ends: what is asked, as no person could, meanwhile may get no answer."""
    ended: list[str] = []
    for event in ("requestfinished", "requestfailed"):  # as the browser calls it when it is the first to close a stream
        page.on(event, lambda request: ended.append(request.url))
    yield
    for _ in range(PATIENCE // 10):
        page.wait_for_timeout(10)
        if any("/queue/data" in url for url in ended):
            return
    raise TimeoutError("the stream of answers does not end")


def find(visited: "Page", text: str, awaited: str = "#drawing .text") -> "Page":
    """Asks for the entities of a text."""
    with answered(visited):
        visited.fill("#text textarea", text)
        visited.click("#find")
        visited.wait_for_selector(awaited)
    return visited


def save_models(folder: Path, encoder: str) -> dict[str, Path]:
    """A harmless model and a stranger's, by name."""
    hostile = {"id2label": dict(enumerate(HOSTILE_LABELS))}
    return {
        "tiny": save_model(folder / "tiny", encoder, ["protein binds gene", "gene"]),
        HOSTILE: save_model(folder / HOSTILE, encoder, [MARKUP], **hostile),
    }
