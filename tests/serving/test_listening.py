"""Where page and service listen, and the address that they tell."""

import socket

import pytest

from modeling_triaffine.serving.listening import listen, url_of


def test_an_address_in_use_is_told():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"at 127.0.0.1, port {port}: Address already in use. Give another --port"):
            listen("127.0.0.1", port)


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("192.0.2.1", 0),  # set aside for documentation: nobody's
        ("no such host", 0),
        ("127.0.0.1", 70000),
    ],
)
def test_an_address_of_nobody_is_told(host, port):
    with pytest.raises(
        OSError, match=f"cannot listen at {host}, port {port}: .*--host an address of this machine"
    ) as told:
        listen(host, port)
    assert "\n" not in str(told.value)


def test_a_port_is_held_from_the_start():
    with listen("127.0.0.1", 0) as held, socket.create_connection(held.getsockname()):
        pass


def test_answers_are_sent_without_delay():
    """A connection that waits for acknowledgements costs every short answer 40 ms."""
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_address_is_told_as_a_client_takes_it():
    for host, told in (("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "localhost")):
        with listen(host, 0) as listener:
            assert url_of(listener) == f"http://{told}:{listener.getsockname()[1]}"
    with listen("localhost", 0) as listener:  # a name, of whichever protocol
        socket.create_connection(listener.getsockname()).close()
    try:
        listener = listen("::1", 0)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with listener:
        assert url_of(listener) == f"http://[::1]:{listener.getsockname()[1]}"
