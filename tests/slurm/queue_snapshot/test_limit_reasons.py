"""Every limit of sacctmgr makes a job of the recorded queue wait for its own reason, and the
explanation names it with its figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from fairbank.priority.limits.reasons import ASSOC, QOS, LimitKind
from fairbank.scheduling.explain.answer import Explanation
from fairbank.scheduling.explain.explanation import explain_on_nodes
from fairbank.slurm.parsers.limits import QOS_LIMITS
from fairbank.slurm.queue_snapshot.answers import COMMANDS, read_answers
from fairbank.slurm.queue_snapshot.snapshot import build_queue

QUEUE = Path(__file__).parents[2] / "golden" / "slurm-22.05" / "queue"
RELEASE = "24.05.0"
"""First release that tests every limit."""
JOB, MINUTES, NODES = 16, 60, 2
ASKED = {"cpu": 2, "mem": 2_000, "node": NODES, "billing": 96, "gres/gpu": 8}
"""What slurmctld printed of the job, billing units among it."""

# By kind: the column of sacctmgr or the field of scontrol show assoc_mgr, and Slurm's reasons for
# the TRES in the order of ASKED.
OF_GROUP = {
    LimitKind.GRP_TRES: (
        "GrpTRES",
        "AssocGrpCpuLimit AssocGrpMemLimit AssocGrpNodeLimit AssocGrpBilling AssocGrpGRES",
    ),
    LimitKind.GRP_TRES_MINS: (
        "GrpTRESMins",
        "AssocGrpCPUMinutesLimit AssocGrpMemMinutes AssocGrpNodeMinutes"
        " AssocGrpBillingMinutes AssocGrpGRESMinutes",
    ),
    LimitKind.GRP_TRES_RUN_MINS: (
        "GrpTRESRunMins",
        "AssocGrpCPURunMinutesLimit AssocGrpMemRunMinutes AssocGrpNodeRunMinutes"
        " AssocGrpBillingRunMinutes AssocGrpGRESRunMinutes",
    ),
    LimitKind.GRP_JOBS: ("GrpJobs", "AssocGrpJobsLimit"),
    LimitKind.GRP_WALL: ("GrpWall", "AssocGrpWallLimit"),
}
OF_USER = {
    LimitKind.MAX_TRES: (
        "MaxTRESPJ",
        "AssocMaxCpuPerJobLimit AssocMaxMemPerJob AssocMaxNodePerJobLimit"
        " AssocMaxBillingPerJob AssocMaxGRESPerJob",
    ),
    LimitKind.MAX_TRES_PER_NODE: (
        "MaxTRESPN",
        "AssocMaxCpuPerNode AssocMaxMemPerNode AssocMaxUnknownPerNode"
        " AssocMaxBillingPerNode AssocMaxGRESPerNode",
    ),
    LimitKind.MAX_TRES_MINS: (
        "MaxTRESMinsPJ",
        "AssocMaxCpuMinutesPerJobLimit AssocMaxMemMinutesPerJob AssocMaxNodeMinutesPerJob"
        " AssocMaxBillingMinutesPerJob AssocMaxGRESMinutesPerJob",
    ),
    LimitKind.MAX_JOBS: ("MaxJobs", "AssocMaxJobsLimit"),
    LimitKind.MAX_WALL: ("MaxWallPJ", "AssocMaxWallDurationPerJobLimit"),
}
OF_QOS = {
    LimitKind.GRP_TRES: (
        "GrpTRES",
        "QOSGrpCpuLimit QOSGrpMemLimit QOSGrpNodeLimit QOSGrpBilling QOSGrpGRES",
    ),
    LimitKind.GRP_TRES_MINS: (
        "GrpTRESMins",
        "QOSGrpCPUMinutesLimit QOSGrpMemoryMinutes QOSGrpNodeMinutes QOSGrpBillingMinutes"
        " QOSGrpGRESMinutes",
    ),
    LimitKind.GRP_TRES_RUN_MINS: (
        "GrpTRESRunMins",
        "QOSGrpCPURunMinutesLimit QOSGrpMemoryRunMinutes QOSGrpNodeRunMinutes"
        " QOSGrpBillingRunMinutes QOSGrpGRESRunMinutes",
    ),
    LimitKind.GRP_JOBS: ("GrpJobs", "QOSGrpJobsLimit"),
    LimitKind.GRP_WALL: ("GrpWall", "QOSGrpWallLimit"),
    LimitKind.MAX_TRES: (
        "MaxTRES",
        "QOSMaxCpuPerJobLimit QOSMaxMemoryPerJob QOSMaxNodePerJobLimit QOSMaxBillingPerJob"
        " QOSMaxGRESPerJob",
    ),
    LimitKind.MAX_TRES_PER_NODE: (
        "MaxTRESPerNode",
        "QOSMaxCpuPerNode QOSMaxMemoryPerNode QOSMaxUnknownPerNode QOSMaxBillingPerNode"
        " QOSMaxGRESPerNode",
    ),
    LimitKind.MAX_TRES_MINS: (
        "MaxTRESMins",
        "QOSMaxCpuMinutesPerJobLimit QOSMaxMemoryMinutesPerJob QOSMaxNodeMinutesPerJob"
        " QOSMaxBillingMinutesPerJob QOSMaxGRESMinutesPerJob",
    ),
    LimitKind.MAX_TRES_PER_USER: (
        "MaxTRESPU",
        "QOSMaxCpuPerUserLimit QOSMaxMemoryPerUser QOSMaxNodePerUserLimit"
        " QOSMaxBillingPerUser QOSMaxGRESPerUser",
    ),
    LimitKind.MAX_TRES_PER_ACCOUNT: (
        "MaxTRESPA",
        "MaxCpuPerAccount MaxMemoryPerAccount MaxNodePerAccount MaxBillingPerAccount"
        " MaxGRESPerAccount",
    ),
    LimitKind.MIN_TRES: (
        "MinTRES",
        "QOSMinCpuNotSatisfied QOSMinMemory QOSMinNode QOSMinBilling QOSMinGRES",
    ),
    LimitKind.MAX_TRES_RUN_MINS_PER_USER: (
        "MaxTRESRunMinsPU",
        "MaxCpuRunMinsPerUser MaxMemoryRunMinsPerUser MaxNodeRunMinsPerUser"
        " MaxBillingRunMinsPerUser MaxGRESRunMinsPerUser",
    ),
    LimitKind.MAX_TRES_RUN_MINS_PER_ACCOUNT: (
        "MaxTRESRunMinsPA",
        "MaxCpuRunMinsPerAccount MaxMemoryRunMinsPerAccount MaxNodeRunMinsPerAccount"
        " MaxBillingRunMinsPerAccount MaxGRESRunMinsPerAccount",
    ),
    LimitKind.MAX_JOBS_PER_USER: ("MaxJobsPU", "QOSMaxJobsPerUserLimit"),
    LimitKind.MAX_JOBS_PER_ACCOUNT: ("MaxJobsPA", "MaxJobsPerAccount"),
    LimitKind.MAX_WALL: ("MaxWall", "QOSMaxWallDurationPerJobLimit"),
}
OWNERS = {
    "Account=root UserName= ": (ASSOC, "of account root", OF_GROUP),
    "Account=wg_bio UserName= ": (ASSOC, "of account wg_bio", OF_GROUP),
    "Account=wg_bio UserName=carol(60603) ": (
        ASSOC,
        "of user carol, account wg_bio",
        OF_GROUP | OF_USER,
    ),
    "normal": (QOS, "normal", OF_QOS),
    "high": (QOS, "high", OF_QOS),
}
"""By the beginning of a line of assoc_mgr, or the name of a QOS; `high` is the partition's."""


