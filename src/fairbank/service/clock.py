"""System clock. Only the outer layers own a clock."""

from __future__ import annotations

import time

from fairbank.core.time import Instant


class SystemClock:
    """Clock of the system, in whole seconds."""

    def now(self) -> Instant:
        return Instant(int(time.time()))
