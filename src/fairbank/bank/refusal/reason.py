"""Why the bank says no, and of which kind each no is."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from fairbank.core.refusal_kind import RefusalKind


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
    TOLD_OTHERWISE = "the run was told of otherwise before"
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
    Reason.TOLD_OTHERWISE: RefusalKind.CONFLICT,
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
