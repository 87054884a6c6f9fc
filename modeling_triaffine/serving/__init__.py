"""Serves a model over HTTP with dynamic batching (the extra `serve`).

`batching.py` holds the queue and the thread that owns the model, `answering.py` what every request meets and how it
waits for its entities, `application.py` the requests and routes, `annotation_tools.py` those of Label Studio and
INCEpTION, `server.py` the process and its shutdown.
"""

from ..errors import importing_extra

with importing_extra("serve", "Serving a model needs FastAPI, prometheus-client and uvicorn"):
    import fastapi  # noqa: F401
    import prometheus_client  # noqa: F401
    import uvicorn  # noqa: F401

from .answering import Limits, read_api_keys
from .application import create_application
from .batching import Batcher, Item
from .server import Server

__all__ = ["Batcher", "Item", "Limits", "Server", "create_application", "read_api_keys"]
