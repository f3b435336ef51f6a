"""Reasons of refusals: one record for each, read by messages, help, HTTP answers and the reference.

Texts in the records are templates. The names in braces are fields of `Refusal` and of its `Facts`,
or what `messages.values_of` adds; `:su`, `:su_down` and `:time` say how a value is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from fairbank.core.errors import RefusalKind


class Detail(Enum):
    """Cases of a reason. The rule that refuses sets one; message and remedy depend on it."""

    NONE = "none"
    # account, project, job
    UNKNOWN_ACCOUNT = "unknown-account"
    UNKNOWN_PARENT = "unknown-parent"
    NOT_PRICED = "not-priced"
    LIMIT_CHANGED = "limit-changed"
    # the start of a job against the nearest allocation
    STARTED = "started"
    STARTED_TOO_EARLY = "started-too-early"
    STARTED_TOO_LATE = "started-too-late"
    # reports
    IN_FUTURE = "in-future"
    OTHER_OWNER = "other-owner"
    OTHER_ACCOUNT = "other-account"
    OTHER_PROJECT = "other-project"
    OTHER_PARTITION = "other-partition"
    # runs
    OPEN = "open"
    CHARGED = "charged"
    WRITTEN_OFF = "written-off"
    NOT_CHARGED = "not-charged"
    # credit
    WHOLE_ENTRY = "whole-entry"
    WHOLE_REFUND = "whole-refund"
    NOTHING_LEFT = "nothing-left"
    # allocations
    ALREADY = "already"
    WRONG_STEP = "wrong-step"
    STATE = "state"
    PERIOD_OVER = "period-over"
    OTHER_PERIOD = "other-period"
    ENDED = "ended"
    HAS_ENDED = "has-ended"
    SWEPT = "swept"
    # projects
    SAME_NAMES = "same-names"
    OTHER_PARENT = "other-parent"
    REMOVED = "removed"
    PARENT_REMOVED = "parent-removed"
    PARENT_STILL_REMOVED = "parent-still-removed"
    ONE_CHILD = "one-child"
    CHILDREN = "children"
    MANY_CHILDREN = "many-children"
    ALLOCATION_OPEN = "allocation-open"
    ALLOCATION_IN_USE = "allocation-in-use"
    RUN_OPEN = "run-open"
    # undo
    ENTRY = "entry"
    UNDONE = "undone"
    CHANGED = "changed"
    TRANSFER_IN = "transfer-in"
    HOLD = "hold"
    ADJUST = "adjust"
    CHARGE = "charge"
    RELEASE = "release"
    LAPSE = "lapse"
    OPENING = "open-allocation"
    PROJECT = "project"
    TOKEN = "token"  # noqa: S105 (a kind of entry)


class Case(NamedTuple):
    """Message of one detail, after the general one, and its remedy: "" is the general remedy."""

    message: str = ""
    remedy: str = ""


class ReasonInfo(NamedTuple):
    """Record of one reason.

    `request_fields` are the fields to mark as wrong, the most specific first; the first one that a
    request has is marked, unless the rule names one. `remedy_with_capitals` has capitals instead of
    names in braces; a remedy without such names needs none.
    """

    kind: RefusalKind
    message: str
    explanation: str
    request_fields: tuple[str, ...]
    remedy: str
    remedy_with_capitals: str = ""
    details: Mapping[Detail, Case] = {}

    @property
    def general_remedy(self) -> str:
        return self.remedy_with_capitals or self.remedy


class Reason(Enum):
    """Reasons, by their codes. The code is what the journal and HTTP answers contain."""

    info: ReasonInfo

    def __new__(cls, code: str, info: ReasonInfo) -> Reason:
        member = object.__new__(cls)
        member._value_ = code
        member.info = info
        return member

    @property
    def kind(self) -> RefusalKind:
        return self.info.kind

    INSUFFICIENT_CREDIT = (
        "INSUFFICIENT_CREDIT",
        ReasonInfo(
            RefusalKind.PAYMENT_REQUIRED,
            "not enough credit",
            "When a job starts, the most that it can cost is set aside: its price per hour for its"
            " whole time limit. No allocation of its project chain has that much available. Holds"
            " of running jobs are not available; their unused part returns when the jobs end.",
            ("account", "amount", "entry"),
            "more credit, by staff: fairbank deposit {allocation} {missing} --reason '...'",
            "a shorter time limit: -t TIME; or another project: -A PROJECT; or "
            "more credit, by staff: fairbank deposit ALLOC AMOUNT --reason '...'",
            {
                Detail.NONE: Case(
                    "requested {asked:su} SU, available {available:su_down} SU, short by {short} SU"
                )
            },
        ),
    )
    CAPPED = (
        "CAPPED",
        ReasonInfo(
            RefusalKind.PAYMENT_REQUIRED,
            "the user's cap in this allocation is reached",
            "The allocation has enough credit, but this user may use only a part of it. The charges"
            " and holds of the user leave too little of that part.",
            ("owner_uid", "entry"),
            "a higher cap, by the PI, a coordinator or staff: "
            "fairbank alloc cap {allocation} {owner} AMOUNT",
            "a shorter time limit: -t TIME; or another project: -A PROJECT; or a higher cap, by the"
            " PI, a coordinator or staff: fairbank alloc cap ALLOC USER AMOUNT",
            {
                Detail.NONE: Case(
                    "requested {asked:su} SU, available {available:su_down} SU, short by {short} SU"
                )
            },
        ),
    )
    NO_ALLOCATION = (
        "NO_ALLOCATION",
        ReasonInfo(
            RefusalKind.PAYMENT_REQUIRED,
            "the project has no allocation of this resource at this time",
            "The partition bills a resource. Neither the project nor a parent that shares its"
            " credit has an allocation of that resource whose period contains the start of the"
            " job.",
            ("account", "entry"),
            "an allocation, by staff: fairbank alloc create -A {payer} -r {resource} "
            "--start {begin} --end ... --reason '...'",
            "an allocation, by staff: fairbank alloc create -A PROJECT -r RESOURCE "
            "--start ... --end ... --reason '...'",
            {
                Detail.STARTED: Case("the job started at {start:time}"),
                Detail.STARTED_TOO_EARLY: Case(
                    "the job started at {start:time}, allocation {near} begins at"
                    " {near_start:time}",
                    "let it begin earlier, by staff: "
                    "fairbank alloc set {near} --start {start:time} --reason '...'",
                ),
                Detail.STARTED_TOO_LATE: Case(
                    "the job started at {start:time}, allocation {near} ended at {near_end:time}",
                    "extend it, by staff: fairbank alloc reopen {near} --end ... --reason '...'",
                ),
            },
        ),
    )
    FROZEN = (
        "FROZEN",
        ReasonInfo(
            RefusalKind.PAYMENT_REQUIRED,
            "the allocation is frozen",
            "Staff stopped the use of the allocation for now. Its credit is still there, and jobs "
            "that have a hold continue.",
            ("account", "allocation", "entry"),
            "have it thawed, by staff: fairbank alloc thaw {allocation} --reason '...'",
            "have it thawed, by staff: fairbank alloc thaw ALLOC --reason '...'",
            {Detail.NONE: Case("requested {asked:su} SU, available {available:su_down} SU")},
        ),
    )
    UNPRICED = (
        "UNPRICED",
        ReasonInfo(
            RefusalKind.NOT_FOUND,
            "the settings have no price for this run",
            "A job ended, but its cluster or partition is no longer in the settings of the bank, so"
            " there are no weights for its price. The report is kept, and counts when it is sent"
            " again.",
            ("partition",),
            "have the cluster and the partition added to the settings, by staff, "
            "then send the report again",
            details={Detail.NOT_PRICED: Case("{cause}")},
        ),
    )
    TIMESTAMP_IN_FUTURE = (
        "TIMESTAMP_IN_FUTURE",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "the report has a time in the future",
            "A report says when a run was submitted, started or ended. By the bank's clock this"
            " time is further ahead than policy.clock_tolerance_seconds allows, so a clock is"
            " wrong. Holds do not change. The end of a run is kept, and counts when it is sent"
            " again.",
            ("end", "start", "submitted"),
            "set the clocks of the bank and of the cluster, by staff, then send the report again: "
            "the end of a run counts then",
            details={
                Detail.IN_FUTURE: Case(
                    "{field} is {reported_time:time}, but the bank's clock shows {now:time}, and a "
                    "report may be at most {tolerance} s ahead of it"
                )
            },
        ),
    )
    NO_HOLD = (
        "NO_HOLD",
        ReasonInfo(
            RefusalKind.NOT_FOUND,
            "this run has no hold",
            "The request is about a run whose start was never reported, or that was never charged.",
            ("job_id", "job", "entry"),
            "send the hold first; the end of a run without a hold is charged only with "
            "policy.late_charges = true",
            details={
                Detail.LIMIT_CHANGED: Case("its time limit changed while it runs without a hold"),
                Detail.UNKNOWN_ACCOUNT: Case(
                    "no project has the account {account!r}",
                    "use the right account, or have its project created, by staff: "
                    "fairbank project create GROUP -A {account}",
                ),
            },
        ),
    )
    HOLD_EXISTS = (
        "HOLD_EXISTS",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "this run already has a hold with other figures",
            "The start of this very run (cluster, job, submission, restart) was reported before"
            " with other figures.",
            ("job_id",),
            "send the figures of the first report again, or adjust the hold",
            details={Detail.OPEN: Case("its hold is {held:su} SU")},
        ),
    )
    RUN_CLOSED = (
        "RUN_CLOSED",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "this run is already closed",
            "A run is charged or released once. This run was, and the new report says something"
            " else.",
            ("job_id", "job", "entry"),
            "check what it cost: fairbank jobs; a correction is a refund, by staff",
            details={
                Detail.CHARGED: Case("it was charged {charged:su} SU"),
                Detail.WRITTEN_OFF: Case(
                    "it was charged {charged:su} SU, {written_off:su} SU written off"
                ),
                Detail.NOT_CHARGED: Case("it is {state}"),
            },
        ),
    )
    REPORT_MISMATCH = (
        "REPORT_MISMATCH",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "the report contradicts the hold",
            "The end of a run, or a new time limit, names another user or project than its hold, or"
            " is priced by another partition: one of them is wrong. The hold does not change. A"
            " report that agrees with it counts.",
            ("owner_uid", "account", "partition"),
            "send the report with user, account and partition of the start: "
            "fairbank jobs -a -l -j {job}",
            "send the report with user, account and partition of the start: "
            "fairbank jobs -a -l -j JOBID",
            {
                Detail.OTHER_OWNER: Case(
                    "owner_uid is {reported}, but its run belongs to user {recorded}"
                ),
                Detail.OTHER_ACCOUNT: Case(
                    "account is {reported!r}, which no project has, "
                    "but its run belongs to project {recorded}"
                ),
                Detail.OTHER_PROJECT: Case(
                    "account is that of project {reported}, "
                    "but its run belongs to project {recorded}"
                ),
                Detail.OTHER_PARTITION: Case(
                    "partition is {reported!r}, but its run started in {recorded!r}"
                ),
            },
        ),
    )
    KEY_REUSED = (
        "KEY_REUSED",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "this idempotency key belongs to another request",
            "A key stands for one request of one user. The same request gets its first answer"
            " again; another request with that key is a conflict.",
            ("Idempotency-Key", "key"),
            "use a new key for a new request",
        ),
    )
    NOT_ENOUGH = (
        "NOT_ENOUGH",
        ReasonInfo(
            RefusalKind.PAYMENT_REQUIRED,
            "not enough unused credit",
            "Only credit that is neither charged nor held can be withdrawn or transferred, and a "
            "credit limit is no deposited credit. A refund is undone only if its amount is still "
            "unused, unless the bank records usage beyond the credit.",
            ("amount", "entry"),
            "withdraw at most {most}",
            "withdraw at most AMOUNT",
            {
                Detail.NONE: Case(
                    "requested {asked:su} SU, available {available:su_down} SU, short by {short} SU"
                ),
                Detail.NOTHING_LEFT: Case(
                    "requested {asked:su} SU, available {available:su_down} SU, short by"
                    " {short} SU",
                    "nothing can be withdrawn now; check charges and holds: "
                    "fairbank alloc show {allocation}",
                ),
                Detail.WHOLE_ENTRY: Case(
                    "requested {asked:su} SU, available {available:su_down} SU, short by"
                    " {short} SU",
                    "an entry is undone whole; withdraw what is left of it: "
                    "fairbank withdraw {allocation} {most} --reason '...'",
                ),
                Detail.WHOLE_REFUND: Case(
                    "requested {asked:su} SU, available {available:su_down} SU, short by"
                    " {short} SU",
                    "a refund is undone whole; first deposit the missing credit: "
                    "fairbank deposit {allocation} {missing} --reason '...'",
                ),
            },
        ),
    )
    LIMIT_IN_USE = (
        "LIMIT_IN_USE",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "more of the credit limit is used already",
            "The allocation is below zero, as its credit limit allowed. The limit cannot become "
            "smaller than the part of it that is used.",
            ("credit_limit", "entry"),
            "first deposit the used part of the limit: "
            "fairbank deposit {allocation} AMOUNT --reason '...'",
            "first deposit the used part of the limit: fairbank deposit ALLOC AMOUNT --reason"
            " '...'",
        ),
    )
    ALREADY_UNDONE = (
        "ALREADY_UNDONE",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "this entry was undone already",
            "An entry is undone once, by one other entry. Both are in the statement. The later"
            " entry can itself be undone.",
            ("entry",),
            "check both entries: {statement}",
            "check both entries: fairbank statement ALLOC",
            {
                Detail.UNDONE: Case(
                    "entry {of_entry} was undone by entry {by_entry}, of user {by_user}"
                )
            },
        ),
    )
    CHANGED_SINCE = (
        "CHANGED_SINCE",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "a later entry changed the same thing",
            "Undo restores terms, caps and roles to what they were before an entry. Later changes "
            "would be lost with it, so they are undone first, the last one before the others.",
            ("entry",),
            "undo that first: fairbank undo ENTRY --reason '...'",
            details={Detail.CHANGED: Case("entry {by_entry} changed it after entry {of_entry}")},
        ),
    )
    CANNOT_UNDO = (
        "CANNOT_UNDO",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "an entry of this kind cannot be undone",
            "A deposit, withdrawal or transfer is undone by the same amount the other way, a refund"
            " by charging its run again, new terms, a cap or a role by the ones before. Entries"
            " that follow from a job cannot be undone, nor a new project, allocation or token; the"
            " remedy of the refusal says what to do instead.",
            ("entry",),
            "check what it did: {statement}",
            "check what it did: fairbank statement ALLOC",
            {
                Detail.ENTRY: Case("{kind}"),
                Detail.TRANSFER_IN: Case(
                    "{kind}",
                    "undo the entry that gave it: "
                    "the one before, in the statement of the other allocation",
                ),
                Detail.HOLD: Case("{kind}", "a hold ends with its job"),
                Detail.ADJUST: Case(
                    "{kind}", "the time limit of the job decides the size of its hold: change that"
                ),
                Detail.CHARGE: Case("{kind}", "refund it: fairbank refund {job} --reason '...'"),
                Detail.RELEASE: Case(
                    "{kind}", "nothing was charged; if the run has a cost, its cluster reports it"
                ),
                Detail.LAPSE: Case(
                    "{kind}", "nothing was charged; if the run has a cost, its cluster reports it"
                ),
                Detail.OPENING: Case(
                    "{kind}", "end it early: fairbank alloc end {allocation} --reason '...'"
                ),
                Detail.PROJECT: Case(
                    "{kind}",
                    "change it again: fairbank project set PROJECT; "
                    "or remove it: fairbank project remove PROJECT",
                ),
                Detail.TOKEN: Case(
                    "{kind}",
                    "revoke the token: fairbank token revoke ID; "
                    "instead of a revoked one make a new one: fairbank token create",
                ),
            },
        ),
    )
    SAME_ALLOCATION = (
        "SAME_ALLOCATION",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "an allocation cannot transfer credit to itself",
            "The two allocations of a transfer are the same.",
            ("to",),
            "name another allocation as the target",
        ),
    )
    NOT_DUE = (
        "NOT_DUE",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "it is not due yet",
            "The bank does this by itself when it is due, and not before.",
            ("job_id", "job", "allocation"),
            "wait until it is due",
        ),
    )
    REFUND_TOO_LARGE = (
        "REFUND_TOO_LARGE",
        ReasonInfo(
            RefusalKind.PAYMENT_REQUIRED,
            "the refund is larger than the charge of the run",
            "A refund returns the charge of a run, whole or in part, less the refunds before.",
            ("amount", "entry"),
            "refund at most {most}",
            "refund at most AMOUNT",
            {Detail.NONE: Case("requested {asked:su} SU, left of its charge {available:su} SU")},
        ),
    )
    NOTHING_TO_REFUND = (
        "NOTHING_TO_REFUND",
        ReasonInfo(
            RefusalKind.PAYMENT_REQUIRED,
            "nothing is left of the charge of the run",
            "The run was charged nothing, or its whole charge was refunded already.",
            ("job", "entry"),
            "check what it cost: fairbank jobs",
            details={
                Detail.CHARGED: Case(
                    "it was charged {charged:su} SU, of which {refunded:su} SU were refunded"
                )
            },
        ),
    )
    OTHER_RESOURCE = (
        "OTHER_RESOURCE",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "credit moves only between allocations of one resource",
            "Units of two resources differ in value, so credit of one never becomes credit of the "
            "other.",
            ("to", "entry"),
            "name two allocations of one resource: fairbank alloc list",
        ),
    )
    OVERLAP = (
        "OVERLAP",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "the project has an allocation of this resource at the same time",
            "At any time a project has at most one allocation of a resource, so that it is always "
            "clear which one pays.",
            ("end", "start", "entry"),
            "end or move allocation {allocation}, or choose another period",
            "end or move allocation ALLOC, or choose another period",
            {
                Detail.OTHER_PERIOD: Case(
                    "{field} is {reported_time:time}, and allocation {allocation} is for "
                    "{near_start:time} to {near_end:time}"
                )
            },
        ),
    )
    WRONG_STATE = (
        "WRONG_STATE",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "its state does not allow this",
            "The state of an allocation or run changes only as its table of states allows.",
            ("event", "allocation", "job", "job_id", "entry"),
            "check its state: {show}",
            "check its state: fairbank alloc show ALLOC",
            {
                Detail.ALREADY: Case("allocation {allocation} is {state} already"),
                Detail.WRONG_STEP: Case(
                    "allocation {allocation} is {state}, and only {allowed} allows {event}"
                ),
                Detail.STATE: Case("allocation {allocation} is {state}"),
                Detail.PERIOD_OVER: Case("the period of allocation {allocation} is over"),
                Detail.NOT_CHARGED: Case("the run is {state}, and only a charge can be refunded"),
            },
        ),
    )
    ALLOCATION_EXPIRED = (
        "ALLOCATION_EXPIRED",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "the period of the allocation is over",
            "An allocation is ended when its period is over. Reopened with its old end it would be "
            "over again at once; and a longer period alone does not reopen an ended allocation.",
            ("end", "allocation", "entry"),
            "extend it, by staff: fairbank alloc reopen {allocation} --end ... --reason '...'",
            "extend it, by staff: fairbank alloc reopen ALLOC --end ... --reason '...'",
            {
                Detail.ENDED: Case("allocation {allocation} ended at {near_end:time}"),
                Detail.HAS_ENDED: Case(
                    "allocation {allocation} has ended, and another period alone does not reopen it"
                ),
                Detail.SWEPT: Case(
                    "entry {of_entry} only records that allocation {allocation} ended at "
                    "{near_end:time}"
                ),
            },
        ),
    )
    TOO_LARGE = (
        "TOO_LARGE",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "the sum would be too large for the bank",
            "Sums stay below a bound up to which every program counts exactly.",
            ("amount", "credit_limit", "account", "entry"),
            "split the credit among several allocations",
        ),
    )
    INVALID_PERIOD = (
        "INVALID_PERIOD",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "an allocation must end after its start",
            "A period contains its start but not its end. If a request or a command names both, it "
            "is invalid input instead: HTTP 400, exit code 2.",
            ("end", "entry"),
            "choose an end after the start",
            details={Detail.OTHER_PERIOD: Case("start {near_start:time}, end {near_end:time}")},
        ),
    )
    UNKNOWN_ENTRY = (
        "UNKNOWN_ENTRY",
        ReasonInfo(
            RefusalKind.NOT_FOUND,
            "there is no such entry",
            "No entry of the journal has this number, or the user may not see it.",
            ("entry",),
            "the numbers are in the column ENTRY of: fairbank statement ALLOC",
            details={Detail.ENTRY: Case("entry {of_entry}")},
        ),
    )
    UNKNOWN_ALLOCATION = (
        "UNKNOWN_ALLOCATION",
        ReasonInfo(
            RefusalKind.NOT_FOUND,
            "there is no such allocation",
            "No allocation has this number, or it belongs to another project or resource than the "
            "request says.",
            ("to", "allocation", "entry"),
            "list them: fairbank alloc list",
        ),
    )
    UNKNOWN_PROJECT = (
        "UNKNOWN_PROJECT",
        ReasonInfo(
            RefusalKind.NOT_FOUND,
            "there is no such project",
            "No project of the bank has this number, account or group.",
            ("parent", "account", "project", "entry"),
            "list them: fairbank project list",
            details={
                Detail.UNKNOWN_PARENT: Case("parent {project}"),
                Detail.UNKNOWN_ACCOUNT: Case(
                    "no project has the account {account!r}",
                    "use the right account, or have its project created, by staff: "
                    "fairbank project create GROUP -A {account}",
                ),
            },
        ),
    )
    NOT_A_MEMBER = (
        "NOT_A_MEMBER",
        ReasonInfo(
            RefusalKind.NOT_FOUND,
            "this user is not a member of the project",
            "Only a member in the bank's own list can be removed; a member of the Unix group is "
            "removed in Unix.",
            ("uid", "entry"),
            "list them: fairbank project users {project}",
            "list them: fairbank project users PROJECT",
            {Detail.NONE: Case("user {owner} in project {project}")},
        ),
    )
    UNKNOWN_TOKEN = (
        "UNKNOWN_TOKEN",
        ReasonInfo(
            RefusalKind.NOT_FOUND,
            "there is no such valid token",
            "The token never existed, was revoked, or has expired.",
            ("token",),
            "list them: fairbank token list",
        ),
    )
    TOKEN_TAKEN = (
        "TOKEN_TAKEN",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "this secret belongs to another token",
            "Two tokens with one secret could not be distinguished.",
            ("label",),
            "make a new secret",
        ),
    )
    ROLE_ABOVE = (
        "ROLE_ABOVE",
        ReasonInfo(
            RefusalKind.FORBIDDEN,
            "users manage only roles below their own, and cap only users with such roles",
            "A PI manages coordinators and members, a coordinator manages members; staff manage"
            " all.",
            ("role", "uid", "entry"),
            "ask a superuser",
        ),
    )
    PROJECT_IN_USE = (
        "PROJECT_IN_USE",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "the project is still in use",
            "A project can be removed only if it has no child projects, its allocations are over"
            " and it has no holds.",
            ("project",),
            "end its allocations first: fairbank alloc end {allocation} --reason '...'; "
            "and let its runs end",
            "end its allocations first: fairbank alloc end ALLOC --reason '...'; "
            "and let its runs end",
            {
                Detail.ONE_CHILD: Case(
                    "its child project is {projects}",
                    "remove or move it first: fairbank project remove PROJECT; "
                    "or fairbank project set PROJECT --no-parent, or --parent ANOTHER",
                ),
                Detail.CHILDREN: Case(
                    "its child projects are {projects}",
                    "remove or move them first: fairbank project remove PROJECT; "
                    "or fairbank project set PROJECT --no-parent, or --parent ANOTHER",
                ),
                Detail.MANY_CHILDREN: Case(
                    "its child projects are {projects} and {more} more",
                    "remove or move them first: fairbank project remove PROJECT; "
                    "or fairbank project set PROJECT --no-parent, or --parent ANOTHER",
                ),
                Detail.ALLOCATION_OPEN: Case("allocation {allocation} is {state}"),
                # To end such an allocation again would not help.
                Detail.ALLOCATION_IN_USE: Case(
                    "allocation {allocation} is in use by open runs",
                    "let its runs end first: fairbank jobs -a -A ACCOUNT",
                ),
                Detail.RUN_OPEN: Case(
                    "run {run} is open", "let its runs end first: fairbank jobs -a -A ACCOUNT"
                ),
            },
        ),
    )
    PROJECT_REMOVED = (
        "PROJECT_REMOVED",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "the project was removed",
            "A removed project keeps its journal for staff to read. It gets no jobs, no allocation,"
            " no credit and no members, and no project is restored below it. Charges and refunds of"
            " its earlier runs are still booked.",
            ("account", "parent", "project", "allocation", "entry"),
            "restore it first, by staff: fairbank project set {project} --restore",
            "restore it first, by staff: fairbank project set PROJECT --restore",
            {
                Detail.PARENT_REMOVED: Case("parent {project}"),
                Detail.PARENT_STILL_REMOVED: Case(
                    "project {project}, the parent of project {child}"
                ),
            },
        ),
    )
    PARENT_CYCLE = (
        "PARENT_CYCLE",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "a project cannot be its own parent, nor below itself",
            "Parents share credit with the projects below them; a cycle of parents would have no"
            " top.",
            ("parent",),
            "name another parent",
            details={
                Detail.OTHER_PARENT: Case("project {parent} is project {project} or below it")
            },
        ),
    )
    IDENTITY_LOCKED = (
        "IDENTITY_LOCKED",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "the gid and account of a project that ever had an allocation or run do not change",
            "Ends of runs may arrive late with the old account, and users stay in the group: the"
            " next project with that account would get both. The name of the group and the parent"
            " may change.",
            ("gid", "account"),
            "create another project with an allocation, and transfer the credit: fairbank project "
            "create GROUP -A ACCOUNT; fairbank transfer ALLOC ALLOC AMOUNT --reason '...'",
            details={Detail.SAME_NAMES: Case("project {project} keeps {names}")},
        ),
    )
    EXISTS = (
        "EXISTS",
        ReasonInfo(
            RefusalKind.CONFLICT,
            "a project with this group, gid or account exists with other content",
            "Group, gid and account each belong to one project. The very same project again would"
            " be no conflict.",
            ("gname", "gid", "account"),
            "check the project that has it: fairbank project list",
            details={
                Detail.SAME_NAMES: Case("project {project} has {names}"),
                Detail.OTHER_PARENT: Case("project {project} has {names}, but another parent"),
                Detail.REMOVED: Case(
                    "project {project}, which was removed, has {names}",
                    "restore it first, by staff: fairbank project set {project} --restore",
                ),
            },
        ),
    )
