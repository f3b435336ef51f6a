"""How the bank says no: why, with which figures, and what would help."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from fractions import Fraction

import msgspec

from fairbank.bank.charge import longest_paid
from fairbank.bank.entry import Entry
from fairbank.cluster.job import Run
from fairbank.values.refusal_kind import RefusalKind
from fairbank.values.time import show_duration
from fairbank.values.units import MINUTES_IN_SU, show_short, show_su, type_su


class Reason(Enum):
    """Every way the bank says no, in words."""

    OVERDRAWN = "there is too little left"
    CAPPED = "the user's cap in this allocation is reached"
    NO_ALLOCATION = "the project has no allocation of this resource at this time"
    FROZEN = "the allocation is frozen"
    UNPRICED = "the settings do not tell what this run cost"
    FROM_FUTURE = "the report is from the future"
    NO_HOLD = "this run has no hold"
    RUN_TAKEN = "this run already has a hold of other content"
    RUN_RESOLVED = "this run is already resolved"
    KEY_TAKEN = "this idempotency key was used for something else"
    NOT_ENOUGH = "there is not so much unused credit to take out"
    LIMIT_IN_USE = "more is drawn on the credit limit already"
    UNDONE = "this entry was taken back already"
    CHANGED_SINCE = "what this entry said was changed since"
    NOT_UNDONE = "an entry of this kind is not taken back"
    SAME_ALLOCATION = "credit cannot move from an allocation to itself"
    NOT_DUE = "its time has not come"
    TOO_MUCH_BACK = "that is more than the run was charged"
    NOTHING_BACK = "nothing is left of what the run was charged"
    OTHER_RESOURCE = "credit moves only between allocations of one resource"
    OVERLAP = "the project has an allocation of this resource that overlaps in time"
    WRONG_STATE = "its state does not allow this"
    OVER = "the period of the allocation is over"
    TOO_LARGE = "the sum would be more than the bank can count"
    BAD_PERIOD = "an allocation ends after it starts"
    UNKNOWN_ENTRY = "there is no such entry"
    UNKNOWN_ALLOCATION = "there is no such allocation"
    UNKNOWN_PROJECT = "there is no such project"
    NO_MEMBER = "this user is no member of the project"
    UNKNOWN_TOKEN = "there is no such token, or it is valid no more"  # noqa: S105 (a sentence)
    TOKEN_TAKEN = "this secret belongs to another token"  # noqa: S105 (a sentence)
    ROLE_ABOVE = "nobody gives or takes a role at or above their own, or caps who has one"
    PROJECT_IN_USE = "the project is still in use"
    PROJECT_REMOVED = "the project was removed"
    OWN_PARENT = "no project is its own parent, nor one further up"
    NAMES_STAY = "a project that has, or had, an allocation or a run keeps its gid and its account"
    EXISTS = "a project with this group, gid or account exists with other content"


KINDS: Mapping[Reason, RefusalKind] = {
    Reason.OVERDRAWN: RefusalKind.CANNOT_BE_PAID,
    Reason.CAPPED: RefusalKind.CANNOT_BE_PAID,
    Reason.NO_ALLOCATION: RefusalKind.CANNOT_BE_PAID,
    Reason.FROZEN: RefusalKind.CANNOT_BE_PAID,
    Reason.UNPRICED: RefusalKind.NOT_FOUND,
    Reason.FROM_FUTURE: RefusalKind.CONFLICT,
    Reason.NO_HOLD: RefusalKind.NOT_FOUND,
    Reason.RUN_TAKEN: RefusalKind.CONFLICT,
    Reason.RUN_RESOLVED: RefusalKind.CONFLICT,
    Reason.KEY_TAKEN: RefusalKind.CONFLICT,
    Reason.NOT_ENOUGH: RefusalKind.CANNOT_BE_PAID,
    Reason.LIMIT_IN_USE: RefusalKind.CONFLICT,
    Reason.UNDONE: RefusalKind.CONFLICT,
    Reason.CHANGED_SINCE: RefusalKind.CONFLICT,
    Reason.NOT_UNDONE: RefusalKind.CONFLICT,
    Reason.SAME_ALLOCATION: RefusalKind.CONFLICT,
    Reason.NOT_DUE: RefusalKind.CONFLICT,
    Reason.TOO_MUCH_BACK: RefusalKind.CANNOT_BE_PAID,
    Reason.NOTHING_BACK: RefusalKind.CANNOT_BE_PAID,
    Reason.OTHER_RESOURCE: RefusalKind.CONFLICT,
    Reason.OVERLAP: RefusalKind.CONFLICT,
    Reason.WRONG_STATE: RefusalKind.CONFLICT,
    Reason.OVER: RefusalKind.CONFLICT,
    Reason.TOO_LARGE: RefusalKind.CONFLICT,
    Reason.BAD_PERIOD: RefusalKind.CONFLICT,
    Reason.UNKNOWN_ENTRY: RefusalKind.NOT_FOUND,
    Reason.UNKNOWN_ALLOCATION: RefusalKind.NOT_FOUND,
    Reason.UNKNOWN_PROJECT: RefusalKind.NOT_FOUND,
    Reason.NO_MEMBER: RefusalKind.NOT_FOUND,
    Reason.UNKNOWN_TOKEN: RefusalKind.NOT_FOUND,
    Reason.TOKEN_TAKEN: RefusalKind.CONFLICT,
    Reason.ROLE_ABOVE: RefusalKind.NOT_PERMITTED,
    Reason.PROJECT_IN_USE: RefusalKind.CONFLICT,
    Reason.PROJECT_REMOVED: RefusalKind.CONFLICT,
    Reason.OWN_PARENT: RefusalKind.CONFLICT,
    Reason.NAMES_STAY: RefusalKind.CONFLICT,
    Reason.EXISTS: RefusalKind.CONFLICT,
}


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A no with its figures, in SU-minutes. `entry` is where it is kept, if it is.

    `account` is the one that was reported where no project has it. `billing` is the price of one hour in SU, exact, and
    `limit_seconds` the time limit of the job concerned. `observed`: the bank only observes, so the job ran all the same. `about`
    says which name, state or period it was, where that is the reason.
    """

    reason: Reason
    asked: int = 0
    available: int = 0
    allocation: int | None = None
    project: int | None = None
    account: str | None = None
    resource: str | None = None
    owner: int | None = None
    run: str | None = None
    billing: str | None = None
    limit_seconds: int | None = None
    observed: bool = False
    entry: int | None = None
    about: str | None = None

    @property
    def shortfall(self) -> int:
        return max(0, self.asked - self.available)

    @property
    def kind(self) -> RefusalKind:
        return KINDS[self.reason]


