"""`build_page`: the components of the page and their events, which `answers.py` answers; `serve_page`: its server.

Of `page.css`: Gradio prefixes each selector of a list with a class, and mistakes commas in `:is()` for separators of
such a list. It drops a shorthand with variables that is followed by a longhand of the same property.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.processing_utils import save_bytes_to_cache
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ..addresses import HOST, LOOPBACK_NAMES, PAGE_PORT, is_loopback, listen, url_of
from ..files import SURROGATES
from ..model.kinds_triaffine import OVERLAPS
from .answers import CHOOSE_ONE, NOTHING_YET, TEXT_HAS_CHANGED, Marked, explain_entity, find_entities
from .models import Models

FOLDER = Path(__file__).parent
# Runs once in the elements of the drawing and of the table, which remain when their content changes.
CHOOSE_ENTITY = (FOLDER / "choose_entity.js").read_text(encoding="utf-8")
EVENTS = (FOLDER / "page.js").read_text(encoding="utf-8")
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
LIKELIEST, AT_LEAST = "the model decides", "its probability is at least …"
# Files for download are deleted after an hour, and when the page is closed.
SECONDS_OF_FILES = 3600
# With more waiting requests, the page reports that it is busy.
LONGEST_QUEUE = 32

PRIVATE: dict[str, Any] = {"api_visibility": "private"}
# One request at a time runs a model: several would compete for the same cores. A click while the last one is being
# answered counts after it; by default it would be lost.
IN_TURN: dict[str, Any] = {"concurrency_id": "model", "concurrency_limit": 1, "trigger_mode": "always_last", **PRIVATE}
# Entering a model's name by clicking the button requests its examples and entities at once. Only one of them uses
# Gradio's queue, which can lose a response while it closes the stream of another.
AT_ONCE: dict[str, Any] = {"queue": False, **PRIVATE}


def in_browser(event: str) -> dict[str, Any]:
    """The arguments of a listener that runs `page.js` alone."""
    return {"fn": None, "js": f"(text) => {{ ({EVENTS.strip()})('{event}', text); }}", **PRIVATE}


def build_page(
    models: Sequence[str | os.PathLike[str]],
    *,
    examples: Sequence[str] | None = None,
    free_choice: bool = False,
    device: str | None = None,
) -> gr.Blocks:
    """Builds the demo page.

    Args:
        models: Folders or names of trained models; the first is loaded immediately, the others when chosen.
        examples: Example texts, of which the first is drawn when the page opens; None: those of each model's card.
        free_choice: Whether visitors may enter any other folder or Hub id. Only for private pages: it lets visitors
            load models from this machine's disk and from the Hub.
        device: cpu, cuda, cuda:1 …; None: a GPU if available.

    Returns:
        Gradio's Blocks, for [`serve_page`].
    """
    offered = Models(models, free_choice, device)
    offered.pipeline(offered.names[0])
    shown = offered.examples(offered.names[0]) if examples is None else examples
    with gr.Blocks(title=TITLE, analytics_enabled=False, delete_cache=(SECONDS_OF_FILES, SECONDS_OF_FILES)) as page:
        gr.HTML(f"<h1>{TITLE}</h1><p>{INTRODUCTION}</p>", elem_classes="page-head")
        with gr.Row(elem_classes="page-areas"):
            with gr.Column(elem_classes="page-inputs"):
                hint = "Type or paste a text …"
                first = shown[0] if shown else ""
                text = gr.Textbox(first, label="Text", lines=5, max_lines=10, placeholder=hint, elem_id="text")
                button = gr.Button("Find entities", variant="primary", elem_id="find")
                model = gr.Dropdown(
                    offered.names,
                    value=offered.names[0],
                    label="Model",
                    info="From the list, or any folder or Hub id" if free_choice else None,
                    allow_custom_value=free_choice,
                    visible=free_choice or len(offered.names) > 1,
                    elem_id="model",
                )
                keep, least, overlap = _options()
                sample = gr.Textbox(visible=False)
                samples = gr.Dataset(components=[sample], label="Examples", elem_id="examples", **_samples(shown))
            with gr.Column(elem_classes="page-results"):
                gr.HTML(TEXT_HAS_CHANGED, elem_id="outdated")
                drawing = _sheet("drawing", NOTHING_YET, js_on_load=CHOOSE_ENTITY)
                explanation = _sheet("explanation", visible=False)
                table = _sheet("table", js_on_load=CHOOSE_ENTITY, visible=False)
                with gr.Row():
                    as_json = gr.DownloadButton("Download as JSON", visible=False, elem_id="download")
                    as_html = gr.DownloadButton("Download as HTML", visible=False, elem_id="download-html")
        marked = gr.State(None)

        def explain(marked: Marked | None, chosen: gr.EventData) -> str:
            return explain_entity(offered, marked, chosen.start, chosen.end)

        find = _finding(offered, as_json.GRADIO_CACHE)

        def find_on(event: Callable[..., Any]) -> None:
            event(inputs=text, **in_browser("asked"))
            outputs = [drawing, explanation, table, as_json, as_html, marked]
            found = event(find, [model, text, keep, least, overlap], outputs, show_progress_on=drawing, **IN_TURN)
            found.then(**in_browser("found"))

        chosen = samples.click(lambda chosen: chosen[0], samples, text, **AT_ONCE)
        for event in (button.click, text.submit, chosen.then, *([page.load] if shown else [])):
            find_on(event)
        keep.change(lambda kept: gr.update(visible=kept == AT_LEAST), keep, least, **AT_ONCE)
        if examples is None:
            model.change(lambda name: gr.Dataset(**_samples(offered.examples(name))), model, samples, **AT_ONCE)
        text.change(**in_browser("written"))
        page.load(**in_browser("opened"))
        for sheet in (drawing, table):
            sheet.explain(explain, marked, explanation, **IN_TURN).then(**in_browser("explained"))
    page.queue(max_size=LONGEST_QUEUE, default_concurrency_limit=1, api_open=False)
    return page


def _options() -> tuple[gr.Radio, gr.Slider, gr.Radio]:
    with gr.Accordion("Options", open=False, elem_id="options"):
        keep = gr.Radio([LIKELIEST, AT_LEAST], value=LIKELIEST, label="A span is an entity if", elem_id="keep")
        least = gr.Slider(0.05, 1, 0.5, step=0.05, label="Minimum probability", visible=False, elem_id="threshold")
        policies = [(policy.meaning.capitalize(), name) for name, policy in OVERLAPS.items()]
        overlap = gr.Radio(policies, value=policies[0][1], label="Entities that overlap", elem_id="overlap")
    return keep, least, overlap


def _finding(offered: Models, cache: str) -> Callable[..., tuple[Any, ...]]:
    """The response to a text: drawing, explanation, table, downloads and what is marked."""

    def save(content: str, name: str) -> Any:  # in Gradio's cache, which Gradio cleans up
        file = save_bytes_to_cache(content.encode("utf-8", SURROGATES), name, cache)
        return gr.update(value=file, visible=True)

    def find(name: str | None, text: str | None, kept: str, least: float, overlap: str) -> tuple[Any, ...]:
        threshold = least if kept == AT_LEAST else None
        drawing, table, marked = find_entities(offered, name, text, threshold, overlap)
        shown = [gr.update(value=content, visible=bool(table)) for content in (CHOOSE_ONE, table)]
        if marked is None:
            return drawing, *shown, gr.update(visible=False), gr.update(visible=False), None
        files = save(marked.to_json(), "entities.json"), save(marked.to_html(), "entities.html")
        return drawing, *shown, *files, marked

    return find


def _sheet(name: str, content: str = "", js_on_load: str | None = None, visible: bool = True) -> gr.HTML:
    options: dict[str, Any] = {"js_on_load": js_on_load, "visible": visible, "apply_default_css": False}
    return gr.HTML(content, elem_id=name, elem_classes="sheet", **options)


def _samples(examples: Sequence[str]) -> dict[str, Any]:
    return {"samples": [[example] for example in examples], "visible": bool(examples)}


def serve_page(page: gr.Blocks, host: str = HOST, port: int = PAGE_PORT, open_browser: bool = False) -> None:
    """Serves a page of [`build_page`] until SIGINT or SIGTERM, and prints its address when ready.

    Args:
        host, port: Where to listen; host 0.0.0.0 opens the page to the whole network, port 0 is a free one.
        open_browser: Whether to open the page in the user's browser.

    Raises:
        OSError: The server cannot listen on this address.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    address = start_page(page, host, port, open_browser)
    print(f"The page is at {address} (stop it with Ctrl+C).", flush=True)
    try:
        threading.Event().wait()
    finally:
        page.close(verbose=False)


