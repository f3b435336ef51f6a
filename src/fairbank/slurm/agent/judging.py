"""What the bank's answer to a report means, and how a no is put to people."""

from __future__ import annotations

from enum import Enum

import msgspec

from fairbank.rest.bodies.answers import ReportAnswer, Resolution
from fairbank.slurm.agent.letters import Words
from fairbank.slurm.frames import shortened
from fairbank.slurm.records import Say
from fairbank.slurm.wording import sentence

SILENCE = "Fairbank_does_not_answer"
"""The reason that plugins/prep (courier.h) releases by itself when an agent connects."""


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
_GRANTED, _FORBIDDEN = (200, 201), 403


def judged(answer: ReportAnswer) -> Judgement:
    """What one answer says."""
    if answer.granted is not None and answer.status in _GRANTED:
        granted = answer.granted
        return Judgement(Came.GRANTED, amount=granted.amount, available=granted.available, allocation=granted.allocation)
    no = answer.refusal
    if no is None:
        came, reason = (Came.NOT_ALLOWED, "") if answer.status == _FORBIDDEN else _UNBILLABLE
        return Judgement(came, reason, sentence(answer.detail, [answer.remedy] if answer.remedy else []))
    came, reason = _BY_REASON.get(no.reason, _UNBILLABLE)
    if came is Came.RESOLVED and no.resolution is not None:
        came = _resolved(no.resolution)
    text = sentence(answer.detail, no.remedies)
    return Judgement(came, reason, text, amount=no.asked or 0, available=no.available, allocation=no.allocation)


def _resolved(how: Resolution) -> Came:
    if how.state == "released" and not how.elapsed:
        return Came.NEVER_BEGAN
    return Came.RESOLVED if how.state == "lapsed" else Came.OVER


def words(say: Say, judgement: Judgement, account: str) -> Words:
    """A refusal as a verdict says it, with the project that it is about."""
    return Words(say, judgement.reason, shortened(f"{account or 'no account'}: {judgement.text}"))


def no_limit(say: Say) -> Words:
    """Without a finite time limit nobody knows what a run may cost."""
    return Words(say, "No_time_limit", "this job has no time limit, so nobody knows what it may cost. Try one: -t HH:MM:SS")


def put_off(*, batch: bool) -> Words:
    """The bank is away, and this partition waits for it."""
    return Words("hold", SILENCE, f"the allocation bank cannot be asked just now; {_LATER[batch]}")


def given_up(*, batch: bool) -> Words:
    """This run is over, though it never began: only another one of its job can be let run."""
    return Words("hold", SILENCE, f"this start of the job was given up before; {_LATER[batch]}")


def beyond_cache(account: str, *, batch: bool) -> Words:
    """The bank is away, and what it last said was left is too little, or it never said."""
    text = f"the allocation bank cannot be asked just now, and {account} had too little left when it could; {_LATER[batch]}"
    return Words("hold", SILENCE, shortened(text))


def not_understood(*, batch: bool) -> Words:
    """What slurmctld's plug-in asks cannot be read, so the bank cannot be asked."""
    return Words(
        "hold", SILENCE, f"Fairbank's plug-in and agent do not understand each other; tell your operators. {_LATER[batch].capitalize()}"
    )


_LATER = {True: "the job is tried again by itself when it can", False: "try again later"}
