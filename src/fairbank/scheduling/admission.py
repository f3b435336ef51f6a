"""Rules that exclude a job from a partition, whatever else runs there."""

from __future__ import annotations

from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement import constraint
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.plan import BAD_CONSTRAINTS


def exclusion_reason(
    job: PendingJob, cluster: NodeTable, name: str, *, by_least_time: bool = False
) -> str | None:
    """Return Slurm's reason why the job cannot run in a partition, or None if it can.

    The cluster may have changed since the job was accepted. The job then waits with a reason, so
    that one job does not end the pass for all.

    Args:
        job: the pending job.
        cluster: nodes and partitions.
        name: name of the partition.
        by_least_time: compare the least time of the job (--time-min) with the partition's limit, as
            backfill does.
    """
    if name not in cluster.rules:
        return "PartitionConfig"
    if not is_request_valid(job.wanted, cluster):
        return BAD_CONSTRAINTS
    rules, nodes = cluster.partition(name)
    if not rules.up:
        return "PartitionDown"
    asked = job.time_min if by_least_time and job.time_min is not None else job.limit
    if rules.max_seconds is not None and asked is not None and asked > rules.max_seconds:
        return "PartitionTimeLimit"
    if (
        job.wanted.nodes > (rules.max_nodes or job.wanted.nodes)
        or (job.wanted.max_nodes or rules.min_nodes) < rules.min_nodes
    ):
        return "PartitionNodeLimit"
    return "PartitionNodeLimit" if job.wanted.nodes > nodes.bit_count() else None


def is_request_valid(wanted: ResourceRequest, cluster: NodeTable) -> bool:
    """Return True if the constraints can be parsed and the nodes that the request names exist."""
    try:
        for text in (wanted.constraint, wanted.prefer):
            constraint.parse(text)
        cluster.named((*wanted.required, *wanted.excluded))
    except (InvalidInput, NotFound):
        return False
    return True
