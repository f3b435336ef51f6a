"""Program of the node daemon: `python -m fairbank.wlm.node SETTINGS`, a file in JSON.

SIGTERM ends it; the jobs go on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from fairbank.rest.server.daemon_program import run_daemon
from fairbank.wlm.node.daemon import NodeDaemon
from fairbank.wlm.node.settings import read_settings


async def _serve(settings: Path, ready: Callable[[], None]) -> None:
    await NodeDaemon(read_settings(settings)).run(ready)


if __name__ == "__main__":
    sys.exit(run_daemon("fairbank.wlm.node", "SETTINGS", _serve))
