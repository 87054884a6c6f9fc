"""Serves a page to try a model in the browser: text in, nested entities drawn, listed and explained.

    triaffine-ner demo --model outputs/demo/model --open

Prints the page's address and serves until it is stopped (Ctrl+C). At this machine's own address the page also takes
any other model that is typed in, a folder or a Hub id; at any other address only those named here. Code that lies in a
model's repository is never run, and weights are read from safetensors only.
"""

import argparse
import ipaddress

from . import arguments as shared
from .arguments import check_device

HOST, PORT = "127.0.0.1", 7860


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        nargs="+",
        required=True,
        metavar="MODEL",
        help="folders or Hub names of trained models; the first one is loaded at once",
    )
    parser.add_argument("--host", default=HOST, help=f"address to listen at; 0.0.0.0: all (default: {HOST})")
    parser.add_argument("--port", type=shared.port_number, default=PORT, help=f"0: any free one (default: {PORT})")
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    shared.add_device(parser)


def run(arguments: argparse.Namespace) -> None:
    check_device(arguments.device)
    from ..page import build_page, serve_page

    page = build_page(arguments.model, free_choice=is_loopback(arguments.host), device=arguments.device)
    serve_page(page, arguments.host, arguments.port, open_browser=arguments.open)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
