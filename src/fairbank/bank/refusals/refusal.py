"""Refusal: its reason and figures, and the facts that its message and remedies name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import NamedTuple, TypedDict

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.entry import Entry, StateSince
from fairbank.bank.query import OpenHolds
from fairbank.bank.refusals.job_reasons import JOB_REASONS
from fairbank.bank.refusals.ledger_reasons import LEDGER_REASONS
from fairbank.bank.refusals.project_reasons import PROJECT_REASONS
from fairbank.bank.refusals.reason_info import Detail, ReasonInfo
from fairbank.bank.run import RunEnd, RunState
from fairbank.core.errors import RefusalKind
from fairbank.core.time import Instant


class Reason(Enum):
    """Reasons, by their codes. The code is what the journal and HTTP answers contain."""

    @staticmethod
    def _generate_next_value_(name: str, *_: object) -> str:
        return name

    INSUFFICIENT_CREDIT = auto()
    CAPPED = auto()
    NO_ALLOCATION = auto()
    FROZEN = auto()
    UNPRICED = auto()
    TIMESTAMP_IN_FUTURE = auto()
    NO_HOLD = auto()
    HOLD_EXISTS = auto()
    RUN_CLOSED = auto()
    REPORT_MISMATCH = auto()
    KEY_REUSED = auto()
    NOT_ENOUGH = auto()
    LIMIT_IN_USE = auto()
    ALREADY_UNDONE = auto()
    CHANGED_SINCE = auto()
    CANNOT_UNDO = auto()
    SAME_ALLOCATION = auto()
    NOT_DUE = auto()
    REFUND_TOO_LARGE = auto()
    NOTHING_TO_REFUND = auto()
    OTHER_RESOURCE = auto()
    OVERLAP = auto()
    WRONG_STATE = auto()
    ALLOCATION_EXPIRED = auto()
    ALLOCATION_USED = auto()
    TOO_LARGE = auto()
    INVALID_PERIOD = auto()
    UNKNOWN_ENTRY = auto()
    UNKNOWN_ALLOCATION = auto()
    UNKNOWN_PROJECT = auto()
    NOT_A_MEMBER = auto()
    UNKNOWN_TOKEN = auto()
    TOKEN_TAKEN = auto()
    ROLE_ABOVE = auto()
    PROJECT_IN_USE = auto()
    PROJECT_REMOVED = auto()
    PARENT_CYCLE = auto()
    IDENTITY_LOCKED = auto()
    EXISTS = auto()
    UNKNOWN_CATEGORY = auto()
    OUTSIDE_CATEGORY = auto()

    @property
    def info(self) -> ReasonInfo:
        return _REASONS[self.name]

    @property
    def kind(self) -> RefusalKind:
        return self.info.kind


_REASONS: Mapping[str, ReasonInfo] = {**JOB_REASONS, **LEDGER_REASONS, **PROJECT_REASONS}


class Facts(TypedDict, total=False):
    """Values that the template of a detail names. Amounts are in SU-minutes, times in seconds."""

    field: str  # of the request, where the rule knows which one is wrong
    reported: int | str
    recorded: int | str
    reported_time: int
    now: int
    tolerance: int  # seconds
    cause: str
    granted: int  # to the allocation with its credit limit, or the cap of the user
    remaining: int  # of the allocation, for all its users
    missing_credit: int
    needed_cap: int
    held: int
    charged: int
    written_off: int
    refunded: int
    state: str
    allowed: str
    event: str
    near_start: int
    near_end: int
    of_entry: int
    by_entry: int
    by_user: str
    kind: str
    run_id: int | None  # the bank's number of the run
    names: str
    projects: str
    more: int
    parent: int
    child: int
    category: str
    lowest: int
    highest: int
    days: int


class Figures(NamedTuple):
    """Amounts of a refusal in SU-minutes; None where the rule did not look for credit."""

    requested: int | None
    available: int | None
    shortfall: int | None


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a closed run: its state, and its end if that was reported."""

    state: RunState
    end: RunEnd | None = None


