"""Every limit of sacctmgr that holds a job, with the reason of squeue; and the figures by which its
explanation names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fairbank.priority.limits.reasons import LimitKind
from fairbank.scheduling.explain.answer import Explanation

MINUTES, NODES = 60, 2
ASKED = {"cpu": 2, "mem": 2_000, "node": NODES, "billing": 96, "gres/gpu": 8}
"""Request of two nodes with all GPUs of partition gpu, as slurmctld prints it."""

Kinds = dict[LimitKind, tuple[str, str]]

# By kind: the column of sacctmgr or the field of scontrol show assoc_mgr, and Slurm's reasons for
# the TRES in the order of ASKED.
OF_GROUP: Kinds = {
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
OF_USER: Kinds = {
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
OF_QOS: Kinds = {
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


class SetLimit(NamedTuple):
    """Limit of an owner that holds the job; `requested` is what the job asks for of it, and
    `reason` is that of squeue.
    """

    owner: str
    kind: LimitKind
    tres: str | None
    limit: int
    requested: int
    reason: str = ""


def limits_of(owner: str, kinds: Kinds) -> Iterator[SetLimit]:
    """Yield the limit that just holds the job (of MinTRES the lowest), for each kind and TRES."""
    for kind, (_, reasons) in kinds.items():
        if kind in (LimitKind.GRP_WALL, LimitKind.MAX_WALL):
            yield SetLimit(owner, kind, None, MINUTES - 1, MINUTES, reasons)
        elif "TRES" not in kind.value:
            yield SetLimit(owner, kind, None, 0, 1, reasons)
        else:
            for tres, code in zip(ASKED, reasons.split(), strict=True):
                amount = ASKED[tres]
                if kind is LimitKind.MAX_TRES_PER_NODE:
                    amount //= NODES
                elif "Mins" in kind.value:
                    amount *= MINUTES
                limit = amount + 1 if kind is LimitKind.MIN_TRES else amount - 1
                yield SetLimit(owner, kind, tres, limit, amount, code)


def assert_named(answer: Explanation, limit: SetLimit, owner: str) -> None:
    """Assert that the explanation names this limit, with its figures."""
    assert answer.code == limit.reason
    (check,) = (check for check in answer.checks if check.what == "limits in gpu")
    assert not check.ok
    assert check.evidence.startswith(f"{answer.code}: {owner} allows ")
    assert f" {limit.limit:,} " in check.evidence
    assert f"({limit.kind.value})" in check.evidence
    assert check.evidence.endswith(f"; this job asks for {limit.requested:,}")
    assert answer.headline == (
        f"Job {answer.number} waits: {check.evidence.partition(': ')[2]} ({answer.code})."
    )
