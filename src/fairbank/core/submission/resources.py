"""Tasks and nodes that follow from the options of a job, as sbatch derives them.

The functions take the values of the options by name (`options.read_values`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairbank.core.gres import GPU
from fairbank.core.hostlist import expand
from fairbank.core.submission.values import NodeRange


def requested_tasks(job: Mapping[str, Any]) -> int | None:
    """Return the tasks that --ntasks requests, or GPUs with --gpus-per-task or --ntasks-per-gpu."""
    tasks: int | None = job.get("ntasks")
    gpus, per_task = _gpus(job, "gpus"), _gpus(job, "gpus-per-task")
    if tasks is None and (tasks_each := job.get("ntasks-per-gpu")):
        nodes = named_nodes(job).least
        per_node = _gpus(job, "gpus-per-node") or _gpus(job, "gres")
        return (gpus or per_node * nodes or nodes) * int(tasks_each)
    return tasks or (-(-gpus // per_task) if gpus and per_task else None)


def cpus_per_task(job: Mapping[str, Any]) -> int:
    """Return the CPUs of a task: of --cpus-per-task, or those of its GPUs."""
    of_gpus = job.get("cpus-per-gpu", 0) * _gpus(job, "gpus-per-task")
    return int(job.get("cpus-per-task") or of_gpus or 1)


def named_nodes(job: Mapping[str, Any]) -> NodeRange:
    """Return the number of nodes of --nodes and --nodelist."""
    given: NodeRange = job.get("nodes", NodeRange(1, None))
    return given._replace(least=max(given.least, len(_hosts(job))))


def node_range(job: Mapping[str, Any]) -> NodeRange:
    """Return the number of nodes: at least as many as the counts for each node need."""
    tasks, tasks_per_node = requested_tasks(job), job.get("ntasks-per-node")
    given = named_nodes(job)
    gpus, per_node = _gpus(job, "gpus"), _gpus(job, "gpus-per-node") or _gpus(job, "gres")
    by_tasks = -(-tasks // tasks_per_node) if tasks and tasks_per_node else 1
    needed = max(by_tasks, -(-gpus // per_node) if gpus and per_node else 1)
    if tasks and tasks < given.least:
        # sbatch: can't run 2 processes on 4 nodes, setting nnodes to 2
        given = NodeRange(tasks, tasks)
    least, most = (
        None if count is None else max(min(count, tasks or count), needed) for count in given
    )
    return NodeRange(least or 1, most)


def step_nodes(job: Mapping[str, Any]) -> NodeRange:
    """Return the number of nodes of a step: at most one for each task."""
    given, tasks = named_nodes(job), requested_tasks(job)
    return NodeRange(tasks, tasks) if tasks and tasks < given.least else given


def tasks_per_node_of_step(job: Mapping[str, Any]) -> int | None:
    """Return --ntasks-per-node, unless the numbers of tasks and nodes contradict it."""
    per_node: int | None = job.get("ntasks-per-node")
    tasks = requested_tasks(job)
    if per_node and tasks and "nodes" in job and tasks != per_node * step_nodes(job).least:
        return None
    return per_node


def required_hosts(job: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the nodes of --nodelist; of several, as many as there are tasks."""
    return _hosts(job)[: requested_tasks(job)]


def _hosts(job: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(expand(job.get("nodelist", ""), field="--nodelist")))


def _gpus(job: Mapping[str, Any], name: str) -> int:
    return sum(gres.number for gres in job.get(name, []) if gres.name == GPU)
