"""Results of reports: requests to the bank and the meaning of its answers.

The agent and PrologSlurmctld (slurm.prolog) share this module, so that both treat a run alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

import msgspec

from fairbank.core.errors import FairbankError, Unavailable
from fairbank.rest.client import Client
from fairbank.rest.schemas.answers import ReportAnswer, RunResolution


class ResultKind(Enum):
    """Result of one report."""

    GRANTED = "granted"
    REFUSED = "refused"  # too little credit, or none
    UNBILLABLE = "unbillable"
    """the bank cannot price the run: unknown account or partition, no time limit"""
    HOLD_EXISTS = "hold exists"  # the run has a hold with other content
    LAPSED = "lapsed"  # the run's hold has expired, or the bank does not tell how it was closed
    CLOSED = "closed"  # the run started and has ended, and is charged or released
    NEVER_STARTED = "never started"
    """the run was released because it ended before it started; if it ran now, nobody would pay"""
    NO_HOLD = "no hold"
    TOO_EARLY = "too early"
    """in the future by the bank's clock: a clock is wrong, and an end counts when it is repeated"""
    FORBIDDEN = "forbidden"
    """the agent may not report for this cluster, which says nothing about the run"""


class ReportResult(msgspec.Struct, frozen=True):
    """Bank's answer to one report.

    Amounts are in SU-minutes; `available` is None where the bank did not compute it. `reason` is
    one word for squeue, `text` a sentence for the owner; both are empty when granted.
    """

    kind: ResultKind
    reason: str = ""
    text: str = ""
    amount: int = 0
    available: int | None = None
    allocation: int | None = None


_BY_REASON: Mapping[str, tuple[ResultKind, str]] = {
    "INSUFFICIENT_CREDIT": (ResultKind.REFUSED, "Allocation_exhausted"),
    "CAPPED": (ResultKind.REFUSED, "User_cap_reached"),
    "NO_ALLOCATION": (ResultKind.REFUSED, "No_allocation"),
    "FROZEN": (ResultKind.REFUSED, "Allocation_frozen"),
    "TOO_LARGE": (ResultKind.REFUSED, "Too_large"),
    "HOLD_EXISTS": (ResultKind.HOLD_EXISTS, ""),
    "RUN_CLOSED": (ResultKind.LAPSED, ""),
    "NO_HOLD": (ResultKind.NO_HOLD, ""),
    "TIMESTAMP_IN_FUTURE": (ResultKind.TOO_EARLY, "Clocks_differ"),
}
UNBILLABLE_REASON = "Fairbank_cannot_bill_this"
_UNBILLABLE = (ResultKind.UNBILLABLE, UNBILLABLE_REASON)
_GRANTED, _FORBIDDEN = (200, 201), (401, 403)


def result_of(answer: ReportAnswer) -> ReportResult:
    """Return the meaning of one answer of the bank."""
    granted, refusal = answer.granted, answer.refusal
    if granted is not None and answer.status in _GRANTED:
        return ReportResult(
            ResultKind.GRANTED,
            amount=granted.amount,
            available=granted.available,
            allocation=granted.allocation,
        )
    if refusal is None:
        is_forbidden = answer.status in _FORBIDDEN
        kind, reason = (ResultKind.FORBIDDEN, "") if is_forbidden else _UNBILLABLE
        remedies = [answer.remedy] if answer.remedy else []
        return ReportResult(kind, reason, _text(answer.detail, remedies))
    kind, reason = _BY_REASON.get(refusal.reason, _UNBILLABLE)
    if kind is ResultKind.LAPSED and refusal.resolution is not None:
        kind = _resolution_kind(refusal.resolution)
    return ReportResult(
        kind,
        reason,
        _text(answer.detail, refusal.remedies),
        amount=refusal.asked or 0,
        available=refusal.available,
        allocation=refusal.allocation,
    )


def _resolution_kind(resolution: RunResolution) -> ResultKind:
    if resolution.state == "released" and not resolution.elapsed:
        return ResultKind.NEVER_STARTED
    return ResultKind.LAPSED if resolution.state == "lapsed" else ResultKind.CLOSED


def _text(detail: str | None, remedies: Sequence[str]) -> str:
    text = detail or "the bank refuses this"
    return f"{text.removesuffix('.')}. Try {'; or '.join(remedies)}" if remedies else text


# ------------------------------------------------------------------ requests


def send_reports(client: Client, bodies: Sequence[bytes]) -> list[ReportResult] | FairbankError:
    """Send reports in one request; block until the bank has answered.

    Args:
        client: connection to the bank.
        bodies: reports as JSON (`report_body`), in their order.

    Returns:
        One result for each report, or the error of the request.
    """
    try:
        answers = read_answers(client.post("/job/bulk", bulk_body(bodies)).get("data"), len(bodies))
    except FairbankError as error:
        return error
    except OSError as error:
        return cannot_connect(error)
    return [result_of(answer) for answer in answers]


def bulk_body(bodies: Sequence[bytes]) -> bytes:
    """Return the body of one request with all these reports, in their order."""
    return b'{"reports":[%b]}' % b",".join(bodies)


def read_answers(rows: object, expected: int, *, field: str = "bank.server") -> list[ReportAnswer]:
    """Return the answers to reports in a decoded answer of the bank.

    Args:
        rows: the answer's `data`.
        expected: number of reports in the request.
        field: setting that has the bank's address, for the error.

    Raises:
        Unavailable: these are not `expected` answers to reports.
    """
    try:
        answers = msgspec.convert(rows, list[ReportAnswer])
    except msgspec.ValidationError as error:
        raise not_a_bank(error, field=field) from error
    if len(answers) != expected:
        raise not_a_bank(ValueError(f"{len(answers)} answers to {expected} reports"), field=field)
    return answers


def cannot_connect(error: OSError) -> Unavailable:
    """Return the error for a request that this host could not even begin."""
    return Unavailable(
        f"cannot connect to the bank: {error}",
        field="bank.server",
        remedy="check the limits of this host (open files, memory)",
    )


def not_a_bank(error: Exception, *, field: str = "bank.server") -> Unavailable:
    """Return the error for an answer that is no bank's; `field` is the setting with the address."""
    return Unavailable(
        f"what answers is not a bank: {error}", field=field, remedy="name the bank's address"
    )
