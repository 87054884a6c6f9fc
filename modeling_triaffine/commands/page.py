"""Serves a web page to try a model: text in, nested entities drawn, listed and explained.

    triaffine-ner page --model outputs/demo/model --open

Prints the address of the page and serves it until Ctrl-C. Code of models is never executed, and weights are read from
safetensors only.
"""

from typing import Annotated

import typer

from ..addresses import HOST, PAGE_PORT, listen
from ..installed_models import find_and_name, installed_models
from .options import Device, Port


def command(
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Folder, model of the package, or Hub name; give several to choose from.  [default: the package's]",
            metavar="MODEL",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0: all.")] = HOST,
    port: Port = PAGE_PORT,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    device: Device = None,
) -> None:
    with listen(host, port) as listener:  # before the model is loaded, which takes seconds
        port = listener.getsockname()[1]
    from ..page import build_page, serve_page

    models = model or dict.fromkeys([find_and_name(None), *map(str, installed_models().values())])
    serve_page(build_page([*models], device=device), host, port, open_browser)
