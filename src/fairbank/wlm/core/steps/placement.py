"""Placement of a step: its nodes, tasks, cores and GPUs within those of its job.

A step has cores of its job (W12). Steps that do not overlap never share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from fairbank.core.errors import Conflict, InvalidInput, Unavailable
from fairbank.core.units import counted
from fairbank.wlm.core.jobs import NodeGrant, RunAllocation
from fairbank.wlm.core.steps.cores import BUSY, StepCores
from fairbank.wlm.core.steps.gpus import GpuTypes, StepGpus, too_few_gpus
from fairbank.wlm.core.steps.layout import lay_out
from fairbank.wlm.core.steps.step import StepGrant, StepRequest, WlmStep


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
    request = msgspec.structs.replace(
        request,
        named=_node_names(request.named, allocation),
        excluded=_node_names(request.excluded, allocation),
    )
    cores, gpus = StepCores(request, threads, others), StepGpus(request, types, others)
    candidates = _candidates(request, allocation)
    for grant in candidates:
        if grant.binding.node in request.named:
            _able_nodes(request, [grant], 1, gpus)
    able = _able_nodes(request, candidates, min(request.nodes or 1, len(candidates)), gpus)
    # Named nodes are chosen first, but the tasks follow the order of the job.
    nodes = sorted(_choose_nodes(request, able, cores, gpus), key=allocation.grants.index)
    tasks = request.tasks or len(nodes) * (request.tasks_per_node or 1)
    fitting = _fitting(request, tasks, able, nodes, cores, gpus)
    if request.nodes is None and not request.named:
        nodes, fitting = nodes[:tasks], fitting[:tasks]
    _check_total_gpus(request, able, nodes, gpus)
    ranks = lay_out(request, [grant.binding.node for grant in nodes], fitting, tasks)
    numbers = gpus.assign(nodes, [len(own) for own in ranks])
    return tuple(
        StepGrant(grant.binding.node, own, cores.assign(grant, len(own), len(own_gpus)), own_gpus)
        for grant, own, own_gpus in zip(nodes, ranks, numbers, strict=True)
        if own
    )


def _node_names(nodes: Iterable[str], allocation: RunAllocation) -> tuple[str, ...]:
    """Return the names of nodes of the job, which are given by name or by number within it."""
    known, names = allocation.nodes, list[str]()
    for node in nodes:
        is_number = node not in known and node.isdecimal() and int(node) < len(known)
        name = known[int(node)] if is_number else node
        if name not in known:
            numbers = "number 0" if len(known) == 1 else f"numbers 0 to {len(known) - 1}"
            raise InvalidInput(
                f"node {node[:40]!a} is not among those of the job",
                field="nodelist",
                remedy=f"its nodes are {', '.join(known[:20])}, {numbers}",
            )
        names.append(name)
    return tuple(names)


def _candidates(request: StepRequest, allocation: RunAllocation) -> list[NodeGrant]:
    """Return the nodes of the job that a step may have, in their order."""
    grants = list(allocation.grants)
    if request.relative is not None:
        if request.relative >= len(grants):
            raise _too_few(request, request.nodes or 1, len(grants))
        grants = grants[request.relative :]
    grants = [grant for grant in grants if grant.binding.node not in request.excluded]
    # Named nodes come first; with "arbitrary" or as many nodes as named ones there are no others.
    named = [grant for grant in grants if grant.binding.node in request.named]
    rest = [grant for grant in grants if grant.binding.node not in request.named]
    if len(named) < (needed := len(set(request.named))):
        raise _too_few(request, needed, len(named) + (request.relative or 0))
    only_named = request.named and (
        request.distribution == "arbitrary" or request.nodes in (None, len(set(request.named)))
    )
    return named if only_named else [*named, *rest]


def _able_nodes(
    request: StepRequest, nodes: Sequence[NodeGrant], needed: int, gpus: StepGpus
) -> list[NodeGrant]:
    """Return the nodes that have enough GPUs and memory for the step. It needs `needed` of them."""
    able = [grant for grant in nodes if gpus.is_able(grant)]
    if len(able) < needed:
        raise too_few_gpus(request, nodes)
    able = [grant for grant in able if _has_memory(request, grant)]
    if len(able) < needed:
        raise _too_little_memory(request, nodes)
    return able


def _choose_nodes(
    request: StepRequest, able: Sequence[NodeGrant], cores: StepCores, gpus: StepGpus
) -> list[NodeGrant]:
    """Return the nodes of the step, of those that have enough GPUs and memory for it.

    The step waits for each node that it names, which no other node replaces.
    """
    needed, most = request.nodes or 1, _most_nodes(request, len(able))
    if min(most, len(able)) < needed:
        raise _too_few(request, needed, len(able) + (request.relative or 0))
    usable = [grant for grant in able if cores.is_usable(grant) and gpus.is_free(grant)]
    named = [grant for grant in able if grant.binding.node in request.named]
    is_named_busy = any(
        grant not in usable
        or 0 == _most_tasks(grant, cores, gpus) < _most_tasks(grant, cores, gpus, whole=True)
        for grant in named
    )
    if len(usable) < needed or is_named_busy:
        raise Unavailable(BUSY, field="busy")
    return usable[:most]


def _most_nodes(request: StepRequest, available: int) -> int:
    if request.nodes is not None:
        most = request.nodes_max or request.nodes
        # Named nodes are chosen first, and further ones must leave them their tasks.
        return min(most, request.tasks or most) if request.named else most
    if request.tasks is not None and request.tasks_per_node is not None:
        return -(-request.tasks // request.tasks_per_node)
    return available


def _fitting(
    request: StepRequest,
    tasks: int,
    able: Sequence[NodeGrant],
    nodes: Sequence[NodeGrant],
    cores: StepCores,
    gpus: StepGpus,
) -> list[int]:
    """Return how many tasks fit on each node of the step, which must hold all tasks."""
    fitting = [_most_tasks(grant, cores, gpus) for grant in nodes]
    if sum(fitting) < tasks and not request.overcommit:
        at_best = sum(_most_tasks(grant, cores, gpus, whole=True) for grant in able)
        if tasks <= at_best and (cores.are_taken(able) or gpus.are_taken(able)):
            raise Unavailable(BUSY, field="busy")
        raise _too_many(request, tasks, able)
    return fitting


def _most_tasks(grant: NodeGrant, cores: StepCores, gpus: StepGpus, *, whole: bool = False) -> int:
    """Return how many tasks fit on a node; `whole`: if it were empty."""
    return gpus.most_tasks(grant, cores.most_tasks(grant, whole=whole), whole=whole)


def _check_total_gpus(
    request: StepRequest, able: Sequence[NodeGrant], nodes: Sequence[NodeGrant], gpus: StepGpus
) -> None:
    """Raise an error if the nodes of a step have too few GPUs for all of its tasks together."""
    if request.total_gpus is not None and gpus.count(nodes) < request.total_gpus.number:
        if gpus.count(able, whole=True) >= request.total_gpus.number:
            raise Unavailable(BUSY, field="busy")
        raise too_few_gpus(request, able)


def _has_memory(request: StepRequest, grant: NodeGrant) -> bool:
    """Return True if the job has the memory on a node. 0: it is not counted there."""
    return not grant.memory or max(request.memory, request.memory_per_cpu) <= grant.memory


def _too_little_memory(request: StepRequest, grants: Iterable[NodeGrant]) -> Conflict:
    most = max(grants, key=lambda grant: grant.memory)
    size, of_what = request.memory, "on each node"
    if request.memory_per_cpu:
        size, of_what = request.memory_per_cpu, "for each CPU"
    return Conflict(
        f"the step asks for {size}M {of_what}, and its job has {most.memory}M on"
        f" {most.binding.node}",
        field="mem",
        remedy="ask for less, or for more memory of the job",
    )


def _too_many(request: StepRequest, tasks: int, grants: Sequence[NodeGrant]) -> Conflict:
    per_task, cpus = request.cpus_per_task, sum(grant.cpus for grant in grants)
    memory = sum(grant.memory for grant in grants)
    if tasks * per_task <= cpus and 0 < memory < tasks * per_task * request.memory_per_cpu:
        return _too_little_memory(request, grants)
    size = counted(tasks, "task") + (f" of {per_task} CPUs each" if per_task > 1 else "")
    nodes = counted(len(grants), "node")
    return Conflict(
        f"the step asks for {size}, and its job has {counted(cpus, 'CPU')} on {nodes}",
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
