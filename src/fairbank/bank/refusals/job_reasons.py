"""Reasons that refuse reports about runs of jobs, and refunds of runs."""

from __future__ import annotations

from collections.abc import Mapping

from fairbank.bank.refusals.reason_info import SHORTFALL, Case, Detail, ReasonInfo
from fairbank.core.errors import RefusalKind

_HIGHER_CAP = (
    "a higher cap, by the PI, a coordinator or staff: fairbank alloc cap {allocation} {owner}"
    " {higher}"
)
_MORE_CREDIT = "more credit, by staff: fairbank deposit {allocation} {missing} --reason '...'"
_PRESENT = {
    Detail.PAID_NOW: Case(remedy="{again}"),
    Detail.CREDIT_AND_CAP: Case(
        remedy=f"{{remaining:su}} SU remain in all, so both are needed: {_HIGHER_CAP}; and"
        f" {_MORE_CREDIT}"
    ),
    Detail.NOT_ACTIVE: Case(
        remedy="allocation {allocation} is {state} now; list what may pay: fairbank alloc list -A"
        " {payer} --state active"
    ),
}
"""Cases of an allocation that did not pay, as it is now. It may have changed since the refusal."""
JOB_REASONS: Mapping[str, ReasonInfo] = {
    "INSUFFICIENT_CREDIT": ReasonInfo(
        RefusalKind.PAYMENT_REQUIRED,
        "not enough credit",
        "When a job starts, the most that it can cost is set aside: its price per hour for its"
        " whole time limit. No allocation of its project chain has that much available. Holds of"
        " running jobs are not available; their unused part returns when the jobs end.",
        ("account", "amount", "entry"),
        _MORE_CREDIT,
        shorter_limit_helps=True,
        specific=SHORTFALL,
        details=_PRESENT,
        has_figures=True,
    ),
    "CAPPED": ReasonInfo(
        RefusalKind.PAYMENT_REQUIRED,
        "the user's cap in this allocation is reached",
        "The allocation has enough credit, but this user may use only a part of it. The charges"
        " and holds of the user leave too little of that part.",
        ("owner_uid", "entry"),
        _HIGHER_CAP,
        shorter_limit_helps=True,
        specific=SHORTFALL,
        details=_PRESENT,
        has_figures=True,
    ),
    "NO_ALLOCATION": ReasonInfo(
        RefusalKind.PAYMENT_REQUIRED,
        "the project has no allocation of this resource at this time",
        "The partition bills a resource. Neither the project nor a parent that shares its credit"
        " has an allocation of that resource whose period contains the start of the job.",
        ("account", "entry"),
        "an allocation, by staff: fairbank alloc create -A {payer} -r {resource} --start {begin}"
        " --end ... --reason '...'",
        details={
            Detail.STARTED: Case("the start of the job is {start:time}"),
            Detail.STARTED_TOO_EARLY: Case(
                "the start of the job is {start:time}, allocation {near} begins at"
                " {near_start:time}",
                "let it begin earlier, by staff: fairbank alloc set {near} --start {start:time}"
                " --reason '...'",
            ),
            Detail.STARTED_TOO_LATE: Case(
                "the start of the job is {start:time}, allocation {near} ended at {near_end:time}",
                "extend it, by staff: fairbank alloc reopen {near} --end ... --reason '...'",
            ),
        },
        has_figures=True,
    ),
    "FROZEN": ReasonInfo(
        RefusalKind.PAYMENT_REQUIRED,
        "the allocation is frozen",
        "Staff stopped the use of the allocation for now. Its credit is still there, and jobs that"
        " have a hold continue.",
        ("account", "allocation", "entry"),
        "have it thawed, by staff: fairbank alloc thaw {allocation} --reason '...'",
        specific="requested {requested:su} SU, available {available:su} SU",
        details=_PRESENT,
        has_figures=True,
    ),
    "UNPRICED": ReasonInfo(
        RefusalKind.NOT_FOUND,
        "the settings have no price for this run",
        "A job ended, but its cluster or partition is no longer in the settings of the bank, so"
        " there are no weights for its price. The report counts when it is sent again, which the"
        " agent does if the cluster is missing.",
        ("partition",),
        "have the cluster and the partition added to the settings, by staff, then send the report"
        " again",
        details={Detail.NOT_PRICED: Case("{cause}")},
    ),
    "TIMESTAMP_IN_FUTURE": ReasonInfo(
        RefusalKind.CONFLICT,
        "the report has a time in the future",
        "A report says when a run was submitted, started or ended. By the bank's clock this time"
        " is further ahead than policy.clock_tolerance_seconds allows, so a clock is wrong. Holds"
        " do not change. The end of a run is kept, and counts when it is sent again.",
        ("end", "start", "submitted"),
        "set the clocks of the bank and of the cluster, by staff, then send the report again: the"
        " end of a run counts then",
        details={
            Detail.IN_FUTURE: Case(
                "{field} is {reported_time:time}, but the bank's clock shows {now:time}, and a"
                " report may be at most {tolerance} s ahead of it"
            )
        },
    ),
    "NO_HOLD": ReasonInfo(
        RefusalKind.NOT_FOUND,
        "this run has no hold",
        "The request is about a run whose start was never reported, or that was never charged.",
        ("job_id", "job", "entry"),
        "send the hold first; the end of a run without a hold is charged only with"
        " policy.late_charges = true",
        details={
            Detail.LIMIT_CHANGED: Case("its time limit changed while it runs without a hold"),
            Detail.UNKNOWN_ACCOUNT: Case(
                "no project has the account {account!r}",
                "use the right account, or have its project created, by staff: fairbank project"
                " create GROUP -A {account:word}",
            ),
        },
    ),
    "HOLD_EXISTS": ReasonInfo(
        RefusalKind.CONFLICT,
        "this run already has a hold with other figures",
        "The start of this very run (cluster, job, submission, restart) was reported before with"
        " other figures.",
        ("job_id",),
        "send the figures of the first report again, or adjust the hold",
        details={Detail.OPEN: Case("its hold is {held:su} SU")},
    ),
    "RUN_CLOSED": ReasonInfo(
        RefusalKind.CONFLICT,
        "this run is already closed",
        "A run is charged or released once. This run was, and the new report says something else.",
        ("job_id", "job", "entry"),
        "check what it cost: fairbank jobs -j {job}; a correction is a refund, by staff",
        details={
            Detail.CHARGED: Case("it was charged {charged:su} SU"),
            Detail.WRITTEN_OFF: Case(
                "it was charged {charged:su} SU, {written_off:su} SU written off"
            ),
            Detail.NOT_CHARGED: Case("it is {state}"),
        },
    ),
    "REPORT_MISMATCH": ReasonInfo(
        RefusalKind.CONFLICT,
        "the report contradicts the hold",
        "The end of a run, or a new time limit, names another user or project than its hold, or is"
        " priced by another partition: one of them is wrong. The hold does not change. A report"
        " that agrees with it counts.",
        ("owner_uid", "account", "partition"),
        "send the report with user, account and partition of the start: fairbank jobs -a -l -j"
        " {job}",
        details={
            Detail.OTHER_OWNER: Case(
                "owner_uid is {reported}, but its run belongs to user {recorded}"
            ),
            Detail.OTHER_ACCOUNT: Case(
                "account is {reported!r}, which no project has, but its run belongs to project"
                " {recorded}"
            ),
            Detail.OTHER_PROJECT: Case(
                "account is that of project {reported}, but its run belongs to project {recorded}"
            ),
            Detail.OTHER_PARTITION: Case(
                "partition is {reported!r}, but its run started in {recorded!r}"
            ),
        },
    ),
    "NOT_DUE": ReasonInfo(
        RefusalKind.CONFLICT,
        "it is not due yet",
        "The bank does this by itself when it is due, and not before.",
        ("job_id", "job", "allocation"),
        "wait until it is due",
    ),
    "REFUND_TOO_LARGE": ReasonInfo(
        RefusalKind.PAYMENT_REQUIRED,
        "the refund is larger than the charge of the run",
        "A refund returns the charge of a run, whole or in part, less the refunds before.",
        ("amount", "entry"),
        "refund at most {most} SU",
        specific="requested {requested:su} SU, left of its charge {available:su} SU",
        has_figures=True,
    ),
    "NOTHING_TO_REFUND": ReasonInfo(
        RefusalKind.PAYMENT_REQUIRED,
        "nothing is left of the charge of the run",
        "The run was charged nothing, or its whole charge was refunded already.",
        ("job", "entry"),
        "check what it cost: fairbank jobs -j {job}",
        details={
            Detail.CHARGED: Case(
                "it was charged {charged:su} SU, of which {refunded:su} SU were refunded"
            )
        },
    ),
}
