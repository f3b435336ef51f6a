"""Signals to processes that may have ended."""

from __future__ import annotations

import os
import signal
from contextlib import suppress


def kill(pid: int) -> None:
    """Send SIGKILL to a process, if it still runs."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
