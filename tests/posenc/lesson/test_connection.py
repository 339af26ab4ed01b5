"""The server's sockets send what they have at once."""

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection

from courseware import lab
from posenc.lesson.connection import Connection


def test_the_socket_is_told_not_to_wait_before_it_connects(monkeypatch):
    calls = []

    class Handler:
        def set_nodelay(self, value):
            calls.append(value)

    monkeypatch.setattr(ZMQChannelsWebsocketConnection, "connect", lambda self: calls.append("connected"))
    connection = Connection.__new__(Connection)
    monkeypatch.setattr(Connection, "websocket_handler", Handler())
    connection.connect()
    assert calls == [True, "connected"]


def test_make_lab_names_this_class_to_a_server_that_has_the_option():
    from jupyter_server.serverapp import ServerApp

    option, _, name = lab.CONNECTION.removeprefix("--ServerApp.").partition("=")
    assert ServerApp.class_traits(config=True)[option]
    assert name == f"{Connection.__module__}.{Connection.__name__}"
