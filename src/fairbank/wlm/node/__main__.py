"""Program of the node daemon: `python -m fairbank.wlm.node SETTINGS`, a file in JSON.

It prints a line with `ready` when all its nodes listen. Log lines are JSON and go to the
standard error.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from fairbank.core.errors import FairbankError
from fairbank.rest.server.log import log_to
from fairbank.wlm.node.daemon import NodeDaemon
from fairbank.wlm.node.settings import NodeSettings, read_settings


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python -m fairbank.wlm.node SETTINGS", file=sys.stderr)
        return 2
    log_to(sys.stderr)
    try:
        asyncio.run(_serve(read_settings(Path(sys.argv[1]))))
    except FairbankError as error:
        print(f"{error.message}; {error.remedy}", file=sys.stderr)
        return error.exit_code
    return 0


async def _serve(settings: NodeSettings) -> None:
    await NodeDaemon(settings).run(lambda: print("ready", flush=True))


if __name__ == "__main__":
    sys.exit(main())
