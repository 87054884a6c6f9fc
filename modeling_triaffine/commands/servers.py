"""`serve` and `page`: a model over HTTP, and on a web page."""

import os
from tempfile import TemporaryDirectory
from typing import Annotated

from typer import Option

from ..addresses import HOST, PAGE_PORT, listen, url_of
from ..installed_models import DEFAULT_MODEL, find_and_name, find_model, installed_models
from ..model.options_triaffine import PredictionOptions
from .options import BatchSize, Bf16, Device, Model, Port, count, open_model


def serve(
    model: Model = None,
    host: Annotated[str, Option(help="Address to listen on; 0.0.0.0: open to the network.")] = HOST,
    port: Port = 8000,
    max_body_bytes: Annotated[int, count("Maximum bytes of a request; beyond it: status 413.")] = 2_000_000,
    max_texts: Annotated[int, count("Maximum texts of a request; beyond it: status 422.")] = 256,
    max_text_characters: Annotated[int, count("Maximum characters of a text; beyond it: status 422.")] = 20_000,
    max_waiting: Annotated[int, count("Maximum requests that wait; beyond it: status 503.")] = 256,
    batch_size: BatchSize = PredictionOptions.batch_size,
    device: Device = None,
    bf16: Bf16 = False,
    stop_seconds: Annotated[int, count("Seconds to complete requests after SIGTERM.")] = 30,
) -> None:
    """Serves a model over HTTP: texts in, nested entities out, as JSON.

        triaffine-ner serve --model outputs/demo/model --port 8000
        curl localhost:8000/predict --json '{"text": "The mayor of Port Velmar resigned."}'

    POST /predict takes {"text": "…"} or {"texts": ["…", …]}, optionally with "threshold", "overlap" and "labels", and
    returns {"entities": …}. POST / takes requests of huggingface_hub.InferenceClient. GET /health returns the name of
    the model, GET /openapi.json the schema. /label-studio and /inception are backends for these annotation tools.
    Requests that arrive while the model is busy are batched. On SIGTERM, the server completes its requests and exits.

    If the environment variable TRIAFFINE_API_KEYS contains keys, separated by commas, clients must send one of them.
    """
    with listen(host, port) as listener:  # before libraries and model are loaded, which takes seconds
        from transformers.utils import logging

        from ..serving import Batcher, Limits, Server, create_application, read_api_keys

        api_keys = read_api_keys()
        logging.disable_progress_bar()
        find_entities = open_model(model, device, bf16, batch_size=batch_size, disable_mmap=True)  # a file may change
        logging.set_verbosity_error()  # on a GPU, the pipeline warns of repeated calls
        limits = Limits(
            body_bytes=max_body_bytes, texts=max_texts, text_characters=max_text_characters, waiting=max_waiting
        )
        with Batcher(find_entities) as batcher:
            batcher.max_characters *= 1 if find_entities.model.device.type == "cpu" else 10  # a GPU reads more at once
            labels = find_entities.model.config.entity_labels
            application = create_application(batcher, find_model(model), labels, limits, api_keys)
            find_entities.model.register_forward_pre_hook(batcher.between_passes)
            ready = f"Serving {model or DEFAULT_MODEL} at {url_of(listener)}"
            Server(application, stop_seconds).serve_on(listener, ready)


def page(
    model: Annotated[
        list[str] | None,
        Option(
            help="Folder, model of the package, or Hub name; give several to choose from.  [default: the package's]",
            metavar="MODEL",
        ),
    ] = None,
    host: Annotated[str, Option(help="Address to listen on; 0.0.0.0: open to the network.")] = HOST,
    port: Port = PAGE_PORT,
    open_browser: Annotated[bool, Option("--open", help="Open the page in the browser.")] = False,
    device: Device = None,
) -> None:
    """Serves a web page to try a model: text in, nested entities drawn, listed and explained.

        triaffine-ner page --model outputs/demo/model --open

    Prints the address of the page and serves it until Ctrl-C. Code of models is never executed, and weights are read
    from safetensors only.
    """
    with listen(host, port) as listener:  # before the model is loaded, which takes seconds
        port = listener.getsockname()[1]
    from ..page import build_page, serve_page

    models = model or dict.fromkeys([find_and_name(None), *map(str, installed_models().values())])
    with TemporaryDirectory() as files:  # from another one, Gradio deletes files, but not their folders
        os.environ.setdefault("GRADIO_TEMP_DIR", files)
        serve_page(build_page([*models], device=device), host, port, open_browser)
