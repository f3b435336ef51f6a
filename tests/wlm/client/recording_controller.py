"""Server that speaks the protocol of the controller: it records requests, and answers as set."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairbank.core.errors import FairbankError
from fairbank.wlm.protocol.commands import AnyRequest, decode_request, encode_answer, encode_error
from fairbank.wlm.protocol.frames import BODY_MAX, FrameDecoder

Answer = dict[str, Any] | FairbankError | None
"""None: the connection is closed instead."""


class RecordingController:
    """Controller of a directory, in a thread.

    Requests are read with the product's schemas, so that one with an unknown field fails.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.requests: list[AnyRequest] = []
        self.answer: Callable[[AnyRequest], Answer] = lambda request: {}
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(directory / "controller.sock"))
        self._server.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                self._serve_one(connection)

    def _serve_one(self, connection: socket.socket) -> None:
        decoder = FrameDecoder(BODY_MAX)
        while data := connection.recv(65_536):
            for frame in decoder.decode(data):
                try:
                    request = decode_request(frame)
                    self.requests.append(request)
                    answer = self.answer(request)
                except FairbankError as error:
                    answer = error
                if answer is None:
                    return
                encode = encode_error if isinstance(answer, FairbankError) else encode_answer
                connection.sendall(encode(frame.number, answer))  # type: ignore[arg-type]
