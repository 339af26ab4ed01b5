"""The server's half of a slider that answers at once: `make lab` names it to JupyterLab.

A kernel's answer to a move is a small message and then a picture. Nagle's algorithm keeps the picture back until the
browser has acknowledged the small message, which it is in no hurry to do: about 35 ms of every move. Any server
does without it if this module can be imported where it runs, on its command line or in jupyter_server_config.json
(in a file of jupyter_server_config.d it has no effect):

    jupyter lab --ServerApp.kernel_websocket_connection_class=posenc.lesson.connection.Connection
"""

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection


class Connection(ZMQChannelsWebsocketConnection):
    """A kernel's connection to a browser whose socket sends every message as it comes."""

    def connect(self):
        self.websocket_handler.set_nodelay(True)
        return super().connect()
