"""Slurm's reasons why a job waits or ended, by number and name, and a sentence for each.

Source: docs/reference/slurm-rules.md, "Reasons".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from fairbank.core.errors import NotFound


def explain_reason(name: str) -> str:
    """What it means that a job waits with this reason, to somebody who met it for the first time. Raises NotFound."""
    if name in _PLAIN:
        return _PLAIN[name]
    match = _LIMIT.fullmatch(name)
    if match is None or (match["what"], match["over"] or "") not in _LIMITS:
        raise NotFound(
            f"{name[:64]!r} is not a reason of Slurm",
            field="reason",
            remedy="one that squeue prints, such as Resources",
        )
    what, few = _TRES[match["tres"]]
    whose = (
        "the association of this user and account, or an account above it,"
        if match["owner"] == "Assoc"
        else "this QOS"
    )
    return _LIMITS[match["what"], match["over"] or ""].format(
        what=what, few=few, whose=whose, minutes=_minutes(match["tres"])
    )


def _minutes(tres: str) -> str:
    return {
        "Cpu": "CPU-minutes",
        "CPU": "CPU-minutes",
        "Node": "node-minutes",
        "Billing": "billing units times minutes",
    }.get(tres, f"minutes of {_TRES[tres][0]}")


# What a limit counts: the word for it, and how too little of it is said.
_TRES: Mapping[str, tuple[str, str]] = {
    "Cpu": ("CPUs", "few"),
    "CPU": ("CPUs", "few"),
    "Mem": ("memory", "little"),
    "Memory": ("memory", "little"),
    "Node": ("nodes", "few"),
    "Energy": ("energy", "little"),
    "GRES": ("GPUs or other devices", "few"),
    "License": ("licences", "few"),
    "BB": ("burst buffer", "little"),
    "Billing": ("billing units", "few"),
    "Unknown": ("some other resource", "little"),
}
_LIMIT = re.compile(
    r"(?P<owner>Assoc|QOS)?(?P<what>Grp|Max|Min)(?P<tres>Cpu|CPU|Mem|Memory|Node|Energy|GRES|License|BB|Billing|Unknown)"
    r"(?P<over>Minutes|RunMinutes|PerJob|MinutesPerJob|PerNode|PerUser|PerAccount|RunMinsPerUser|RunMinsPerAccount)?(Limit|NotSatisfied)?"
)
_LIMITS: Mapping[tuple[str, str], str] = {
    (
        "Grp",
        "",
    ): "All jobs of {whose} together may hold only so much at a time, and those that run leave too {few} {what} for this one.",
    (
        "Grp",
        "Minutes",
    ): "All jobs of {whose} together may use only so many {minutes}, and what was used, with what running jobs may yet use, "
    "leaves too few for the whole time limit of this one.",
    (
        "Grp",
        "RunMinutes",
    ): "Running jobs of {whose} together may have only so many {minutes} before them, and this one would go beyond it.",
    ("Max", "PerJob"): "A job of {whose} may hold only so much, and this one asks for more {what}.",
    (
        "Max",
        "MinutesPerJob",
    ): "A job of {whose} may use only so many {minutes}, and what this one asks for, times its time limit, is more.",
    (
        "Max",
        "PerNode",
    ): "A job of {whose} may hold only so much of each node, and this one asks for more {what}.",
    (
        "Max",
        "PerUser",
    ): "A user's jobs under {whose} together may hold only so much, and those that run leave too {few} {what} for this one.",
    (
        "Max",
        "PerAccount",
    ): "An account's jobs under {whose} together may hold only so much, and those that run leave too {few} {what} for this one.",
    (
        "Max",
        "RunMinsPerUser",
    ): "A user's running jobs under {whose} together may have only so many {minutes} before them, and this one would go beyond it.",
    (
        "Max",
        "RunMinsPerAccount",
    ): "An account's running jobs under {whose} together may have only so many {minutes} before them, and this one would go beyond it.",
    (
        "Min",
        "",
    ): "A job under {whose} must ask for at least so much, and this one asks for too {few} {what}.",
}
_PLAIN: Mapping[str, str] = {
    "None": "No pass of the scheduler has come to the job yet.",
    "Priority": "Somebody ahead of it in its partition does not fit yet, and nodes are kept for that job.",
    "Dependency": "A job that it depends on has not come as far as it must.",
    "Resources": "It was looked at, and too few nodes that would do are free.",
    "PartitionNodeLimit": "It asks for more nodes, or for fewer, than its partition gives to a job.",
    "PartitionTimeLimit": "Its time limit is longer than its partition allows.",
    "PartitionDown": "Its partition starts no jobs at present.",
    "PartitionInactive": "Its partition is inactive: it takes no jobs and starts none.",
    "JobHeldAdmin": "Staff hold the job back; only they let it go.",
    "BeginTime": "The time at which it may start at the earliest has not come: as it was submitted, or since it was requeued.",
    "Licenses": "Too few of the licences that it asks for are free.",
    "AssociationJobLimit": "Its association has as many jobs as it may have at a time.",
    "AssociationResourceLimit": "Its association holds as much as it may hold at a time.",
    "AssociationTimeLimit": "Its association has used up its time, or allows no job as long as this one.",
    "Reservation": "The reservation that it asks for has not begun, or has no room for it yet.",
    "ReqNodeNotAvail": "Nodes that it needs are down, drained, not answering, or reserved, perhaps for maintenance before it would end.",
    "JobHeldUser": "Its owner holds it back; scontrol release lets it go.",
    "NvidiaImexChannels": "No channel of NVIDIA's IMEX is free on the nodes that would do.",
    "SchedDefer": "It asked to start at once, and the cluster starts no job at the moment at which it is submitted.",
    "NodeDown": "A node that it needs is down.",
    "BadConstraints": "No nodes of the cluster are as it asks, whoever else is there: it will never start as it is.",
    "SystemFailure": "Slurm itself failed: its disk, its network or a plug-in.",
    "JobLaunchFailure": "It could not be launched: a prolog failed, its folder was not there, or its owner is not known on a node.",
    "NonZeroExitCode": "It ended with an exit code other than 0.",
    "TimeLimit": "It ran until its time limit.",
    "InactiveLimit": "It was ended because it did nothing for longer than the cluster allows.",
    "InvalidAccount": "Its account is not known any more, or its user has no part in it.",
    "InvalidQOS": "Its QOS is not known any more, or its association may not use it.",
    "QOSUsageThreshold": "The usage of its association is so high that its QOS starts no jobs of it.",
    "QOSJobLimit": "Its QOS has as many jobs as it may have at a time.",
    "QOSResourceLimit": "Its QOS holds as much as it may hold at a time.",
    "QOSTimeLimit": "Its QOS has used up its time, or allows no job as long as this one.",
    "RaisedSignal": "It was ended by a signal.",
    "Cleaning": "It was requeued, and its last run is still being cleaned up.",
    "Prolog": "The prolog of its nodes is running.",
    "QOSNotAllowed": "Its partition does not take jobs of its QOS.",
    "AccountNotAllowed": "Its partition does not take jobs of its account.",
    "DependencyNeverSatisfied": "A job that it depends on ended otherwise than it must: it will never start as it is.",
    "QOSGrpJobsLimit": "As many jobs of this QOS run as may at a time.",
    "QOSGrpSubmitJobsLimit": "As many jobs of this QOS wait and run as may at a time.",
    "QOSGrpWallLimit": "The jobs of this QOS together have used the hours that they may run.",
    "QOSMaxWallDurationPerJobLimit": "Its time limit is longer than this QOS allows.",
    "QOSMaxJobsPerUserLimit": "Its user has as many jobs running under this QOS as a user may.",
    "QOSMaxSubmitJobPerUserLimit": "Its user has as many jobs waiting and running under this QOS as a user may.",
    "AssocGrpJobsLimit": "As many jobs of this association, or of an account above it, run as may at a time.",
    "AssocGrpSubmitJobsLimit": "As many jobs of this association, or of an account above it, wait and run as may at a time.",
    "AssocGrpWallLimit": "The jobs of this association, or of an account above it, have used the hours that they may run.",
    "AssocMaxJobsLimit": "As many jobs of this association run as it may have at a time.",
    "AssocMaxWallDurationPerJobLimit": "Its time limit is longer than its association allows.",
    "AssocMaxSubmitJobLimit": "As many jobs of this association wait and run as it may have.",
    "JobHoldMaxRequeue": "It was requeued as often as is allowed, and is held now; only staff let it go.",
    "JobArrayTaskLimit": "As many tasks of its array run as may at the same time.",
    "BurstBufferResources": "Too little burst buffer is free.",
    "BurstBufferStageIn": "Its files are being copied into the burst buffer.",
    "BurstBufferOperation": "The burst buffer could not do what the job asked of it; it is held.",
    "DeadLine": "It could not end by its deadline any more.",
    "MaxJobsPerAccount": "Its account has as many jobs running under this QOS as an account may.",
    "MaxSubmitJobsPerAccount": "Its account has as many jobs waiting and running under this QOS as an account may.",
    "PartitionConfig": "Its partition is set up so that it cannot run there: the nodes that it needs belong to none, or are too few.",
    "AccountingPolicy": "A limit of accounting that has no name of its own.",
    "FedJobLock": "Another cluster of the federation is about to start it.",
    "OutOfMemory": "It needed more memory than it had asked for.",
    "MaxMemPerLimit": "It asks for more memory of a node or CPU than its partition gives.",
    "ReservationDeleted": "The reservation that it asks for is not there any more; it is held.",
    "ReservationInvalid": "It may not use the reservation that it asks for, or that is over; it is held.",
    "Constraints": "The nodes that are as its constraint says are not available at present.",
    "MaxPoweredUpNodes": "As many nodes are powered up as may be at a time, and it needs one more.",
    "MpiPortsBusy": "Too few of the network ports that its steps need are free on the nodes that would do.",
}

_IN_ORDER = (
    "None Priority Dependency Resources PartitionNodeLimit PartitionTimeLimit PartitionDown PartitionInactive JobHeldAdmin BeginTime "
    "Licenses AssociationJobLimit AssociationResourceLimit AssociationTimeLimit Reservation ReqNodeNotAvail JobHeldUser "
    "NvidiaImexChannels SchedDefer PartitionDown NodeDown BadConstraints SystemFailure JobLaunchFailure NonZeroExitCode TimeLimit "
    "InactiveLimit InvalidAccount InvalidQOS QOSUsageThreshold QOSJobLimit QOSResourceLimit QOSTimeLimit RaisedSignal - Cleaning Prolog "
    "QOSNotAllowed AccountNotAllowed DependencyNeverSatisfied QOSGrpCpuLimit QOSGrpCPUMinutesLimit QOSGrpCPURunMinutesLimit "
    "QOSGrpJobsLimit QOSGrpMemLimit QOSGrpNodeLimit QOSGrpSubmitJobsLimit QOSGrpWallLimit QOSMaxCpuPerJobLimit "
    "QOSMaxCpuMinutesPerJobLimit QOSMaxNodePerJobLimit QOSMaxWallDurationPerJobLimit QOSMaxCpuPerUserLimit QOSMaxJobsPerUserLimit "
    "QOSMaxNodePerUserLimit QOSMaxSubmitJobPerUserLimit QOSMinCpuNotSatisfied AssocGrpCpuLimit AssocGrpCPUMinutesLimit "
    "AssocGrpCPURunMinutesLimit AssocGrpJobsLimit AssocGrpMemLimit AssocGrpNodeLimit AssocGrpSubmitJobsLimit AssocGrpWallLimit "
    "AssocMaxJobsLimit AssocMaxCpuPerJobLimit AssocMaxCpuMinutesPerJobLimit AssocMaxNodePerJobLimit AssocMaxWallDurationPerJobLimit "
    "AssocMaxSubmitJobLimit JobHoldMaxRequeue JobArrayTaskLimit BurstBufferResources BurstBufferStageIn BurstBufferOperation - - "
    "AssocGrpUnknown AssocGrpUnknownMinutes AssocGrpUnknownRunMinutes AssocMaxUnknownPerJob AssocMaxUnknownPerNode "
    "AssocMaxUnknownMinutesPerJob AssocMaxCpuPerNode AssocGrpMemMinutes AssocGrpMemRunMinutes AssocMaxMemPerJob AssocMaxMemPerNode "
    "AssocMaxMemMinutesPerJob AssocGrpNodeMinutes AssocGrpNodeRunMinutes AssocMaxNodeMinutesPerJob AssocGrpEnergy AssocGrpEnergyMinutes "
    "AssocGrpEnergyRunMinutes AssocMaxEnergyPerJob AssocMaxEnergyPerNode AssocMaxEnergyMinutesPerJob AssocGrpGRES AssocGrpGRESMinutes "
    "AssocGrpGRESRunMinutes AssocMaxGRESPerJob AssocMaxGRESPerNode AssocMaxGRESMinutesPerJob AssocGrpLicense AssocGrpLicenseMinutes "
    "AssocGrpLicenseRunMinutes AssocMaxLicensePerJob AssocMaxLicenseMinutesPerJob AssocGrpBB AssocGrpBBMinutes AssocGrpBBRunMinutes "
    "AssocMaxBBPerJob AssocMaxBBPerNode AssocMaxBBMinutesPerJob QOSGrpUnknown QOSGrpUnknownMinutes QOSGrpUnknownRunMinutes "
    "QOSMaxUnknownPerJob QOSMaxUnknownPerNode QOSMaxUnknownPerUser QOSMaxUnknownMinutesPerJob QOSMinUnknown QOSMaxCpuPerNode "
    "QOSGrpMemoryMinutes QOSGrpMemoryRunMinutes QOSMaxMemoryMinutesPerJob QOSMaxMemoryPerJob QOSMaxMemoryPerNode QOSMaxMemoryPerUser "
    "QOSMinMemory QOSGrpEnergy QOSGrpEnergyMinutes QOSGrpEnergyRunMinutes QOSMaxEnergyPerJob QOSMaxEnergyPerNode QOSMaxEnergyPerUser "
    "QOSMaxEnergyMinutesPerJob QOSMinEnergy QOSGrpNodeMinutes QOSGrpNodeRunMinutes QOSMaxNodeMinutesPerJob QOSMinNode QOSGrpGRES "
    "QOSGrpGRESMinutes QOSGrpGRESRunMinutes QOSMaxGRESPerJob QOSMaxGRESPerNode QOSMaxGRESPerUser QOSMaxGRESMinutesPerJob QOSMinGRES "
    "QOSGrpLicense QOSGrpLicenseMinutes QOSGrpLicenseRunMinutes QOSMaxLicensePerJob QOSMaxLicensePerUser QOSMaxLicenseMinutesPerJob "
    "QOSMinLicense QOSGrpBB QOSGrpBBMinutes QOSGrpBBRunMinutes QOSMaxBBPerJob QOSMaxBBPerNode QOSMaxBBPerUser AssocMaxBBMinutesPerJob "
    "QOSMinBB DeadLine MaxBBPerAccount MaxCpuPerAccount MaxEnergyPerAccount MaxGRESPerAccount MaxNodePerAccount MaxLicensePerAccount "
    "MaxMemoryPerAccount MaxUnknownPerAccount MaxJobsPerAccount MaxSubmitJobsPerAccount PartitionConfig AccountingPolicy FedJobLock "
    "OutOfMemory MaxMemPerLimit AssocGrpBilling AssocGrpBillingMinutes AssocGrpBillingRunMinutes AssocMaxBillingPerJob "
    "AssocMaxBillingPerNode AssocMaxBillingMinutesPerJob QOSGrpBilling QOSGrpBillingMinutes QOSGrpBillingRunMinutes QOSMaxBillingPerJob "
    "QOSMaxBillingPerNode QOSMaxBillingPerUser QOSMaxBillingMinutesPerJob MaxBillingPerAccount QOSMinBilling ReservationDeleted "
    "ReservationInvalid Constraints MaxBBRunMinsPerAccount MaxBillingRunMinsPerAccount MaxCpuRunMinsPerAccount "
    "MaxEnergyRunMinsPerAccount MaxGRESRunMinsPerAccount MaxNodeRunMinsPerAccount MaxLicenseRunMinsPerAccount "
    "MaxMemoryRunMinsPerAccount MaxUnknownRunMinsPerAccount MaxBBRunMinsPerUser MaxBillingRunMinsPerUser MaxCpuRunMinsPerUser "
    "MaxEnergyRunMinsPerUser MaxGRESRunMinsPerUser MaxNodeRunMinsPerUser MaxLicenseRunMinsPerUser MaxMemoryRunMinsPerUser "
    "MaxUnknownRunMinsPerUser MaxPoweredUpNodes MpiPortsBusy"
).split()
NAMES = {number: name for number, name in enumerate(_IN_ORDER) if name != "-"}
"""By number. Three numbers are free, and PartitionDown has two."""
