"""Serving the page: on this machine alone unless told otherwise, and nothing in it comes from another server."""

import signal
import sys
import webbrowser
from typing import Any

import gradio as gr
import uvicorn
from fastapi import FastAPI

from ..hosting import HOST, PAGE_PORT, listen, url_of
from .style import STYLE

# After a signal: answers under way are finished, connections that wait for news are cut.
SECONDS_TO_CLOSE = 3
# Nothing is ever uploaded.
LARGEST_UPLOAD = "1b"


def serve_page(page: gr.Blocks, host: str = HOST, port: int = PAGE_PORT, open_browser: bool = False) -> None:
    """Serves the page until the process gets SIGINT or SIGTERM; prints its address when it can be opened.

    Args:
        page: from [`build_page`].
        host: address to listen at; 0.0.0.0 lets the whole network in.
        port: 0 takes a free one.
        open_browser: whether to show the page in the user's browser.

    Raises:
        OSError: the address cannot be listened at.
    """
    with listen(host, port) as listener:
        address = url_of(listener)
        server = make_server(page)
        # The server closes in order when it gets a signal, and then passes it on: SIGTERM is no failure.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        # The socket listens already: who comes before the server has started waits for it.
        print(f"The page is at {address} (stop it with Ctrl+C).", flush=True)
        if open_browser:
            webbrowser.open(address)
        server.run(sockets=[listener])


def make_server(page: gr.Blocks) -> uvicorn.Server:
    """The server of the page, to be run on a socket that listens."""
    undocumented: dict[str, Any] = {"docs_url": None, "redoc_url": None, "openapi_url": None}
    application = gr.mount_gradio_app(
        FastAPI(**undocumented),
        page,
        path="",
        app_kwargs=undocumented,
        footer_links=[],
        run_history=False,
        show_error=False,
        max_file_size=LARGEST_UPLOAD,
        ssr_mode=False,
        enable_monitoring=False,
        pwa=False,
        mcp_server=False,
        theme=make_theme(),
        css=STYLE,
    )
    config = uvicorn.Config(application, log_level="warning", timeout_graceful_shutdown=SECONDS_TO_CLOSE)
    return uvicorn.Server(config)


def make_theme() -> gr.themes.Base:
    """Gradio's own with fonts that every system has and with contrasts of at least 4.5 : 1."""
    theme = gr.themes.Default(
        primary_hue="indigo", neutral_hue="slate", font=("system-ui", "sans-serif"), font_mono=("monospace",)
    )
    return theme.set(
        body_text_color_subdued="*neutral_500",
        input_placeholder_color="*neutral_500",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
    )
