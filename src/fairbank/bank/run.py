"""What the bank keeps of one run: its hold, what became of it, and the facts to price it again."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairbank.cluster.job import Run
from fairbank.cluster.job_details import JobDetails
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

# A run has one hold and one resolution. A lapse only gives the credit back: if word of the run comes after all, it is
# still charged or released. A run whose hold never arrived is born charged or released.
NEXT: Mapping[tuple[RunState, RunEvent], RunState] = {
    (_S.HELD, _E.ADJUST): _S.HELD,
    (_S.HELD, _E.CHARGE): _S.CHARGED,
    (_S.HELD, _E.RELEASE): _S.RELEASED,
    (_S.HELD, _E.LAPSE): _S.LAPSED,
    (_S.LAPSED, _E.CHARGE): _S.CHARGED,
    (_S.LAPSED, _E.RELEASE): _S.RELEASED,
}


RESOLVED = (_S.CHARGED, _S.RELEASED)
"""The states of a run of which the bank was told that it ended."""


class RunRecord(msgspec.Struct, frozen=True, gc=False):
    """A run in the books. `id` is the journal entry that opened it; `held` is 0 once the hold is closed.

    `project` is the one that it ran for, whose account was reported; `allocation` carries it, perhaps one that a parent of the
    project shares. `set_by` is the entry that set its hold as it is, or closed it: what is reported again is answered from there.
    `until` is when an open hold lapses; `ended` when the run was resolved, by the scheduler's clock; `outcome` its final
    job state; `elapsed_seconds` as the scheduler reported it. `charged` minus `refunded` is what its owner pays;
    `written_off` what nobody pays because nothing was left. `job details` move no units.
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
    """What one user drew from one allocation, and how much of it that user may draw in all (None: no cap)."""

    charged: SuMinutes = SuMinutes(0)
    held: SuMinutes = SuMinutes(0)
    cap: SuMinutes | None = None

    def within(self, available: int) -> int:
        """How much of `available` the cap lets this user draw; negative where more is drawn already."""
        return (
            available if self.cap is None else min(available, self.cap - self.charged - self.held)
        )
