"""`build_page`: the components of the page and their events, which `answers.py` answers; `serve_page`: its server.

Gradio limits what `page.css` may contain: it splits a list of selectors at commas, even at those inside of `:is()`. It
drops a shorthand with variables that is followed by a longhand of the same property.
"""

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.processing_utils import save_bytes_to_cache
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from ..addresses import HOST, PAGE_PORT, answered_hosts
from ..drawing.predictions_page import predictions_page
from ..files import SURROGATES
from ..model.kinds_triaffine import OVERLAPS
from .answers import CHOOSE_ONE, LONGEST_TEXT, NOTHING_YET, Models, PageResult, explain_entity, find_entities

FOLDER = Path(__file__).parent
SHEET: dict[str, Any] = {"elem_classes": "sheet", "apply_default_css": False}
# Runs once, in the elements of drawing and table. These remain when their content changes.
CHOOSE_ENTITY = (FOLDER / "choose_entity.js").read_text(encoding="utf-8")
THEME = gr.themes.Default(  # with system fonts and contrasts of at least 4.5 : 1
    primary_hue="indigo", neutral_hue="slate", font=("system-ui", "sans-serif"), font_mono=("monospace",)
).set(
    body_text_color_subdued="*neutral_500",
    input_placeholder_color="*neutral_500",
    button_primary_background_fill="*primary_600",
    button_primary_background_fill_hover="*primary_700",
)

TITLE = "Nested entities"
INTRODUCTION = "Finds names in a text, including names inside other names, and shows why."
SECONDS_OF_FILES = 3600  # files for download are deleted after an hour, and when the page is closed
LONGEST_QUEUE = 32  # with more waiting requests, the page reports that it is busy
# Visitors whose last result is kept, with up to 3 MB of entities each; Gradio's 10,000 would fill the memory.
MOST_VISITORS = 200

PRIVATE: dict[str, Any] = {"api_visibility": "private"}
# One request at a time runs a model: several would compete for the same cores. A click during an answer is handled
# afterwards (`always_last`); by default it would be lost.
IN_TURN: dict[str, Any] = {"concurrency_id": "model", "concurrency_limit": 1, "trigger_mode": "always_last", **PRIVATE}


