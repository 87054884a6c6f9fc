"""The server process: its socket, and how it stops."""

import asyncio
import signal
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

# After the signal to stop, for requests that are on their way. Their answers close the connection, so none follows.
LAST_REQUESTS_SECONDS = 0.2
BACKLOG = 2048  # connections that wait to be accepted


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 is any that is free.

    Raises:
        ValueError: the address is not of this machine, or taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = str(error.strerror).partition(" (")[0]  # without the address once more
        raise ValueError(
            f"The server cannot listen at {host}, port {port}: {reason}. Give another --port (0 takes any that "
            "is free), or as --host an address of this machine."
        ) from None
    # Connections inherit it; asyncio sets it only where the socket names its protocol, which this one does not. Without
    # it a short answer waits 40 ms for the client's acknowledgement of its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def url_of(listener: socket.socket) -> str:
    host, port, *_ = listener.getsockname()
    return f"http://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"http://{host}:{port}"


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
