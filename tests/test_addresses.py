"""The address that page and service listen on."""

import socket

import pytest

from modeling_triaffine.addresses import listen, url_of


def test_an_address_that_is_taken_or_not_of_this_machine_is_refused():
    with listen("127.0.0.1", 0) as taken:
        nobodys = ("192.0.2.1", 0)  # reserved for documentation
        for host, port in (taken.getsockname(), nobodys, ("no such host", 0), ("127.0.0.1", 70000)):
            with pytest.raises(OSError, match=f"{host}, port {port}: .*--(port|host)"):
                listen(host, port)


def test_the_url_is_one_that_clients_can_open():
    for host, told in (("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "localhost")):
        with listen(host, 0) as listener:
            assert url_of(listener) == f"http://{told}:{listener.getsockname()[1]}"
            assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)  # else short answers take 40 ms more
    with listen("localhost", 0) as listener:  # a name, of whichever protocol
        socket.create_connection(listener.getsockname()).close()
    try:
        listener = listen("::1", 0)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with listener:
        assert url_of(listener) == f"http://[::1]:{listener.getsockname()[1]}"
