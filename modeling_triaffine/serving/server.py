"""The server process, and how it stops."""

import asyncio
import signal
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

# After the signal to stop, for requests that are on their way. Their answers close the connection, so none follows.
LAST_REQUESTS_SECONDS = 0.2


class Server(uvicorn.Server):
    """Serves an application until SIGTERM or SIGINT, then answers what it was asked before it returns.

    Args:
        application: whose `state.stopping` is set when the signal came.
        on_ready: called when requests are answered.
        stop_seconds: after the signal; then clients are given up that have not sent what they began or not read their
            answer, and requests that still wait.
        access_log: whether each request is written to standard output.
    """

    def __init__(self, application: FastAPI, on_ready: Callable[[], None], stop_seconds: int, access_log: bool = False):
        config = uvicorn.Config(
            application,
            lifespan="off",
            ws="none",
            proxy_headers=False,
            access_log=access_log,
            log_level="info" if access_log else "error",
            timeout_graceful_shutdown=stop_seconds,
        )
        super().__init__(config)
        self._application = application
        self._on_ready = on_ready

    def serve_on(self, listener: socket.socket) -> None:
        """Returns after SIGTERM, raises KeyboardInterrupt after SIGINT (Ctrl+C)."""
        # uvicorn raises the signal again at the end; SIGTERM must not kill a process then that did what it was told.
        signal.signal(signal.SIGTERM, self.handle_exit)
        self.run([listener])

    async def main_loop(self) -> None:
        """Until a signal comes, and a moment longer, for requests that had reached the machine by then."""
        self._on_ready()
        await super().main_loop()
        self._application.state.stopping = True
        await asyncio.sleep(LAST_REQUESTS_SECONDS)
