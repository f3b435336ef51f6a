"""Reports to the bank: start, changed time limit and end of a run, as the JSON that is sent."""

from __future__ import annotations

from decimal import Context, Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from fairbank.agent.protocol import EpilogEvent, PluginMessage
from fairbank.core.errors import InvalidInput
from fairbank.core.final_state import REQUEUED, final_state
from fairbank.core.ids import clean_job_name
from fairbank.core.slurm_numbers import TRES_MAX
from fairbank.core.tres import parse_job_tres


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


class ReportFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of a report that the agent itself needs, as its JSON has them."""

    do: ReportKind
    cluster: str
    account: str
    partition: str
    billing: str
    time_limit: int = 0
    qos: str = ""


_EXACT = Context(prec=80)
_read_facts = msgspec.json.Decoder(ReportFacts).decode
_encode = msgspec.json.Encoder().encode


def report_body(message: PluginMessage, kind: ReportKind, key: str) -> bytes:
    """Return the JSON of a report.

    Args:
        message: message of the plug-in about the run.
        kind: kind of the report.
        key: idempotency key.
    """
    return _encode(_message_fields(message, kind) | {"key": key})


def hold_facts(message: PluginMessage) -> ReportFacts:
    """Return the facts of a hold report on a message."""
    return msgspec.convert(_message_fields(message, ReportKind.HOLD), ReportFacts)


def facts_of(report: PendingReport) -> ReportFacts:
    """Return the facts in a report's JSON."""
    return _read_facts(report.body)


def _message_fields(message: PluginMessage, kind: ReportKind) -> dict[str, Any]:
    """Return the fields of a report on a message, except its idempotency key."""
    run = message.run
    body: dict[str, Any] = {
        "do": kind.value,
        "cluster": run.cluster,
        "job_id": run.job_id,
        "submitted": run.submitted,
        "restart": run.restart,
        "owner_uid": message.uid,
        "account": message.account,
        "partition": message.partition,
        "start": message.start,
        "billing": decimal(message.billing),
    }
    if message.qos:
        body["qos"] = message.qos
    if message.limit_seconds is not None:
        body["time_limit"] = message.limit_seconds
    body |= name_and_tres(message.name, message.tres)
    if kind is ReportKind.COMPLETE and isinstance(message, EpilogEvent):
        # After slurmctld's clock was set back a run may end before its start. Accounting takes its
        # end as its start then, and so do we.
        body["start"] = min(message.start, message.end)
        body["end"] = message.end
        # A run that never started has no elapsed time, whatever the clock says.
        body["elapsed"] = message.elapsed_seconds if message.begun else 0
        # slurmctld may have requeued the job already: its state is then PENDING or RUNNING.
        body["state"] = final_state(message.state) or REQUEUED
        if message.begun and message.exit_status < 65_536:
            body["exit_code"] = message.exit_status // 256
            body["exit_signal"] = message.exit_status % 128
    return body


def name_and_tres(name: str, tres: str) -> dict[str, str]:
    """Return a job's name and TRES as report fields, without what the bank would refuse.

    Neither is worth a refusal: they are for display only.
    """
    fields: dict[str, str] = {}
    if (job_name := clean_job_name(name)) is not None:
        fields["name"] = job_name
    if tres and len(tres) <= TRES_MAX and _is_job_tres(tres):
        fields["tres"] = tres
    return fields


# All messages of a run have the same TRES, as have most jobs of a user. Without the cache the
# parser takes a third of the agent's time for a message.
@lru_cache(1_024)
def _is_job_tres(text: str) -> bool:
    try:
        parse_job_tres(text, prices=False)
    except InvalidInput:
        return False
    return True


def converted(report: PendingReport, kind: ReportKind, key: str) -> PendingReport:
    """Return the same facts as a report of another kind, with a new idempotency key.

    A hold becomes an adjustment when the run has a hold, an adjustment a hold when it has none.
    """
    body = msgspec.json.decode(report.body) | {"do": kind.value, "key": key}
    return msgspec.structs.replace(
        report, kind=kind, body=_encode(body), converted=True, stored=False, attempts=0
    )


def decimal(exact: Fraction) -> str:
    """Return the decimal notation of a fraction that was read from a decimal number."""
    if exact.denominator == 1:
        return str(exact.numerator)
    return format(_EXACT.divide(Decimal(exact.numerator), Decimal(exact.denominator)), "f")


# ------------------------------------------------------------------ clocks

OVERTIME_SECONDS = 3_600
"""Time after its limit in which a run may still end: Slurm kills in rounds, OverTimeLimit adds."""

_KEEP_CLOCKS = "keep the clocks right with chrony or ntpd, and see fairbank doctor --slurm"


def clock_warning(epilog: EpilogEvent) -> str | None:
    """Return a warning if slurmctld's clock must have been wrong during the run, else None.

    The elapsed time is the difference of two readings of that clock, here as in accounting.
    """
    if epilog.end < epilog.start:
        back = epilog.start - epilog.end
        return (
            f"ended {back} s before it began: slurmctld's clock was set back. "
            f"It costs nothing, as in accounting; {_KEEP_CLOCKS}"
        )
    limit = epilog.limit_seconds
    if limit is None or epilog.elapsed_seconds <= limit + OVERTIME_SECONDS:
        return None
    return (
        f"lasted {epilog.elapsed_seconds} s with a limit of {limit} s: was slurmctld's clock set "
        "forward? It costs that, as in accounting; give back too much with fairbank refund, "
        f"{_KEEP_CLOCKS}"
    )
