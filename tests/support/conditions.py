"""Waiting for a condition. Tests wait by condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable

PAUSE_SECONDS = 0.02


def wait_until(condition: Callable[[], object], what: str, *, seconds: float = 30) -> None:
    """Return as soon as the condition holds. Raises TimeoutError, with its description, after the
    time limit.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s in vain for {what}")
        time.sleep(PAUSE_SECONDS)
