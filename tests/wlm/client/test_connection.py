"""Connection to the controller: what interrupts a request."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.core.errors import Unavailable
from fairbank.wlm.client.connection import SOCKET, Controller


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[Controller]:
    """Return a connection to a controller that accepts requests and never answers."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / SOCKET))
        listener.listen()
        yield Controller(tmp_path)


def test_signal_that_interrupts_no_system_call_ends_a_request(silent: Controller) -> None:
    """The kernel hands it to another thread, so that the call that waits is not interrupted: the
    same as a signal that comes just before the call.
    """

    def interrupt() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    timer = threading.Timer(0.1, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        silent.request("wait-start", seconds=None)
    timer.join()


def test_silence_ends_a_request_after_its_time(silent: Controller) -> None:
    with pytest.raises(Unavailable, match="timed out"):
        silent.request("ping", seconds=0.05)
