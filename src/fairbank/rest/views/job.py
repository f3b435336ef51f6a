"""Runs, as the shapes that travel: ours and HADM's."""

from __future__ import annotations

from fairbank.bank.query import Debit
from fairbank.bank.run import RunRecord, RunState
from fairbank.cluster.job_details import NO_DETAILS, split_status
from fairbank.core.time import iso
from fairbank.rest.bodies import answers


def job_row(record: RunRecord, account: str) -> answers.JobRow:
    """A run, with the account that it ran for."""
    told = record.job_details or NO_DETAILS
    exit_code, exit_signal = split_status(told.exit_status)
    return answers.JobRow(
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
        status=_status(record),
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
        name=told.name,
        qos=told.qos,
        nodes=told.nodes,
        cpus=told.cpus,
        tres=told.tres,
        time_limit=told.limit_seconds,
        exit_code=exit_code,
        exit_signal=exit_signal,
        cpu_seconds=told.cpu_seconds,
    )


def predebit_row(record: RunRecord, comments: str | None) -> answers.PredebitRow:
    """A run as HADM shows what is held for it."""
    return answers.PredebitRow(
        activity_id=record.id,
        allocation_id=record.allocation,
        amount=record.held,
        comments=comments,
        job_id=record.run.job_id,
        status=_status(record),
        owner_uid=record.owner,
    )


def debit_row(debit: Debit) -> answers.DebitRow:
    """A user's charges in one allocation as HADM shows them."""
    return answers.DebitRow(
        activity_id=debit.latest,
        allocation_id=debit.allocation,
        amount=debit.charged,
        comments=None,
        owner_uid=debit.owner,
    )


def _status(record: RunRecord) -> answers.Status:
    return "executing" if record.state is RunState.HELD else "completed"
