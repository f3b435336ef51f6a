"""Slurm's reasons of jobs that a limit holds: by the owner of the limit, what it counts and the
TRES (slurm-rules.md, "Reasons").
"""

from __future__ import annotations

from enum import Enum


class LimitKind(Enum):
    """Kind of a limit. The value is its name in sacctmgr."""

    GRP_TRES = "GrpTRES"
    GRP_TRES_MINS = "GrpTRESMins"
    GRP_TRES_RUN_MINS = "GrpTRESRunMins"
    MAX_TRES = "MaxTRES"
    MAX_TRES_PER_NODE = "MaxTRESPerNode"
    MAX_TRES_MINS = "MaxTRESMins"
    MIN_TRES = "MinTRES"
    MAX_TRES_PER_USER = "MaxTRESPerUser"
    MAX_TRES_PER_ACCOUNT = "MaxTRESPerAccount"
    MAX_TRES_RUN_MINS_PER_USER = "MaxTRESRunMinsPerUser"
    MAX_TRES_RUN_MINS_PER_ACCOUNT = "MaxTRESRunMinsPerAccount"
    GRP_JOBS = "GrpJobs"
    GRP_WALL = "GrpWall"
    MAX_JOBS = "MaxJobs"
    MAX_JOBS_PER_USER = "MaxJobsPerUser"
    MAX_JOBS_PER_ACCOUNT = "MaxJobsPerAccount"
    MAX_WALL = "MaxWall"
    GRP_SUBMIT_JOBS = "GrpSubmitJobs"
    MAX_SUBMIT_JOBS = "MaxSubmitJobs"
    MAX_SUBMIT_JOBS_PER_USER = "MaxSubmitJobsPerUser"
    MAX_SUBMIT_JOBS_PER_ACCOUNT = "MaxSubmitJobsPerAccount"
    GRP_JOBS_ACCRUE = "GrpJobsAccrue"
    MAX_JOBS_ACCRUE = "MaxJobsAccrue"
    MAX_JOBS_ACCRUE_PER_USER = "MaxJobsAccruePerUser"
    MAX_JOBS_ACCRUE_PER_ACCOUNT = "MaxJobsAccruePerAccount"


ACCRUAL_KINDS = frozenset(
    {
        LimitKind.GRP_JOBS_ACCRUE,
        LimitKind.MAX_JOBS_ACCRUE,
        LimitKind.MAX_JOBS_ACCRUE_PER_USER,
        LimitKind.MAX_JOBS_ACCRUE_PER_ACCOUNT,
    }
)
"""Limits on the number of jobs that age at once. They hold no job."""
ASSOC, QOS = "Assoc", "QOS"

_WITHOUT_TRES = {
    (ASSOC, LimitKind.GRP_JOBS): "AssocGrpJobsLimit",
    (ASSOC, LimitKind.GRP_WALL): "AssocGrpWallLimit",
    (ASSOC, LimitKind.MAX_JOBS): "AssocMaxJobsLimit",
    (ASSOC, LimitKind.MAX_WALL): "AssocMaxWallDurationPerJobLimit",
    (ASSOC, LimitKind.GRP_SUBMIT_JOBS): "AssocGrpSubmitJobsLimit",
    (ASSOC, LimitKind.MAX_SUBMIT_JOBS): "AssocMaxSubmitJobLimit",
    (QOS, LimitKind.GRP_JOBS): "QOSGrpJobsLimit",
    (QOS, LimitKind.GRP_WALL): "QOSGrpWallLimit",
    (QOS, LimitKind.MAX_JOBS_PER_USER): "QOSMaxJobsPerUserLimit",
    (QOS, LimitKind.MAX_JOBS_PER_ACCOUNT): "MaxJobsPerAccount",
    (QOS, LimitKind.MAX_WALL): "QOSMaxWallDurationPerJobLimit",
    (QOS, LimitKind.GRP_SUBMIT_JOBS): "QOSGrpSubmitJobsLimit",
    (QOS, LimitKind.MAX_SUBMIT_JOBS_PER_USER): "QOSMaxSubmitJobPerUserLimit",
    (QOS, LimitKind.MAX_SUBMIT_JOBS_PER_ACCOUNT): "MaxSubmitJobsPerAccount",
}

# {0} is the owner, {1} the TRES.
_PATTERNS = {
    LimitKind.GRP_TRES: "{0}Grp{1}",
    LimitKind.GRP_TRES_MINS: "{0}Grp{1}Minutes",
    LimitKind.GRP_TRES_RUN_MINS: "{0}Grp{1}RunMinutes",
    LimitKind.MAX_TRES: "{0}Max{1}PerJob",
    LimitKind.MAX_TRES_PER_NODE: "{0}Max{1}PerNode",
    LimitKind.MAX_TRES_MINS: "{0}Max{1}MinutesPerJob",
    LimitKind.MIN_TRES: "{0}Min{1}",
    LimitKind.MAX_TRES_PER_USER: "{0}Max{1}PerUser",
    LimitKind.MAX_TRES_PER_ACCOUNT: "Max{1}PerAccount",
    LimitKind.MAX_TRES_RUN_MINS_PER_USER: "Max{1}RunMinsPerUser",
    LimitKind.MAX_TRES_RUN_MINS_PER_ACCOUNT: "Max{1}RunMinsPerAccount",
}

# Names that are older than TRES, and one that Slurm prints wrongly to this day.
_ODD = {
    "{0}GrpCpu": "{0}GrpCpuLimit",
    "{0}GrpMem": "{0}GrpMemLimit",
    "{0}GrpMemory": "{0}GrpMemLimit",
    "{0}GrpNode": "{0}GrpNodeLimit",
    "{0}GrpCpuMinutes": "{0}GrpCPUMinutesLimit",
    "{0}GrpCpuRunMinutes": "{0}GrpCPURunMinutesLimit",
    "{0}MaxCpuPerJob": "{0}MaxCpuPerJobLimit",
    "{0}MaxNodePerJob": "{0}MaxNodePerJobLimit",
    "{0}MaxCpuMinutesPerJob": "{0}MaxCpuMinutesPerJobLimit",
    "{0}MaxCpuPerUser": "{0}MaxCpuPerUserLimit",
    "{0}MaxNodePerUser": "{0}MaxNodePerUserLimit",
    "{0}MinCpu": "{0}MinCpuNotSatisfied",
    "{0}MaxNodePerNode": "{0}MaxUnknownPerNode",
    "{0}MaxLicensePerNode": "{0}MaxUnknownPerNode",
}
_MISPRINTED = {"QOSMaxBBMinutesPerJob": "AssocMaxBBMinutesPerJob"}

_PLAIN = {"cpu": "Cpu", "energy": "Energy", "node": "Node", "billing": "Billing"}
_NAMED = {"gres/": "GRES", "license/": "License", "bb/": "BB"}


def reason(owner: str, kind: LimitKind, tres: str | None = None) -> str:
    """Return squeue's reason.

    Args:
        owner: ASSOC or QOS.
        tres: TRES that is limited; None: the limit is on no TRES.
    """
    if tres is None:
        return _WITHOUT_TRES[owner, kind]
    pattern = _PATTERNS[kind].replace("{1}", _word(tres, owner))
    name = _ODD.get(pattern, pattern).format(owner)
    return _MISPRINTED.get(name, name)


def _word(tres: str, owner: str) -> str:
    if tres == "mem":
        return "Mem" if owner == ASSOC else "Memory"
    return _PLAIN.get(tres) or next(
        (word for kind, word in _NAMED.items() if tres.startswith(kind)), "Unknown"
    )
