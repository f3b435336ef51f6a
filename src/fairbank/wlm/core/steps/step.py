"""Steps of a running job: what is requested, what a step has of its job, and the layout of tasks.

A step has cores of its job (W12). Steps that do not overlap never share one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from fairbank.cluster.job import Run
from fairbank.cluster.node import Gpus
from fairbank.core.errors import Conflict, InvalidInput, Unavailable
from fairbank.wlm.core.jobs import Moment, NodeGrant, RunAllocation, WlmRun
from fairbank.wlm.core.steps.gpus import GpuTypes, StepGpus, too_few_gpus
from fairbank.wlm.protocol.messages import StoredUsage

StepDistribution = Literal["block", "cyclic", "plane", "arbitrary"]


class StepRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Request of a step.

    `nodes` None: as many as its tasks can use; at most `nodes_max`, if there are so many. `named`
    are nodes that it must have, with distribution "arbitrary" the node of each task. `relative` is
    the number of its first node within the job. `plane` is the number of tasks that stay together.
    `exact`: it takes the cores that it asks for, and not all of its nodes. `overlap`: it shares
    them with other steps. `overcommit`: a core may have several tasks. `gpus` are those of each
    node; None: all that the job has there, unless `gpus_per_task` or `total_gpus` says how many.
    """

    name: str = ""
    tasks: int | None = None
    cpus_per_task: int = 1
    tasks_per_node: int | None = None
    nodes: int | None = None
    nodes_max: int | None = None
    named: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    relative: int | None = None
    distribution: StepDistribution = "block"
    plane: int = 1
    exact: bool = False
    overlap: bool = False
    overcommit: bool = False
    gpus: tuple[Gpus, ...] | None = None
    gpus_per_task: tuple[Gpus, ...] = ()
    total_gpus: Gpus | None = None
    submit_line: str = ""

    @property
    def shares(self) -> bool:
        """True if it may have cores that other steps have."""
        return self.overlap or self.overcommit


class StepGrant(msgspec.Struct, frozen=True):
    """Tasks, cores and GPUs of a step on one node. Each task has its part of the cores, in their
    order; with `overcommit` all tasks have all of them. So it is with the GPUs of a step that
    requests them by task; else all tasks have all.
    """

    node: str
    ranks: tuple[int, ...]
    cores: tuple[int, ...]
    gpus: tuple[int, ...] = ()


class WlmStep(msgspec.Struct, frozen=True, kw_only=True):
    """Step that has cores.

    started    time of its allocation
    left       nodes whose tasks have not ended
    status     status of wait(2): that of a signal, else the highest of its tasks so far
    end        reason of the request that ended it; empty: none
    usage      that of the nodes that have ended
    paused     seconds of suspensions that its run had had before
    """

    run: Run
    number: int
    uid: int
    request: StepRequest
    grants: tuple[StepGrant, ...]
    started: Moment
    left: tuple[str, ...]
    status: int = 0
    end: str = ""
    canceller: int | None = None
    usage: StoredUsage = StoredUsage()
    paused: int = 0

    @property
    def key(self) -> str:
        """Key of its row."""
        return f"{self.run}.{self.number}"

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(grant.node for grant in self.grants)

    def ran(self, run: WlmRun, now: Moment) -> int:
        """Return for how many seconds it has run, as a step of its run."""
        return max(now.mono - self.started.mono - self.suspended(run, now), 0)

    def suspended(self, run: WlmRun, now: Moment) -> int:
        """Return for how many seconds it was suspended with its run."""
        return run.paused_until(now) - self.paused

    @property
    def tasks(self) -> int:
        """Number of its tasks."""
        return sum(len(grant.ranks) for grant in self.grants)


class EndedStep(msgspec.Struct, frozen=True, kw_only=True):
    """Accounting record of a step. `ended` is in seconds since 1970, `elapsed` in seconds, without
    those for which it was `suspended`.
    """

    step: WlmStep
    state: str
    ended: int
    elapsed: int
    suspended: int = 0


BUSY = "Requested nodes are busy"
"""Slurm's sentence for a step that must wait for others."""


