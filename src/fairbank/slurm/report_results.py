"""What the bank's answer to one report means: the same for all that ask it, the agent and PrologSlurmctld."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import msgspec

from fairbank.core.errors import InvalidInput, Unavailable
from fairbank.core.ids import clean_job_name
from fairbank.core.slurm_numbers import TRES_MAX
from fairbank.core.tres import parse_job_tres
from fairbank.rest.bodies.answers import ReportAnswer, Resolution


class ReportResult(Enum):
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

    came: ReportResult
    reason: str = ""
    text: str = ""
    amount: int = 0
    available: int | None = None
    allocation: int | None = None


_BY_REASON = {
    "INSUFFICIENT_CREDIT": (ReportResult.REFUSED, "Allocation_exhausted"),
    "CAPPED": (ReportResult.REFUSED, "User_cap_reached"),
    "NO_ALLOCATION": (ReportResult.REFUSED, "No_allocation"),
    "FROZEN": (ReportResult.REFUSED, "Allocation_frozen"),
    "TOO_LARGE": (ReportResult.REFUSED, "Too_large"),
    "HOLD_EXISTS": (ReportResult.TAKEN, ""),
    "RUN_CLOSED": (ReportResult.RESOLVED, ""),
    "NO_HOLD": (ReportResult.NO_HOLD, ""),
    "TIMESTAMP_IN_FUTURE": (ReportResult.EARLY, "Clocks_differ"),
}
_UNBILLABLE = (ReportResult.UNBILLABLE, "Fairbank_cannot_bill_this")
_GRANTED, _MAY_NOT = (200, 201), (401, 403)


def judged(answer: ReportAnswer) -> Judgement:
    """What one answer says."""
    if answer.granted is not None and answer.status in _GRANTED:
        granted = answer.granted
        return Judgement(
            ReportResult.GRANTED,
            amount=granted.amount,
            available=granted.available,
            allocation=granted.allocation,
        )
    no = answer.refusal
    if no is None:
        came, reason = (ReportResult.NOT_ALLOWED, "") if answer.status in _MAY_NOT else _UNBILLABLE
        return Judgement(
            came, reason, sentence(answer.detail, [answer.remedy] if answer.remedy else [])
        )
    came, reason = _BY_REASON.get(no.reason, _UNBILLABLE)
    if came is ReportResult.RESOLVED and no.resolution is not None:
        came = _resolved(no.resolution)
    text = sentence(answer.detail, no.remedies)
    return Judgement(
        came, reason, text, amount=no.asked or 0, available=no.available, allocation=no.allocation
    )


def _resolved(how: Resolution) -> ReportResult:
    if how.state == "released" and not how.elapsed:
        return ReportResult.NEVER_BEGAN
    return ReportResult.RESOLVED if how.state == "lapsed" else ReportResult.OVER


def cannot_ask(error: OSError) -> Unavailable:
    """This host could not even begin to ask."""
    return Unavailable(
        f"the bank cannot be asked: {error}",
        field="bank.server",
        remedy="look at the host's limits",
    )


def no_bank(bad: Exception, *, field: str = "bank.server") -> Unavailable:
    """Somebody answered, and not as a bank does; `field` is where the bank's address is set."""
    return Unavailable(
        f"what answers is not a bank: {bad}", field=field, remedy="name the bank's address"
    )


def words_of(name: str, tres: str) -> dict[str, Any]:
    """`name` and `tres` by the names of the REST language, each only where there is something to tell, and as a report takes it: what it
    would be refused for is left out, for nothing of it is worth a job's start."""
    said: dict[str, Any] = {}
    if (told := clean_job_name(name)) is not None:
        said["name"] = told
    if tres and len(tres) <= TRES_MAX and _is_known(tres):
        said["tres"] = tres
    return said


def _is_known(tres: str) -> bool:
    try:
        parse_job_tres(tres, prices=False)
    except InvalidInput:
        return False
    return True


def sentence(detail: str | None, remedies: Sequence[str]) -> str:
    """What the bank says against a report, with what would help."""
    said = detail or "the bank refuses this"
    return f"{said.removesuffix('.')}. Try {'; or '.join(remedies)}" if remedies else said
