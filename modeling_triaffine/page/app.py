"""`build_page`: the components of the page and what happens between them."""

import logging
import os
from collections.abc import Sequence
from typing import Any

import gradio as gr
from gradio.processing_utils import save_bytes_to_cache

from ..decoding_triaffine import OVERLAPS
from ..explanation import explain
from ..publishing.html_drawing import draw_entities_html
from ..scripts import SURROGATES
from .marking import Marked, mark_text
from .models import Models
from .style import CHOOSE_ENTITY, SHOW_DRAWING, SHOW_EXPLANATION
from .views import show_error, show_explanation, show_hint, show_table

logger = logging.getLogger(__name__)

TITLE = "Nested entities"
LIKELIEST, AT_LEAST = "likeliest label is one", "probability is at least …"
OVERLAP_NAMES = dict(
    zip(OVERLAPS, ("All of them", "Nested ones, but none that cross", "None that share a word"), strict=True)
)
# The file of the download is deleted an hour after it was made, and when the page is closed.
SECONDS_OF_FILES = 3600
# Beyond so many requests waiting, the page says that it is busy.
LONGEST_QUEUE = 32
# One request at a time runs a model: more at once would only wait for one another's cores.
IN_TURN: dict[str, Any] = {"concurrency_id": "model", "concurrency_limit": 1}
PRIVATE: dict[str, Any] = {"api_visibility": "private"}

NOTHING_YET = show_hint("The entities of the text will be drawn here.")
CHOOSE_ONE = show_hint("Choose an entity, in the drawing or in the table, to see why it was found.")
NO_TEXT = show_hint("There is no text yet: type or paste one, or take an example.")
NOT_MARKED = show_hint("This text is no longer at hand: find its entities again, then choose one.")


def build_page(
    models: Sequence[str | os.PathLike],
    *,
    examples: Sequence[str] | None = None,
    free_choice: bool = False,
    device: str | None = None,
) -> gr.Blocks:
    """The demo page of some models.

    Args:
        models: folders or Hub ids of trained models; the first one is loaded here, the others when they are chosen.
        examples: texts to begin with; None: those that each model's card gives for its widget.
        free_choice: whether visitors may name any other folder or Hub id too. For pages that only their owner sees:
            it lets visitors read models from this machine's disk, and download.
        device: cpu, cuda, cuda:1 …; None: a GPU where there is one.

    Returns:
        Gradio's Blocks, to be served by [`serve_page`].

    Raises:
        ValueError, OSError: there is no model, or the first one cannot be loaded.
    """
    offered = Models(models, free_choice, device)
    offered.pipeline(offered.names[0])

    def examples_of(name: str | None) -> list[str]:
        return offered.examples(name) if examples is None else list(examples)

    with gr.Blocks(title=TITLE, analytics_enabled=False, delete_cache=(SECONDS_OF_FILES, SECONDS_OF_FILES)) as page:
        marked = gr.State(None)
        gr.HTML(
            f"<h1>{TITLE}</h1><p>Finds names in a text, also names inside other names, and shows why.</p>",
            elem_classes="page-head",
        )
        with gr.Row(elem_classes="page-areas"):
            with gr.Column(elem_classes="page-inputs"):
                model, text, samples = _inputs(offered, examples_of)
                keep, threshold, overlap = _options()
                find = gr.Button("Find entities", variant="primary", elem_id="find")
            with gr.Column(elem_classes="page-results"):
                drawing = _sheet("drawing", NOTHING_YET, js_on_load=CHOOSE_ENTITY)
                explanation = _sheet("explanation", CHOOSE_ONE, visible=False)
            with gr.Column(elem_classes="page-list"):
                table = _sheet("table", "", js_on_load=CHOOSE_ENTITY, visible=False)
                download = gr.DownloadButton("Download as JSON", visible=False, elem_id="download")

        def find_entities(
            name: str | None,
            written: str | None,
            kept: str,
            least: float,
            overlapping: str,
            progress: gr.Progress = gr.Progress(),  # noqa: B008 - Gradio looks for it among the defaults
        ) -> dict[Any, Any]:
            nothing = {
                one: gr.update(visible=False, value=None if one is download else "")
                for one in (explanation, table, download)
            }
            if not (written or "").strip():
                return {drawing: NO_TEXT, marked: None, **nothing}
            try:
                progress(0, desc="Loading the model")
                pipeline = offered.pipeline(name)
                done = mark_text(
                    pipeline,
                    str(name),
                    str(written),
                    least if kept == AT_LEAST else None,
                    overlapping,
                    lambda sentences, total: progress((sentences, total), desc="Finding entities", unit="sentences"),
                )
                config: Any = pipeline.model.config
                labels = list(config.id2label.values())[:-1]
                drawn = draw_entities_html(done.text, done.entities, labels)
            except Exception as error:
                return {drawing: _told(error), marked: None, **nothing}
            found = bool(done.entities)
            return {
                drawing: drawn if found else show_hint("No entities were found.") + drawn,
                marked: done,
                explanation: gr.update(value=CHOOSE_ONE, visible=found),
                table: gr.update(value=show_table(done.entities, labels), visible=found),
                download: gr.update(value=_json_file(done, download), visible=True),
            }

        def explain_entity(done: Marked | None, event: gr.EventData) -> str:
            if done is None:
                return NOT_MARKED
            try:
                span = int(event.start), int(event.end)
                return show_explanation(explain(offered.pipeline(done.model), done.text, span))
            except Exception as error:
                return _told(error)

        asked = [find.click, text.submit]
        gr.on(asked, fn=None, js=SHOW_DRAWING, **PRIVATE)
        gr.on(
            asked,
            find_entities,
            [model, text, keep, threshold, overlap],
            [drawing, marked, explanation, table, download],
            show_progress_on=drawing,
            **IN_TURN,
            **PRIVATE,
        )
        for chosen_in in (drawing, table):
            chosen_in.explain(
                explain_entity, marked, explanation, trigger_mode="always_last", **IN_TURN, **PRIVATE
            ).then(fn=None, js=SHOW_EXPLANATION, **PRIVATE)
        samples.click(lambda sample: sample[0], samples, text, queue=False, **PRIVATE)
        keep.change(lambda kept: gr.update(visible=kept == AT_LEAST), keep, threshold, queue=False, **PRIVATE)
        if examples is None:
            model.change(lambda name: _sample_update(examples_of(name)), model, samples, **PRIVATE)
    page.queue(max_size=LONGEST_QUEUE, default_concurrency_limit=1, api_open=False)
    return page


