"""The server process and its shutdown."""

import asyncio
import signal
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

# After the signal, requests in transit are still accepted; their responses close the connections.
LAST_REQUESTS_SECONDS = 0.2
# Proxies keep idle connections for 60 s or less; a request that is sent while the server closes one would be lost.
IDLE_SECONDS = 75


class Server(uvicorn.Server):
    """Serves an application until SIGTERM or SIGINT, then answers pending requests before it returns.

    Args:
        application: Its `state.stopping` is set on the signal.
        on_ready: Called when the server accepts requests.
        stop_seconds: Time limit of the shutdown. After it, waiting requests are dropped, as are clients that have not
            sent their complete request or read their response.
        access_log: Whether to log each request to standard output.
    """

    def __init__(self, application: FastAPI, on_ready: Callable[[], None], stop_seconds: int, access_log: bool = False):
        config = uvicorn.Config(
            application,
            lifespan="off",
            ws="none",
            proxy_headers=False,
            access_log=access_log,
            log_level="info" if access_log else "error",
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=stop_seconds,
        )
        super().__init__(config)
        self._application = application
        self._on_ready = on_ready

    def serve_on(self, listener: socket.socket) -> None:
        """Returns after SIGTERM, raises KeyboardInterrupt after SIGINT (Ctrl+C)."""
        # uvicorn raises the signal again at the end; SIGTERM must not kill the process after an orderly shutdown.
        signal.signal(signal.SIGTERM, self.handle_exit)
        self.run([listener])

    async def main_loop(self) -> None:
        """Runs until a signal, and a moment longer for requests in transit."""
        self._on_ready()
        await super().main_loop()
        self._application.state.stopping = True
        await asyncio.sleep(LAST_REQUESTS_SECONDS)
