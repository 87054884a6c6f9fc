"""`build_page`: the components of the page and their events; `answers.py` computes the responses."""

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr
from gradio.processing_utils import save_bytes_to_cache

from ..files import SURROGATES
from ..model.kinds_triaffine import OVERLAPS
from .answers import CHOOSE_ONE, NOTHING_YET, TEXT_HAS_CHANGED, Marked, explain_entity, find_entities
from .models import Models
from .style import CHOOSE_ENTITY, CLOSE_LIST, COMPARE_TEXT, HIDE_RESULT, SHOW_EXPLANATION, SHOW_RESULT

logger = logging.getLogger(__name__)

TITLE = "Nested entities"
INTRODUCTION = "Finds names in a text, including names inside other names, and shows why."
LIKELIEST, AT_LEAST = "the model decides", "its probability is at least …"
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
        ValueError: The first model cannot be loaded.
    """
    offered = Models(models, free_choice, device)
    offered.pipeline(offered.names[0])
    shown = offered.examples(offered.names[0]) if examples is None else examples
    with gr.Blocks(title=TITLE, analytics_enabled=False, delete_cache=(SECONDS_OF_FILES, SECONDS_OF_FILES)) as page:
        gr.HTML(f"<h1>{TITLE}</h1><p>{INTRODUCTION}</p>", elem_classes="page-head")
        with gr.Row(elem_classes="page-areas"):
            with gr.Column(elem_classes="page-inputs"):
                text = gr.Textbox(
                    label="Text", lines=5, max_lines=10, placeholder="Type or paste a text …", elem_id="text"
                )
                button = gr.Button("Find entities", variant="primary", elem_id="find")
                model = _model_choice(offered)
                keep, least, overlap = _options()
                sample = gr.Textbox(visible=False)
                samples = gr.Dataset(components=[sample], label="Examples", elem_id="examples", **_samples(shown))
            with gr.Column(elem_classes="page-results"):
                gr.HTML(TEXT_HAS_CHANGED, elem_id="outdated")
                drawing = _sheet("drawing", NOTHING_YET, js_on_load=CHOOSE_ENTITY)
                explanation = _sheet("explanation", visible=False)
                table = _sheet("table", js_on_load=CHOOSE_ENTITY, visible=False)
                download = gr.DownloadButton("Download as JSON", visible=False, elem_id="download")
        marked = gr.State(None)

        def explain(marked: Marked | None, chosen: gr.EventData) -> str:
            return explain_entity(offered, marked, chosen.start, chosen.end)

        samples.click(lambda chosen: chosen[0], samples, text, **AT_ONCE)
        keep.change(lambda kept: gr.update(visible=kept == AT_LEAST), keep, least, **AT_ONCE)
        if examples is None:
            model.change(lambda name: gr.Dataset(**_samples(offered.examples(name))), model, samples, **AT_ONCE)
        asked, inputs = [button.click, text.submit], [model, text, keep, least, overlap]
        outputs = [drawing, explanation, table, download, marked]
        # A click while the last one is being answered counts after it; by default it would be lost.
        in_turn: dict[str, Any] = {"trigger_mode": "always_last", **IN_TURN}
        gr.on(asked, fn=None, js=HIDE_RESULT, **PRIVATE)
        text.change(fn=None, js=COMPARE_TEXT, **PRIVATE)
        page.load(fn=None, js=CLOSE_LIST, **PRIVATE)
        find = _finding(offered, download.GRADIO_CACHE)
        found = gr.on(asked, find, inputs, outputs, show_progress_on=drawing, **in_turn)
        found.then(fn=None, js=SHOW_RESULT, **PRIVATE)
        for sheet in (drawing, table):
            chosen = sheet.explain(explain, marked, explanation, **in_turn)
            chosen.then(fn=None, js=SHOW_EXPLANATION, **PRIVATE)
    page.queue(max_size=LONGEST_QUEUE, default_concurrency_limit=1, api_open=False)
    return page


def _model_choice(offered: Models) -> gr.Dropdown:
    """The list of models; hidden if there is nothing to choose."""
    return gr.Dropdown(
        offered.names,
        value=offered.names[0],
        label="Model",
        info="From the list, or any folder or Hub id" if offered.free_choice else None,
        allow_custom_value=offered.free_choice,
        visible=offered.free_choice or len(offered.names) > 1,
        elem_id="model",
    )


def _options() -> tuple[gr.Radio, gr.Slider, gr.Radio]:
    with gr.Accordion("Options", open=False, elem_id="options"):
        keep = gr.Radio([LIKELIEST, AT_LEAST], value=LIKELIEST, label="A span is an entity if", elem_id="keep")
        least = gr.Slider(0.05, 1, 0.5, step=0.05, label="Minimum probability", visible=False, elem_id="threshold")
        policies = [(policy.meaning.capitalize(), name) for name, policy in OVERLAPS.items()]
        overlap = gr.Radio(policies, value=policies[0][1], label="Entities that overlap", elem_id="overlap")
    return keep, least, overlap


def _finding(offered: Models, cache: str) -> Callable[..., tuple[Any, ...]]:
    """The response to a text: drawing, explanation, table, download and what is marked."""

    def find(
        name: str | None,
        text: str | None,
        kept: str,
        least: float,
        overlap: str,
        progress: gr.Progress = gr.Progress(),  # noqa: B008 - Gradio looks for it among the defaults
    ) -> tuple[Any, ...]:
        def report(done: int, total: int) -> None:
            progress((done, total), desc="Finding entities", unit="sentences")

        progress(0, desc="Loading the model")
        answer = find_entities(offered, name, text, least if kept == AT_LEAST else None, overlap, report)
        file = answer.marked and save_json(answer.marked, cache)
        return (
            answer.drawing,
            gr.update(value=CHOOSE_ONE, visible=bool(answer.table)),
            gr.update(value=answer.table, visible=bool(answer.table)),
            gr.update(value=file, visible=file is not None),
            answer.marked,
        )

    return find


def _sheet(name: str, content: str = "", js_on_load: str | None = None, visible: bool = True) -> gr.HTML:
    options: dict[str, Any] = {"js_on_load": js_on_load, "visible": visible, "apply_default_css": False}
    return gr.HTML(content, elem_id=name, elem_classes="sheet", **options)


def _samples(examples: Sequence[str]) -> dict[str, Any]:
    return {"samples": [[example] for example in examples], "visible": bool(examples)}


def save_json(marked: Marked, cache: str) -> str | None:
    """Saves the result as a file in Gradio's cache, which Gradio cleans up; None if it cannot be saved."""
    try:
        return save_bytes_to_cache(marked.to_json().encode("utf-8", SURROGATES), "entities.json", cache)
    except OSError as error:
        logger.warning("A result cannot be downloaded: %s", error)
        return None