def _inputs(offered: Models, examples_of: Any) -> tuple[gr.Dropdown, gr.Textbox, gr.Dataset]:
    first = offered.names[0]
    model = gr.Dropdown(
        offered.names,
        value=first,
        label="Model",
        info="One of the list, or any folder or Hub id" if offered.free_choice else None,
        allow_custom_value=offered.free_choice,
        elem_id="model",
    )
    text = gr.Textbox(label="Text", lines=6, max_lines=10, placeholder="Type or paste a text …", elem_id="text")
    found = examples_of(first)
    samples = gr.Dataset(
        components=[gr.Textbox(visible=False)],
        samples=[[example] for example in found],
        label="Examples",
        visible=bool(found),
        elem_id="examples",
    )
    return model, text, samples


def _sample_update(examples: Sequence[str]) -> Any:
    return gr.Dataset(samples=[[example] for example in examples], visible=bool(examples))


def _options() -> tuple[gr.Radio, gr.Slider, gr.Radio]:
    with gr.Accordion("Options", open=False, elem_id="options"):
        keep = gr.Radio([LIKELIEST, AT_LEAST], value=LIKELIEST, label="A span is an entity if its", elem_id="keep")
        threshold = gr.Slider(
            0.05, 1.0, value=0.5, step=0.05, label="Least probability", visible=False, elem_id="threshold"
        )
        overlap = gr.Radio(
            [(name, value) for value, name in OVERLAP_NAMES.items()],
            value=OVERLAPS[0],
            label="Entities that overlap",
            elem_id="overlap",
        )
    return keep, threshold, overlap


def _sheet(name: str, content: str, **options: Any) -> gr.HTML:
    return gr.HTML(
        content, elem_id=name, elem_classes="sheet", apply_default_css=False, **{"js_on_load": None, **options}
    )


def _json_file(done: Marked, button: gr.DownloadButton) -> str:
    """The result as a file in the page's own cache, from where Gradio deletes it."""
    content = done.to_json().encode("utf-8", SURROGATES)
    return save_bytes_to_cache(content, "entities.json", button.GRADIO_CACHE)


def _told(error: Exception) -> str:
    """A mistake as it is; what is none, and has a traceback worth reading, goes to the log as well."""
    if isinstance(error, ValueError | OSError | ImportError):
        return show_error(error)
    logger.exception("The page could not answer.")
    return show_error(f"This did not work ({type(error).__name__}: {error}). The log of the page tells more.")
