"""Tests by which a partition accepts a job, in slurmctld's order (slurm-rules.md, "Partitions")."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

from fairbank.cluster.partition_rules import AccessList, PartitionRules, PartitionState
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement import constraint
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.placement.search import MAX_NODES_FLAG, MIN_NODES_FLAG, TIME_FLAG
from fairbank.scheduling.plan import BAD_CONSTRAINTS

NODE_LIMIT, TIME_LIMIT, CONFIG = "PartitionNodeLimit", "PartitionTimeLimit", "PartitionConfig"
MEMORY_LIMIT, USAGE_THRESHOLD = "MaxMemPerLimit", "QOSUsageThreshold"
_CLOSED = {PartitionState.DOWN: "PartitionDown", PartitionState.INACTIVE: "PartitionInactive"}


class Subject(Enum):
    """Subject of a test: it decides how the figures are shown."""

    STATE = auto()
    NODES = auto()
    SECONDS = auto()
    MEMORY = auto()
    CPUS = auto()
    RESERVATION = auto()
    QOS = auto()
    ACCOUNT = auto()
    GROUPS = auto()
    USER = auto()
    HOST = auto()
    FAIR_SHARE = auto()


class PartitionTest(NamedTuple):
    """Test of one setting of a partition for a job: what it allows and what the job asks for.

    `setting` is Slurm's word; that of `Subject.FAIR_SHARE` is one of the job's QOS. Times are in
    seconds, memory in MiB; several names are a tuple, which is joined only when it is shown.
    `reason` is Slurm's if the job does not pass, else None. `flag` is that of its QOS by which the
    job ignores the setting.
    """

    subject: Subject
    setting: str
    allowed: float | str | tuple[str, ...]
    requested: float | str | tuple[str, ...]
    reason: str | None
    flag: str = ""


def partition_tests(
    job: PendingJob, cluster: NodeTable, name: str, *, by_least_time: bool = False
) -> Iterator[PartitionTest]:
    """Yield the tests of the settings that the partition has; its state and its numbers of nodes
    and CPUs only if they exclude the job.

    Args:
        job: the pending job.
        cluster: nodes and partitions.
        name: name of an existing partition.
        by_least_time: compare the least time of the job (--time-min) with MaxTime, as backfill
            does.
    """
    rules, nodes = cluster.partition(name)
    count, closed = nodes.bit_count(), _CLOSED.get(rules.state)
    if (
        rules.needs_reservation
        or rules.root_only
        or rules.submit_hosts is not None
        or rules.max_cpus_per_node is not None
    ):
        yield from _configuration_tests(job, rules, count)
    if closed is None:
        total = cluster.total_cpus[name]
        if (cpus := job.wanted.cpus) > total:
            yield PartitionTest(Subject.NODES, "TotalCPUs", total, cpus, CONFIG)
        yield from _size_tests(job, rules, count, by_least_time=by_least_time)
    has_lists = rules.qos or rules.accounts or rules.groups
    access = list(_access_tests(job, rules)) if has_lists else []
    # Lists that are tested with the limits of the partition give this reason.
    yield from (test for test in access if test.reason == CONFIG)
    memory, most_memory = job.wanted.memory_per_node, rules.max_memory_per_node
    if most_memory is not None and memory is not None:
        reason = MEMORY_LIMIT if memory > most_memory else None
        yield PartitionTest(Subject.MEMORY, "MaxMemPerNode", most_memory, memory, reason)
    if closed is not None:
        yield PartitionTest(Subject.STATE, "State", rules.state.value, "", closed)
    if (least := job.least_fair_share) is not None:
        has = job.fair_share
        reason = USAGE_THRESHOLD if has is not None and has < least else None
        factor = "unknown" if has is None else has
        yield PartitionTest(Subject.FAIR_SHARE, "UsageThreshold", least, factor, reason)
    yield from (test for test in access if test.reason != CONFIG)


def _configuration_tests(
    job: PendingJob, rules: PartitionRules, count: int
) -> Iterator[PartitionTest]:
    cpus = job.wanted.cpus
    if rules.needs_reservation:
        reserved = job.reservation
        reason = None if reserved else CONFIG
        yield PartitionTest(Subject.RESERVATION, "ReqResv", "YES", reserved or "none", reason)
    if rules.root_only:
        reason = None if job.is_privileged else CONFIG
        yield PartitionTest(Subject.USER, "RootOnly", "YES", job.user, reason)
    if (hosts := rules.submit_hosts) is not None:
        host = job.submit_host
        reason = CONFIG if host and host not in hosts else None
        yield PartitionTest(Subject.HOST, "AllocNodes", hosts, host or "unknown", reason)
    if (per_node := rules.max_cpus_per_node) is not None:
        reason = CONFIG if cpus > per_node * count else None
        yield PartitionTest(Subject.CPUS, "MaxCPUsPerNode", per_node, cpus, reason)


def _size_tests(
    job: PendingJob, rules: PartitionRules, count: int, *, by_least_time: bool
) -> Iterator[PartitionTest]:
    """Yield the tests of nodes and time, which slurmctld leaves out if the partition is not up."""
    nodes = job.wanted.nodes
    most = max(nodes, job.wanted.max_nodes or 0)
    if nodes > count:
        yield PartitionTest(Subject.NODES, "nodes", count, nodes, NODE_LIMIT)
    if rules.min_nodes > 1:
        # slurmctld has raised the request at submission if it could be.
        exceeded = nodes < rules.min_nodes
        yield _size_test(job, Subject.NODES, "MinNodes", rules.min_nodes, nodes, exceeded=exceeded)
    if rules.max_nodes is not None:
        exceeded = most > rules.max_nodes
        yield _size_test(job, Subject.NODES, "MaxNodes", rules.max_nodes, most, exceeded=exceeded)
    limit = job.time_min if by_least_time and job.time_min is not None else job.limit
    if rules.max_seconds is not None and limit is not None:
        exceeded = limit > rules.max_seconds
        yield _size_test(
            job, Subject.SECONDS, "MaxTime", rules.max_seconds, limit, exceeded=exceeded
        )


_FLAGS = {"MinNodes": MIN_NODES_FLAG, "MaxNodes": MAX_NODES_FLAG, "MaxTime": TIME_FLAG}


def _size_test(
    job: PendingJob, subject: Subject, setting: str, allowed: int, requested: int, *, exceeded: bool
) -> PartitionTest:
    flag = _FLAGS[setting] if exceeded and _FLAGS[setting] in job.qos_flags else ""
    reason = TIME_LIMIT if subject is Subject.SECONDS else NODE_LIMIT
    return PartitionTest(
        subject, setting, allowed, requested, reason if exceeded and not flag else None, flag
    )


def _access_tests(job: PendingJob, rules: PartitionRules) -> Iterator[PartitionTest]:
    if rules.qos is not None:
        yield _access(Subject.QOS, rules.qos, "Qos", job.qos)
    if rules.accounts is not None:
        yield _access(Subject.ACCOUNT, rules.accounts, "Accounts", job.account)
    if rules.groups is not None:
        if job.groups:
            yield _access(Subject.GROUPS, rules.groups, "Groups", *job.groups)
        else:  # not known here, so that it is not judged
            allowed = rules.groups.names
            yield PartitionTest(Subject.GROUPS, "AllowGroups", allowed, "unknown", None)


def _access(subject: Subject, access: AccessList, kind: str, *names: str) -> PartitionTest:
    return PartitionTest(
        subject,
        f"{'Deny' if access.denies else 'Allow'}{kind}",
        access.names,
        names,
        None if access.is_admitted(*names) else access.reason,
    )


def exclusion_reason(
    job: PendingJob, cluster: NodeTable, name: str, *, by_least_time: bool = False
) -> str | None:
    """Return Slurm's reason why the job cannot run in a partition, or None if it can.

    The cluster may have changed since the job was accepted. The job then waits with a reason, so
    that one job does not end the pass for all.

    Args:
        job: the pending job.
        cluster: nodes and partitions.
        name: name of a partition, which need not exist.
        by_least_time: compare the least time of the job (--time-min) with MaxTime, as backfill
            does.
    """
    if name not in cluster.rules:
        return CONFIG
    if not is_request_valid(job.wanted, cluster):
        return BAD_CONSTRAINTS
    tests = partition_tests(job, cluster, name, by_least_time=by_least_time)
    return next((test.reason for test in tests if test.reason is not None), None)


def is_request_valid(wanted: ResourceRequest, cluster: NodeTable) -> bool:
    """Return True if the constraints can be parsed and the nodes that the request names exist."""
    try:
        for text in (wanted.constraint, wanted.prefer):
            constraint.parse(text)
        cluster.named((*wanted.required, *wanted.excluded))
    except (InvalidInput, NotFound):
        return False
    return True
