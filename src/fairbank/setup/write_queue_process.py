"""Process of the write queue: `python -m fairbank.setup.write_queue_process`.

The server starts it; its standard input is the socket to the server.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys

from fairbank.rest.server.log import log_to
from fairbank.service.ledger import Ledger
from fairbank.service.settings import LogFormat, StoreSettings
from fairbank.service.write_queue.child import ServerDied, serve
from fairbank.service.write_queue.process import ProcessWriteQueue, start_process
from fairbank.service.write_queue.protocol import WorkerSettings

_log = logging.getLogger(__name__)

# -P: no module from the directory in which the server was started.
COMMAND = (sys.executable, "-P", "-m", "fairbank.setup.write_queue_process")


def start_write_queue(
    store: StoreSettings, log: LogFormat, bank: Ledger, *, waiting_max: int
) -> ProcessWriteQueue:
    """Start a write queue in a process that opens the bank's `store`. Raises why it could not.

    Args:
        store: URL and journal mode of the store.
        log: the format of the log lines that the process writes.
        bank: the ledger of the server. The process gets its policy and how long it retries.
        waiting_max: the most requests that may wait or be in progress.
    """
    opening = WorkerSettings(
        store.url, store.journal, bank.policy, bank.retry_policy.seconds, log.value
    )
    return ProcessWriteQueue(bank, *start_process(COMMAND, opening), waiting_max=waiting_max)


def main() -> None:
    """Serve the queue until the server ends.

    The server receives Ctrl-C and SIGTERM and tells this process; a signal to the whole group must
    not stop it earlier.
    """
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_number, signal.SIG_IGN)
    with socket.socket(fileno=sys.stdin.fileno()) as line:
        try:
            serve(line, lambda opening: log_to(sys.stderr, LogFormat(opening.log)), _gone)
        except ServerDied:
            _gone()


def _gone() -> None:
    _log.warning("the server is gone, and its write queue ends")
    os._exit(1)  # in the middle of a transaction too


if __name__ == "__main__":
    main()
