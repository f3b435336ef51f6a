"""Program of the controller: `python -m fairbank.wlm.controller DIRECTORY`.

SIGTERM ends it, SIGHUP makes it read its settings again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from fairbank.rest.server.daemon_program import run_daemon
from fairbank.wlm.controller.daemon import ControllerDaemon

SWITCH_SECONDS = 0.000_5
"""How long a pass, which runs in a thread, may keep the event loop from an answer. Python's default
is 5 ms, and an answer waits for it several times."""


async def _serve(directory: Path, ready: Callable[[], None]) -> None:
    sys.setswitchinterval(SWITCH_SECONDS)
    await ControllerDaemon(directory.absolute()).run(ready)


if __name__ == "__main__":
    code = run_daemon("fairbank.wlm.controller", "DIRECTORY", _serve)
    sys.stdout.flush()
    sys.stderr.flush()
    # All is stored and closed. Python would wait for the thread of a pass whose plan nobody takes.
    os._exit(code)
