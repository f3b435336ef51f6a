"""Python's collector of reference cycles, in a process that is there to answer quickly."""

from __future__ import annotations

import gc


def tune_gc() -> None:
    """Look for reference cycles rarely, and never among what was there at the start: few requests leave any.

    Measured: a third more reports a second, and half the time for the slowest hundredth.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
