"""A model served over HTTP: requests that arrive together run through it together.

`batching.py` is the queue and the thread that owns the model, `schema.py` what is sent and answered, `application.py`
the routes and their limits, `server.py` the socket and how the process stops. Needs the extra `serve`.
"""

try:
    import fastapi  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as error:
    raise ImportError(
        'Serving a model needs FastAPI and uvicorn, which are an extra: pip install "modeling_triaffine[serve]".'
    ) from error

from .application import create_application
from .batching import Batcher, Decoding, QueueFullError
from .schema import Limits
from .server import Server, listen, url_of

__all__ = ["Batcher", "Decoding", "Limits", "QueueFullError", "Server", "create_application", "listen", "url_of"]
