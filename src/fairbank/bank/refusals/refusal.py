"""Refusal: its reason and figures, its message and its remedies."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from enum import Enum, auto
from fractions import Fraction
from string import Formatter
from typing import Any, NamedTuple, TypedDict

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.entry import Entry, StateSince
from fairbank.bank.pricing import longest_paid
from fairbank.bank.query import OpenHolds
from fairbank.bank.refusals.job_reasons import JOB_REASONS
from fairbank.bank.refusals.ledger_reasons import LEDGER_REASONS
from fairbank.bank.refusals.reason_info import Case, Detail, ReasonInfo
from fairbank.bank.run import RunEnd, RunState
from fairbank.cluster.job import Run
from fairbank.core.errors import RefusalKind
from fairbank.core.time import iso, show_duration
from fairbank.core.units import IN_SU, MINUTES_IN_SU, show_shortfall, show_su, show_sums


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


_REASONS: Mapping[str, ReasonInfo] = {**JOB_REASONS, **LEDGER_REASONS}


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

    `since` says since when that allocation, or the refusing one, is not active, and why. `holds`
    are the present ones on the refusing allocation, or of the owner there if a cap refuses.
    `active` is True if an allocation that was frozen is active again. `available` is what the
    refusing allocation has now, in SU-minutes; None if it is not known.
    """

    alternatives: tuple[Alternative, ...] = ()
    account: str | None = None
    nearest: Allocation | None = None
    since: StateSince | None = None
    holds: OpenHolds | None = None
    active: bool = False
    available: int | None = None


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


# --- message and remedies ---


