"""Cores that a step gets of those of its job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairbank.core.errors import Conflict, Unavailable
from fairbank.wlm.core.jobs import NodeGrant
from fairbank.wlm.core.steps.step import StepRequest, WlmStep

BUSY = "Requested nodes are busy"
"""Slurm's sentence for a step that must wait for others."""


class StepCores:
    """Cores of the nodes of a job: what a step may have, and what others have left of it."""

    def __init__(self, request: StepRequest, threads: int, others: Iterable[WlmStep]) -> None:
        """`threads` are the CPUs of a core, `others` the steps of the job that run."""
        self._request, self._threads = request, threads
        self._taken: dict[str, set[int]] = {}
        for step in others:
            if not (request.shares or step.request.overlap):
                for grant in step.grants:
                    if grant.node in step.left:
                        self._taken.setdefault(grant.node, set()).update(grant.cores)

    def free(self, grant: NodeGrant) -> tuple[int, ...]:
        """Return the cores of a node that no other step has."""
        taken = self._taken.get(grant.binding.node, ())
        return tuple(core for core in grant.binding.cores if core not in taken)

    def is_usable(self, grant: NodeGrant) -> bool:
        """Return True if a node has a free core; unless the step is exact, if all are free."""
        free = len(self.free(grant))
        return free > 0 and (self._request.exact or free == len(grant.binding.cores))

    def are_taken(self, grants: Iterable[NodeGrant]) -> bool:
        """Return True if another step has a core of these nodes."""
        return any(len(self.free(grant)) < len(grant.binding.cores) for grant in grants)

    def most_tasks(self, grant: NodeGrant, *, whole: bool = False) -> int:
        """Return how many tasks fit on a node; `whole`: if it were empty."""
        cores: Sequence[int] = grant.binding.cores if whole else self.free(grant)
        cpus = len(cores) * self._threads
        if self._request.memory_per_cpu and grant.memory:
            cpus = min(cpus, grant.memory // self._request.memory_per_cpu)
        count = cpus // self._request.cpus_per_task
        most = self._request.tasks_per_node
        return count if most is None else min(count, most)

    def assign(self, grant: NodeGrant, tasks: int, gpus: int = 0) -> tuple[int, ...]:
        """Return the cores of a node that this number of tasks gets, with so many GPUs.

        Raises:
            Unavailable: other steps have those of the GPUs.
            Conflict: the job has too few for the GPUs.
        """
        request, free = self._request, self.free(grant)
        cpus = max(tasks * request.cpus_per_task, gpus * request.cpus_per_gpu)
        count = -(-cpus // self._threads)
        if request.cpus_per_gpu and count > len(free) and not request.overcommit:
            if self.are_taken([grant]):
                raise Unavailable(BUSY, field="busy")
            raise Conflict(
                f"the step asks for {cpus} CPUs with {gpus} GPUs, and its job has {grant.cpus} on"
                f" {grant.binding.node}",
                field="cpus-per-gpu",
                remedy="ask for fewer GPUs, or fewer CPUs with each",
            )
        return free[:count] if request.exact else free
