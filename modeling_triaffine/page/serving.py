"""Serves the page, by default on this machine only."""

import signal
import sys
import webbrowser
from typing import Any

import gradio as gr
import uvicorn
from fastapi import FastAPI

from ..addresses import HOST, PAGE_PORT, listen, url_of
from .style import STYLE

# Time for running requests to finish after a signal; idle connections are closed at once.
SECONDS_TO_CLOSE = 3
# The page has no uploads.
LARGEST_UPLOAD = "1b"


def serve_page(page: gr.Blocks, host: str = HOST, port: int = PAGE_PORT, open_browser: bool = False) -> None:
    """Serves the page until SIGINT or SIGTERM, and prints its address when ready.

    Args:
        page: The result of [`build_page`].
        host: Address to listen on; 0.0.0.0 opens the page to the whole network.
        port: 0 selects a free one.
        open_browser: Whether to open the page in the user's browser.

    Raises:
        OSError: The server cannot listen on this address.
    """
    with listen(host, port) as listener:
        address = url_of(listener)
        server = make_server(page)
        # The server raises the signal again after shutdown: SIGTERM is not a failure.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        # The socket already listens: early visitors wait for the server to start.
        print(f"The page is at {address} (stop it with Ctrl+C).", flush=True)
        if open_browser:
            webbrowser.open(address)
        server.run(sockets=[listener])


def make_server(page: gr.Blocks) -> uvicorn.Server:
    """The server of the page, to run on a listening socket."""
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
    """Gradio's default theme with system fonts and contrasts of at least 4.5 : 1."""
    theme = gr.themes.Default(
        primary_hue="indigo", neutral_hue="slate", font=("system-ui", "sans-serif"), font_mono=("monospace",)
    )
    return theme.set(
        body_text_color_subdued="*neutral_500",
        input_placeholder_color="*neutral_500",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
    )