class _Templates(Formatter):
    """Format amounts with `:su`, times with `:time`, words of commands with `:word`."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        match format_spec:
            case "su":
                return show_su(value)
            case "time":
                return iso(value)
            case "word":
                return shlex.quote(str(value))
        return super().format_field(value, format_spec)


_format = _Templates().vformat


def sentence(refusal: Refusal, known: RemedyFacts = NOTHING_KNOWN) -> str:
    """Return the message; a second sentence says if the bank only observed."""
    info = refusal.reason.info
    text = info.message
    if message := _case(refusal, known).message or info.specific:
        text += f": {_format(message, (), values_of(refusal, known))}"
    text += _why_stopped(refusal, known) + _what_is_held(refusal, known)
    return f"{text}. The bank only observes: the job ran." if refusal.observed else f"{text}."


def _why_stopped(refusal: Refusal, known: RemedyFacts) -> str:
    """Return since when the allocation is not active, and the reason that staff gave, if known, or
    that of the grant if the allocation begins later.
    """
    if known.since is None:
        return ""
    reason = known.since.reason
    if known.nearest is not None:  # the message has its period
        is_planned = _detail(refusal, known) is Detail.STARTED_TOO_EARLY
        about = "Reason of the grant" if is_planned else "Reason given by staff"
        return f". {about}: {reason}" if reason else ""
    return f". Frozen since {iso(known.since.at)}{f': {reason}' if reason else ''}"


def _what_is_held(refusal: Refusal, known: RemedyFacts) -> str:
    """Return what of the credit is used, and what is held by how many jobs until when; "" if
    nothing is.
    """
    facts = refusal.facts or {}
    if "granted" not in facts:
        return ""
    granted, charged, held = facts["granted"], facts["charged"], facts["held"]
    if charged == held == 0:
        return ""  # all is available, which the message says already
    shown = show_sums(granted, charged, held, granted - charged - held)
    of = "the cap of " if refusal.reason is Reason.CAPPED else ""
    text = f". Of {of}{shown.granted} SU {shown.used} are used, {shown.held} held"
    holds = known.holds
    # Other jobs hold credit by now if the sum differs or a hold was set after the refusal.
    if holds is None or holds.held != held or (refusal.entry and holds.set_by > refusal.entry):
        return text
    jobs, end = ("job", "ends") if holds.runs == 1 else ("jobs", "end")
    return f"{text} by {holds.runs} running {jobs}, which {end} by {iso(holds.until)} at the latest"


def longest_that_fits(refusal: Refusal) -> int:
    """Return the longest time limit that the available credit pays, in seconds of whole minutes; 0
    if no limit helps, as for a frozen allocation.
    """
    if not refusal.billing or not refusal.reason.info.shorter_limit_helps:
        return 0
    return longest_paid(Fraction(refusal.billing), refusal.available)


def remedies(refusal: Refusal, known: RemedyFacts = NOTHING_KNOWN) -> tuple[str, ...]:
    """Return what the user can do, the best first, each with the command or option to type."""
    advice = []
    seconds = 0 if _is_paid_now(refusal, known) else longest_that_fits(refusal)
    if refusal.limit_seconds and 0 < seconds < refusal.limit_seconds:
        advice.append(f"a shorter time limit: -t {show_duration(seconds)}")
    advice += [
        f"another project: -A {shlex.quote(other.account)}"
        f" ({show_su(other.available)} SU available)"
        for other in known.alternatives
    ]
    template = _case(refusal, known).remedy or refusal.reason.info.remedy
    return (*advice, _format(template, (), values_of(refusal, known)))


def _is_paid_now(refusal: Refusal, known: RemedyFacts) -> bool:
    return known.available is not None and known.available >= refusal.requested


def _case(refusal: Refusal, known: RemedyFacts) -> Case:
    return refusal.reason.info.details.get(_detail(refusal, known), Case())


def _detail(refusal: Refusal, known: RemedyFacts) -> Detail:
    """Return the detail of the rule, or what follows from the figures or the nearest allocation."""
    # First, because a rule cannot advise to withdraw a rest that does not exist. An undone refund
    # withdraws nothing: its remedy is a deposit.
    if (
        refusal.reason is Reason.NOT_ENOUGH
        and refusal.available <= 0
        and refusal.detail is not Detail.WHOLE_REFUND
    ):
        return Detail.NOTHING_LEFT
    if refusal.detail is not Detail.NONE:
        return refusal.detail
    if refusal.reason is Reason.FROZEN and known.active:
        return Detail.THAWED
    if refusal.reason is Reason.INSUFFICIENT_CREDIT and _is_paid_now(refusal, known):
        return Detail.PAID_NOW
    if refusal.reason is Reason.NO_ALLOCATION and refusal.start is not None:
        if known.nearest is None:
            return Detail.STARTED
        too_early = refusal.start < known.nearest.terms.start
        return Detail.STARTED_TOO_EARLY if too_early else Detail.STARTED_TOO_LATE
    return Detail.NONE


def values_of(refusal: Refusal, known: RemedyFacts = NOTHING_KNOWN) -> Mapping[str, Any]:
    """Return the values that templates may name."""
    allocation, near = refusal.allocation, known.nearest
    values = {
        **msgspec.structs.asdict(refusal),
        "short": show_shortfall(refusal.requested, refusal.available),
        # An argument of a command has no commas: `parse_su` would not know their meaning.
        "missing": str(-(-refusal.shortfall // MINUTES_IN_SU)),
        "higher": _higher_cap(refusal),
        "available_now": known.available or 0,
        "most": show_su(max(0, refusal.available)),
        "most_typed": show_su(max(0, refusal.available), IN_SU),
        "payer": shlex.quote(str(known.account or refusal.project or "ACCOUNT")),
        "begin": "..." if refusal.start is None else iso(refusal.start),
        "show": (
            "fairbank jobs -a -l" if allocation is None else f"fairbank alloc show {allocation}"
        ),
        "statement": (
            "fairbank project users PROJECT"
            if allocation is None
            else f"fairbank statement {allocation}"
        ),
        "job": "JOBID" if refusal.run is None else Run.parse(refusal.run).job_id,
    }
    if near is not None:
        values |= {"near": near.id, "near_start": near.terms.start, "near_end": near.terms.end}
    return values | dict(refusal.facts or {})


def _higher_cap(refusal: Refusal) -> str:
    """Return the least cap that would pay the job, in whole SU."""
    cap = (refusal.facts or {}).get("granted")
    return "AMOUNT" if cap is None else str(-(-(cap + refusal.shortfall) // MINUTES_IN_SU))
