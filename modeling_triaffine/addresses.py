"""The address that the demo page and the HTTP service listen on, and the names under which they answer there."""

import ipaddress
import socket

HOST = "127.0.0.1"  # this machine only
PAGE_PORT = 7860
BACKLOG = 128  # connections waiting to be accepted


def listen(host: str, port: int) -> socket.socket:
    """Returns a listening socket, so that no other process can take the port; port 0 picks a free one."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise OSError(f"Cannot listen on {host}, port {port}: {error}. Choose another --port or --host.") from None
    # Connections inherit this option; asyncio sets it only on sockets that name their protocol, which this one does
    # not. Without it a short answer waits 40 ms for the client to acknowledge its header.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def url_of(listener: socket.socket) -> str:
    """The URL under which a browser or client on this machine reaches the socket."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # all addresses
        host = "localhost"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def answered_hosts(host: str) -> list[str]:
    """The names under which a server at this address answers: loopback names only, if only this machine can reach it.

    Otherwise a website could let its own name lead to this machine, and read the answers in the browser of its visitor.
    """
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost"
    return [host, "localhost", "*.localhost", "127.0.0.1", "[::1]"] if is_loopback else ["*"]