def place_step(
    request: StepRequest,
    allocation: RunAllocation,
    threads: int,
    others: Sequence[WlmStep],
    types: GpuTypes,
) -> tuple[StepGrant, ...]:
    """Return the tasks, cores and GPUs of a step on each of its nodes.

    Args:
        request: what it asks for.
        allocation: what its job has.
        threads: CPUs of a core.
        others: the steps of the job that run.
        types: types of the GPUs of its nodes.

    Raises:
        Unavailable: other steps have the cores or GPUs (BUSY).
        Conflict: the job has too little.
        InvalidInput: the job does not have the nodes or GPUs.
    """
    gpus = StepGpus(request, types, others)
    candidates = _candidates(request, allocation)
    grants = [grant for grant in candidates if gpus.is_able(grant)]
    if len(grants) < min(request.nodes or 1, len(candidates)):
        raise too_few_gpus(request, candidates)
    taken = _taken_cores(others, request)
    free = {
        grant.binding.node: [
            core for core in grant.binding.cores if core not in taken.get(grant.binding.node, ())
        ]
        for grant in grants
    }
    whole = {grant.binding.node: grant.binding.cores for grant in grants}
    most = _most_nodes(request, len(grants))
    usable = [
        grant
        for grant in grants
        if free[grant.binding.node]
        and gpus.is_free(grant)
        and (request.exact or len(free[grant.binding.node]) == len(whole[grant.binding.node]))
    ]
    # Named nodes are chosen first, but the tasks follow the order of the job.
    chosen = sorted(usable[:most], key=allocation.grants.index)
    is_busy = any(len(free[name]) < len(cores) for name, cores in whole.items())
    is_busy |= gpus.are_taken(grants)
    needed = request.nodes or 1
    if len(chosen) < needed:
        if is_busy and needed <= len(grants):
            raise _busy()
        raise _too_few(request, needed, len(grants) + (request.relative or 0))
    fitting = [
        gpus.most_tasks(grant, _fitting(request, len(free[grant.binding.node]) * threads))
        for grant in chosen
    ]
    tasks = request.tasks or len(chosen) * (request.tasks_per_node or 1)
    if sum(fitting) < tasks and not request.overcommit:
        at_best = sum(
            gpus.most_tasks(
                one, _fitting(request, len(whole[one.binding.node]) * threads), whole=True
            )
            for one in grants
        )
        raise _busy() if is_busy and tasks <= at_best else _too_many(tasks, grants)
    if request.nodes is None and not request.named:
        chosen, fitting = chosen[:tasks], fitting[:tasks]
    if request.total_gpus is not None and gpus.count(chosen) < request.total_gpus.number:
        has_enough = gpus.count(grants, whole=True) >= request.total_gpus.number
        raise _busy() if has_enough else too_few_gpus(request, grants)
    names = [grant.binding.node for grant in chosen]
    ranks = lay_out(request, names, fitting, tasks)
    numbers = gpus.assign(chosen, [len(own) for own in ranks])
    return tuple(
        StepGrant(name, own, tuple(_cores(request, len(own), free[name], threads)), own_gpus)
        for name, own, own_gpus in zip(names, ranks, numbers, strict=True)
        if own
    )


