"""Keywords of nodes, partitions, QOS and associations. Sources: slurm.conf(5), sacctmgr(1)."""

from __future__ import annotations

from fairbank.cluster.node import COUNT_MAX
from fairbank.core.slurm_numbers import U32_MAX
from fairbank.priority.limits.reasons import LimitKind
from fairbank.wlm.config import cluster_forms as c
from fairbank.wlm.config import forms as f
from fairbank.wlm.config.keyword import (
    ASSOCIATIONS,
    MACHINES,
    NODES,
    PARTITIONS,
    QOS,
    Keyword,
    later,
    no_gpu_memory,
    refused,
    snake_case,
    without_effect,
)

_NODES = (
    Keyword("NodeName", NODES, c.HOSTS, "name"),
    Keyword("CPUs", NODES, f.COUNT, "cpus"),
    Keyword("Boards", NODES, f.COUNT, "boards"),
    Keyword("Sockets", NODES, f.COUNT, "sockets"),
    Keyword("SocketsPerBoard", NODES, f.COUNT, "sockets_per_board"),
    Keyword("CoresPerSocket", NODES, f.COUNT, "cores"),
    Keyword("ThreadsPerCore", NODES, f.COUNT, "threads"),
    Keyword("RealMemory", NODES, f.MEMORY, "memory"),
    Keyword("TmpDisk", NODES, f.whole(0, COUNT_MAX, "MiB"), "tmp"),
    Keyword("Weight", NODES, f.WEIGHT, "weight"),
    Keyword("Feature", NODES, c.FEATURES, "features"),
    Keyword("Features", NODES, c.FEATURES, "features"),
    Keyword("State", NODES, c.NODE_STATE, "state"),
    Keyword("Reason", NODES, f.TEXT, "reason"),
    later("NodeAddr", NODES, c.HOSTS, MACHINES),
    later("NodeHostname", NODES, c.HOSTS, MACHINES),
    later("Port", NODES, f.PORT, MACHINES),
    Keyword("Gres", NODES, c.GPUS, "gpus"),
    later("MemSpecLimit", NODES, f.MEMORY, "memory that is kept from jobs is"),
    *without_effect(NODES, "CoreSpecCount CpuSpecList"),
)

_PARTITIONS = (
    Keyword("PartitionName", PARTITIONS, f.NAME, "name"),
    Keyword("Nodes", PARTITIONS, c.PARTITION_NODES, "nodes"),
    Keyword("Default", PARTITIONS, f.YES_NO, "is_default"),
    Keyword("State", PARTITIONS, c.PARTITION_STATE, "state"),
    Keyword("MaxTime", PARTITIONS, f.TIME_LIMIT, "max_seconds"),
    Keyword("DefaultTime", PARTITIONS, f.TIME_LIMIT, "default_seconds"),
    Keyword("MinNodes", PARTITIONS, f.whole(0, COUNT_MAX), "min_nodes"),
    Keyword("MaxNodes", PARTITIONS, f.or_unlimited(f.COUNT), "max_nodes"),
    Keyword("MaxCPUsPerNode", PARTITIONS, f.or_unlimited(f.COUNT), "max_cpus_per_node"),
    Keyword("AllowAccounts", PARTITIONS, c.access("AccountNotAllowed"), "accounts"),
    Keyword("DenyAccounts", PARTITIONS, c.access("AccountNotAllowed", denies=True), "accounts"),
    Keyword("AllowQos", PARTITIONS, c.access("QOSNotAllowed"), "qos"),
    Keyword("DenyQos", PARTITIONS, c.access("QOSNotAllowed", denies=True), "qos"),
    Keyword("AllowGroups", PARTITIONS, c.access("AccountNotAllowed"), "groups"),
    Keyword("QOS", PARTITIONS, f.NAME, "partition_qos"),
    Keyword("GraceTime", PARTITIONS, f.whole(0, U32_MAX, "seconds"), "grace_seconds"),
    Keyword("OverSubscribe", PARTITIONS, c.SHARING, "sharing rows"),
    Keyword("Shared", PARTITIONS, c.SHARING, "sharing rows"),
    Keyword("PriorityTier", PARTITIONS, f.whole(0, f.SHORT_MAX), "tier"),
    Keyword("PriorityJobFactor", PARTITIONS, f.whole(0, f.SHORT_MAX), "factor"),
    Keyword("PreemptMode", PARTITIONS, c.PREEMPT_MODE, "preempted"),
    Keyword("DefMemPerCPU", PARTITIONS, c.MEMORY_PER_CPU, "memory_per_cpu memory_per_node"),
    Keyword("DefMemPerNode", PARTITIONS, c.MEMORY_PER_NODE, "memory_per_cpu memory_per_node"),
    no_gpu_memory(PARTITIONS),
    Keyword("MaxMemPerCPU", PARTITIONS, f.MEMORY_LIMIT, "max_memory_per_cpu"),
    Keyword("MaxMemPerNode", PARTITIONS, f.MEMORY_LIMIT, "max_memory_per_node"),
    Keyword("TRESBillingWeights", PARTITIONS, c.BILLING_WEIGHTS, "weights"),
    Keyword("RootOnly", PARTITIONS, f.YES_NO, "root_only"),
    # Until partition keys exist, only root and operators submit to a partition that needs one.
    Keyword("Key", PARTITIONS, f.YES_NO, "root_only"),
    later("Hidden", PARTITIONS, f.YES_NO, MACHINES),
    later("DisableRootJobs", PARTITIONS, f.YES_NO, MACHINES),
    later("ExclusiveUser", PARTITIONS, f.YES_NO, MACHINES),
    *refused(PARTITIONS, "AllocNodes Alternate", "jobs come from one machine to one partition"),
    *refused(PARTITIONS, "LLN", "nodes are chosen by weight and position"),
    *refused(PARTITIONS, "PowerDownOnIdle", "power saving is not built"),
)

