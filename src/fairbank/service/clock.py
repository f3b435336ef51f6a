"""The clock on the wall. Only shells own one."""

from __future__ import annotations

import time

from fairbank.core.time import Instant


class SystemClock:
    """Whole seconds of the system's time."""

    def now(self) -> Instant:
        return Instant(int(time.time()))
