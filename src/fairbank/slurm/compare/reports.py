"""What the bank is told of a run that the agent missed: bodies for `POST /job/bulk`."""

from __future__ import annotations

from typing import Any

from fairbank.cluster.partition import Cluster
from fairbank.core.errors import InvalidInput
from fairbank.core.final_state import LOST
from fairbank.slurm.compare.bank_records import BankRun
from fairbank.slurm.parsers.values import AccountingJob, Spent

FROM_ACCOUNTING = "reconciled with accounting"


def charge(
    job: AccountingJob, run: BankRun | None, restart: int, cluster: Cluster
) -> dict[str, Any]:
    """The end of a run as accounting has it; under the name that the bank knows it by, where it does. Raises InvalidInput when it lacks what
    a report needs."""
    owner = run.owner if job.owner is None and run is not None else job.owner
    if owner is None:
        raise InvalidInput(
            f"nobody here is called {job.user!a}",
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
        "start": min(job.start, job.end),  # a clock was set back while it ran
        "time_limit": job.limit_seconds or 0,
        "end": job.end,
        "elapsed": job.elapsed,
        "state": job.state,
        "tres": job.tres,
        "comment": FROM_ACCOUNTING,
    }


def spent(known: Spent | None) -> dict[str, Any]:
    """What the report of an end says beside: how it ended, and the processor time that was used."""
    said: dict[str, Any] = {}
    if known is not None and known.exit_code is not None:
        said["exit_code"], said["exit_signal"] = known.exit_code
    if known is not None and known.cpu_seconds is not None:
        said["cpu_seconds"] = known.cpu_seconds
    return said


def give_back(run: BankRun, cluster: str, now: int) -> dict[str, Any]:
    """The end of a run that Slurm does not know: it took no time that anybody could tell."""
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
        "comment": "Slurm does not know this run any more",
    }
