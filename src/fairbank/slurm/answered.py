"""What the bank's answer to one report means: the same for all that ask it, the agent and PrologSlurmctld."""

from __future__ import annotations

from enum import Enum

import msgspec

from fairbank.rest.bodies.answers import ReportAnswer, Resolution
from fairbank.slurm.wording import sentence


class Came(Enum):
    """What came of a report."""

    GRANTED = "granted"
    REFUSED = "refused"
    """there is too little credit, or none"""
    UNBILLABLE = "unbillable"
    """the bank cannot make a price of it: unknown account or partition, no time limit"""
    TAKEN = "taken"
    """the run has a hold of other content"""
    RESOLVED = "resolved"
    """its hold has lapsed, or the bank does not say what became of it"""
    OVER = "over"
    """it began and has ended, and is charged or released already"""
    NEVER_BEGAN = "never began"
    """it is released already, since it ended before it began: were it let run now, nobody would pay for it"""
    NO_HOLD = "no hold"
    EARLY = "early"
    """by the bank's clock it has not happened yet: a clock is wrong, and an end counts when it is told again"""
    NOT_ALLOWED = "not allowed"
    """we may not report for this cluster, which says nothing of the run"""


class Judgement(msgspec.Struct, frozen=True):
    """The bank's answer to one report. Amounts are SU-minutes, `available` None where the bank did not look; `text` is a sentence for
    people, empty when granted."""

    came: Came
    reason: str = ""
    text: str = ""
    amount: int = 0
    available: int | None = None
    allocation: int | None = None


_BY_REASON = {
    "OVERDRAWN": (Came.REFUSED, "Allocation_exhausted"),
    "CAPPED": (Came.REFUSED, "User_cap_reached"),
    "NO_ALLOCATION": (Came.REFUSED, "No_allocation"),
    "FROZEN": (Came.REFUSED, "Allocation_frozen"),
    "TOO_LARGE": (Came.REFUSED, "Too_large"),
    "RUN_TAKEN": (Came.TAKEN, ""),
    "RUN_RESOLVED": (Came.RESOLVED, ""),
    "NO_HOLD": (Came.NO_HOLD, ""),
    "FROM_FUTURE": (Came.EARLY, "Clocks_differ"),
}
_UNBILLABLE = (Came.UNBILLABLE, "Fairbank_cannot_bill_this")
_GRANTED, _MAY_NOT = (200, 201), (401, 403)


def judged(answer: ReportAnswer) -> Judgement:
    """What one answer says."""
    if answer.granted is not None and answer.status in _GRANTED:
        granted = answer.granted
        return Judgement(
            Came.GRANTED,
            amount=granted.amount,
            available=granted.available,
            allocation=granted.allocation,
        )
    no = answer.refusal
    if no is None:
        came, reason = (Came.NOT_ALLOWED, "") if answer.status in _MAY_NOT else _UNBILLABLE
        return Judgement(
            came, reason, sentence(answer.detail, [answer.remedy] if answer.remedy else [])
        )
    came, reason = _BY_REASON.get(no.reason, _UNBILLABLE)
    if came is Came.RESOLVED and no.resolution is not None:
        came = _resolved(no.resolution)
    text = sentence(answer.detail, no.remedies)
    return Judgement(
        came, reason, text, amount=no.asked or 0, available=no.available, allocation=no.allocation
    )


def _resolved(how: Resolution) -> Came:
    if how.state == "released" and not how.elapsed:
        return Came.NEVER_BEGAN
    return Came.RESOLVED if how.state == "lapsed" else Came.OVER
