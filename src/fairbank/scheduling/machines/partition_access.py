"""Tests by which a partition accepts a job, in slurmctld's order (slurm-rules.md, "Partitions")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fairbank.cluster.partition_rules import AccessList, PartitionState
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement import constraint
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.plan import BAD_CONSTRAINTS

NODE_LIMIT, TIME_LIMIT, CONFIG = "PartitionNodeLimit", "PartitionTimeLimit", "PartitionConfig"
MEMORY_LIMIT = "MaxMemPerLimit"
_DOWN = {PartitionState.DOWN: "PartitionDown", PartitionState.INACTIVE: "PartitionInactive"}


class PartitionTest(NamedTuple):
    """Test of one setting of a partition for a job: what it allows and what the job asks for.

    `setting` is Slurm's word; `nodes` counts those of the partition. Times are in seconds. `reason`
    is Slurm's if the job does not pass, else None.
    """

    setting: str
    allowed: int | str
    asked: int | str
    reason: str | None


def partition_tests(
    job: PendingJob, cluster: NodeTable, name: str, *, by_least_time: bool = False
) -> Iterator[PartitionTest]:
    """Yield the tests of the settings that the partition has.

    Args:
        job: the pending job.
        cluster: nodes and partitions.
        name: name of an existing partition.
        by_least_time: compare the least time of the job (--time-min) with MaxTime, as backfill
            does.
    """
    rules, nodes = cluster.partition(name)
    wanted, count = job.wanted, nodes.bit_count()
    most = max(wanted.nodes, wanted.max_nodes or 0)
    yield PartitionTest("State", rules.state.value, "", _DOWN.get(rules.state))
    if rules.needs_reservation:
        yield PartitionTest(
            "ReqResv", "YES", job.reservation or "none", None if job.reservation else CONFIG
        )
    if (per_node := rules.max_cpus_per_node) is not None:
        yield PartitionTest(
            "MaxCPUsPerNode",
            per_node,
            wanted.cpus,
            CONFIG if wanted.cpus > per_node * count else None,
        )
    yield PartitionTest("nodes", count, wanted.nodes, NODE_LIMIT if wanted.nodes > count else None)
    if rules.min_nodes > 1:
        # slurmctld has raised the request at submission if it could be.
        too_few = wanted.nodes < rules.min_nodes
        reason = NODE_LIMIT if too_few else None
        yield PartitionTest("MinNodes", rules.min_nodes, wanted.nodes, reason)
    if rules.max_nodes is not None:
        too_many = most > rules.max_nodes
        yield PartitionTest("MaxNodes", rules.max_nodes, most, NODE_LIMIT if too_many else None)
    asked = job.time_min if by_least_time and job.time_min is not None else job.limit
    if rules.max_seconds is not None and asked is not None:
        too_long = asked > rules.max_seconds
        yield PartitionTest("MaxTime", rules.max_seconds, asked, TIME_LIMIT if too_long else None)
    memory, most_memory = wanted.memory_per_node, rules.max_memory_per_node
    if most_memory is not None and memory is not None:
        reason = MEMORY_LIMIT if memory > most_memory else None
        yield PartitionTest("MaxMemPerNode", most_memory, memory, reason)
    if rules.qos is not None:
        yield _access(rules.qos, "Qos", job.qos)
    if rules.accounts is not None:
        yield _access(rules.accounts, "Accounts", job.account)
    if rules.groups is not None:
        if job.groups:
            yield _access(rules.groups, "Groups", *job.groups)
        else:  # not known here, so that it is not judged
            yield PartitionTest("AllowGroups", ",".join(rules.groups.names), "unknown", None)


def _access(access: AccessList, kind: str, *names: str) -> PartitionTest:
    return PartitionTest(
        f"{'Deny' if access.denies else 'Allow'}{kind}",
        ",".join(access.names),
        ",".join(names),
        None if access.accepts(*names) else access.reason,
    )


def exclusion_reason(
    job: PendingJob, cluster: NodeTable, name: str, *, by_least_time: bool = False
) -> str | None:
    """Return Slurm's reason why the job cannot run in a partition, or None if it can.

    The cluster may have changed since the job was accepted. The job then waits with a reason, so
    that one job does not end the pass for all. Arguments as of `partition_tests`; the partition
    need not exist.
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
