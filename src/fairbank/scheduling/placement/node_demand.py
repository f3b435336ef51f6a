"""What a job asks of each of its nodes: the part of a request that a node alone can be judged by."""

from __future__ import annotations

from typing import NamedTuple

from fairbank.cluster.node import Gpus
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.resource_request import ALL_MEMORY, ResourceRequest


class NodeDemand(NamedTuple):
    """The same for many jobs, so that what was found for one serves the others.

    cpus             of a task
    least_cpus       of a node
    most_tasks       on a node
    memory           of a node, in MiB; None: all that it has
    memory_per_cpu   where it is asked for so; then `memory` is 0
    alone            nobody else is on the node
    rows             how many jobs may have a CPU at once
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
    """What the request means in a partition."""
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
