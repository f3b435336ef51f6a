"""Demand of a job on each of its nodes: the part of a request that one node can satisfy."""

from __future__ import annotations

from typing import NamedTuple

from fairbank.cluster.node import Gpus
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.resource_request import ALL_MEMORY, ResourceRequest


class NodeDemand(NamedTuple):
    """Demand on a node. Many jobs have the same, so that results for one are reused for the others.

    cpus             of a task
    least_cpus       of a node
    most_tasks       on a node
    memory           of a node, in MiB; None: all of it
    memory_per_cpu   if requested so; `memory` is then 0
    alone            no other job may be on the node
    rows             number of jobs that may share a CPU
    """

    cpus: int = 1
    least_cpus: int = 1
    most_tasks: int | None = None
    memory: int | None = 0
    memory_per_cpu: int = 0
    gpus: tuple[Gpus, ...] = ()
    tmp: int = 0
    alone: bool = False
    rows: int = 1


def node_demand(wanted: ResourceRequest, rules: PartitionRules) -> NodeDemand:
    """Return the demand of a request in a partition."""
    asked = rules.with_default_memory(wanted)
    memory = 0 if asked.memory_per_cpu else asked.memory_per_node
    return NodeDemand(
        cpus=asked.cpus_per_task,
        least_cpus=max(asked.cpus_per_task, asked.cpus_per_node),
        most_tasks=asked.tasks_per_node,
        memory=None if memory == ALL_MEMORY and not asked.memory_per_cpu else memory,
        memory_per_cpu=asked.memory_per_cpu or 0,
        gpus=asked.gpus,
        tmp=asked.tmp,
        alone=rules.is_exclusive(asked),
        rows=rules.rows_for(asked),
    )
