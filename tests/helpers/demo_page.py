"""Models for the demo page, what is asked of them, and the page as a visitor uses it."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from tests.helpers.tiny import tiny_pipeline

if TYPE_CHECKING:
    from playwright.sync_api import Page, Request

TEXT = "The gene binds DNA."
MARKUP = "<script>window.hurt=1</script> gene <img src=x onerror=window.hurt=2> ${window.hurt=3} {{x}} `"
# A model from a stranger: its name, its labels and its card are markup.
HOSTILE = '<img src=x onerror=window.hurt=4> "c"'
HOSTILE_LABELS = ["<img src=x onerror=window.hurt=7>", "\"'><svg onload=window.hurt=5>", "None"]
LAPTOP, PHONE = {"width": 1366, "height": 768}, {"width": 390, "height": 844}
# Results of a fresh browser on a busy machine.
PATIENCE = 60_000  # milliseconds
# Of a request: the browser calls it a failure where it is the first to close a stream.
ENDS = ("requestfinished", "requestfailed")


def save_model(folder: Path, encoder: str, examples: list[str], **fields) -> Path:
    """A tiny model that takes every candidate for an entity, and its card."""
    pipeline = tiny_pipeline(encoder, **fields)
    pipeline.model.head.label_bias.data[-1] -= 3
    pipeline.save_pretrained(folder)
    widget = yaml.safe_dump({"widget": [{"text": example} for example in examples]})
    (folder / "README.md").write_text(f"---\n{widget}---\n# Model\n", encoding="utf-8")
    return folder


def find(visited: "Page", text: str, awaited: str = "#drawing .text") -> "Page":
    """Asks for the entities of a text; afterwards Gradio's stream of answers has ended.

    What is asked while that stream is being closed may get no answer. A person is not as quick as a test.
    """
    ended: list[str] = []

    def end(request: "Request") -> None:
        ended.append(request.url)

    for event in ENDS:
        visited.on(event, end)
    visited.fill("#text textarea", text)
    visited.click("#find")
    visited.wait_for_selector(awaited)
    deadline = time.monotonic() + PATIENCE / 1000
    while not any("/queue/data" in address for address in ended):
        assert time.monotonic() < deadline, "the stream of answers does not end"
        visited.wait_for_timeout(10)
    for event in ENDS:
        visited.remove_listener(event, end)
    return visited


def save_models(folder: Path, encoder: str) -> dict[str, Path]:
    """A harmless model and a stranger's, by name."""
    hostile = {"id2label": dict(enumerate(HOSTILE_LABELS))}
    return {
        "tiny": save_model(folder / "tiny", encoder, ["protein binds gene", "gene"]),
        HOSTILE: save_model(folder / HOSTILE, encoder, [MARKUP], **hostile),
    }
