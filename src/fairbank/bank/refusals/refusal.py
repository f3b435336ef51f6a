"""One refusal with its figures, and what the bank knows that may help against it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypedDict

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.entry import Entry
from fairbank.bank.refusals.reasons import Detail, Reason
from fairbank.bank.run import RunState
from fairbank.core.errors import RefusalKind

# Reasons about an amount: of credit for a job, of credit to withdraw, of a charge to refund.
_WITH_FIGURES = frozenset(
    {
        Reason.INSUFFICIENT_CREDIT,
        Reason.CAPPED,
        Reason.NO_ALLOCATION,
        Reason.FROZEN,
        Reason.NOT_ENOUGH,
        Reason.REFUND_TOO_LARGE,
    }
)


class Facts(TypedDict, total=False):
    """Values that the template of a detail names. Amounts are in SU-minutes, times in seconds."""

    field: str  # of the request, where the rule knows which one is wrong
    reported: int | str
    recorded: int | str
    reported_time: int
    now: int
    tolerance: int  # seconds
    cause: str
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
    names: str
    projects: str
    more: int
    parent: int
    child: int


class Figures(NamedTuple):
    """Amounts of a refusal in SU-minutes; None where the rule did not look for credit."""

    asked: int | None
    available: int | None
    shortfall: int | None


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a closed run: its state, its final job state and its seconds, if reported."""

    state: RunState
    outcome: str | None = None
    elapsed_seconds: int | None = None


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Refusal of a request, in SU-minutes. `entry` is the journal entry that keeps it, if any.

    `account` is the reported one where no project has it. `billing` is the exact price of one hour
    in SU, `limit_seconds` the time limit of the job, `start` its start, where no allocation pays at
    that time. `observed`: the bank only observes, so the job ran all the same. `detail` and `facts`
    say which case of the reason it is. `resolution` belongs to RUN_CLOSED; no journal keeps it.
    """

    reason: Reason
    detail: Detail = Detail.NONE
    asked: int = 0
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
        return max(0, self.asked - self.available)

    @property
    def figures(self) -> Figures:
        """Amounts to show. Only a reason about an amount has the available credit."""
        if self.reason in _WITH_FIGURES:
            return Figures(self.asked, self.available, self.shortfall)
        return Figures(self.asked or None, None, None)

    @property
    def kind(self) -> RefusalKind:
        return self.reason.kind


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
    """

    alternatives: tuple[Alternative, ...] = ()
    account: str | None = None
    nearest: Allocation | None = None


NOTHING_KNOWN = RemedyFacts()


def nearest(
    chain: tuple[int, ...], resource: str | None, allocations: Iterable[Allocation], start: int
) -> Allocation | None:
    """Return the allocation whose period is nearest to the start of a run that it does not cover.

    Args:
        chain: the run's project, then its parents.
        resource: the resource that the partition bills.
        allocations: candidates; only own ones, and shared ones of parents, count.
        start: start of the run.
    """
    usable = (
        each
        for each in allocations
        if each.project in chain
        and each.resource == resource
        and (each.project == chain[0] or each.shared)
        and not each.covers(start)
        and (each.state is not AllocationState.ENDED or each.end <= start)
    )
    return min(
        usable,
        key=lambda each: (each.start - start if start < each.start else start - each.end, each.id),
        default=None,
    )