def start_page(page: gr.Blocks, host: str = HOST, port: int = PAGE_PORT, open_browser: bool = False) -> str:
    """Starts Gradio's server in threads, and returns the address of the page."""
    with listen(host, port) as listener:  # an address that is in use is an error; port 0 becomes a free one
        address, port = url_of(listener), listener.getsockname()[1]
    middleware = [Middleware(RefusingUploads)]
    if is_loopback(host):  # or a website could let its own name lead to this machine
        middleware.append(Middleware(TrustedHostMiddleware, allowed_hosts=[host, *LOOPBACK_NAMES]))
    page.launch(
        server_name=host,
        server_port=port,
        inbrowser=open_browser,
        prevent_thread_lock=True,
        quiet=True,
        app_kwargs={"docs_url": None, "redoc_url": None, "openapi_url": None, "middleware": middleware},
        footer_links=[],
        run_history=False,
        ssr_mode=False,
        enable_monitoring=False,
        share=False,
        theme=THEME,
        css_paths=FOLDER / "page.css",
    )
    return address


class RefusingUploads:
    """Closes Gradio's route for uploads: the page has none."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_upload = scope["type"] == "http" and "/upload" in scope["path"]
        await (PlainTextResponse("The page accepts no files.", 403) if is_upload else self.app)(scope, receive, send)
