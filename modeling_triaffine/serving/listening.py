"""Where the demo page and the HTTP service listen, and the address that they tell."""

import socket

HOST = "127.0.0.1"  # this machine alone
PAGE_PORT = 7860
ALL_ADDRESSES = ("0.0.0.0", "::")
BACKLOG = 2048  # connections that wait to be accepted


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens, so that nobody else can take its port; port 0 is any that is free.

    Raises:
        OSError: the address is not of this machine, or taken.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        # Without the address once more.
        reason = str(getattr(error, "strerror", None) or error).partition(" (")[0].rstrip(".")
        raise OSError(
            f"The server cannot listen at {host}, port {port}: {reason}. Give another --port (0 takes any that "
            "is free), or as --host an address of this machine."
        ) from None
    # Connections inherit it; asyncio sets it only where the socket names its protocol, which this one does not. Without
    # it a short answer waits 40 ms for the client's acknowledgement of its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def url_of(listener: socket.socket) -> str:
    """What a browser or a client on this machine opens."""
    host, port = listener.getsockname()[:2]
    if host in ALL_ADDRESSES:
        host = "localhost"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