_OF_USERS = {kind for kind in LimitKind if kind.value.endswith(("PerUser", "PerAccount"))}
_OF_ASSOCIATIONS = {LimitKind.MAX_JOBS, LimitKind.MAX_SUBMIT_JOBS, LimitKind.MAX_JOBS_ACCRUE}


def _limit(kind: LimitKind, group: str) -> Keyword:
    form = (
        c.TRES_COUNTS
        if "TRES" in kind.value
        else f.TIME_IN_MINUTES
        if kind in (LimitKind.GRP_WALL, LimitKind.MAX_WALL)
        else f.whole(0, COUNT_MAX)
    )
    return Keyword(snake_case(kind.value), group, form, kind.value)


_ACCOUNTS = (
    Keyword("name", QOS, f.NAME, "name"),
    Keyword("priority", QOS, f.WEIGHT, "priority"),
    Keyword("flags", QOS, f.mapped(f.NAMES, frozenset), "flags"),
    Keyword("preempt", QOS, f.mapped(f.NAMES, frozenset), "preempts"),
    Keyword("preempt_mode", QOS, c.PREEMPT_MODE, "preempted"),
    Keyword("preempt_exempt_time", QOS, f.PERIOD, "exempt_seconds"),
    Keyword("usage_factor", QOS, f.DECIMAL, "usage_factor"),
    Keyword("usage_threshold", QOS, f.DECIMAL, "usage_threshold"),
    Keyword("limit_factor", QOS, f.DECIMAL, "limit_factor"),
    *(_limit(kind, QOS) for kind in LimitKind if kind not in _OF_ASSOCIATIONS),
    Keyword("account", ASSOCIATIONS, f.NAME, "account"),
    Keyword("user", ASSOCIATIONS, f.NAME, "user"),
    Keyword("partition", ASSOCIATIONS, f.NAME, "partition"),
    Keyword("parent", ASSOCIATIONS, f.NAME, "parent"),
    Keyword("shares", ASSOCIATIONS, c.SHARES, "shares"),
    Keyword("qos", ASSOCIATIONS, f.NAMES, "qos", note="the first is the default"),
    *(
        _limit(kind, ASSOCIATIONS)
        for kind in LimitKind
        if kind not in _OF_USERS | {LimitKind.MIN_TRES}
    ),
)


RECORDS = (*_NODES, *_PARTITIONS, *_ACCOUNTS)
