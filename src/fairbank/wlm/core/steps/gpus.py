"""GPUs that a step gets of those of its job.

A step that names no GPUs gets all that its job has on its nodes, as in Slurm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from fairbank.cluster.node import Node
from fairbank.core.errors import InvalidInput

if TYPE_CHECKING:
    from fairbank.wlm.core.jobs import NodeGrant
    from fairbank.wlm.core.steps.step import StepRequest, WlmStep

GpuTypes = Mapping[str, Sequence[str]]
"""Type of each GPU of a node by its number, by the name of the node."""


def gpu_types(nodes: Iterable[Node]) -> dict[str, tuple[str, ...]]:
    """Return the type of each GPU by its number, as `scheduling.placement.bindings` counts them."""
    return {
        node.name: tuple(kind for kind, count in node.gpus for _ in range(count)) for node in nodes
    }


class StepGpus:
    """GPUs of the nodes of a job: what a step may have, and what others have left of it."""

    def __init__(self, request: StepRequest, types: GpuTypes, others: Iterable[WlmStep]) -> None:
        self._request, self._types = request, types
        self._taken: dict[str, set[int]] = {}
        for step in others:
            if not (request.overlap or step.request.overlap):
                for grant in step.grants:
                    if grant.node in step.left:
                        self._taken.setdefault(grant.node, set()).update(grant.gpus)

    def is_able(self, grant: NodeGrant) -> bool:
        """Return True if a node has enough for a task, if no other step has any of it."""
        return self._pick(grant, 1, grant.binding.gpus) is not None

    def is_free(self, grant: NodeGrant) -> bool:
        """Return True if enough for a task is free on a node."""
        return self._pick(grant, 1, self.free(grant)) is not None

    def free(self, grant: NodeGrant) -> tuple[int, ...]:
        """Return the GPUs of a node that no other step has."""
        taken = self._taken.get(grant.binding.node, ())
        return tuple(gpu for gpu in grant.binding.gpus if gpu not in taken)

    def are_taken(self, grants: Iterable[NodeGrant]) -> bool:
        """Return True if another step has a GPU of these nodes."""
        return any(self.free(grant) != grant.binding.gpus for grant in grants)

    def most_tasks(self, grant: NodeGrant, tasks: int, *, whole: bool = False) -> int:
        """Return how many of these tasks have GPUs on a node; `whole`: if it were empty."""
        numbers = grant.binding.gpus if whole else self.free(grant)
        total, together = self._request.total_gpus, self._request.tasks_per_gpu
        if total is not None and together is not None:
            return min(tasks, self.count([grant], whole=whole) * together)
        if not self._request.gpus_per_task:
            return tasks
        types = [self._type(grant, number) for number in numbers]
        counts = (
            (types.count(kind) if kind else len(types)) // count
            for kind, count in self._request.gpus_per_task
        )
        return min(tasks, *counts)

    def assign(self, grants: Sequence[NodeGrant], tasks: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the GPUs of a step on each of its nodes; those of a task are adjacent.

        Args:
            grants: its nodes, which have enough.
            tasks: number of its tasks on each.
        """
        total, assigned = self._request.total_gpus, []
        left = 0 if total is None else total.number
        for at, (grant, count) in enumerate(zip(grants, tasks, strict=True)):
            numbers = self.free(grant)
            if total is not None:
                here = [one for one in numbers if total.type in ("", self._type(grant, one))]
                behind = min(len(grants) - at - 1, left)
                own = here[: max(left - behind, min(left, 1))]
                if (together := self._request.tasks_per_gpu) is not None:
                    own = own[: -(-count // together)]
                left -= len(own)
                assigned.append(tuple(own))
            else:
                assigned.append(self._pick(grant, count, numbers) or ())
        return assigned

    def count(self, grants: Iterable[NodeGrant], *, whole: bool = False) -> int:
        """Return how many GPUs of the requested type nodes have free; `whole`: if they were empty.

        Only for a step that requests a number for all of its nodes.
        """
        total = self._request.total_gpus
        return sum(
            total is not None and total.type in ("", self._type(grant, number))
            for grant in grants
            for number in (grant.binding.gpus if whole else self.free(grant))
        )

    def _type(self, grant: NodeGrant, number: int) -> str:
        types = self._types.get(grant.binding.node, ())
        return types[number] if number < len(types) else ""

    def _pick(self, grant: NodeGrant, tasks: int, numbers: Sequence[int]) -> tuple[int, ...] | None:
        """Return the GPUs for so many tasks on a node, of these; None if they are too few."""
        request = self._request
        if request.total_gpus is not None:
            return ()
        if request.gpus_per_task:
            wanted = request.gpus_per_task * tasks
        elif request.gpus is None:
            return grant.binding.gpus if len(numbers) == len(grant.binding.gpus) else None
        else:
            wanted = request.gpus
        left, picked = list(numbers), list[int]()
        for kind, count in wanted:
            own = [number for number in left if kind in ("", self._type(grant, number))][:count]
            if len(own) < count:
                return None
            picked += own
            left = [number for number in left if number not in own]
        return tuple(picked)


def too_few_gpus(request: StepRequest, grants: Iterable[NodeGrant]) -> InvalidInput:
    """Return the error for a step that asks for GPUs that its job does not have."""
    has = sum(len(grant.binding.gpus) for grant in grants)
    wanted = (request.total_gpus,) if request.total_gpus else request.gpus_per_task or request.gpus
    named = ",".join(f"{kind}:{count}".lstrip(":") for kind, count in wanted or ())
    return InvalidInput(
        f"the step asks for the GPUs {named}, and its job has {has} GPUs that it may use",
        field="gres",
        remedy="scontrol -d show job lists them",
    )