class SetLimit(NamedTuple):
    """Limit of an owner that holds the job; `asked` is what the job asks for of it, and `reason`
    is that of squeue.
    """

    owner: str
    kind: LimitKind
    tres: str | None
    limit: int
    asked: int
    reason: str = ""


def limits() -> Iterator[SetLimit]:
    """Yield the highest limit that holds the job (of MinTRES the lowest), for each owner, kind and
    TRES.
    """
    for name, (_, _, kinds) in OWNERS.items():
        for kind, (_, reasons) in kinds.items():
            if kind in (LimitKind.GRP_WALL, LimitKind.MAX_WALL):
                yield SetLimit(name, kind, None, MINUTES - 1, MINUTES, reasons)
            elif "TRES" not in kind.value:
                yield SetLimit(name, kind, None, 0, 1, reasons)
            else:
                for tres, code in zip(ASKED, reasons.split(), strict=True):
                    asked = ASKED[tres]
                    if kind is LimitKind.MAX_TRES_PER_NODE:
                        asked //= NODES
                    elif "Mins" in kind.value:
                        asked *= MINUTES
                    limit = asked + 1 if kind is LimitKind.MIN_TRES else asked - 1
                    yield SetLimit(name, kind, tres, limit, asked, code)


def texts_with(limit: SetLimit) -> Mapping[str, str]:
    """Return the recorded output with this limit and one job first in the queue."""
    texts = {name: (QUEUE / f"{name}.txt").read_text() for name in COMMANDS}
    texts["config"] = (
        texts["config"].replace("limits,qos", "limits,qos,safe").replace("22.05.8", RELEASE)
    )
    texts["partitions"] = re.sub(
        r"(?m)^(PartitionName=gpu .*) QoS=N/A", r"\1 QoS=high", texts["partitions"]
    )
    texts["jobs"] = re.sub(
        rf"(?m)^(JobId={JOB} .*) Priority=\d+ (.*) Partition=gpu,gpu-t4 ",
        r"\1 Priority=4000000000 \2 Partition=gpu ",
        texts["jobs"],
    )
    owner, _, fields = OWNERS[limit.owner]
    column, _ = fields[limit.kind]
    value = str(limit.limit) if limit.tres is None else f"{limit.tres}={limit.limit}"
    if owner == ASSOC:
        start = f"ClusterName=lab {limit.owner}"
        texts["limits"] = re.sub(
            rf"(?m)^({re.escape(start)}.*) {column}=\S*", rf"\1 {column}={value}", texts["limits"]
        )
    else:
        if limit.kind in (LimitKind.GRP_WALL, LimitKind.MAX_WALL):
            value = f"00:{limit.limit:02}:00"
        rows = [line.split("|") for line in texts["qos-limits"].splitlines()]
        for row in rows:
            if row[0] == limit.owner:
                row[QOS_LIMITS.columns.index(column)] = value
        texts["qos-limits"] = "".join(f"{'|'.join(row)}\n" for row in rows)
    return texts