def build_page(models: Sequence[str | os.PathLike[str]], *, device: str | None = None) -> gr.Blocks:
    """Builds the demo page, with the examples of the first model's card; the first of these is drawn at once.

    Args:
        models: Folders or names of trained models; the first is loaded immediately, the others when chosen.
        device: cpu, cuda, cuda:1 …; None: a GPU if available.
    """
    offered = Models(models, device)
    names = [*offered.places]
    offered.pipeline(names[0])
    shown = offered.examples()
    with gr.Blocks(title=TITLE, analytics_enabled=False, delete_cache=(SECONDS_OF_FILES, SECONDS_OF_FILES)) as page:
        gr.HTML(f"<h1>{TITLE}</h1><p>{INTRODUCTION}</p>", elem_classes="page-head")
        with gr.Row(elem_classes="page-areas"):
            with gr.Column(elem_classes="page-inputs"):
                hint = "Type or paste a text …"
                first = shown[0] if shown else ""
                text = gr.Textbox(first, label="Text", lines=5, max_lines=10, placeholder=hint, elem_id="text")
                button = gr.Button("Find entities", variant="primary", elem_id="find")
                model = gr.Dropdown(names, value=names[0], label="Model", visible=len(names) > 1, elem_id="model")
                with gr.Accordion("Options", open=False, elem_id="options"):
                    hint = "Minimum probability of an entity; 0: the model decides"
                    least = gr.Slider(0, 1, 0, step=0.05, label=hint, elem_id="threshold")
                    policies = [(policy.meaning.capitalize(), name) for name, policy in OVERLAPS.items()]
                    overlap = gr.Radio(policies, value="all", label="Entities that overlap", elem_id="overlap")
                rows, sample = [[example] for example in shown], gr.Textbox(visible=False)
                samples = gr.Dataset(
                    components=[sample], label="Examples", samples=rows, elem_id="examples", visible=bool(rows)
                )
            with gr.Column(elem_classes="page-results"):
                drawing = gr.HTML(NOTHING_YET, elem_id="drawing", js_on_load=CHOOSE_ENTITY, **SHEET)
                explanation = gr.HTML(elem_id="explanation", visible=False, **SHEET)
                table = gr.HTML(elem_id="table", js_on_load=CHOOSE_ENTITY, visible=False, **SHEET)
                download = gr.DownloadButton("Download as HTML", visible=False, elem_id="download")
        result = gr.State(None)

        def find(name: str, text: str | None, least: float, overlap: str) -> tuple[Any, ...]:
            drawing, table, result = find_entities(offered, name, text, least or None, overlap)
            shown = [gr.update(value=content, visible=bool(table)) for content in (CHOOSE_ONE, table)]
            page = predictions_page([(result.text, result.entities)], name) if result else ""
            content = page.encode("utf-8", SURROGATES)
            file = save_bytes_to_cache(content, "entities.html", download.GRADIO_CACHE) if result else None
            return drawing, *shown, gr.update(value=file, visible=bool(file)), result

        def explain(result: PageResult | None, chosen: gr.EventData) -> str:
            return explain_entity(offered, result, chosen.start, chosen.end)

        inputs, outputs = [model, text, least, overlap], [drawing, explanation, table, download, result]
        chosen = samples.click(lambda chosen: chosen[0], samples, text, queue=False, **PRIVATE)
        for event in (button.click, text.submit, chosen.then, *([page.load] if shown else [])):
            event(find, inputs, outputs, show_progress_on=drawing, scroll_to_output=True, **IN_TURN)
        for sheet in (drawing, table):
            sheet.explain(explain, result, explanation, scroll_to_output=True, **IN_TURN)
    page.queue(max_size=LONGEST_QUEUE, default_concurrency_limit=1, api_open=False)
    return page


def serve_page(page: gr.Blocks, host: str = HOST, port: int = PAGE_PORT, open_browser: bool = False) -> None:
    """Serves a page of [`build_page`] until SIGINT or SIGTERM, and prints its address when ready.

    Host 0.0.0.0 opens the page to the whole network. OSError if the server cannot listen on this address.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(f"The page is at {start_page(page, host, port, open_browser)} (stop it with Ctrl+C).", flush=True)
    try:
        while True:
            time.sleep(60)  # on Windows, Ctrl+C ends a sleep, but no wait for a lock before Python 3.14
    finally:
        page.close(verbose=False)


def start_page(page: gr.Blocks, host: str = HOST, port: int = PAGE_PORT, open_browser: bool = False) -> str:
    """Starts Gradio's server in threads, and returns the address of the page."""
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=answered_hosts(host))
    # Gradio's own limit, `max_file_size`, would let empty files in, and ffmpeg read the recordings of strangers.
    refused = PlainTextResponse("The page has no uploads.", 403)
    uploads = [Route(f"/gradio_api/{name}", refused) for name in ("upload", "process_recording")]
    options: dict[str, Any] = {"docs_url": None, "redoc_url": None, "openapi_url": None}
    options |= {"routes": uploads, "middleware": [hosts], "max_body_size": 12 * LONGEST_TEXT}  # \ud83d\ude00 in JSON
    _, address, _ = page.launch(
        server_name=host,
        server_port=port,
        inbrowser=open_browser,
        prevent_thread_lock=True,
        quiet=True,
        app_kwargs=options,
        footer_links=[],
        run_history=False,
        ssr_mode=False,
        enable_monitoring=False,
        share=False,
        state_session_capacity=MOST_VISITORS,
        theme=THEME,
        css_paths=FOLDER / "page.css",
        i18n=gr.I18n(en={"common.complete": "Done."}),  # read aloud; Gradio's own text for it is missing
    )
    return str(address).rstrip("/")
