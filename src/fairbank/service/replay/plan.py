"""What is replayed, and how it meets the bank."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec

from fairbank.simulator.engine.bank_replay import Payer
from fairbank.simulator.traces.swf import Trace

OpenTrace = Callable[[], AbstractContextManager[Trace]]
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much."""


class ReplayPlan(msgspec.Struct, frozen=True):
    """How the trace meets the bank. `percent` of what each fund really used is granted, in `periods` allocations one
    after the other; `payer` names the column that pays (None: groups where there are any, else users).
    `days`: how long the periods are together (None: as long as the trace)."""

    cluster: str
    percent: int = 90
    periods: int = 1
    days: int | None = None
    payer: Payer | None = None
    actor: int = 0
