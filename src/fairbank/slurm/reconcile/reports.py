"""Reports to the bank on runs that the agent missed: bodies for `POST /job/bulk`."""

from __future__ import annotations

from typing import Any

from fairbank.cluster.partition import Cluster
from fairbank.core.errors import InvalidInput
from fairbank.core.final_state import LOST
from fairbank.slurm.parsers.values import AccountingJob, JobEnd
from fairbank.slurm.reconcile.bank_records import BankRun

FROM_ACCOUNTING = "reconciled with accounting"


def charge_report(
    job: AccountingJob, run: BankRun | None, restart: int, cluster: Cluster
) -> dict[str, Any]:
    """Return the report of an end as accounting has it.

    Args:
        job: the execution that ended.
        run: its run in the ledger, whose submission and restart the report keeps; None if unknown.
        restart: restarts before this execution.
        cluster: of the job.

    Raises:
        InvalidInput: the record lacks something that a report needs.
    """
    owner = run.owner if job.owner is None and run is not None else job.owner
    if owner is None:
        raise InvalidInput(
            f"this host has no user {job.user!a}",
            field="User",
            remedy="run this on a host that knows the users",
        )
    if job.start is None or job.end is None:
        raise InvalidInput("it has no start or no end", field="Start")
    return {
        "do": "complete",
        "cluster": cluster.name,
        "job_id": job.job_id,
        "submitted": job.submitted if run is None else run.submitted,
        "restart": restart if run is None else run.restart,
        "owner_uid": owner,
        "account": job.account,
        "partition": job.partition,
        **({"qos": job.qos} if job.qos else {}),
        # The end lies before the start if a clock was set back meanwhile.
        "start": min(job.start, job.end),
        "time_limit": job.limit_seconds or 0,
        "end": job.end,
        "elapsed": job.elapsed,
        "state": job.state,
        "tres": job.tres,
        "comment": FROM_ACCOUNTING,
    }


def usage_fields(end: JobEnd | None) -> dict[str, Any]:
    """Return the fields of a report with the exit code and the processor time, where known."""
    fields: dict[str, Any] = {}
    if end is not None and end.exit_code is not None:
        fields["exit_code"], fields["exit_signal"] = end.exit_code
    if end is not None and end.cpu_seconds is not None:
        fields["cpu_seconds"] = end.cpu_seconds
    return fields


def release_report(run: BankRun, cluster: str, now: int) -> dict[str, Any]:
    """Return the report that releases the hold of a run that Slurm does not know.

    Args:
        run: run of the ledger.
        cluster: its cluster.
        now: time that is entered as its end; no time is charged.
    """
    return {
        "do": "complete",
        "cluster": cluster,
        "job_id": run.job_id,
        "submitted": run.submitted,
        "restart": run.restart,
        "owner_uid": run.owner,
        "account": run.account,
        "partition": run.partition,
        "start": run.start,
        "end": max(now, run.start),
        "elapsed": 0,
        "state": LOST,
        "comment": "Slurm no longer knows this run",
    }