def refusal_of(entry: Entry) -> Refusal:
    """The refusal that a journal entry keeps."""
    return msgspec.structs.replace(msgspec.json.decode(entry.details or "{}", type=Refusal), entry=entry.id)


class Alternative(msgspec.Struct, frozen=True):
    """Another project of the same user that could pay: its account and what it has left."""

    account: str
    available: int


def sentence(no: Refusal) -> str:
    """The refusal in one sentence with its figures; a second one says that the bank only observed."""
    said = no.reason.value
    if no.reason in (Reason.OVERDRAWN, Reason.CAPPED, Reason.NOT_ENOUGH):
        available = show_su(no.available, down=True)
        said += f": asked {show_su(no.asked)} SU, available {available} SU, short by {show_short(no.asked, no.available)} SU"
    elif no.reason is Reason.TOO_MUCH_BACK:
        said += f": asked {show_su(no.asked)} SU, left of its charge {show_su(no.available)} SU"
    elif no.about:
        said += f": {no.about}"
    return f"{said}. The bank only observes: the job was let through." if no.observed else f"{said}."


def longest_that_fits(no: Refusal) -> int:
    """The longest time limit, in whole minutes as seconds, that what is available would pay; 0 if none does."""
    return longest_paid(Fraction(no.billing), no.available) if no.billing else 0


