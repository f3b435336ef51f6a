"""Program of a daemon with one argument: log, errors and exit codes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path

from fairbank.core.errors import FairbankError
from fairbank.rest.server.log import log_to
from fairbank.service.ops.garbage_collector import tune_garbage_collector

Serve = Callable[[Path, Callable[[], None]], Coroutine[None, None, None]]
"""Daemon: takes a path, and a function to call when it serves."""


def run_daemon(program: str, argument: str, serve: Serve) -> int:
    """Run a daemon with the path of the command line, and return its exit code.

    It prints a line with `ready` when it serves. Log lines are JSON and go to the standard error.

    Args:
        program: its module.
        argument: name of the argument in the usage line.
        serve: the daemon.
    """
    if len(sys.argv) != 2:
        print(f"usage: python -m {program} {argument}", file=sys.stderr)
        return 2
    log_to(sys.stderr)
    tune_garbage_collector()
    try:
        asyncio.run(serve(Path(sys.argv[1]), _print_ready))
    except FairbankError as error:
        print(f"{error.message}; {error.remedy}", file=sys.stderr)
        return error.exit_code
    return 0


def _print_ready() -> None:
    with suppress(OSError):  # the disk of the log is full
        print("ready", flush=True)
