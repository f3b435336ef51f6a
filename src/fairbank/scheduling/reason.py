"""Slurm's reasons of jobs, by number and name, with a sentence each (slurm-rules.md, "Reasons")."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fairbank.core.errors import NotFound


def explain_reason(name: str) -> str:
    """Return a sentence that explains the reason to a user. Raises NotFound."""
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


def advise_on_reason(name: str) -> str:
    """Return what a user can do about a reason of Slurm, with the command to type."""
    if name in _ADVICE:
        return _ADVICE[name]
    for start, table in (("Assoc", "assoc"), ("QOS", "qos")):
        if name.startswith(start):
            return f"wait, or request less; the limits: sacctmgr show {table}"
    return "scontrol show job JOBID shows all that Slurm knows of the job"


def _minutes(tres: str) -> str:
    return {
        "Cpu": "CPU-minutes",
        "CPU": "CPU-minutes",
        "Node": "node-minutes",
        "Billing": "billing units times minutes",
    }.get(tres, f"minutes of {_TRES[tres][0]}")


_ADVICE: Mapping[str, str] = {
    "Priority": "fairbank queue --all shows the jobs ahead; a shorter limit may start it sooner",
    "Resources": "wait, or request less: fairbank why JOBID names what would start sooner",
    "Dependency": "scontrol show job JOBID shows on which jobs it depends",
    "DependencyNeverSatisfied": "scancel JOBID; submit it again without that dependency",
    "PartitionTimeLimit": "a shorter limit: scontrol update jobid=JOBID timelimit=TIME; the longest"
    " that each partition allows: sinfo -o '%P %l'",
    "PartitionNodeLimit": "another number of nodes; what each partition allows: sinfo -o '%P %s'",
    "PartitionDown": "another partition: scontrol update jobid=JOBID partition=PARTITION",
    "PartitionInactive": "another partition: scontrol update jobid=JOBID partition=PARTITION",
    "JobHeldUser": "scontrol release JOBID",
    "JobHeldAdmin": "ask the staff of the centre to release it",
    "BeginTime": "an earlier start: scontrol update jobid=JOBID starttime=now",
    "Licenses": "scontrol show licenses shows how many are free",
    "Reservation": "scontrol show reservation shows when it begins",
    "ReqNodeNotAvail": "sinfo -R shows why nodes are down, scontrol show reservation what is"
    " reserved; a job that ends before a maintenance may start: a shorter time limit",
    "BadConstraints": "sinfo -o '%n %f %c %m %G' shows the features and size of each node",
    "JobLaunchFailure": "scontrol release JOBID if it is held; the state of its nodes: sinfo -R",
    "InvalidAccount": "another account: scontrol update jobid=JOBID account=ACCOUNT",
    "InvalidQOS": "another QOS: scontrol update jobid=JOBID qos=QOS",
    "TimeLimit": "a longer limit at the next submission: sbatch -t TIME",
    "OutOfMemory": "more memory at the next submission: sbatch --mem SIZE",
}

# What a limit counts: the word for it, and how too little of it is said.
_TRES: Mapping[str, tuple[str, str]] = {
    "Cpu": ("CPUs", "few"),
    "CPU": ("CPUs", "few"),
    "Mem": ("memory", "little"),
    "Memory": ("memory", "little"),
    "Node": ("nodes", "few"),
    "Energy": ("energy", "little"),
    "GRES": ("GPUs or other devices", "few"),
    "License": ("licenses", "few"),
    "BB": ("burst buffer", "little"),
    "Billing": ("billing units", "few"),
    "Unknown": ("some other resource", "little"),
}
_LIMIT = re.compile(
    r"(?P<owner>Assoc|QOS)?(?P<what>Grp|Max|Min)"
    r"(?P<tres>Cpu|CPU|Mem|Memory|Node|Energy|GRES|License|BB|Billing|Unknown)"
    r"(?P<over>Minutes|RunMinutes|PerJob|MinutesPerJob|PerNode|PerUser|PerAccount"
    r"|RunMinsPerUser|RunMinsPerAccount)?(Limit|NotSatisfied)?"
)
_LIMITS: Mapping[tuple[str, str], str] = {
    ("Grp", ""): (
        "All running jobs of {whose} together have reached a maximum, which leaves too {few} {what}"
        " for this job."
    ),
    ("Grp", "Minutes"): (
        "All jobs of {whose} together may use a maximum of {minutes}. The used ones and those that"
        " running jobs may still use leave too few for the time limit of this job."
    ),
    ("Grp", "RunMinutes"): (
        "The running jobs of {whose} together may have a maximum of remaining {minutes}, and this"
        " job would exceed it."
    ),
    ("Max", "PerJob"): "A job of {whose} may have a maximum of {what}, and this job requests more.",
    ("Max", "MinutesPerJob"): (
        "A job of {whose} may use a maximum of {minutes}, and the request of this job times its"
        " time limit is more."
    ),
    (
        "Max",
        "PerNode",
    ): "A job of {whose} may have a maximum of {what} on each node, and this job requests more.",
    ("Max", "PerUser"): (
        "The running jobs of a user under {whose} have reached a maximum, which leaves too {few}"
        " {what} for this job."
    ),
    ("Max", "PerAccount"): (
        "The running jobs of an account under {whose} have reached a maximum, which leaves too"
        " {few} {what} for this job."
    ),
    ("Max", "RunMinsPerUser"): (
        "The running jobs of a user under {whose} may have a maximum of remaining {minutes}, and"
        " this job would exceed it."
    ),
    ("Max", "RunMinsPerAccount"): (
        "The running jobs of an account under {whose} may have a maximum of remaining {minutes},"
        " and this job would exceed it."
    ),
    (
        "Min",
        "",
    ): "A job under {whose} must request a minimum, and this job requests too {few} {what}.",
}
_PLAIN: Mapping[str, str] = {
    "None": "No scheduling pass has tested the job yet.",
    "Priority": (
        "A job ahead of it in its partition does not fit yet, and the nodes are reserved for that"
        " job."
    ),
    "Dependency": "A job that it depends on has not started or ended as required.",
    "Resources": "It was tested, and too few suitable nodes are free.",
    "PartitionNodeLimit": "It requests more nodes than its partition gives to a job, or fewer.",
    "PartitionTimeLimit": "Its time limit is longer than its partition allows.",
    "PartitionDown": "Its partition does not start jobs at present.",
    "PartitionInactive": "Its partition is inactive: it accepts no jobs and starts none.",
    "JobHeldAdmin": "An administrator holds the job; only an administrator can release it.",
    "BeginTime": "Its earliest start time, as submitted or after a requeue, has not come.",
    "Licenses": "Too few of the licenses that it requests are free.",
    "AssociationJobLimit": "Its association has reached its maximum number of jobs.",
    "AssociationResourceLimit": "Its association has reached its maximum of resources.",
    "AssociationTimeLimit": (
        "Its association has used up its time, or allows no job with this time limit."
    ),
    "Reservation": "The reservation that it requests has not begun, or has no free resources yet.",
    "ReqNodeNotAvail": (
        "Nodes that it needs are down, drained, not responding, or reserved, for example for"
        " maintenance before its end."
    ),
    "JobHeldUser": "Its owner holds it.",
    "NvidiaImexChannels": "No NVIDIA IMEX channel is free on suitable nodes.",
    "SchedDefer": "It requested an immediate start, and the cluster starts no job at submission.",
    "NodeDown": "A node that it needs is down.",
    "BadConstraints": (
        "No nodes of the cluster match its request, even if idle: it will never start without a"
        " change."
    ),
    "SystemFailure": (
        "The workload manager failed: its disk, its network or a plug-in, or a step daemon of the"
        " job was killed."
    ),
    "JobLaunchFailure": (
        "It could not be launched: a prolog failed, its directory did not exist, or its owner or"
        " the owner's environment is unknown on a node."
    ),
    "NonZeroExitCode": "It ended with an exit code other than 0.",
    "TimeLimit": "It ran until its time limit.",
    "InactiveLimit": "It was ended because it was inactive for longer than the cluster allows.",
    "InvalidAccount": "Its account does not exist any more, or its user is not in it.",
    "InvalidQOS": "Its QOS does not exist any more, or its association may not use it.",
    "QOSUsageThreshold": "The fair share of its association is below the threshold of its QOS.",
    "QOSJobLimit": "Its QOS has reached its maximum number of jobs.",
    "QOSResourceLimit": "Its QOS has reached its maximum of resources.",
    "QOSTimeLimit": "Its QOS has used up its time, or allows no job with this time limit.",
    "RaisedSignal": "It was ended by a signal.",
    "Cleaning": "It was requeued, and its last run is still being cleaned up.",
    "Prolog": "The prolog of its nodes is running.",
    "QOSNotAllowed": "Its partition does not accept jobs of its QOS.",
    "AccountNotAllowed": "Its partition does not accept jobs of its account.",
    "DependencyNeverSatisfied": (
        "A job that it depends on did not end as required: it will never start without a change."
    ),
    "QOSGrpJobsLimit": "This QOS has reached its maximum number of running jobs.",
    "QOSGrpSubmitJobsLimit": "This QOS has reached its maximum number of pending and running jobs.",
    "QOSGrpWallLimit": (
        "The jobs of this QOS have used up the wall time that they may use together."
    ),
    "QOSMaxWallDurationPerJobLimit": "Its time limit is longer than this QOS allows.",
    "QOSMaxJobsPerUserLimit": (
        "Its user has reached the maximum number of running jobs under this QOS."
    ),
    "QOSMaxSubmitJobPerUserLimit": (
        "Its user has reached the maximum number of pending and running jobs under this QOS."
    ),
    "AssocGrpJobsLimit": (
        "This association, or an account above it, has reached its maximum number of running jobs."
    ),
    "AssocGrpSubmitJobsLimit": (
        "This association, or an account above it, has reached its maximum number of pending and"
        " running jobs."
    ),
    "AssocGrpWallLimit": (
        "The jobs of this association, or of an account above it, have used up the wall time that"
        " they may use together."
    ),
    "AssocMaxJobsLimit": "This association has reached its maximum number of running jobs.",
    "AssocMaxWallDurationPerJobLimit": "Its time limit is longer than its association allows.",
    "AssocMaxSubmitJobLimit": (
        "This association has reached its maximum number of pending and running jobs."
    ),
    "JobHoldMaxRequeue": (
        "It was requeued the maximum number of times and is held; only an administrator can"
        " release it."
    ),
    "JobArrayTaskLimit": (
        "Its array has reached its maximum number of tasks that run at the same time."
    ),
    "BurstBufferResources": "Too little burst buffer is free.",
    "BurstBufferStageIn": "Its files are being copied into the burst buffer.",
    "BurstBufferOperation": "A burst buffer operation of the job failed; it is held.",
    "DeadLine": "It cannot end by its deadline any more.",
    "MaxJobsPerAccount": (
        "Its account has reached the maximum number of running jobs under this QOS."
    ),
    "MaxSubmitJobsPerAccount": (
        "Its account has reached the maximum number of pending and running jobs under this QOS."
    ),
    "PartitionConfig": (
        "Its partition cannot run it as configured: the nodes that it needs are in no partition, or"
        " too few."
    ),
    "AccountingPolicy": "A limit of accounting without a name of its own.",
    "FedJobLock": "Another cluster of the federation is about to start it.",
    "OutOfMemory": "It needed more memory than it had requested.",
    "MaxMemPerLimit": "It requests more memory per node or CPU than its partition allows.",
    "ReservationDeleted": "The reservation that it requests was deleted; it is held.",
    "ReservationInvalid": (
        "It may not use the reservation that it requests, or that is over; it is held."
    ),
    "Constraints": "The nodes that match its constraint are not available at present.",
    "MaxPoweredUpNodes": "The maximum number of nodes is powered up, and it needs one more.",
    "MpiPortsBusy": "Too few of the network ports that its steps need are free on suitable nodes.",
    "FrontEndDown": "The front end nodes that would start it are down.",
    "BlockMaxError": "The Blue Gene block that it needs has had too many errors.",
    "BlockFreeAction": "The Blue Gene block that it needs is being freed.",
    "PowerNotAvail": "The power cap of the cluster leaves too little for it.",
    "PowerReserved": "It waits until the power that is reserved for it is free.",
}

_IN_ORDER = (
    "None Priority Dependency Resources PartitionNodeLimit PartitionTimeLimit PartitionDown "
    "PartitionInactive JobHeldAdmin BeginTime Licenses AssociationJobLimit "
    "AssociationResourceLimit AssociationTimeLimit Reservation ReqNodeNotAvail JobHeldUser "
    "NvidiaImexChannels SchedDefer PartitionDown NodeDown BadConstraints SystemFailure "
    "JobLaunchFailure NonZeroExitCode TimeLimit InactiveLimit InvalidAccount InvalidQOS "
    "QOSUsageThreshold QOSJobLimit QOSResourceLimit QOSTimeLimit RaisedSignal - Cleaning Prolog "
    "QOSNotAllowed AccountNotAllowed DependencyNeverSatisfied QOSGrpCpuLimit "
    "QOSGrpCPUMinutesLimit QOSGrpCPURunMinutesLimit QOSGrpJobsLimit QOSGrpMemLimit "
    "QOSGrpNodeLimit QOSGrpSubmitJobsLimit QOSGrpWallLimit QOSMaxCpuPerJobLimit "
    "QOSMaxCpuMinutesPerJobLimit QOSMaxNodePerJobLimit QOSMaxWallDurationPerJobLimit "
    "QOSMaxCpuPerUserLimit QOSMaxJobsPerUserLimit QOSMaxNodePerUserLimit "
    "QOSMaxSubmitJobPerUserLimit QOSMinCpuNotSatisfied AssocGrpCpuLimit AssocGrpCPUMinutesLimit "
    "AssocGrpCPURunMinutesLimit AssocGrpJobsLimit AssocGrpMemLimit AssocGrpNodeLimit "
    "AssocGrpSubmitJobsLimit AssocGrpWallLimit AssocMaxJobsLimit AssocMaxCpuPerJobLimit "
    "AssocMaxCpuMinutesPerJobLimit AssocMaxNodePerJobLimit AssocMaxWallDurationPerJobLimit "
    "AssocMaxSubmitJobLimit JobHoldMaxRequeue JobArrayTaskLimit BurstBufferResources "
    "BurstBufferStageIn BurstBufferOperation - - AssocGrpUnknown AssocGrpUnknownMinutes "
    "AssocGrpUnknownRunMinutes AssocMaxUnknownPerJob AssocMaxUnknownPerNode "
    "AssocMaxUnknownMinutesPerJob AssocMaxCpuPerNode AssocGrpMemMinutes AssocGrpMemRunMinutes "
    "AssocMaxMemPerJob AssocMaxMemPerNode AssocMaxMemMinutesPerJob AssocGrpNodeMinutes "
    "AssocGrpNodeRunMinutes AssocMaxNodeMinutesPerJob AssocGrpEnergy AssocGrpEnergyMinutes "
    "AssocGrpEnergyRunMinutes AssocMaxEnergyPerJob AssocMaxEnergyPerNode "
    "AssocMaxEnergyMinutesPerJob AssocGrpGRES AssocGrpGRESMinutes AssocGrpGRESRunMinutes "
    "AssocMaxGRESPerJob AssocMaxGRESPerNode AssocMaxGRESMinutesPerJob AssocGrpLicense "
    "AssocGrpLicenseMinutes AssocGrpLicenseRunMinutes AssocMaxLicensePerJob "
    "AssocMaxLicenseMinutesPerJob AssocGrpBB AssocGrpBBMinutes AssocGrpBBRunMinutes "
    "AssocMaxBBPerJob AssocMaxBBPerNode AssocMaxBBMinutesPerJob QOSGrpUnknown "
    "QOSGrpUnknownMinutes QOSGrpUnknownRunMinutes QOSMaxUnknownPerJob QOSMaxUnknownPerNode "
    "QOSMaxUnknownPerUser QOSMaxUnknownMinutesPerJob QOSMinUnknown QOSMaxCpuPerNode "
    "QOSGrpMemoryMinutes QOSGrpMemoryRunMinutes QOSMaxMemoryMinutesPerJob QOSMaxMemoryPerJob "
    "QOSMaxMemoryPerNode QOSMaxMemoryPerUser QOSMinMemory QOSGrpEnergy QOSGrpEnergyMinutes "
    "QOSGrpEnergyRunMinutes QOSMaxEnergyPerJob QOSMaxEnergyPerNode QOSMaxEnergyPerUser "
    "QOSMaxEnergyMinutesPerJob QOSMinEnergy QOSGrpNodeMinutes QOSGrpNodeRunMinutes "
    "QOSMaxNodeMinutesPerJob QOSMinNode QOSGrpGRES QOSGrpGRESMinutes QOSGrpGRESRunMinutes "
    "QOSMaxGRESPerJob QOSMaxGRESPerNode QOSMaxGRESPerUser QOSMaxGRESMinutesPerJob QOSMinGRES "
    "QOSGrpLicense QOSGrpLicenseMinutes QOSGrpLicenseRunMinutes QOSMaxLicensePerJob "
    "QOSMaxLicensePerUser QOSMaxLicenseMinutesPerJob QOSMinLicense QOSGrpBB QOSGrpBBMinutes "
    "QOSGrpBBRunMinutes QOSMaxBBPerJob QOSMaxBBPerNode QOSMaxBBPerUser AssocMaxBBMinutesPerJob "
    "QOSMinBB DeadLine MaxBBPerAccount MaxCpuPerAccount MaxEnergyPerAccount MaxGRESPerAccount "
    "MaxNodePerAccount MaxLicensePerAccount MaxMemoryPerAccount MaxUnknownPerAccount "
    "MaxJobsPerAccount MaxSubmitJobsPerAccount PartitionConfig AccountingPolicy FedJobLock "
    "OutOfMemory MaxMemPerLimit AssocGrpBilling AssocGrpBillingMinutes AssocGrpBillingRunMinutes "
    "AssocMaxBillingPerJob AssocMaxBillingPerNode AssocMaxBillingMinutesPerJob QOSGrpBilling "
    "QOSGrpBillingMinutes QOSGrpBillingRunMinutes QOSMaxBillingPerJob QOSMaxBillingPerNode "
    "QOSMaxBillingPerUser QOSMaxBillingMinutesPerJob MaxBillingPerAccount QOSMinBilling "
    "ReservationDeleted ReservationInvalid Constraints MaxBBRunMinsPerAccount "
    "MaxBillingRunMinsPerAccount MaxCpuRunMinsPerAccount MaxEnergyRunMinsPerAccount "
    "MaxGRESRunMinsPerAccount MaxNodeRunMinsPerAccount MaxLicenseRunMinsPerAccount "
    "MaxMemoryRunMinsPerAccount MaxUnknownRunMinsPerAccount MaxBBRunMinsPerUser "
    "MaxBillingRunMinsPerUser MaxCpuRunMinsPerUser MaxEnergyRunMinsPerUser MaxGRESRunMinsPerUser "
    "MaxNodeRunMinsPerUser MaxLicenseRunMinsPerUser MaxMemoryRunMinsPerUser "
    "MaxUnknownRunMinsPerUser MaxPoweredUpNodes MpiPortsBusy "
).split()
NAMES = {number: name for number, name in enumerate(_IN_ORDER) if name != "-"}
"""Names by number. Three numbers are unused, and PartitionDown has two."""
EARLIER_NAMES = "FrontEndDown BlockMaxError BlockFreeAction PowerNotAvail PowerReserved".split()
"""Names that only earlier releases of Slurm print."""
