"""Runs of jobs, and results of reports about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from fairbank.core.time import iso
from fairbank.rest.schemas.envelope import Granted, RefusalDetails

if TYPE_CHECKING:
    from fairbank.bank.run import RunRecord

Status = Literal["executing", "completed"]


class JobRow(Struct, frozen=True, kw_only=True):
    """A run.

    It ran for `project` and `account`. `allocation` pays; it may belong to a parent that shares it.
    `status` is HADM's word for the state. `set_by` is the entry that set the hold or closed it.
    `elapsed`, `time_limit` and `cpu_seconds` (of all processors together) are seconds. NotFound
    values are null.
    """

    id: int
    cluster: str
    job_id: int
    submitted: str
    restart: int
    project: int
    account: str
    allocation: int
    owner_uid: int
    partition: str
    state: Literal["held", "charged", "released", "lapsed"]
    status: Status
    held: int
    charged: int
    refunded: int
    written_off: int
    start: str
    until: str
    ended: str | None
    outcome: str | None
    elapsed: int | None
    set_by: int
    name: str | None
    qos: str | None
    nodes: int | None
    cpus: int | None
    tres: str | None
    time_limit: int | None
    exit_code: int | None
    exit_signal: int | None
    cpu_seconds: int | None


class ReportAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of one report in a batch: granted (200, 201), refused (402, 404, 409) or invalid (400,
    403, 404)."""

    status: int
    granted: Granted | None = None
    detail: str | None = None
    field: str | None = None
    remedy: str | None = None
    refusal: RefusalDetails | None = None


def job_row(record: RunRecord, account: str) -> JobRow:
    """Return a run with the account that it ran for."""
    from fairbank.cluster.job import NO_DETAILS, split_status  # noqa: PLC0415  see __init__

    details = record.job_details or NO_DETAILS
    exit_code, exit_signal = split_status(details.exit_status)
    return JobRow(
        id=record.id,
        cluster=record.run.cluster,
        job_id=record.run.job_id,
        submitted=iso(record.run.submitted),
        restart=record.run.restart,
        project=record.project,
        account=account,
        allocation=record.allocation,
        owner_uid=record.owner,
        partition=record.partition,
        state=record.state.value,
        status=hadm_status(record),
        held=record.held,
        charged=record.charged,
        refunded=record.refunded,
        written_off=record.written_off,
        start=iso(record.start),
        until=iso(record.until),
        ended=None if record.ended is None else iso(record.ended),
        outcome=record.outcome,
        elapsed=record.elapsed_seconds,
        set_by=record.set_by,
        name=details.name,
        qos=details.qos,
        nodes=details.nodes,
        cpus=details.cpus,
        tres=details.tres,
        time_limit=details.limit_seconds,
        exit_code=exit_code,
        exit_signal=exit_signal,
        cpu_seconds=details.cpu_seconds,
    )


def hadm_status(record: RunRecord) -> Status:
    """Return HADM's word for the state of a run."""
    return "executing" if record.state.value == "held" else "completed"
