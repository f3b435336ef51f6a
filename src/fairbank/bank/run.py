"""Run: its states, its row, the details of its entries, and the sums of a user."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairbank.bank.entry import Entry
from fairbank.bank.identity_enum import IdentityEnum
from fairbank.cluster.job import JobDetails, Run
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


class RunRecord(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
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

    @property
    def is_measured(self) -> bool:
        """True if it stands for measured use, as that of storage, and is no job: it has neither a
        partition nor a user. Sums of usage have both fields, so it is known of them too.
        """
        return self.partition == "" and self.owner == OVERFLOW_UID


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


class Opening(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Details of the first entry of a run."""

    run: Run
    project: int
    partition: str
    start: Instant
    until: Instant
    job_details: JobDetails | None = None


class Adjustment(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Details of an entry that changes a hold, with new job details only."""

    until: Instant
    job_details: JobDetails | None = None


class EndDetails(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Details of an entry that closes a run, with new job details only.

    `cpu_counted` is the processor time that counts, if the report has more than was possible.
    """

    outcome: str
    elapsed_seconds: int
    ended: Instant
    written_off: SuMinutes
    cpu_counted: int | None = None
    job_details: JobDetails | None = None


_encode = msgspec.json.Encoder().encode
_opening = msgspec.json.Decoder(Opening).decode
_adjustment = msgspec.json.Decoder(Adjustment).decode
_resolution = msgspec.json.Decoder(EndDetails).decode


def encode_details(details: Opening | Adjustment | EndDetails) -> str:
    """Return details as an entry stores them."""
    return _encode(details).decode()


def encode_closed_opening(opening: Opening, end: EndDetails) -> str:
    """Return the details of an entry that opens and closes a run."""
    return f"{encode_details(opening)[:-1]},{encode_details(end)[1:]}"


def opening_of(record: RunRecord) -> Opening:
    """Return the details of the first entry of a run."""
    return Opening(
        record.run, record.project, record.partition, record.start, record.until, record.job_details
    )


def read_opening(entry: Entry) -> Opening:
    """Read the details of the first entry of a run. Raises ValueError, as the next two do."""
    return _opening(entry.details or "{}")


def read_adjustment(entry: Entry) -> Adjustment:
    return _adjustment(entry.details or "{}")


def read_resolution(entry: Entry) -> EndDetails:
    return _resolution(entry.details or "{}")
