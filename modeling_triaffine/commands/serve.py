r"""Serves a model over HTTP: texts in, nested entities out, as JSON.

    triaffine-ner serve --model outputs/demo/model --port 8000
    curl localhost:8000/predict --json '{"text": "The mayor of Port Velmar resigned."}'

POST /predict takes {"text": "…"} or {"texts": ["…", …]}, with "threshold" and "overlap" if wanted, and answers
{"entities": …}. GET /health tells what is served, GET /openapi.json the whole schema. Requests that come while the
model is busy run together. SIGTERM ends it when all that it was asked is answered.
"""

import argparse
from typing import Any

import torch
from transformers.utils import logging

from ..model.pipeline_triaffine import NestedNERPipeline
from . import arguments as shared
from .arguments import check_device


def add_arguments(parser: argparse.ArgumentParser) -> None:
    shared.add_model(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: 127.0.0.1, this machine)")
    parser.add_argument("--port", type=shared.port_number, default=8000, help="0: any free one (default: 8000)")
    limits = (
        ("body-bytes", 2**18, "bytes of a request's body, beyond which it is answered 413"),
        ("texts", 256, "texts of a request, beyond which it is answered 422"),
        ("text-characters", 20_000, "characters of a text, beyond which its request is answered 422"),
        ("waiting", 256, "requests that wait; one more is answered 503"),
        ("batch-texts", 64, "texts of the requests that run together; a larger request runs alone"),
        ("batch-characters", 50_000, "characters of the requests that run together"),
    )
    for name, default, meaning in limits:
        parser.add_argument(
            f"--max-{name}",
            type=shared.positive_integer,
            default=default,
            metavar="N",
            help=f"{meaning} (default: {default})",
        )
    shared.add_batch_size(parser, default=32)
    shared.add_device(parser)
    parser.add_argument(
        "--threads",
        type=shared.positive_integer,
        metavar="N",
        help="threads that the model computes with (default: OMP_NUM_THREADS, or one a core)",
    )
    parser.add_argument(
        "--stop-seconds",
        type=shared.positive_integer,
        default=30,
        metavar="N",
        help="seconds after SIGTERM in which what was begun must come to its end (default: 30)",
    )
    parser.add_argument("--access-log", action="store_true", help="write each request to standard output")


def run(arguments: argparse.Namespace) -> None:
    from ..serving import Batcher, Limits, Server, create_application, listen, url_of

    check_device(arguments.device)
    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)
    logging.disable_progress_bar()
    with listen(arguments.host, arguments.port) as listener:
        find_entities = NestedNERPipeline(
            model=arguments.model, device=arguments.device, batch_size=arguments.batch_size
        )
        logging.set_verbosity_error()  # on a GPU the pipeline would advise against calling it again and again
        limits = Limits(
            body_bytes=arguments.max_body_bytes,
            texts=arguments.max_texts,
            text_characters=arguments.max_text_characters,
        )
        with Batcher(
            find_entities, arguments.max_batch_texts, arguments.max_batch_characters, arguments.max_waiting
        ) as batcher:
            application = create_application(batcher, arguments.model, labels_of(find_entities), limits)
            ready = f"Serving {arguments.model} at {url_of(listener)}"
            server = Server(application, lambda: print(ready, flush=True), arguments.stop_seconds, arguments.access_log)
            find_entities.model.register_forward_pre_hook(batcher.check)
            try:
                server.serve_on(listener)
            finally:
                batcher.give_up()  # who was to be answered has been, or is gone


def labels_of(find_entities: NestedNERPipeline) -> list[str]:
    id2label: Any = find_entities.model.config.id2label
    return [id2label[label] for label in sorted(id2label)[:-1]]  # the last is "None"
