"""Reasons that refuse changes of credit and allocations, and the undo of entries."""

from __future__ import annotations

from collections.abc import Mapping

from fairbank.bank.refusals.reason_info import Case, Detail, ReasonInfo
from fairbank.core.errors import RefusalKind

LEDGER_REASONS: Mapping[str, ReasonInfo] = {
    "KEY_REUSED": ReasonInfo(
        RefusalKind.CONFLICT,
        "this idempotency key belongs to another request",
        "A key stands for one request of one user. The same request gets its first answer again;"
        " another request with that key is a conflict.",
        ("Idempotency-Key", "key"),
        "use a new key for a new request",
    ),
    "NOT_ENOUGH": ReasonInfo(
        RefusalKind.PAYMENT_REQUIRED,
        "not enough unused credit",
        "Only credit that is neither charged nor held can be withdrawn or transferred, and a"
        " credit limit is no deposited credit. A refund is undone only if its amount is still"
        " unused, unless the bank records usage beyond the credit.",
        ("amount", "entry"),
        "withdraw at most {most} SU",
        specific="requested {requested:su} SU, unused {available:su} SU, short by {short} SU",
        details={
            Detail.NOTHING_LEFT: Case(
                remedy="nothing can be withdrawn or transferred now; check charges and holds:"
                " fairbank alloc show {allocation}"
            ),
            Detail.TRANSFER: Case(remedy="transfer at most {most} SU"),
            Detail.WHOLE_ENTRY: Case(
                remedy="an entry is undone whole; withdraw what is left of it: fairbank withdraw"
                " {allocation} {most_typed} --reason '...'"
            ),
            Detail.WHOLE_REFUND: Case(
                remedy="a refund is undone whole; first deposit the missing credit: fairbank"
                " deposit {allocation} {missing} --reason '...'"
            ),
        },
        has_figures=True,
    ),
    "LIMIT_IN_USE": ReasonInfo(
        RefusalKind.CONFLICT,
        "more of the credit limit is used already",
        "The allocation is below zero, as its credit limit allowed. The limit cannot become"
        " smaller than the part of it that is used.",
        ("credit_limit", "entry"),
        "first deposit the used part of the limit: fairbank deposit {allocation} AMOUNT --reason"
        " '...'",
    ),
    "ALREADY_UNDONE": ReasonInfo(
        RefusalKind.CONFLICT,
        "this entry was undone already",
        "An entry is undone once, by one other entry. Both are in the statement. The later entry"
        " can itself be undone.",
        ("entry",),
        "check both entries: {statement}",
        details={
            Detail.UNDONE: Case(
                "entry {of_entry} was undone by entry {by_entry}, of user {by_user}"
            )
        },
    ),
    "CHANGED_SINCE": ReasonInfo(
        RefusalKind.CONFLICT,
        "a later entry changed the same thing",
        "Undo restores terms, caps and roles to what they were before an entry. Later changes"
        " would be lost with it, so they are undone first, the last one before the others.",
        ("entry",),
        "undo that first: fairbank undo ENTRY --reason '...'",
        details={Detail.CHANGED: Case("entry {by_entry} changed it after entry {of_entry}")},
    ),
    "CANNOT_UNDO": ReasonInfo(
        RefusalKind.CONFLICT,
        "an entry of this kind cannot be undone",
        "A deposit, withdrawal or transfer is undone by the same amount the other way, a refund by"
        " charging its run again, new terms, a cap or a role by the ones before. Entries that"
        " follow from a job cannot be undone, nor a new project, allocation or token; the remedy"
        " of the refusal says what to do instead.",
        ("entry",),
        "check what it did: {statement}",
        details={
            Detail.ENTRY: Case("{kind}"),
            Detail.RECORD: Case("{kind}", "nothing is to undo: the entry changed nothing"),
            Detail.TRANSFER_IN: Case(
                "{kind}",
                "undo the entry that gave it: the one before, in the statement of the other"
                " allocation",
            ),
            Detail.HOLD: Case("{kind}", "a hold ends with its job"),
            Detail.ADJUST: Case(
                "{kind}", "the time limit of the job decides the size of its hold: change that"
            ),
            Detail.CHARGE: Case(
                "{kind}", "refund it: fairbank refund --id {run_id} --reason '...'"
            ),
            Detail.RELEASE: Case(
                "{kind}", "nothing was charged; if the run has a cost, its cluster reports it"
            ),
            Detail.LAPSE: Case(
                "{kind}", "nothing was charged; if the run has a cost, its cluster reports it"
            ),
            Detail.OPENING: Case(
                "{kind}",
                "end it early, unless it has ended: fairbank alloc end {allocation} --reason '...'",
            ),
            Detail.RESOURCE: Case(
                "{kind} of another resource",
                "set it back: fairbank alloc set {allocation} --new-resource NAME --reason '...'",
            ),
            Detail.PROJECT: Case(
                "{kind}",
                "change it again: fairbank project set PROJECT; or remove it: fairbank project"
                " remove PROJECT",
            ),
            Detail.TOKEN: Case(
                "{kind}",
                "revoke the token: fairbank token revoke ID; instead of a revoked one make a new"
                " one: fairbank token create",
            ),
        },
    ),
    "SAME_ALLOCATION": ReasonInfo(
        RefusalKind.CONFLICT,
        "an allocation cannot transfer credit to itself",
        "The two allocations of a transfer are the same.",
        ("to",),
        "name another allocation as the target",
    ),
    "OTHER_RESOURCE": ReasonInfo(
        RefusalKind.CONFLICT,
        "credit moves only between allocations of one resource",
        "Units of two resources differ in value, so credit of one never becomes credit of the"
        " other.",
        ("to", "entry"),
        "name two allocations of one resource: fairbank alloc list",
    ),
    "OVERLAP": ReasonInfo(
        RefusalKind.CONFLICT,
        "the project has an allocation of this resource at the same time",
        "At any time a project has at most one allocation of a resource, so that it is always"
        " clear which one pays.",
        ("end", "start", "resource", "entry"),
        "end or move allocation {allocation}, or choose another period",
        details={
            Detail.OTHER_PERIOD: Case(
                "{field} is {reported_time:time}, and allocation {allocation} is for"
                " {near_start:time} to {near_end:time}"
            )
        },
    ),
    "WRONG_STATE": ReasonInfo(
        RefusalKind.CONFLICT,
        "its state does not allow this",
        "The state of an allocation or run changes only as its table of states allows.",
        ("event", "allocation", "job", "job_id", "entry"),
        "check its state: {show}",
        details={
            Detail.ALREADY: Case("allocation {allocation} is {state} already"),
            Detail.WRONG_STEP: Case(
                "allocation {allocation} is {state}, and only {allowed} allows {event}"
            ),
            Detail.STATE: Case("allocation {allocation} is {state}"),
            Detail.PERIOD_OVER: Case("the period of allocation {allocation} is over"),
            Detail.NOT_CHARGED: Case("the run is {state}, and only a charge can be refunded"),
        },
    ),
    "ALLOCATION_EXPIRED": ReasonInfo(
        RefusalKind.CONFLICT,
        "the period of the allocation is over",
        "An allocation is ended when its period is over. Reopened with its old end it would be"
        " over again at once; and a longer period alone does not reopen an ended allocation.",
        ("end", "allocation", "entry"),
        "extend it, by staff: fairbank alloc reopen {allocation} --end ... --reason '...'",
        details={
            Detail.ENDED: Case("allocation {allocation} ended at {near_end:time}"),
            Detail.HAS_ENDED: Case(
                "allocation {allocation} has ended, and another period alone does not reopen it"
            ),
            Detail.SWEPT: Case(
                "entry {of_entry} only records that allocation {allocation} ended at"
                " {near_end:time}"
            ),
        },
    ),
    "ALLOCATION_USED": ReasonInfo(
        RefusalKind.CONFLICT,
        "the allocation was used already",
        "Category and resource of an allocation change only while no job was charged to it or"
        " holds credit of it. It is removed only while no credit has moved in it, not by deposits"
        " either. Else its journal would tell of another allocation.",
        ("resource", "category", "allocation", "entry"),
        "end it, and open the right one: fairbank alloc end {allocation} --reason '...'",
        details={
            Detail.MOVED: Case(
                "credit has moved in allocation {allocation}",
                "withdraw what is left and end it: fairbank alloc end {allocation} --reason '...'",
            ),
            Detail.MOVED_AND_ENDED: Case(
                "credit has moved in allocation {allocation}",
                "nothing is to do: it has ended, so no job that starts now can use it",
            ),
            Detail.CHARGED_OR_HELD: Case(
                "jobs were charged to allocation {allocation}, or hold credit of it"
            ),
            Detail.USED_AND_ENDED: Case(
                "jobs were charged to allocation {allocation}, or hold credit of it",
                "it has ended; open the right one: fairbank alloc create",
            ),
        },
    ),
    "TOO_LARGE": ReasonInfo(
        RefusalKind.CONFLICT,
        "the sum would be too large for the bank",
        "Sums stay below a bound up to which every program counts exactly.",
        ("amount", "credit_limit", "account", "entry"),
        "split the credit among several allocations",
    ),
    "INVALID_PERIOD": ReasonInfo(
        RefusalKind.CONFLICT,
        "an allocation must end after its start",
        "A period contains its start but not its end. If a request or a command names both, it is"
        " invalid input instead: HTTP 400, exit code 2.",
        ("end", "entry"),
        "choose an end after the start",
        details={Detail.OTHER_PERIOD: Case("start {near_start:time}, end {near_end:time}")},
    ),
    "UNKNOWN_ENTRY": ReasonInfo(
        RefusalKind.NOT_FOUND,
        "there is no such entry",
        "No entry of the journal has this number, or the user may not see it.",
        ("entry",),
        "the numbers are in the column ENTRY of: fairbank statement ALLOC",
        details={Detail.ENTRY: Case("entry {of_entry}")},
    ),
    "UNKNOWN_ALLOCATION": ReasonInfo(
        RefusalKind.NOT_FOUND,
        "there is no such allocation",
        "No allocation has this number, or it belongs to another project or resource than the"
        " request says.",
        ("to", "allocation", "entry"),
        "list them: fairbank alloc list",
    ),
    "UNKNOWN_CATEGORY": ReasonInfo(
        RefusalKind.NOT_FOUND,
        "there is no such category",
        "Allocations are opened in the categories of the settings only; without any there these are"
        " research and history.",
        ("category",),
        "name one of them: --category NAME (alloc create has research by default); the"
        " administrator adds others in policy.categories",
        details={Detail.OTHER_CATEGORY: Case("{category!r}; there are: {names}")},
    ),
    "OUTSIDE_CATEGORY": ReasonInfo(
        RefusalKind.FORBIDDEN,
        "the category does not allow this grant",
        "The settings say what each category grants: resources, the lowest and highest grant, the"
        " longest term, and the superusers who may grant. What is there already may stay.",
        ("amount", "credit_limit", "category", "resource", "end", "start", "to", "entry"),
        "stay within the category, or name another one; the administrator sets it in"
        " policy.categories",
        details={
            Detail.NO_RESOURCE: Case("{category} grants {names}, not {resource}"),
            Detail.NO_GRANTER: Case("only users {names} grant {category}"),
            Detail.TOO_LOW: Case("{category} grants at least {lowest:su} SU of {resource}"),
            Detail.TOO_HIGH: Case(
                "{category} grants at most {highest:su} SU of {resource}, and this would be"
                " {requested:su} SU"
            ),
            Detail.TOO_LONG: Case("{category} grants at most {days} days"),
        },
    ),
}