class Refusal(msgspec.Struct, frozen=True):
    """Refusal of a request, in SU-minutes. `entry` is the journal entry that keeps it, if any.

    `account` is the reported one where no project has it. `billing` is the exact price of one hour
    in SU, `limit_seconds` the time limit of the job, `start` its start, where no allocation pays at
    that time. `observed`: the bank only observes, so the job ran all the same. `detail` and `facts`
    say which case of the reason it is. `resolution` belongs to RUN_CLOSED; no journal keeps it.
    """

    reason: Reason
    detail: Detail = Detail.NONE
    requested: int = msgspec.field(default=0, name="asked")  # the name in the journal's hashes
    available: int = 0
    allocation: int | None = None
    project: int | None = None
    account: str | None = None
    resource: str | None = None
    owner: int | None = None
    run: str | None = None
    start: int | None = None
    billing: str | None = None
    limit_seconds: int | None = None
    observed: bool = False
    entry: int | None = None
    facts: Facts | None = None
    resolution: Resolution | msgspec.UnsetType = msgspec.UNSET

    @property
    def shortfall(self) -> int:
        return max(0, self.requested - self.available)

    @property
    def figures(self) -> Figures:
        """Amounts to show. Only a reason about an amount has the available credit."""
        if self.reason.info.has_figures:
            return Figures(self.requested, self.available, self.shortfall)
        return Figures(self.requested or None, None, None)

    @property
    def kind(self) -> RefusalKind:
        return self.reason.kind


CREDIT_REASONS = (
    Reason.INSUFFICIENT_CREDIT,
    Reason.CAPPED,
    Reason.NO_ALLOCATION,
    Reason.FROZEN,
    Reason.UNKNOWN_PROJECT,
    Reason.PROJECT_REMOVED,
)
"""Reasons for which a job gets no credit. The others that a journal keeps of jobs are faults of the
report, such as a time in the future: they concern who sent it.
"""


def refusal_of(entry: Entry) -> Refusal:
    """Return the refusal that a journal entry keeps."""
    return msgspec.structs.replace(
        msgspec.json.decode(entry.details or "{}", type=Refusal), entry=entry.id
    )


class Alternative(msgspec.Struct, frozen=True):
    """Another project of the same user that could pay: its account and its available credit."""

    account: str
    available: int


class RemedyFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of the bank that remedies name: other projects that could pay, the account of the
    project, and the `nearest` allocation if the project has none at the start of the job.

    `inactive_since` says since when that allocation, or the refusing one, is not active, and why.
    `holds` are the present ones on the refusing allocation, or of the owner there if a cap refuses;
    `jobs_end` is when the last of their jobs reaches its time limit.
    `present` is the refusal with the state and the credit of now; None if it is not known.
    """

    alternatives: tuple[Alternative, ...] = ()
    account: str | None = None
    nearest: Allocation | None = None
    inactive_since: StateSince | None = None
    holds: OpenHolds | None = None
    jobs_end: Instant | None = None
    present: Refusal | None = None


NOTHING_KNOWN = RemedyFacts()


def nearest(
    chain: tuple[int, ...], resource: str | None, allocations: Iterable[Allocation], start: int
) -> Allocation | None:
    """Return the allocation whose period is nearest to the start of a run that it does not cover.

    Args:
        chain: the run's project, then its parents.
        resource: the resource that the partition bills.
        allocations: candidates; only own ones, and shared ones of parents, count.
    """
    usable = (
        allocation
        for allocation in allocations
        if allocation.terms.project in chain
        and allocation.terms.resource == resource
        and (allocation.terms.project == chain[0] or allocation.terms.shared)
        and not allocation.is_in_period(start)
        and allocation.state is not AllocationState.REMOVED
        and (
            allocation.terms.end <= start or allocation.state_at(start) is not AllocationState.ENDED
        )
    )

    def distance(allocation: Allocation) -> int:
        terms = allocation.terms
        return terms.start - start if start < terms.start else start - terms.end

    return min(usable, key=lambda allocation: (distance(allocation), allocation.id), default=None)
