"""`python -m fairbank.compose.counter`: the counter's process. The server starts it; its standard input is the line between them."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys

from fairbank.rest.server.log import log_to
from fairbank.service.ledger import Ledger
from fairbank.service.settings import Log, StoreSettings
from fairbank.service.write_queue.child import ServerGone, serve
from fairbank.service.write_queue.process import Apart, started
from fairbank.service.write_queue.protocol import WorkerSettings

_log = logging.getLogger(__name__)

COMMAND = (
    sys.executable,
    "-P",
    "-m",
    "fairbank.compose.counter",
)  # -P: no module from the folder that we were started in


def apart(store: StoreSettings, log: Log, bank: Ledger, *, room: int) -> Apart:
    """A counter in a process of its own, which opens `store`, the bank's. Raises what it could not be opened for."""
    opening = WorkerSettings(
        store.url, store.journal, bank.policy, bank.patience.seconds, log.value
    )
    return Apart(bank, *started(COMMAND, opening), room=room)


def main() -> None:
    """The server is told to stop by Ctrl-C or SIGTERM, and tells us; who stops all of a group at once stops it by that too."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    with socket.socket(fileno=sys.stdin.fileno()) as line:
        try:
            serve(line, lambda opening: log_to(sys.stderr, Log(opening.log)), _gone)
        except ServerGone:
            _gone()


def _gone() -> None:
    _log.warning("the server is gone, and its counter ends")
    os._exit(1)  # in the middle of a transaction too


if __name__ == "__main__":
    main()