def explained(texts: Mapping[str, str]) -> Explanation:
    answers, unreadable = read_answers(texts)
    assert unreadable == ()
    queue = build_queue(answers)
    return explain_on_nodes(queue.snapshot, queue.parameters, JOB, queue.now, allowed=None)


@pytest.mark.parametrize("limit", list(limits()), ids=lambda limit: f"{limit.owner} {limit.reason}")
def test_every_limit_is_named_with_its_figures(limit: SetLimit) -> None:
    owner, name, _ = OWNERS[limit.owner]
    answer = explained(texts_with(limit))
    assert answer.code == limit.reason
    (check,) = (check for check in answer.checks if check.what == "limits in gpu")
    assert not check.ok
    where = f"{'association' if owner == ASSOC else 'QOS'} {name} allows "
    assert check.evidence.startswith(f"{answer.code}: {where}")
    assert f" {limit.limit:,} " in check.evidence
    assert f"({limit.kind.value})" in check.evidence
    assert check.evidence.endswith(f"; this job asks for {limit.asked:,}")
    assert answer.headline == (
        f"Job {JOB} waits: {check.evidence.partition(': ')[2]} ({answer.code})."
    )


@pytest.mark.parametrize(
    "kind", [LimitKind.MAX_TRES_RUN_MINS_PER_USER, LimitKind.MAX_TRES_RUN_MINS_PER_ACCOUNT]
)
def test_run_minutes_of_a_user_or_account_hold_no_job_before_24_05(kind: LimitKind) -> None:
    texts = texts_with(SetLimit("normal", kind, "cpu", 0, 0))
    assert "CpuRunMins" in explained(texts).code
    earlier = {**texts, "config": texts["config"].replace(RELEASE, "23.11.10")}
    assert explained(earlier).code == "Resources"


def test_figures_of_running_jobs_are_named() -> None:
    """The running jobs of the account have 3 GPUs and 45 billing units, 36 of them until 18:31."""
    account = "Account=wg_bio UserName= "
    gpus = explained(texts_with(SetLimit(account, LimitKind.GRP_TRES, "gres/gpu", 10, 8)))
    assert gpus.headline == (
        "Job 16 waits: association of account wg_bio allows 10 gres/gpu (GrpTRES), 3 in use;"
        " this job asks for 8 (AssocGrpGRES)."
    )
    fence = explained(texts_with(SetLimit(account, LimitKind.GRP_TRES_MINS, "billing", 6_000, 0)))
    assert fence.headline == (
        "Job 16 waits: association of account wg_bio allows 6,000 billing unit-minutes"
        " (GrpTRESMins), 2,578 reserved by running jobs; this job asks for 5,760"
        " (AssocGrpBillingMinutes)."
    )
