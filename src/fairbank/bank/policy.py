"""What a centre decides about its bank; every choice has a default that never lets an allocation go below zero."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import msgspec

from fairbank.core.final_state import FinalState
from fairbank.core.units import SUM_MAX


class Overrun(Enum):
    """What becomes of usage beyond what is left: it happened, so it is never lost, but somebody must carry it."""

    WRITE_OFF = "write_off"  # charge what is left, note the rest on the entry
    RECORD = "record"  # charge it all; `available` goes below zero by the overrun


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The bank's rules that differ from centre to centre.

    `enforce`: false refuses no job and only records what would have been refused; where there is no allocation nothing is held.
    What runs beyond the credit then is always recorded, whatever `overrun` says: such a bank writes nothing off.
    `late_charges`: a finished run without a hold is charged (otherwise it is refused and kept among the refusals).
    `free_states`: final job states that cost nothing; naming FAILED, CANCELLED and TIMEOUT as well gives Maui's
    DEBITSUCCESSFULWC.
    `hold_grace_seconds`: how long after its time limit a hold lapses when nothing more is heard of the run.
    `clock_tolerance_seconds`: how far a report of a run may be ahead of the bank's clock; one from further in the future is refused.
    """

    enforce: bool = True
    overrun: Overrun = Overrun.WRITE_OFF
    late_charges: bool = True
    free_states: frozenset[FinalState] = frozenset({"NODE_FAIL", "BOOT_FAIL"})
    hold_grace_seconds: Annotated[int, msgspec.Meta(ge=1)] = 86_400
    clock_tolerance_seconds: Annotated[int, msgspec.Meta(ge=0)] = 300

    def split(self, cost: int, room: int) -> Split:
        """Divide a run's `cost` where only `room` is left for it."""
        if cost <= room:
            return Split(cost)
        beyond = cost - max(0, room)
        if self.overrun is Overrun.WRITE_OFF and self.enforce:
            return Split(cost - beyond, written_off=beyond)
        return Split(cost, overrun=beyond)


class Split(msgspec.Struct, frozen=True, gc=False):
    """What of a cost is charged, what of that overruns the allocation, and what nobody pays."""

    charged: int
    overrun: int = 0
    written_off: int = 0


def is_countable(total: int) -> bool:
    """Whether a sum is small enough to be counted exactly everywhere."""
    return total <= SUM_MAX