def _cores(request: StepRequest, tasks: int, free: Sequence[int], threads: int) -> Sequence[int]:
    """Return the cores that the tasks of a node get."""
    count = -(-tasks * request.cpus_per_task // threads)
    return free[:count] if request.exact else free


def _candidates(request: StepRequest, allocation: RunAllocation) -> list[NodeGrant]:
    """Return the nodes of the job that a step may have, in their order."""
    grants = list(allocation.grants)
    known = [grant.binding.node for grant in grants]
    missing = [name for name in (*request.named, *request.excluded) if name not in known]
    if missing:
        raise InvalidInput(
            f"node {missing[0][:40]!a} is not among those of the job",
            field="nodelist",
            remedy=f"its nodes are {', '.join(known[:20])}",
        )
    if request.relative is not None:
        if request.relative >= len(grants):
            raise _too_few(request, request.nodes or 1, len(grants))
        grants = grants[request.relative :]
    grants = [grant for grant in grants if grant.binding.node not in request.excluded]
    # Named nodes come first; with "arbitrary" or as many nodes as named ones there are no others.
    named = [grant for grant in grants if grant.binding.node in request.named]
    rest = [grant for grant in grants if grant.binding.node not in request.named]
    only_named = request.named and (
        request.distribution == "arbitrary" or request.nodes in (None, len(set(request.named)))
    )
    return named if only_named else [*named, *rest]


def _taken_cores(others: Iterable[WlmStep], request: StepRequest) -> Mapping[str, set[int]]:
    """Return the cores by node that the step must leave to others."""
    taken: dict[str, set[int]] = {}
    for step in others:
        if not (request.shares or step.request.overlap):
            for grant in step.grants:
                if grant.node in step.left:
                    taken.setdefault(grant.node, set()).update(grant.cores)
    return taken


def _most_nodes(request: StepRequest, available: int) -> int:
    if request.nodes is not None:
        return request.nodes_max or request.nodes
    if request.tasks is not None and request.tasks_per_node is not None:
        return -(-request.tasks // request.tasks_per_node)
    return available


def _fitting(request: StepRequest, cpus: int) -> int:
    """Return how many tasks fit on a node with so many free CPUs."""
    count = cpus // request.cpus_per_task
    return count if request.tasks_per_node is None else min(count, request.tasks_per_node)


def _busy() -> Unavailable:
    return Unavailable(BUSY, field="busy")


def _too_many(tasks: int, grants: Sequence[NodeGrant]) -> Conflict:
    cpus = sum(grant.cpus for grant in grants)
    return Conflict(
        f"the step asks for {tasks} tasks, and its job has {cpus} CPUs on {len(grants)} nodes",
        field="tasks",
        remedy="ask for fewer, or use --overcommit",
    )


def _too_few(request: StepRequest, needed: int, count: int) -> Conflict:
    first = request.relative
    text = f"Only allocated {count} nodes asked for {needed}"
    if first is not None:
        what = "--relative and --nodes option incompatible with count of allocated nodes"
        text = f"{what} ({first}+{needed}>{count})"
    elif request.excluded:
        text += "\nAre required nodes explicitly excluded?"
    return Conflict(text, field="nodes", remedy="ask for fewer")


def task_counts(fitting: Sequence[int], tasks: int) -> list[int]:
    """Return the number of tasks on each node: they go round the nodes that have free cores.

    When none has any more, they go round all of them.

    Args:
        fitting: how many tasks fit on each node.
        tasks: number of all tasks.
    """
    counts = [0] * len(fitting)
    left = tasks
    while left > 0:
        open_nodes = [at for at, count in enumerate(counts) if count < fitting[at]]
        for at in (open_nodes or range(len(counts)))[:left]:
            counts[at] += 1
            left -= 1
    return counts


def lay_out(
    request: StepRequest, nodes: Sequence[str], fitting: Sequence[int], tasks: int
) -> list[tuple[int, ...]]:
    """Return the ranks on each node, ascending.

    block: neighbours on one node; cyclic: one after the other round the nodes; plane: so many at a
    time; arbitrary: as the nodes are named.
    """
    ranks: list[list[int]] = [[] for _ in nodes]
    match request.distribution:
        case "arbitrary":
            for rank in range(tasks):
                ranks[nodes.index(request.named[rank % len(request.named)])].append(rank)
        case "plane":
            _round(ranks, fitting, tasks, request.plane)
        case "cyclic":
            _round(ranks, fitting, tasks, 1)
        case "block":
            begin = 0
            for at, count in enumerate(task_counts(fitting, tasks)):
                ranks[at] += range(begin, begin + count)
                begin += count
    return [tuple(own) for own in ranks]


def _round(ranks: list[list[int]], fitting: Collection[int], tasks: int, together: int) -> None:
    """Deal the tasks round the nodes, some at a time, while they have free cores; then anyhow.

    Each node gets one if there are enough.
    """
    rank, limits = 0, list(fitting)
    while rank < tasks:
        before = rank
        for at, (own, limit) in enumerate(zip(ranks, limits, strict=True)):
            empty = sum(1 for other in ranks[at + 1 :] if not other)
            count = min(together, limit - len(own), max(tasks - rank - empty, 1), tasks - rank)
            own += range(rank, rank + max(count, 0))
            rank += max(count, 0)
        if rank == before:
            limits = [tasks] * len(limits)
