"""Run: its states, its row, and the sums of a user."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairbank.cluster.job import JobDetails, Run
from fairbank.core.time import Instant
from fairbank.core.types import IdentityEnum
from fairbank.core.units import SuMinutes


class RunState(IdentityEnum):
    HELD = "held"
    CHARGED = "charged"
    RELEASED = "released"
    LAPSED = "lapsed"


class RunEvent(IdentityEnum):
    ADJUST = "adjust"
    CHARGE = "charge"
    RELEASE = "release"
    LAPSE = "lapse"


_S, _E = RunState, RunEvent

# A run has one hold and is closed once. A lapse only releases the credit: a report that comes after
# it still charges or releases the run. A run whose hold never arrived starts charged or released.
NEXT: Mapping[tuple[RunState, RunEvent], RunState] = {
    (_S.HELD, _E.ADJUST): _S.HELD,
    (_S.HELD, _E.CHARGE): _S.CHARGED,
    (_S.HELD, _E.RELEASE): _S.RELEASED,
    (_S.HELD, _E.LAPSE): _S.LAPSED,
    (_S.LAPSED, _E.CHARGE): _S.CHARGED,
    (_S.LAPSED, _E.RELEASE): _S.RELEASED,
}


RESOLVED = (_S.CHARGED, _S.RELEASED)
"""States of a run whose end was reported."""


class RunRecord(msgspec.Struct, frozen=True, gc=False):
    """Row of a run. `id` is the entry that opened it; `held` is 0 after the hold is closed.

    `project` is that of the reported account; `allocation` pays, which may be a parent's shared
    one. `set_by` is the entry that set the present hold or closed it; it answers repeated reports.
    `until` is the deadline of an open hold. `ended` is the end by the scheduler's clock, `outcome`
    the final job state, `elapsed_seconds` the reported duration. The owner pays `charged` minus
    `refunded`; `written_off` is the part of the cost that exceeded the credit. Job details move no
    units.
    """

    id: int
    run: Run
    project: int
    allocation: int
    owner: int
    partition: str
    state: RunState
    held: SuMinutes
    start: Instant
    until: Instant
    set_by: int
    charged: SuMinutes = SuMinutes(0)
    written_off: SuMinutes = SuMinutes(0)
    refunded: SuMinutes = SuMinutes(0)
    ended: Instant | None = None
    outcome: str | None = None
    elapsed_seconds: int | None = None
    job_details: JobDetails | None = None


class UserSums(msgspec.Struct, frozen=True, gc=False):
    """Charges and holds of one user in one allocation, and the user's cap (None: no cap)."""

    charged: SuMinutes = SuMinutes(0)
    held: SuMinutes = SuMinutes(0)
    cap: SuMinutes | None = None

    def within(self, available: int) -> int:
        """Return the part of `available` that the cap allows; negative if the user is above the
        cap.
        """
        return (
            available if self.cap is None else min(available, self.cap - self.charged - self.held)
        )