def remedies(no: Refusal, alternatives: tuple[Alternative, ...] = ()) -> tuple[str, ...]:
    """What the person can do, best first, each with the exact words to type."""
    advice = []
    fitting = longest_that_fits(no)
    if no.limit_seconds and 0 < fitting < no.limit_seconds:
        advice.append(f"a shorter time limit: -t {show_duration(fitting)}")
    advice += [f"another project: -A {other.account} ({show_su(other.available, down=True)} SU available)" for other in alternatives]
    said = {
        "no": no,
        "more": -(-no.shortfall // MINUTES_IN_SU),
        "most": type_su(max(0, no.available)),
        "project": no.project or "ACCOUNT",
        "show": "fairbank jobs -a -l" if no.allocation is None else f"fairbank alloc show {no.allocation}",
        "both": "fairbank project users PROJECT" if no.allocation is None else f"fairbank statement {no.allocation}",
        "job": "JOBID" if no.run is None else Run.parse(no.run).job_id,
    }
    return (*advice, _advice(no).format(**said))


def _advice(no: Refusal) -> str:
    if no.account is not None and no.reason not in (Reason.UNPRICED, Reason.FROM_FUTURE):  # there a project would not help
        return _UNKNOWN_ACCOUNT
    if no.reason is Reason.NOT_ENOUGH and no.run is not None:
        return _WHOLE
    if no.reason is Reason.NOT_UNDONE:
        return _INSTEAD.get(no.about or "", _ADVICE[no.reason])
    if no.reason is Reason.PROJECT_IN_USE and no.allocation is None:
        return _RUNNING
    if no.reason is Reason.EXISTS and WAS_REMOVED in (no.about or ""):
        return _ADVICE[Reason.PROJECT_REMOVED]
    return _NOTHING_LEFT if no.reason is Reason.NOT_ENOUGH and no.available <= 0 else _ADVICE[no.reason]


WAS_REMOVED = "which was removed"
"""What the ledger says about a project that has the names asked for, where it was removed."""

_RUNNING = "let its runs end first: fairbank jobs -a -A ACCOUNT"
_WHOLE = "a refund is taken back whole; first deposit what is missing: fairbank deposit {no.allocation} {more} --reason '...'"
_NOTHING_LEFT = "nothing can be taken out now; see what is used and held: fairbank alloc show {no.allocation}"
_UNKNOWN_ACCOUNT = "the right account, or have its project entered, by staff: fairbank project create GROUP -A {no.account}"

# What to do instead, by the kinds of entries that are not taken back.
_INSTEAD: Mapping[str, str] = {
    "transfer-in": "undo the entry that gave it: the one before, in the other allocation's statement",
    "hold": "a hold ends with its job",
    "adjust": "a hold is as large as its job's time limit says: change that",
    "charge": "give it back: fairbank refund {job} --reason '...'",
    "release": "nothing was charged; what a run cost after all is for its cluster to report",
    "lapse": "nothing was charged; what a run cost after all is for its cluster to report",
    "open": "end it before its time: fairbank alloc end {no.allocation} --reason '...'",
    "project": "say it anew: fairbank project set PROJECT; or let it be no more: fairbank project remove PROJECT",
    "token": "revoke the token: fairbank token revoke ID; what is revoked is made anew: fairbank token create",
}

# What helps against each, with the words to type.
_ADVICE: Mapping[Reason, str] = {
    Reason.OVERDRAWN: "more credit, by staff: fairbank deposit {no.allocation} {more} --reason '...'",
    Reason.CAPPED: "a higher cap, by the PI, a coordinator or staff: fairbank alloc cap {no.allocation} {no.owner} AMOUNT",
    Reason.NO_ALLOCATION: "an allocation, by staff: "
    "fairbank alloc create --project {project} --resource {no.resource} --start ... --end ... --reason '...'",
    Reason.FROZEN: "have it thawed, by staff: fairbank alloc thaw {no.allocation} --reason '...'",
    Reason.UNPRICED: "have the cluster and the partition entered in the settings, by staff, then send the report again",
    Reason.FROM_FUTURE: "set the clocks of the bank and of the cluster right, by staff, then send the report again: an end counts then",
    Reason.NO_HOLD: "send the hold first, or let late charges in: policy.late_charges = true",
    Reason.RUN_TAKEN: "send the run's own figures again, or adjust its hold",
    Reason.RUN_RESOLVED: "look at what it cost: fairbank jobs; a correction is a refund, by staff",
    Reason.KEY_TAKEN: "use a new key for a new wish",
    Reason.NOT_ENOUGH: "take out at most {most}",
    Reason.LIMIT_IN_USE: "first deposit what is drawn on the limit: fairbank deposit {no.allocation} AMOUNT --reason '...'",
    Reason.UNDONE: "look at both: {both}",
    Reason.CHANGED_SINCE: "undo that first: fairbank undo ENTRY --reason '...'",
    Reason.NOT_UNDONE: "look at what it did: {both}",
    Reason.SAME_ALLOCATION: "name another allocation to move credit to",
    Reason.NOT_DUE: "wait until it is due",
    Reason.TOO_MUCH_BACK: "refund at most {most}",
    Reason.NOTHING_BACK: "look at what it cost: fairbank jobs",
    Reason.OTHER_RESOURCE: "name two allocations of one resource: fairbank alloc list",
    Reason.OVERLAP: "end or move allocation {no.allocation}, or choose another period",
    Reason.WRONG_STATE: "look at its state: {show}",
    Reason.OVER: "extend it, by staff: fairbank alloc reopen {no.allocation} --end ... --reason '...'",
    Reason.TOO_LARGE: "give the credit in several allocations",
    Reason.BAD_PERIOD: "choose an end after the start",
    Reason.UNKNOWN_ENTRY: "the numbers are in the column ENTRY of: fairbank statement ALLOC",
    Reason.UNKNOWN_ALLOCATION: "list those there are: fairbank alloc list",
    Reason.UNKNOWN_PROJECT: "list those there are: fairbank project list",
    Reason.NO_MEMBER: "list those there are: fairbank project users {no.project}",
    Reason.UNKNOWN_TOKEN: "list those there are: fairbank token list",
    Reason.TOKEN_TAKEN: "make a new secret",
    Reason.ROLE_ABOVE: "ask a superuser",
    Reason.PROJECT_IN_USE: "end its allocations first: fairbank alloc end {no.allocation} --reason '...'; and let its runs end",
    Reason.PROJECT_REMOVED: "bring it back first, by staff: fairbank project set {no.project} --restore",
    Reason.OWN_PARENT: "name another parent",
    Reason.NAMES_STAY: "create another project, and an allocation of it, and move the credit: "
    "fairbank project create GROUP -A ACCOUNT; fairbank transfer ALLOC ALLOC AMOUNT --reason '...'",
    Reason.EXISTS: "look at the project that has it: fairbank project list",
}


class _Anything:
    """Stands where a refusal has its figures, and says in capitals which."""

    allocation, project, resource, account, owner = "ALLOC", "PROJECT", "RESOURCE", "ACCOUNT", "USER"


def usual_remedy(reason: Reason) -> str:
    """What helps against `reason` in general, with capitals for what each case has of its own."""
    said = {
        "more": "AMOUNT",
        "most": "AMOUNT",
        "project": "PROJECT",
        "show": "fairbank alloc show ALLOC",
        "both": "fairbank statement ALLOC",
    }
    return _ADVICE[reason].format(no=_Anything, **said)
