"""Requests to a step daemon over the socket of its step: a JSON object a line, each answered."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Callable, Mapping
from typing import Any

from fairbank.wlm.stepd.poller import Poller

REQUEST_MAX = 65_536  # bytes
CONNECTIONS_MAX = 64


class RequestSocket:
    """Socket of a step, for root and the user of the step.

    Invariant: `_connections` has what is received of requests that are not complete, by descriptor.
    """

    def __init__(
        self,
        listener: socket.socket,
        poller: Poller,
        answer: Callable[[object], Mapping[str, Any]],
        attach: Callable[[socket.socket, str, bool], None],
    ) -> None:
        """Prepare the socket; `open` lets the poller wait for requests.

        Args:
            listener: listening socket.
            answer: returns the answer to a request; None stands for one that is no JSON.
            attach: takes a connection over for the streams, with the place from which its output
                begins, and whether it wants to be the input.
        """
        self._listener, self._poller = listener, poller
        self._answer, self._attach = answer, attach
        self._connections: dict[int, tuple[socket.socket, bytes]] = {}

    def open(self) -> None:
        """Accept connections from now on."""
        self._poller.register(self._listener.fileno(), self._accept)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return  # the peer has closed it
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        _, uid, _ = struct.unpack("iII", credentials)
        if uid not in (0, os.geteuid()) or len(self._connections) >= CONNECTIONS_MAX:
            connection.close()
            return
        connection.setblocking(False)
        descriptor = connection.fileno()
        self._connections[descriptor] = connection, b""
        self._poller.register(descriptor, lambda: self._receive(descriptor))

    def _receive(self, descriptor: int) -> None:
        connection, text = self._connections[descriptor]
        try:
            data = connection.recv(REQUEST_MAX)
            *lines, rest = (text + data).split(b"\n")
            for line in lines:
                request = _parsed(line)
                match request:
                    case {
                        "kind": "attach",
                        "from": "start" | "end" | "own" as origin,
                        "input": bool(one),
                    }:
                        # It sends no frame before it has the answer.
                        self._poller.unregister(descriptor)
                        del self._connections[descriptor]
                        self._attach(connection, origin, one)
                        return
                connection.sendall(json.dumps(self._answer(request)).encode() + b"\n")
        except OSError:
            data = b""
        if not data or len(rest) > REQUEST_MAX:
            self._poller.unregister(descriptor)
            connection.close()
            del self._connections[descriptor]
        else:
            self._connections[descriptor] = connection, rest


def _parsed(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
