"""Plan of a replay."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec

from fairbank.simulator.engine.bank_replay import Payer
from fairbank.simulator.traces.swf import Trace

OpenTrace = Callable[[], AbstractContextManager[Trace]]
Progress = Callable[[str, int, int], None]
"""Called with the name of the step, the amount done and the total."""


class ReplayPlan(msgspec.Struct, frozen=True):
    """Plan of a replay.

    `percent` of the usage of each fund is granted, in `periods` allocations one after the other.
    `payer` is the column that pays (None: groups if there are any, else users). `days` is the
    length of all periods together (None: that of the trace).
    """

    cluster: str
    percent: int = 90
    periods: int = 1
    days: int | None = None
    payer: Payer | None = None
    actor: int = 0
