"""Shape of the record of a reason. The modules `*_reasons` have the records.

Texts in the records are templates. The names in braces are fields of `Refusal` and of its `Facts`,
or what `message.values_of` adds; `:su` and `:time` say how a value is shown.
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
    TRANSFER = "transfer"
    WHOLE_ENTRY = "whole-entry"
    WHOLE_REFUND = "whole-refund"
    NOTHING_LEFT = "nothing-left"
    # allocations
    ALREADY = "already"
    WRONG_STEP = "wrong-step"
    PAID_NOW = "paid-now"
    CREDIT_AND_CAP = "credit-and-cap"
    NOT_ACTIVE = "not-active"
    STATE = "state"
    PERIOD_OVER = "period-over"
    OTHER_PERIOD = "other-period"
    ENDED = "ended"
    HAS_ENDED = "has-ended"
    SWEPT = "swept"
    MOVED = "moved"
    MOVED_AND_ENDED = "moved-and-ended"
    CHARGED_OR_HELD = "charged-or-held"
    USED_AND_ENDED = "used-and-ended"
    # categories
    OTHER_CATEGORY = "other-category"
    NO_RESOURCE = "no-resource"
    NO_GRANTER = "no-granter"
    TOO_LOW = "too-low"
    TOO_HIGH = "too-high"
    TOO_LONG = "too-long"
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
    RECORD = "record"
    UNDONE = "undone"
    CHANGED = "changed"
    TRANSFER_IN = "transfer-in"
    HOLD = "hold"
    ADJUST = "adjust"
    CHARGE = "charge"
    RELEASE = "release"
    LAPSE = "lapse"
    OPENING = "open-allocation"
    RESOURCE = "resource"
    PROJECT = "project"
    TOKEN = "token"  # noqa: S105 (a kind of entry)


class Case(NamedTuple):
    """Message of one detail, after the general one, and its remedy.

    "" stands for `specific` and for the general remedy.
    """

    message: str = ""
    remedy: str = ""


SHORTFALL = "requested {requested:su} SU, available {available:su} SU, short by {short} SU"
_JOB_ADVICE = "a shorter time limit: -t TIME; or another project: -A PROJECT; or "

# Stand for the values in a remedy where there is no refusal: in help and the reference.
_PLACEHOLDERS = {
    "allocation": "ALLOC",
    "begin": "...",
    "higher": "AMOUNT",
    "job": "JOBID",
    "missing": "AMOUNT",
    "most": "AMOUNT",
    "most_typed": "AMOUNT",
    "owner": "USER",
    "payer": "PROJECT",
    "project": "PROJECT",
    "resource": "RESOURCE",
    "show": "fairbank alloc show ALLOC",
    "statement": "fairbank statement ALLOC",
}


class ReasonInfo(NamedTuple):
    """Record of one reason.

    `request_fields` are the fields to mark as wrong, the most specific first; the first one that a
    request has is marked, unless the rule names one. `shorter_limit_helps`: the remedies of a
    refusal begin with a time limit that the job can pay. `specific` is the message after the
    general one, unless a detail has its own. `has_figures`: it is about an amount, of
    credit for a job, of credit to withdraw or of a charge to refund.
    """

    kind: RefusalKind
    message: str
    explanation: str
    request_fields: tuple[str, ...]
    remedy: str
    shorter_limit_helps: bool = False
    specific: str = ""
    details: Mapping[Detail, Case] = {}
    has_figures: bool = False

    @property
    def general_remedy(self) -> str:
        """Remedy with capitals for the values of a refusal."""
        advice = _JOB_ADVICE if self.shorter_limit_helps else ""
        return advice + self.remedy.format_map(_PLACEHOLDERS)
