"""Every way the bank says no, explained to somebody who met it for the first time."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairbank.bank.refusal import KINDS, Reason, usual_remedy
from fairbank.core.refusal_kind import RefusalKind


class Explained(msgspec.Struct, frozen=True):
    """A reason: its name, what it means in a few words and in more, what to do, and its kind."""

    name: str
    meaning: str
    why: str
    remedy: str
    kind: RefusalKind


def explained() -> list[Explained]:
    """All reasons, in the order of their table."""
    return [_explained(each) for each in Reason]


def _explained(reason: Reason) -> Explained:
    remedy = usual_remedy(reason)
    if reason in (Reason.OVERDRAWN, Reason.CAPPED):
        remedy = f"a shorter time limit: -t TIME; or another project: -A PROJECT; or {remedy}"
    return Explained(reason.name, reason.value, _WHY[reason], remedy, KINDS[reason])


# When it is said, and what the bank looks at.
_WHY: Mapping[Reason, str] = {
    Reason.OVERDRAWN: "When a job starts, the most that it can cost is set aside: its price per hour for its whole time limit. "
    "No allocation on its project's line has so much available. What running jobs hold is taken; the unused part returns when they end.",
    Reason.CAPPED: "The allocation has enough, but this user may draw only so much of it in all, and what the user was charged and holds "
    "leaves too little of that.",
    Reason.NO_ALLOCATION: "The partition bills a resource, and neither the project nor a parent that shares its credit has an allocation "
    "of it whose period holds the start of the job.",
    Reason.FROZEN: "Staff stopped all drawing on the allocation for now. Its credit is still there, and jobs that hold some go on.",
    Reason.UNPRICED: "A job ended, and its cluster or partition stands no more in the bank's settings, so there are no weights to price it "
    "by. It is kept, and counts when it is reported again.",
    Reason.FROM_FUTURE: "A report says when a run was submitted, started or ended, and by the bank's clock that has not come yet, not even "
    "nearly (policy.clock_tolerance_seconds): a clock is wrong. Holds stay as they are. An end is kept, and counts when it comes again.",
    Reason.NO_HOLD: "Something is to change about a run of which the bank never heard that it began, or which was never charged.",
    Reason.RUN_TAKEN: "The start of this very run (cluster, job, submission, restart) was reported before with other figures.",
    Reason.RUN_RESOLVED: "A run is charged or released once. This one was, and the report that came now says something else.",
    Reason.TOLD_OTHERWISE: "An end, or a new time limit, names another user or project than its hold, or is priced by another "
    "partition: one of them is wrong. The hold stays as it is, and a report that agrees with it counts.",
    Reason.KEY_TAKEN: "A key stands for one wish of one user: the same wish gets its first answer again, another is a conflict.",
    Reason.NOT_ENOUGH: "Only what is neither used nor held can be taken out or moved on, and a credit limit is no credit of one's own. "
    "A refund is taken back only if what it gave is still unused, unless the bank records what goes beyond the credit.",
    Reason.LIMIT_IN_USE: "The allocation was drawn below zero, as its credit limit allowed. It cannot fall below what is drawn on it.",
    Reason.UNDONE: "An entry is taken back once, by one other entry. Both are in the statement. The later can be taken back in its turn.",
    Reason.CHANGED_SINCE: "Terms, caps and roles are put back as they were before an entry. What later entries said would be lost with it: "
    "so those are taken back first, the last one before the others.",
    Reason.NOT_UNDONE: "A deposit, withdrawal or transfer is taken back by the same amount the other way, a refund by charging its run "
    "that much again, new terms, a cap or a role by those before them. What follows a job is not taken back, nor a project, an "
    "allocation or a token; undo says what helps instead.",
    Reason.SAME_ALLOCATION: "A transfer names one allocation as the giver and as the taker.",
    Reason.NOT_DUE: "The bank does this by itself when the time has come, and not before.",
    Reason.TOO_MUCH_BACK: "A refund gives back what a run was charged, all or a part, less what was given back before.",
    Reason.NOTHING_BACK: "A run that was charged nothing, or was given back all of it already, has nothing more to give back.",
    Reason.OTHER_RESOURCE: "Units of two resources are not worth the same, so credit of one never becomes credit of the other.",
    Reason.OVERLAP: "At any time there is one allocation of a project and resource at most, so that it is always clear which one pays.",
    Reason.WRONG_STATE: "Allocations and runs go from state to state by fixed tables, and this step is not in them.",
    Reason.OVER: "What is over by the clock is ended. Reopened with its old end it would be over again at once; and a longer period alone "
    "does not reopen what has ended.",
    Reason.TOO_LARGE: "Sums are kept below a bound up to which every program counts exactly.",
    Reason.BAD_PERIOD: "A period goes from its start up to, not including, its end. Where a request or a command names both, the bank is "
    "not even asked: it is malformed: HTTP 400, exit code 2.",
    Reason.UNKNOWN_ENTRY: "No entry of the books has this number, or it is not for whoever asks.",
    Reason.UNKNOWN_ALLOCATION: "No allocation has this number, or it is of another project or resource than the request says.",
    Reason.UNKNOWN_PROJECT: "No project has this number, account or group in the bank.",
    Reason.NO_MEMBER: "Only who is a member by the bank's own list can be taken out of it; a Unix group is left in Unix.",
    Reason.UNKNOWN_TOKEN: "The token was never made, was revoked, or its time is over.",
    Reason.TOKEN_TAKEN: "Two tokens with one secret could not be told apart.",
    Reason.ROLE_ABOVE: "A PI decides about coordinators and members, a coordinator about members; staff about all.",
    Reason.PROJECT_IN_USE: "Only a project with no other under it, whose allocations are over and where nothing is held, can be removed.",
    Reason.PROJECT_REMOVED: "A removed project keeps its books for staff to read. It gets no jobs, no allocation, no credit and "
    "no members, and none comes back under it; what its runs still cost or get back is booked.",
    Reason.OWN_PARENT: "Parents share credit downwards; a ring of them would have no top.",
    Reason.NAMES_STAY: "Ends of runs may come late, under the old account, and people stay in the group: the next project would get both. "
    "Its group's name and its parent may change.",
    Reason.EXISTS: "Group, gid and account each belong to one project. The very same project again would be no conflict.",
}
