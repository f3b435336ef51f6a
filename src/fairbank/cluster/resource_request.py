"""Resources that a job requests: number of nodes, resources of each, features, sharing."""

from __future__ import annotations

import msgspec

from fairbank.cluster.node import COUNT_MAX, Gpus, check_gpus, check_integer
from fairbank.core.errors import InvalidInput

ALL_MEMORY = 0
"""All memory of a node: `--mem=0`."""


class ResourceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Request as given by the options of sbatch. Memory and `tmp` are in MiB.

        nodes, max_nodes      minimum and maximum; None: as many as the tasks need
        tasks                 None: one for each of `nodes`
        tasks_per_node        maximum per node
        cpus_per_node         minimum that a node must give (`--mincpus`)
        min_cpus              minimum of all nodes together; None: as many as the tasks need
        memory_per_node       None: see `memory_per_cpu`; if both are None the job gets all
                              memory of its nodes, as in Slurm
        gpus                  per node
        gpus_per_task         with `tasks`
        total_gpus            of all nodes together, at least one of each; None: see the others
        tasks_per_gpu         tasks that have a GPU of `gpus_per_task` together; None: one
        cpus_per_gpu          minimum; None: as many as the tasks need
        memory_per_gpu        None: see the memory of nodes and CPUs
        constraint, prefer    features, in the grammar of `scheduling.placement.constraint`
        exclusive, shared     whole nodes; nodes shared with other jobs if the partition allows it
        required, excluded    names of nodes

    Raises InvalidInput, naming the field, for a request that contradicts itself.
    """

    nodes: int = 1
    max_nodes: int | None = None
    tasks: int | None = None
    tasks_per_node: int | None = None
    cpus_per_task: int = 1
    cpus_per_node: int = 1
    min_cpus: int | None = None
    memory_per_node: int | None = None
    memory_per_cpu: int | None = None
    gpus: tuple[Gpus, ...] = ()
    gpus_per_task: tuple[Gpus, ...] = ()
    total_gpus: Gpus | None = None
    tasks_per_gpu: int | None = None
    cpus_per_gpu: int | None = None
    memory_per_gpu: int | None = None
    tmp: int = 0
    constraint: str = ""
    prefer: str = ""
    contiguous: bool = False
    exclusive: bool = False
    shared: bool = False
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field, low in _LEAST.items():
            value = getattr(self, field)
            if value is not None:
                check_integer(value, low, COUNT_MAX, field=field)
        check_gpus(self.gpus, field="gpus")
        check_gpus(self.gpus_per_task, field="gpus_per_task")
        check_gpus(filter(None, (self.total_gpus,)), field="total_gpus")
        for field, what, remedy in self._contradictions():
            raise InvalidInput(what, field=field, remedy=remedy)

    def _contradictions(self) -> list[tuple[str, str, str]]:
        most, contradictions = self.max_nodes, []
        if most is not None and len(set(self.required)) > most:
            contradictions.append(
                (
                    "required",
                    f"{len(set(self.required))} nodes are required but at most {most} wanted",
                    f"name at most {most}",
                )
            )
        if most is not None and most < self.nodes:
            contradictions.append(
                (
                    "max_nodes",
                    f"at most {most} nodes are fewer than at least {self.nodes}",
                    f"{self.nodes} or more",
                )
            )
        if (
            most is not None
            and self.tasks_per_node is not None
            and most * self.tasks_per_node < self.least_tasks
        ):
            what = (
                f"{self.least_tasks} tasks do not fit on {most} nodes with {self.tasks_per_node}"
                " each"
            )
            contradictions.append(
                ("tasks_per_node", what, "ask for more nodes, more tasks a node, or fewer tasks")
            )
        if self.memory_per_node is not None and self.memory_per_cpu is not None:
            contradictions.append(
                ("memory_per_cpu", "memory is asked for by node and by CPU", "name one of them")
            )
        if self.memory_per_gpu is not None and (
            self.memory_per_node is not None or self.memory_per_cpu is not None
        ):
            contradictions.append(
                ("memory_per_gpu", "memory is asked for by GPU and otherwise", "name one of them")
            )
        if self.exclusive and self.shared:
            contradictions.append(
                (
                    "shared",
                    "a job cannot have its nodes for itself and share them",
                    "name one of them",
                )
            )
        if both := set(self.required) & set(self.excluded):
            contradictions.append(
                ("excluded", f"{min(both)} is required and excluded", "name it in one of the lists")
            )
        return contradictions

    def with_memory(self, *, per_node: int | None = None) -> ResourceRequest:
        """Return the request with this memory of each node, in place of what it requests."""
        return msgspec.structs.replace(
            self, memory_per_node=per_node, memory_per_cpu=None, memory_per_gpu=None
        )

    def with_preference(self) -> ResourceRequest:
        """Return the request with its preferred features as constraint."""
        return msgspec.structs.replace(self, constraint=self.prefer, prefer="")

    @property
    def least_tasks(self) -> int:
        """Number of tasks: at least one per node."""
        return max(self.nodes, self.tasks or self.nodes)

    @property
    def gpu_count(self) -> int:
        """GPUs that are requested for all nodes together."""
        per_node = sum(count for _, count in self.gpus)
        per_task = sum(count for _, count in self.gpus_per_task)
        total = 0 if self.total_gpus is None else self.total_gpus.number
        by_tasks = -(-self.least_tasks * per_task // (self.tasks_per_gpu or 1))
        return self.nodes * per_node + by_tasks + total

    @property
    def cpus(self) -> int:
        """CPUs that are requested for all nodes together, as Slurm counts them before the start."""
        return max(self.task_cpus, self.gpu_count * (self.cpus_per_gpu or 0))

    @property
    def task_cpus(self) -> int:
        """CPUs that are requested for all nodes together, but by GPUs."""
        return max(self.least_tasks * self.cpus_per_task, self.min_cpus or 1)


_LEAST = {
    "nodes": 1,
    "max_nodes": 1,
    "tasks": 1,
    "tasks_per_node": 1,
    "cpus_per_task": 1,
    "cpus_per_node": 1,
    "min_cpus": 1,
    "tasks_per_gpu": 1,
    "cpus_per_gpu": 1,
    "memory_per_gpu": 1,
    "memory_per_node": ALL_MEMORY,
    "memory_per_cpu": 1,
    "tmp": 0,
}
