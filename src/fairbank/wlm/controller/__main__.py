"""Program of the controller: `python -m fairbank.wlm.controller DIRECTORY`.

SIGTERM ends it, SIGHUP makes it read its settings again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from fairbank.rest.server.daemon_program import run_daemon
from fairbank.wlm.controller.daemon import ControllerDaemon


async def _serve(directory: Path, ready: Callable[[], None]) -> None:
    await ControllerDaemon(directory.absolute()).run(ready)


if __name__ == "__main__":
    sys.exit(run_daemon("fairbank.wlm.controller", "DIRECTORY", _serve))
