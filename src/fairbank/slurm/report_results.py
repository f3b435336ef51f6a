"""Meaning of the bank's answer to one report, for the agent and PrologSlurmctld."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import msgspec

from fairbank.core.errors import Malformed, Unreachable
from fairbank.core.ids import clean_job_name
from fairbank.core.slurm_numbers import TRES_MAX
from fairbank.core.tres import parse_job_tres
from fairbank.rest.bodies.answers import ReportAnswer, Resolution


class ReportResult(Enum):
    """Result of a report."""

    GRANTED = "granted"
    REFUSED = "refused"
    """too little credit, or no allocation"""
    UNBILLABLE = "unbillable"
    """the bank has no price: unknown account or partition, or no time limit"""
    TAKEN = "taken"
    """the run has another hold"""
    RESOLVED = "resolved"
    """its hold has lapsed, or the bank does not say how it was closed"""
    OVER = "over"
    """the run is charged or released already, after it ran"""
    NEVER_BEGAN = "never began"
    """the run is released already, since it ended before it started: nobody would pay if it ran
    now
    """
    NO_HOLD = "no hold"
    EARLY = "early"
    """in the future by the bank's clock: a clock is wrong, and a later report of the end counts"""
    NOT_ALLOWED = "not allowed"
    """no permission to report for this cluster; the answer says nothing about the run"""


class Judgement(msgspec.Struct, frozen=True):
    """Answer of the bank to one report. Amounts are SU-minutes, `available` None where it is
    unknown.

    `text` is a sentence for people, empty if granted.
    """

    came: ReportResult
    reason: str = ""
    text: str = ""
    amount: int = 0
    available: int | None = None
    allocation: int | None = None


_BY_REASON = {
    "OVERDRAWN": (ReportResult.REFUSED, "Allocation_exhausted"),
    "CAPPED": (ReportResult.REFUSED, "User_cap_reached"),
    "NO_ALLOCATION": (ReportResult.REFUSED, "No_allocation"),
    "FROZEN": (ReportResult.REFUSED, "Allocation_frozen"),
    "TOO_LARGE": (ReportResult.REFUSED, "Too_large"),
    "RUN_TAKEN": (ReportResult.TAKEN, ""),
    "RUN_RESOLVED": (ReportResult.RESOLVED, ""),
    "NO_HOLD": (ReportResult.NO_HOLD, ""),
    "FROM_FUTURE": (ReportResult.EARLY, "Clocks_differ"),
}
_UNBILLABLE = (ReportResult.UNBILLABLE, "Fairbank_cannot_bill_this")
_GRANTED, _MAY_NOT = (200, 201), (401, 403)


def judged(answer: ReportAnswer) -> Judgement:
    """Return the meaning of one answer."""
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


def cannot_ask(error: OSError) -> Unreachable:
    """Return the error for a host that could not send the request."""
    return Unreachable(
        f"the bank cannot be asked: {error}",
        field="bank.server",
        remedy="look at the host's limits",
    )


def no_bank(bad: Exception, *, field: str = "bank.server") -> Unreachable:
    """Return the error for a server that is not a bank; `field` is the setting of its address."""
    return Unreachable(
        f"what answers is not a bank: {bad}", field=field, remedy="name the bank's address"
    )


def words_of(name: str, tres: str) -> dict[str, Any]:
    """Return `name` and `tres` as fields of a report, without what the bank would reject.

    Neither is worth a refused start.
    """
    said: dict[str, Any] = {}
    if (told := clean_job_name(name)) is not None:
        said["name"] = told
    if tres and len(tres) <= TRES_MAX and _is_known(tres):
        said["tres"] = tres
    return said


def _is_known(tres: str) -> bool:
    try:
        parse_job_tres(tres, prices=False)
    except Malformed:
        return False
    return True


def sentence(detail: str | None, remedies: Sequence[str]) -> str:
    """Return the bank's objection to a report, with its remedies."""
    said = detail or "the bank refuses this"
    return f"{said.removesuffix('.')}. Try {'; or '.join(remedies)}" if remedies else said
