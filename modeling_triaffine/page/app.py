"""`build_page`: the components of the page and their events; `answers.py` computes the responses."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import gradio as gr
from gradio.processing_utils import save_bytes_to_cache

from ..files import SURROGATES
from ..model.decoding_triaffine import OVERLAPS
from .answers import CHOOSE_ONE, NOTHING_YET, explain_entity, find_entities
from .marking import Marked
from .models import Models
from .style import CHOOSE_ENTITY, SHOW_DRAWING, SHOW_EXPLANATION

TITLE = "Nested entities"
INTRODUCTION = "Finds names in a text, also names inside other names, and shows why."
LIKELIEST, AT_LEAST = "likeliest label is one", "probability is at least …"
OVERLAP_NAMES = ("All of them", "Nested ones, but none that cross", "None that share a word")
# Files for download are deleted after an hour, and when the page is closed.
SECONDS_OF_FILES = 3600
# With more waiting requests, the page reports that it is busy.
LONGEST_QUEUE = 32

PRIVATE: dict[str, Any] = {"api_visibility": "private"}
# One request at a time runs a model: several would compete for the same cores.
IN_TURN: dict[str, Any] = {"concurrency_id": "model", "concurrency_limit": 1, **PRIVATE}
# Entering a model's name by clicking the button requests its examples and entities at once. Only one of them uses
# Gradio's queue, which can lose a response while it closes the stream of another.
AT_ONCE: dict[str, Any] = {"queue": False, **PRIVATE}


class _Parts(NamedTuple):
    """The inputs and outputs of events."""

    model: gr.Dropdown
    text: gr.Textbox
    samples: gr.Dataset
    keep: gr.Radio
    threshold: gr.Slider
    overlap: gr.Radio
    find: gr.Button
    drawing: gr.HTML
    explanation: gr.HTML
    table: gr.HTML
    download: gr.DownloadButton
    marked: gr.State


def build_page(
    models: Sequence[str | os.PathLike[str]],
    *,
    examples: Sequence[str] | None = None,
    free_choice: bool = False,
    device: str | None = None,
) -> gr.Blocks:
    """Builds the demo page.

    Args:
        models: Folders or Hub ids of trained models; the first is loaded immediately, the others when chosen.
        examples: Example texts; None: the widget examples of each model's card.
        free_choice: Whether visitors may enter any other folder or Hub id. Only for private pages: it lets visitors
            load models from this machine's disk and from the Hub.
        device: cpu, cuda, cuda:1 …; None: a GPU if available.

    Returns:
        Gradio's Blocks, for [`serve_page`].

    Raises:
        ValueError: No model is given, or the first one cannot be loaded.
    """
    offered = Models(models, free_choice, device)
    offered.pipeline(offered.names[0])
    with gr.Blocks(title=TITLE, analytics_enabled=False, delete_cache=(SECONDS_OF_FILES, SECONDS_OF_FILES)) as page:
        parts = _lay_out(offered, offered.examples(offered.names[0]) if examples is None else examples)
        _connect_options(parts)
        _connect_finding(parts, offered)
        _connect_explaining(parts, offered)
        if examples is None:
            parts.model.change(
                lambda name: gr.Dataset(**_samples(offered.examples(name))), parts.model, parts.samples, **AT_ONCE
            )
    page.queue(max_size=LONGEST_QUEUE, default_concurrency_limit=1, api_open=False)
    return page


def _lay_out(offered: Models, examples: Sequence[str]) -> _Parts:
    gr.HTML(f"<h1>{TITLE}</h1><p>{INTRODUCTION}</p>", elem_classes="page-head")
    with gr.Row(elem_classes="page-areas"):
        with gr.Column(elem_classes="page-inputs"):
            model, text = _lay_out_text(offered)
            find = gr.Button("Find entities", variant="primary", elem_id="find")
            options = _lay_out_options()
            component = gr.Textbox(visible=False)
            samples = gr.Dataset(components=[component], label="Examples", elem_id="examples", **_samples(examples))
        with gr.Column(elem_classes="page-results"):
            drawing = _sheet("drawing", NOTHING_YET, js_on_load=CHOOSE_ENTITY)
            explanation = _sheet("explanation", "", visible=False)
            table = _sheet("table", "", js_on_load=CHOOSE_ENTITY, visible=False)
            download = gr.DownloadButton("Download as JSON", visible=False, elem_id="download")
    return _Parts(model, text, samples, *options, find, drawing, explanation, table, download, marked=gr.State(None))


def _lay_out_text(offered: Models) -> tuple[gr.Dropdown, gr.Textbox]:
    model = gr.Dropdown(
        offered.names,
        value=offered.names[0],
        label="Model",
        info="From the list, or any folder or Hub id" if offered.free_choice else None,
        allow_custom_value=offered.free_choice,
        elem_id="model",
    )
    text = gr.Textbox(label="Text", lines=5, max_lines=10, placeholder="Type or paste a text …", elem_id="text")
    return model, text


def _lay_out_options() -> tuple[gr.Radio, gr.Slider, gr.Radio]:
    with gr.Accordion("Options", open=False, elem_id="options"):
        keep = gr.Radio([LIKELIEST, AT_LEAST], value=LIKELIEST, label="A span is an entity if its", elem_id="keep")
        threshold = gr.Slider(0.05, 1, 0.5, step=0.05, label="Least probability", visible=False, elem_id="threshold")
        choices = list(zip(OVERLAP_NAMES, OVERLAPS, strict=True))
        overlap = gr.Radio(choices, value=OVERLAPS[0], label="Entities that overlap", elem_id="overlap")
    return keep, threshold, overlap


def _sheet(name: str, content: str, js_on_load: str | None = None, visible: bool = True) -> gr.HTML:
    options: dict[str, Any] = {"js_on_load": js_on_load, "visible": visible, "apply_default_css": False}
    return gr.HTML(content, elem_id=name, elem_classes="sheet", **options)


def _samples(examples: Sequence[str]) -> dict[str, Any]:
    return {"samples": [[example] for example in examples], "visible": bool(examples)}


def _connect_options(parts: _Parts) -> None:
    parts.samples.click(lambda sample: sample[0], parts.samples, parts.text, **AT_ONCE)
    parts.keep.change(lambda kept: gr.update(visible=kept == AT_LEAST), parts.keep, parts.threshold, **AT_ONCE)


def _connect_finding(parts: _Parts, offered: Models) -> None:
    def find(
        name: str | None,
        text: str | None,
        keep: str,
        least: float,
        overlap: str,
        progress: gr.Progress = gr.Progress(),  # noqa: B008 - Gradio looks for it among the defaults
    ) -> dict[Any, Any]:
        def report(done: int, total: int) -> None:
            progress((done, total), desc="Finding entities", unit="sentences")

        progress(0, desc="Loading the model")
        answer = find_entities(offered, name, text, least if keep == AT_LEAST else None, overlap, report)
        file = answer.marked and _save_json(answer.marked, parts.download)
        return {
            parts.drawing: answer.drawing,
            parts.explanation: gr.update(value=CHOOSE_ONE, visible=bool(answer.table)),
            parts.table: gr.update(value=answer.table, visible=bool(answer.table)),
            parts.download: gr.update(value=file, visible=file is not None),
            parts.marked: answer.marked,
        }

    asked = [parts.find.click, parts.text.submit]
    inputs = [parts.model, parts.text, parts.keep, parts.threshold, parts.overlap]
    outputs = [parts.drawing, parts.explanation, parts.table, parts.download, parts.marked]
    gr.on(asked, fn=None, js=SHOW_DRAWING, **PRIVATE)  # to the progress bar
    # A click while the last one is being answered counts after it; by default it would be lost.
    found = gr.on(asked, find, inputs, outputs, trigger_mode="always_last", show_progress_on=parts.drawing, **IN_TURN)
    found.then(fn=None, js=SHOW_DRAWING, **PRIVATE)  # the page may be long enough to scroll only now


def _save_json(marked: Marked, button: gr.DownloadButton) -> str:
    """Saves the result as a file in Gradio's cache, which Gradio cleans up."""
    content = marked.to_json().encode("utf-8", SURROGATES)
    return save_bytes_to_cache(content, "entities.json", button.GRADIO_CACHE)


def _connect_explaining(parts: _Parts, offered: Models) -> None:
    def explain(marked: Marked | None, chosen: gr.EventData) -> str:
        return explain_entity(offered, marked, chosen.start, chosen.end)

    for sheet in (parts.drawing, parts.table):
        chosen = sheet.explain(explain, parts.marked, parts.explanation, trigger_mode="always_last", **IN_TURN)
        chosen.then(fn=None, js=SHOW_EXPLANATION, **PRIVATE)
