"""Cores that a step gets of those of its job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairbank.wlm.core.jobs import NodeGrant
from fairbank.wlm.core.steps.step import StepRequest, WlmStep


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
        count = len(cores) * self._threads // self._request.cpus_per_task
        most = self._request.tasks_per_node
        return count if most is None else min(count, most)

    def assign(self, grant: NodeGrant, tasks: int) -> tuple[int, ...]:
        """Return the cores of a node that this number of tasks gets."""
        count = -(-tasks * self._request.cpus_per_task // self._threads)
        free = self.free(grant)
        return free[:count] if self._request.exact else free
