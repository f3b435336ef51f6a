"""Connection to the controller: its socket, requests and answers as JSON in frames."""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from types import TracebackType
from typing import Any

from fairbank.client_file import (
    SITE_FILE,
    read_client_file,
    state_directory,
    user_directory,
    user_file,
)
from fairbank.core import errors
from fairbank.core.errors import FairbankError, InvalidInput, Unavailable
from fairbank.wlm.protocol.frames import (
    BODY_MAX,
    ERROR,
    NUMBER_MAX,
    REQUEST,
    Frame,
    FrameDecoder,
    FrameError,
    encode_frame,
)

SOCKET = "controller.sock"
VERSION = 1
"""Version of the requests."""
ANSWER_SECONDS = 60.0
_CONNECT_TIMEOUT = struct.pack("@ll", int(ANSWER_SECONDS), 0)
_SIGNAL_SECONDS = 1.0
_CHUNK = 256 * 1024


def cluster_directory() -> str:
    """Return the directory of the cluster: the first that is named by FAIRBANK_CLUSTER or the
    user's client file, is the user's own and exists, or is named by the client file of the site.

    A text without a slash is the name of a cluster beside Slurm.

    Raises:
        InvalidInput: FAIRBANK_CLUSTER is a relative path, or no directory is named and the user
            has no home directory.
    """
    text = os.environ.get("FAIRBANK_CLUSTER", "")
    if "/" in text and not text.startswith("/"):
        raise InvalidInput(
            f"{text[:80]!a} is a relative path",
            field="FAIRBANK_CLUSTER",
            remedy="write the whole path of the directory, from / on",
        )
    if named := _path(text) or _path_in(user_file(os.environ)):
        return named
    state = user_directory(os.environ, "XDG_STATE_HOME", "~/.local/state")
    own = f"{state}/fairbank/cluster"
    if state and os.path.isdir(own):
        return own
    return _path_in(SITE_FILE) or f"{state_directory(os.environ)}/fairbank/cluster"


def _path_in(file: str) -> str | None:
    return _path(read_client_file(file).get("cluster"))


def _path(text: str | None) -> str | None:
    return text if text and text.startswith("/") else None


class Controller:
    """Connection to the controller of a cluster. It is made by the first request.

    After an error of the connection the next request makes it again. The kernel tells the
    controller the user of this process.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self.directory = cluster_directory() if directory is None else os.fspath(directory)
        self._socket: socket.socket | None = None
        self._number = 0

    def __enter__(self) -> Controller:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def request(
        self, name: str, *, seconds: float | None = ANSWER_SECONDS, **fields: Any
    ) -> dict[str, Any]:
        """Send a request such as `submit` with its fields, and return the answer.

        The controller may take some seconds; None: as long as it needs. Raises Unavailable if there
        is no controller, or the connection was lost, and the FairbankError that refuses it.
        """
        self._number = self._number % NUMBER_MAX + 1
        content = {"request": name, "version": VERSION, **fields}
        try:
            body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
            frame = encode_frame(Frame(REQUEST, self._number, body))
        except UnicodeEncodeError as error:
            text = error.object[error.start : error.end]
            raise InvalidInput(f"{text[:40]!a} is not UTF-8", remedy="write it in UTF-8") from error
        except FrameError as error:
            raise InvalidInput(f"the request is {error}", remedy="send less") from error
        try:
            connection = self._connect()
            connection.settimeout(seconds)
            connection.sendall(frame)
            answer = self._receive(connection, seconds)
        except (OSError, FrameError) as error:
            self.close()
            raise _no_answer(self.directory, error) from error
        except BaseException:
            self.close()  # else a late answer would be taken for that of the next request
            raise
        return _content(answer)

    def _connect(self) -> socket.socket:
        if self._socket is None:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                # With a timeout of Python's, a socket on which too many wait refuses at once.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _CONNECT_TIMEOUT)
                connection.connect(os.path.join(self.directory, SOCKET))
            except BaseException:
                connection.close()
                raise
            self._socket = connection
        return self._socket

    def _receive(self, connection: socket.socket, seconds: float | None) -> Frame:
        """Return the answer to the last request. Raises TimeoutError after seconds of silence."""
        decoder = FrameDecoder(BODY_MAX)
        # Python handles a signal that comes just before a system call only after the call: none
        # may last for ever.
        connection.settimeout(min(_SIGNAL_SECONDS, seconds or _SIGNAL_SECONDS))
        last = time.monotonic()
        while True:
            try:
                data = connection.recv(_CHUNK)
            except TimeoutError:
                if seconds is not None and time.monotonic() - last >= seconds:
                    raise
                continue
            if not data:
                raise FrameError("the controller closed the connection")
            last = time.monotonic()
            for frame in decoder.decode(data):
                if frame.number == self._number:
                    return frame


def _content(frame: Frame) -> dict[str, Any]:
    """Return the content of an answer. Raises the error that it names."""
    try:
        content: dict[str, Any] = json.loads(frame.body)
    except ValueError as error:
        raise Unavailable("the answer of the controller is not JSON") from error
    if frame.kind != ERROR:
        return content
    raise error_of(content)


def error_of(body: dict[str, Any]) -> FairbankError:
    """Return the error that an answer, or the result of one job, describes."""
    kind = getattr(errors, body["kind"], FairbankError)
    error: FairbankError = kind(body["message"])
    error.field, error.remedy = body["field"], body["remedy"]
    return error


def _no_answer(directory: str, error: Exception) -> Unavailable:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return Unavailable(
        f"no answer from the controller of {directory}: {text}",
        field="controller",
        remedy="fairbank cluster status shows whether it runs; fairbank cluster up starts it",
    )
