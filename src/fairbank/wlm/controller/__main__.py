"""Program of the controller: `python -m fairbank.wlm.controller DIRECTORY`.

It prints a line with `ready` when it serves commands. Log lines are JSON and go to the standard
error. SIGTERM ends it, SIGHUP makes it read its settings again.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from fairbank.core.errors import FairbankError
from fairbank.rest.server.log import log_to
from fairbank.wlm.controller.daemon import ControllerDaemon


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python -m fairbank.wlm.controller DIRECTORY", file=sys.stderr)
        return 2
    log_to(sys.stderr)
    try:
        asyncio.run(_serve(Path(sys.argv[1]).absolute()))
    except FairbankError as error:
        print(f"{error.message}; {error.remedy}", file=sys.stderr)
        return error.exit_code
    return 0


async def _serve(directory: Path) -> None:
    await ControllerDaemon(directory).run(lambda: print("ready", flush=True))


if __name__ == "__main__":
    sys.exit(main())
