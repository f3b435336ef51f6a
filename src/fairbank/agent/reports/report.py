"""Reports to the bank (start, changed time limit and end of a run), and the bank's results.

The agent and PrologSlurmctld (slurm.prolog) share the results, so that both treat a run alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from fairbank.agent.protocol import EpilogEvent, PluginMessage
from fairbank.cluster.run_report import (
    AdjustReport,
    CompleteReport,
    HoldReport,
    RunPiece,
    encode_report,
)
from fairbank.core.errors import FairbankError, InvalidInput
from fairbank.core.final_state import REQUEUED, final_state
from fairbank.core.ids import clean_job_name
from fairbank.core.slurm_numbers import TRES_MAX
from fairbank.core.tres import parse_job_tres
from fairbank.core.units import exact_decimal
from fairbank.rest.client import Client
from fairbank.rest.client.bulk_reports import cannot_connect, post_reports
from fairbank.rest.schemas.answers import ReportAnswer, RunResolution


class ReportKind(Enum):
    """Kind of a report, in the words of the bank's REST interface."""

    HOLD = "hold"
    ADJUST = "adjust"
    COMPLETE = "complete"


class Receipt(NamedTuple):
    """Address of an answer: a plug-in connection, and the number that the answer carries."""

    connection: Any
    number: int


class PendingReport(msgspec.Struct, eq=False):
    """Report on its way to the bank.

    `body` is the JSON that is sent; `created` is in seconds of a monotonic clock. `stored`: it is
    in the outbox on disk. `attempts`: requests that carried it, so the bank may have it.
    `converted`: it was sent as another kind before, which must not happen twice. `receipts` are
    acknowledged once the report is safe.
    """

    seq: int
    run: str
    kind: ReportKind
    body: bytes
    created: float
    stored: bool = False
    attempts: int = 0
    converted: bool = False
    receipts: tuple[Receipt, ...] = ()

    @property
    def cluster(self) -> str:
        return cluster_of(self.run)


def cluster_of(run: str) -> str:
    """Return the cluster in the text of a run."""
    return run.partition("/")[0]


class ReportFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of a report that the agent itself needs, as its JSON has them.

    The outbox keeps the JSON that was sent; the other fields are not read again.
    """

    do: ReportKind
    cluster: str
    account: str
    partition: str = ""
    billing: str
    time_limit: int = 0
    qos: str = ""


_read_facts = msgspec.json.Decoder(ReportFacts).decode


def report_body(
    message: PluginMessage, kind: ReportKind, key: str, pieces: tuple[RunPiece, ...] = ()
) -> bytes:
    """Return the JSON of a report.

    Args:
        message: message of the plug-in about the run.
        key: idempotency key.
        pieces: the pieces of the run before its last change of resources.
    """
    run, limit_seconds = message.run, message.limit_seconds or 0
    facts: dict[str, Any] = {
        "cluster": run.cluster,
        "job_id": run.job_id,
        "submitted": run.submitted,
        "restart": run.restart,
        "owner_uid": message.uid,
        "account": message.account,
        "partition": message.partition,
        "start": message.start,
        "billing": Decimal(exact_decimal(message.billing)),
        "qos": message.qos or None,
        "time_limit": limit_seconds,
        "name": clean_job_name(message.name),
        "tres": message.tres if _is_job_tres(message.tres) else None,
        "pieces": pieces,
        "key": key,
    }
    if not isinstance(message, EpilogEvent):
        facts["suspended"] = message.suspended_seconds
    if kind is ReportKind.HOLD:
        return encode_report(HoldReport(**facts))
    if kind is ReportKind.ADJUST or not isinstance(message, EpilogEvent):
        return encode_report(AdjustReport(**facts))
    has_status = message.begun and message.exit_status < 65_536
    # After slurmctld's clock was set back a run may end before its start. Accounting takes its end
    # as its start then, and so do we.
    facts["start"] = min(message.start, message.end)
    return encode_report(
        CompleteReport(
            **facts,
            end=message.end,
            # A run that never started has no elapsed time, whatever the clock says.
            elapsed=message.elapsed_seconds if message.begun else 0,
            # slurmctld may have requeued the job already: its state is then PENDING or RUNNING.
            state=final_state(message.state) or REQUEUED,
            exit_code=message.exit_status // 256 if has_status else None,
            exit_signal=message.exit_status % 128 if has_status else None,
        )
    )


def hold_facts(message: PluginMessage) -> ReportFacts:
    """Return the facts of a hold report on a message."""
    return _read_facts(report_body(message, ReportKind.HOLD, ""))


def facts_of(report: PendingReport) -> ReportFacts:
    """Return the facts in a report's JSON."""
    return _read_facts(report.body)


# All messages of a run have the same TRES, as have most jobs of a user. Without the cache the
# parser takes a third of the agent's time for a message.
@lru_cache(1_024)
def _is_job_tres(text: str) -> bool:
    """Return True for TRES that the bank accepts. They are for display: not worth a refusal."""
    if not text or len(text) > TRES_MAX:
        return False
    try:
        parse_job_tres(text, prices=False)
    except InvalidInput:
        return False
    return True


