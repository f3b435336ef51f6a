"""Accounting jobs and ledger runs for tests."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from fairbank.bank.allocation import Allocation, AllocationTerms
from fairbank.bank.policy import Policy
from fairbank.bank.records import BankCluster, BankProject, BankRun
from fairbank.bank.run import ReportedRun, RunEnd, RunState
from fairbank.cluster.accounting_job import AccountingJob
from fairbank.cluster.job import Run
from fairbank.cluster.partition import Partition
from fairbank.core.time import Instant, iso
from fairbank.core.tres import parse_weights
from tests.support.recorded_slurm import line

NOW = 1_795_300_000
CLUSTER = BankCluster(
    "lab",
    {
        "cpu": Partition("cpu", "cpu", parse_weights("CPU=1.0,Mem=0.5G")),
        "gpu": Partition("gpu", "gpu", parse_weights("CPU=1.0,GRES/gpu=12.0")),
    },
    free_states=Policy().free_states,
)

LENIENT = msgspec.structs.replace(CLUSTER, free_states=frozenset({"TIMEOUT"}))
"""The same cluster at a bank where only TIMEOUT is free."""


def a_job(
    number: int,
    *,
    submitted: int = NOW - 50_000,
    elapsed: int = 600,
    state: str = "COMPLETED",
    tres: str = "cpu=4,mem=4000M,node=1",
    account: str = "chem",
    partition: str = "cpu",
    limit_seconds: int | None = 3_600,
    user: str = "alice",
    owner: int | None = 60_601,
) -> AccountingJob:
    """Return a job that started in the second of its submission. RUNNING jobs have no end, PENDING
    ones no start.
    """
    start = None if state == "PENDING" else submitted
    end = None if start is None or state == "RUNNING" else submitted + elapsed
    return AccountingJob(
        job_id=number, submitted=submitted, start=start, end=end, elapsed=elapsed, state=state,
        user=user, owner=owner, account=account,
        partition=partition, qos="normal", limit_seconds=limit_seconds, tres=tres,
    )  # fmt: skip


def sacct_row(job: AccountingJob, name: str | None = None) -> str:
    """Return the job as sacct writes it in our columns; with a JobName as third column if one is
    given.
    """
    start, end = ("Unknown" if at is None else iso(at)[:-1] for at in (job.start, job.end))
    billed = f"billing=4,{job.tres}"
    name_column = [] if name is None else [name]
    alloc = billed if job.start is not None and job.tres else ""
    limit = "UNLIMITED" if job.limit_seconds is None else str(job.limit_seconds // 60)
    limit = limit if job.has_own_limit else "Partition_Limit"
    owner = (
        "" if job.owner is None else job.owner,
        job.user,
        job.account,
        job.partition,
        job.qos or "",
    )
    return line(
        job.job_id,
        iso(job.submitted)[:-1],
        *name_column,
        start,
        end,
        job.elapsed,
        job.state,
        *owner,
        limit,
        alloc,
        job.tres and billed,
    )


def sacct_json(job: AccountingJob) -> dict[str, object]:
    """Return the job as `sacct --json` has it since 23.11: without the uid."""
    requested = [
        {
            "type": name.partition("/")[0],
            "name": name.partition("/")[2],
            "count": int(count.rstrip("M")),
        }
        for name, _, count in (part.partition("=") for part in job.tres.split(",") if part)
    ]
    limit = None if job.limit_seconds is None else job.limit_seconds // 60
    flagged = job.state in ("REQUEUED", "RESIZING")
    return {
        "job_id": job.job_id,
        "account": job.account,
        "partition": job.partition,
        "qos": job.qos,
        "user": job.user,
        "association": {"user": job.user},
        "time": {
            "submission": job.submitted,
            "start": job.start or 0,
            "end": job.end or 0,
            "elapsed": job.elapsed,
            "limit": {
                "set": limit is not None,
                "infinite": limit is None and job.has_own_limit,
                "number": limit or 0,
            },
        },
        "state": {"current": ["PENDING", job.state] if flagged else [job.state]},
        "tres": {"allocated": requested if job.start else [], "requested": requested},
    }


def bank_run(
    job: AccountingJob,
    *,
    charged: int = 40,
    state: str = "charged",
    number: int | None = None,
    submitted: int | None = None,
    restart: int = 0,
    **more: Any,
) -> BankRun:
    """Return the ledger's run of this job."""
    start, is_held = Instant(job.start or job.submitted), state == "held"
    reported = ReportedRun(
        run=Run("lab", job.job_id, submitted or job.submitted, restart),
        project=1,
        partition=more.pop("partition", job.partition),
        start=start,
        until=Instant(start + 3_600),
        job_details=more.pop("job_details", None),
    )
    end = RunEnd(
        outcome=more.pop("outcome", job.state),
        elapsed_seconds=more.pop("elapsed_seconds", job.elapsed),
        ended=Instant(job.end or start),
    )
    facts: dict[str, object] = {
        "id": number or job.job_id, "allocation": 1, "set_by": 1, "reported": reported,
        "account": job.account, "owner": job.owner or 0,
        "state": RunState(state), "held": 240 if is_held else 0,
        "charged": charged if state == "charged" else 0,
        "end": None if is_held else end,
    }  # fmt: skip
    return BankRun(**{**facts, **more})


def a_project(
    number: int,
    account: str,
    *,
    parent: int | None = None,
    members: Collection[int] = (),
    removed: bool = False,
) -> BankProject:
    return BankProject(
        id=number,
        gname=account,
        account=account,
        gid=50_000 + number,
        parent=parent,
        members=frozenset(members),
        removed=removed,
    )


def an_allocation(number: int, project: int, available: int, **more: object) -> Allocation:
    """Return an allocation; `available` is what is left beside the runs that hold credit."""
    terms: dict[str, object] = {
        "project": project, "resource": "cpu", "category": "research",
        "start": NOW - 10**6, "end": NOW + 10**6,
        **{name: more.pop(name) for name in AllocationTerms.__struct_fields__ if name in more},
    }  # fmt: skip
    used = sum(int(str(more.get(name, 0))) for name in ("charged", "held"))
    sums = {"deposited": available + used, **more}
    return Allocation(number, AllocationTerms(**terms), **sums)  # type: ignore[arg-type]
