"""Program of the controller: `python -m fairbank.wlm.controller DIRECTORY`.

SIGTERM ends it, SIGHUP makes it read its settings again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fairbank.rest.server.daemon_program import run_daemon
from fairbank.wlm.controller.daemon import ControllerDaemon

SWITCH_SECONDS = 0.000_1
"""How long a pass, which runs in a thread, may keep the event loop or a commit from going on.
Python's default is 5 ms, and SQLite waits for it at each row. Measured with 10,000 waiting jobs: 99
of 100 submissions take up to 77 ms, and with 0.5 ms 102 ms. Passes take no longer.
"""


async def _serve(directory: Path, ready: Callable[[], None]) -> None:
    sys.setswitchinterval(SWITCH_SECONDS)
    await ControllerDaemon(directory.absolute()).run(ready)


if __name__ == "__main__":
    code = run_daemon("fairbank.wlm.controller", "DIRECTORY", _serve)
    with suppress(OSError):  # the disk of the log is full
        sys.stdout.flush()
        sys.stderr.flush()
    # All is stored and closed. Python would wait for the thread of a pass whose plan is dropped.
    os._exit(code)