def convert_report(report: PendingReport, kind: ReportKind, key: str) -> PendingReport:
    """Return the same facts as a report of another kind, not yet stored and not yet sent.

    A hold becomes an adjustment when the run has a hold, an adjustment a hold when it has none.

    Args:
        report: the report as it was sent before; it stays as it is.
        kind: the other kind.
        key: a new idempotency key: the bank would refuse other content under the old one.
    """
    body = msgspec.json.decode(report.body) | {"do": kind.value, "key": key}
    return msgspec.structs.replace(
        report, kind=kind, body=msgspec.json.encode(body), converted=True, stored=False, attempts=0
    )


# ------------------------------------------------------------------ clocks

OVERTIME_SECONDS = 3_600
"""Time after its limit in which a run may still end: Slurm kills in rounds, OverTimeLimit adds."""

_KEEP_CLOCKS = "keep the clocks right with chrony or ntpd, and see fairbank doctor --slurm"


def clock_warning(epilog: EpilogEvent) -> str | None:
    """Return a warning if slurmctld's clock must have been wrong during the run, else None.

    The elapsed time is the difference of two readings of that clock, here as in accounting.
    """
    if epilog.end < epilog.start:
        back, elapsed = epilog.start - epilog.end, epilog.elapsed_seconds
        # Fairbank's own controller measures the time on a clock that is never set.
        cost = f"its {elapsed} s" if epilog.begun and elapsed else "nothing"
        return (
            f"ended {back} s before it began: slurmctld's clock was set back. "
            f"It costs {cost}, as in accounting; {_KEEP_CLOCKS}"
        )
    limit = epilog.limit_seconds
    if limit is None or epilog.elapsed_seconds <= limit + OVERTIME_SECONDS:
        return None
    return (
        f"lasted {epilog.elapsed_seconds} s with a limit of {limit} s: was slurmctld's clock set "
        "forward? It costs that, as in accounting; give back too much with fairbank refund, "
        f"{_KEEP_CLOCKS}"
    )


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
    """the run was released because it ended before it started; a charge is no longer possible"""
    NO_HOLD = "no hold"
    TOO_EARLY = "too early"
    """in the future by the bank's clock: a clock is wrong, and an end counts when it is repeated"""
    FORBIDDEN = "forbidden"
    """the agent may not report for this cluster, which says nothing about the run"""
    UNKNOWN_CLUSTER = "unknown cluster"
    """the bank's settings do not have this cluster, perhaps because it was renamed"""


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


BY_REASON: Mapping[str, tuple[ResultKind, str]] = {
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
BANK_REASONS = {word: code for code, (_, word) in BY_REASON.items() if word}
"""Reasons of the bank, by the words that the plug-in shows in squeue."""
UNBILLABLE_REASON = "Fairbank_cannot_bill_this"
_UNBILLABLE = (ResultKind.UNBILLABLE, UNBILLABLE_REASON)
_GRANTED, _FORBIDDEN, _NOT_FOUND = (200, 201), (401, 403), 404
_NO_CLUSTER = "the bank's settings do not have this cluster"
CLUSTER_DENIED = (ResultKind.FORBIDDEN, ResultKind.UNKNOWN_CLUSTER)
"""Results about the cluster of a report: the report is kept until the bank accepts the cluster."""


def result_of(answer: ReportAnswer) -> ReportResult:
    """Return the meaning of one answer of the bank."""
    granted, refusal = answer.granted, answer.refusal
    if answer.status == _NOT_FOUND and answer.field == "cluster":
        return ReportResult(ResultKind.UNKNOWN_CLUSTER, "", _NO_CLUSTER)
    if granted is not None and answer.status in _GRANTED:
        return ReportResult(
            ResultKind.GRANTED,
            amount=granted.amount or 0,
            available=granted.available,
            allocation=granted.allocation,
        )
    if refusal is None:
        if answer.status in _FORBIDDEN:
            # Without the remedy, which is the administrator's and not the job owner's.
            return ReportResult(ResultKind.FORBIDDEN, "", _text(answer.detail, []))
        remedies = [answer.remedy] if answer.remedy else []
        return ReportResult(*_UNBILLABLE, _text(answer.detail, remedies))
    kind, reason = BY_REASON.get(refusal.reason, _UNBILLABLE)
    if kind is ResultKind.LAPSED and refusal.resolution is not None:
        kind = _resolution_kind(refusal.resolution)
    return ReportResult(
        kind,
        reason,
        _text(answer.detail, refusal.remedies),
        amount=refusal.requested or 0,
        available=refusal.available,
        allocation=refusal.allocation,
    )


def _resolution_kind(resolution: RunResolution) -> ResultKind:
    if resolution.state == "released" and not resolution.elapsed:
        return ResultKind.NEVER_STARTED
    return ResultKind.LAPSED if resolution.state == "lapsed" else ResultKind.CLOSED


def _text(detail: str | None, remedies: Sequence[str]) -> str:
    text = detail or "the bank refuses this"
    return f"{text.removesuffix('.')}. Remedy: {'; or '.join(remedies)}" if remedies else text


# ------------------------------------------------------------------ sending


def send_reports(client: Client, bodies: Sequence[bytes]) -> list[ReportResult] | FairbankError:
    """Send reports in one request; block until the bank has answered.

    Return one result for each report in its order, or the error of the request.
    """
    try:
        answers = post_reports(client, bodies, field="bank.server")
    except FairbankError as error:
        return error
    except OSError as error:
        return cannot_connect(error)
    return [result_of(answer) for answer in answers]
