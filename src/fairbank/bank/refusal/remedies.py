"""What would help against a no, with the words to type."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from fairbank.bank.charge import longest_paid
from fairbank.bank.refusal.figures import Refusal
from fairbank.bank.refusal.helping import NOTHING_KNOWN, Help
from fairbank.bank.refusal.reason import Reason
from fairbank.cluster.job import Run
from fairbank.core.time import iso, show_duration
from fairbank.core.units import MINUTES_IN_SU, exact_su, show_su


def longest_that_fits(no: Refusal) -> int:
    """The longest time limit, in whole minutes as seconds, that what is available would pay; 0 if none does."""
    return longest_paid(Fraction(no.billing), no.available) if no.billing else 0


def remedies(no: Refusal, known: Help = NOTHING_KNOWN) -> tuple[str, ...]:
    """What the person can do, best first, each with the exact words to type."""
    advice = []
    fitting = longest_that_fits(no)
    if no.limit_seconds and 0 < fitting < no.limit_seconds:
        advice.append(f"a shorter time limit: -t {show_duration(fitting)}")
    advice += [
        f"another project: -A {other.account} ({show_su(other.available, down=True)} SU available)"
        for other in known.alternatives
    ]
    said = {
        "no": no,
        "more": -(-no.shortfall // MINUTES_IN_SU),
        "most": exact_su(max(0, no.available)),
        "project": known.account or no.project or "ACCOUNT",
        "start": "..." if no.start is None else iso(no.start),
        "near": known.nearest,
        "show": "fairbank jobs -a -l"
        if no.allocation is None
        else f"fairbank alloc show {no.allocation}",
        "both": "fairbank project users PROJECT"
        if no.allocation is None
        else f"fairbank statement {no.allocation}",
        "job": "JOBID" if no.run is None else Run.parse(no.run).job_id,
    }
    return (*advice, _advice(no, known).format(**said))


def _advice(no: Refusal, known: Help) -> str:
    if no.account is not None and no.reason not in (
        Reason.UNPRICED,
        Reason.FROM_FUTURE,
        Reason.TOLD_OTHERWISE,
    ):  # there a project would not help
        return _UNKNOWN_ACCOUNT
    if no.reason is Reason.NO_ALLOCATION and no.start is not None and known.nearest is not None:
        return _EARLIER if no.start < known.nearest.start else _LATER
    if no.reason is Reason.NOT_ENOUGH and no.run is not None:
        return _WHOLE
    if no.reason is Reason.NOT_UNDONE:
        return _INSTEAD.get(no.about or "", _ADVICE[no.reason])
    if no.reason is Reason.PROJECT_IN_USE and (no.allocation is None or IN_USE in (no.about or "")):
        return _CHILDREN if UNDER_IT in (no.about or "") else _RUNNING
    if no.reason is Reason.EXISTS and WAS_REMOVED in (no.about or ""):
        return _ADVICE[Reason.PROJECT_REMOVED]
    if no.reason is Reason.NOT_ENOUGH and no.available <= 0:
        return _NOTHING_LEFT
    return (
        _IN_PART
        if no.reason is Reason.NOT_ENOUGH and no.about == TAKEN_BACK
        else _ADVICE[no.reason]
    )


WAS_REMOVED = "which was removed"
"""What the ledger says about a project that has the names asked for, where it was removed."""

UNDER_IT = "under it"
"""What the ledger says about a project that is to be removed, where others are under it."""

TAKEN_BACK = "it is to be taken back whole"
"""What the ledger says about credit that is not all there any more."""

IN_USE = "in use by open runs"
"""What it says about an allocation that is over, but has to wait for these: to end it again would not help."""

_CHILDREN = "remove or move them first: fairbank project remove PROJECT; or fairbank project set PROJECT --no-parent, or --parent ANOTHER"
_RUNNING = "let its runs end first: fairbank jobs -a -A ACCOUNT"
_WHOLE = "a refund is taken back whole; first deposit what is missing: fairbank deposit {no.allocation} {more} --reason '...'"
_IN_PART = "an entry is taken back whole; take out what is left of it: fairbank withdraw {no.allocation} {most} --reason '...'"
_NOTHING_LEFT = (
    "nothing can be taken out now; see what is used and held: fairbank alloc show {no.allocation}"
)
_EARLIER = (
    "let it begin earlier, by staff: fairbank alloc set {near.id} --start {start} --reason '...'"
)
_LATER = "give it more time, by staff: fairbank alloc reopen {near.id} --end ... --reason '...'"
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
    "fairbank alloc create -A {project} -r {no.resource} --start {start} --end ... --reason '...'",
    Reason.FROZEN: "have it thawed, by staff: fairbank alloc thaw {no.allocation} --reason '...'",
    Reason.UNPRICED: "have the cluster and the partition entered in the settings, by staff, then send the report again",
    Reason.FROM_FUTURE: "set the clocks of the bank and of the cluster right, by staff, then send the report again: an end counts then",
    Reason.NO_HOLD: "send the hold first; an end without one is charged only where policy.late_charges = true",
    Reason.RUN_TAKEN: "send the run's own figures again, or adjust its hold",
    Reason.RUN_RESOLVED: "look at what it cost: fairbank jobs; a correction is a refund, by staff",
    Reason.TOLD_OTHERWISE: "send the report with user, account and partition as its start had them: fairbank jobs -a -l -j {job}",
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

    allocation, project, resource, account, owner = (
        "ALLOC",
        "PROJECT",
        "RESOURCE",
        "ACCOUNT",
        "USER",
    )


def usual_remedy(reason: Reason) -> str:
    """What helps against `reason` in general, with capitals for what each case has of its own."""
    said = {
        "more": "AMOUNT",
        "most": "AMOUNT",
        "project": "PROJECT",
        "start": "...",
        "show": "fairbank alloc show ALLOC",
        "both": "fairbank statement ALLOC",
        "job": "JOBID",
    }
    return _ADVICE[reason].format(no=_Anything, **said)
