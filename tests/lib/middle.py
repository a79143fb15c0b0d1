"""What lies between two members over TCP, and changes what they send: a relay of connections."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

from orcalike.transport.drivers.handshake import ANSWER_SIZE, OPENING_SIZE

HEAD = 4

Change = Callable[[int, str, int, bytes], list[bytes]]
"""(connection, "there" or "back", message, bytes) → what goes on instead of them.

Connections count from 0, and so do messages in each direction: 0 is that of the handshake, others are
records. An empty list is nothing; what raises OSError ends the connection.
"""


class Middle:
    """A relay to the member at `target`; connections are made to `address`."""

    def __init__(self, target: str, change: Change) -> None:
        host, _, port = target.removeprefix("tcp:").rpartition(":")
        self._target = host, int(port)
        self._change = change
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp:127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it is closed
            while True:
                near = self._listener.accept()[0]
                far = socket.create_connection(self._target)
                number, self.connections = self.connections, self.connections + 1
                self._sockets += [near, far]
                for direction, ends in (("there", (near, far)), ("back", (far, near))):
                    arguments = (number, direction, *ends)
                    self._threads.append(threading.Thread(target=self._relay, args=arguments))
                    self._threads[-1].start()

    def _relay(
        self, number: int, direction: str, source: socket.socket, end: socket.socket
    ) -> None:
        with contextlib.suppress(OSError, EOFError):
            for index, data in enumerate(messages(source, direction)):
                for changed in self._change(number, direction, index, data):
                    end.sendall(changed)
        for sock in (source, end):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End all connections."""
        for sock in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for sock in (self._listener, *self._sockets):
            sock.close()


def messages(sock: socket.socket, direction: str) -> Iterator[bytes]:
    """What comes, in whole: the message of the handshake, then records; raises EOFError at the end."""
    yield _whole(sock, OPENING_SIZE if direction == "there" else ANSWER_SIZE)
    while True:
        head = _whole(sock, HEAD)
        yield head + _whole(sock, int.from_bytes(head, "little"))


def _whole(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data
