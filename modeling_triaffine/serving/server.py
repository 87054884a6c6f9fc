"""The server process: its limits of connections and time, and its shutdown."""

import asyncio
import logging
import os
import signal
import socket
import threading
import time
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.middleware.trustedhost import TrustedHostMiddleware

from ..addresses import BACKLOG, answered_hosts

logger = logging.getLogger(__name__)

# After the signal, requests in transit are still accepted; their responses close the connections.
LAST_REQUESTS_SECONDS = 0.2
# Proxies keep idle connections for 60 s or less; a request that is sent while the server closes one would be lost.
IDLE_SECONDS = 75
RECEIVE_SECONDS = 30  # in which a client must send its complete request
# Further connections get 503, which limits the memory of bodies in transit; more than the length of the queue.
MOST_CONNECTIONS = 500
# After this share of `stop_seconds`, waiting requests are cancelled; the rest is for the answers that say so.
SHARE_FOR_REQUESTS = 0.8


class Server(uvicorn.Server):
    """Serves an application until SIGTERM or SIGINT, then answers pending requests and ends the process.

    On the signal, `state.stopping` of the application is set. Shortly before `stop_seconds` are over, waiting requests
    are dropped, as are clients that have not read their response; then the process ends, whatever still runs.
    """

    def __init__(self, application: FastAPI, stop_seconds: int):
        self._application, self._stop_seconds = application, stop_seconds
        self._receiving: dict[Any, float] = {}  # connection and its last request → since when
        self._has_logged = False
        super().__init__(
            uvicorn.Config(
                application,
                lifespan="off",
                ws="none",
                proxy_headers=False,
                access_log=False,
                log_level="error",
                timeout_keep_alive=IDLE_SECONDS,
                timeout_graceful_shutdown=SHARE_FOR_REQUESTS * stop_seconds,  # type: ignore[arg-type]
                backlog=BACKLOG,
                limit_concurrency=MOST_CONNECTIONS,
                callback_notify=self._close_slow_connections,
                timeout_notify=1,
            )
        )

    def serve_on(self, listener: socket.socket, ready: str) -> None:
        """Prints `ready`, and never returns: the process ends with code 0 after SIGTERM, 130 after SIGINT (Ctrl+C)."""
        self._application.add_middleware(TrustedHostMiddleware, allowed_hosts=answered_hosts(listener.getsockname()[0]))
        for number in (signal.SIGTERM, signal.SIGINT):  # which uvicorn raises again at the end
            signal.signal(number, self.handle_exit)
        print(ready, flush=True)  # clients can connect
        self.run([listener])
        # All is answered. To wait for the model's thread, and to end the interpreter, would take seconds.
        os._exit(self._exit_code)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begins the shutdown, and ends the process in any case: a thread, such as one that parses XML, may go on."""
        self._exit_code = 0 if sig == signal.SIGTERM else 128 + sig
        threading.Timer(self._stop_seconds, os._exit, [self._exit_code]).start()
        super().handle_exit(sig, frame)

    async def main_loop(self) -> None:
        """Runs until a signal, and a moment longer for requests in transit."""
        asyncio.get_running_loop().set_exception_handler(self._log_once)
        await super().main_loop()
        self._application.state.stopping = True
        await asyncio.sleep(LAST_REQUESTS_SECONDS)

    async def _close_slow_connections(self) -> None:
        """Closes connections whose request is not there in time: uvicorn limits only the time between two requests."""
        now = time.monotonic()
        connections: list[Any] = list(filter(is_receiving, self.server_state.connections))
        keys = [(connection, connection.cycle) for connection in connections]
        self._receiving = {key: self._receiving.get(key, now) for key in keys}
        for (connection, _), since in self._receiving.items():
            if now - since > RECEIVE_SECONDS:
                connection.transport.abort()

    def _log_once(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Logs once that connections cannot be accepted: asyncio has thousands of messages a second."""
        if not context["message"].startswith("socket.accept()"):
            loop.default_exception_handler(context)
        elif not self._has_logged:
            self._has_logged = True
            logger.error("Connections cannot be accepted: %s. Raise the limit `ulimit -n`.", context["exception"])


def is_receiving(connection: Any) -> bool:
    """True if a connection of uvicorn has not got its request completely, or not begun to."""
    cycle = connection.cycle
    if cycle is None or cycle.response_complete:
        return connection.timeout_keep_alive_task is None
    return bool(cycle.more_body)
