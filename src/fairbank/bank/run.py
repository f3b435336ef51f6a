"""Run: its states, its row, the details of its entries, and the sums of a user."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairbank.bank.allocation import IdentityEnum
from fairbank.bank.entry import Entry
from fairbank.cluster.job import CANCELLED, COMPLETED, JobDetails, Run
from fairbank.core.ids import OVERFLOW_UID
from fairbank.core.time import Instant
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


class ReportedRun(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Facts of a run by its reports: of one report in a request, of the first one in the details of
    its first entry, of all of them in its row.

    `project` has the reported account; it is 0 in a request if no project has it. `until` is the
    deadline of its hold, or its end if it never had one. Job details move no units.
    """

    run: Run
    project: int
    partition: str
    start: Instant
    until: Instant
    job_details: JobDetails | None = None


class RunEnd(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """End of a run: its final job state, its reported duration, and its end by the scheduler's
    clock.
    """

    outcome: str
    elapsed_seconds: int
    ended: Instant

    @property
    def is_failure(self) -> bool:
        """True if the run did not end as COMPLETED, unless it was cancelled before it ran."""
        never_ran = self.outcome == CANCELLED and not self.elapsed_seconds
        return self.outcome != COMPLETED and not never_ran


class RunRecord(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """Row of a run. `id` is the entry that opened it; `held` is 0 after the hold is closed.

    `allocation` pays; it may be a shared one of a parent project. `set_by` is the entry that set
    the present hold or closed it; it answers repeated reports. The owner pays `charged` minus
    `refunded`; `written_off` is the part of the cost that exceeded the credit. `end` is None until
    the end is reported.
    """

    id: int
    reported: ReportedRun
    allocation: int
    owner: int
    state: RunState
    held: SuMinutes
    set_by: int
    charged: SuMinutes = SuMinutes(0)
    written_off: SuMinutes = SuMinutes(0)
    refunded: SuMinutes = SuMinutes(0)
    end: RunEnd | None = None

    @property
    def is_measured(self) -> bool:
        """True if it stands for measured use, as that of storage, and is no job: it has neither a
        partition nor a user. Sums of usage have both fields, so it is known of them too.
        """
        return self.reported.partition == "" and self.owner == OVERFLOW_UID

    @property
    def occupied(self) -> int | None:
        """Capacity that the ended run had in SU-minutes, whatever it was charged; None if it cost
        nothing and its size was not reported.
        """
        details = self.reported.job_details
        if details is not None and details.occupied is not None:
            return details.occupied
        cost = self.charged + self.written_off
        ran = self.end is not None and self.end.elapsed_seconds > 0
        return None if ran and not cost and not self.is_measured else cost

    @property
    def user(self) -> int | None:
        """Uid of the user; None for measured use. OVERFLOW_UID: a user who has no uid here."""
        return None if self.is_measured else self.owner


class UserSums(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """Charges and holds of one user in one allocation, and the user's cap (None: no cap)."""

    charged: SuMinutes = SuMinutes(0)
    held: SuMinutes = SuMinutes(0)
    cap: SuMinutes | None = None

    @property
    def left(self) -> int | None:
        """Return what is left of the cap: holds count too; negative above it, None without one."""
        return None if self.cap is None else self.cap - self.charged - self.held

    def within(self, available: int) -> int:
        """Return the part of `available` that the cap allows; 0 above the cap."""
        return available if self.left is None else min(available, max(0, self.left))


# --- details of entries: the rules write them, the audit computes the row of the run ---


class Adjustment(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Details of an entry that changes a hold, with new job details only."""

    until: Instant
    job_details: JobDetails | None = None


class EndDetails(RunEnd, frozen=True, omit_defaults=True, gc=False):
    """Details of an entry that closes a run: its end, and new job details only.

    It has the fields of the end, as the entry is flat. `cpu_counted` is the processor time that
    counts, if the report has more than was possible.
    """

    written_off: SuMinutes
    cpu_counted: int | None = None
    job_details: JobDetails | None = None

    @property
    def end(self) -> RunEnd:
        return RunEnd(self.outcome, self.elapsed_seconds, self.ended)


_encode = msgspec.json.Encoder().encode
_opening = msgspec.json.Decoder(ReportedRun).decode
_adjustment = msgspec.json.Decoder(Adjustment).decode
_resolution = msgspec.json.Decoder(EndDetails).decode


def encode_details(details: ReportedRun | Adjustment | EndDetails) -> str:
    """Return details as an entry stores them."""
    return _encode(details).decode()


def encode_closed_opening(opening: ReportedRun, end: EndDetails) -> str:
    """Return the details of an entry that opens and closes a run."""
    return f"{encode_details(opening)[:-1]},{encode_details(end)[1:]}"


def read_opening(entry: Entry) -> ReportedRun:
    """Read the details of the first entry of a run. Raises ValueError, as the next two do."""
    return _opening(entry.details or "{}")


def read_adjustment(entry: Entry) -> Adjustment:
    return _adjustment(entry.details or "{}")


def read_resolution(entry: Entry) -> EndDetails:
    return _resolution(entry.details or "{}")
