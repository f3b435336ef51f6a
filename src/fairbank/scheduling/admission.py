"""Whether a partition takes a job at all, whoever else is there."""

from __future__ import annotations

from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement import constraint
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.plan import BAD_CONSTRAINTS


def exclusion_reason(
    job: PendingJob, cluster: NodeTable, name: str, *, shortest: bool = False
) -> str | None:
    """Why the job has no place in a partition, in Slurm's word; None where it has one.

    The machine may have changed since the job was taken, and it waits with a reason then: one job is not to end the pass for all.
    """
    if name not in cluster.rules:
        return "PartitionConfig"
    if not is_request_valid(job.wanted, cluster):
        return BAD_CONSTRAINTS
    rules, nodes = cluster.partition(name)
    if not rules.up:
        return "PartitionDown"
    asked = job.time_min if shortest and job.time_min is not None else job.limit
    if rules.max_seconds is not None and asked is not None and asked > rules.max_seconds:
        return "PartitionTimeLimit"
    if (
        job.wanted.nodes > (rules.max_nodes or job.wanted.nodes)
        or (job.wanted.max_nodes or rules.min_nodes) < rules.min_nodes
    ):
        return "PartitionNodeLimit"
    return "PartitionNodeLimit" if job.wanted.nodes > nodes.bit_count() else None


def is_request_valid(wanted: ResourceRequest, cluster: NodeTable) -> bool:
    """Whether its constraints are some, and the nodes that it names are there."""
    try:
        for text in (wanted.constraint, wanted.prefer):
            constraint.parse(text)
        cluster.named((*wanted.required, *wanted.excluded))
    except (InvalidInput, NotFound):
        return False
    return True
