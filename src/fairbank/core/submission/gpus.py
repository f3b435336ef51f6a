"""GPUs that the options of a job or a step request: on each node, for each task, or in all."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.gres import GPU, Gres

OPTIONS = ("gpus", "gpus-per-node", "gpus-per-task", "gres")
"""Options that request GPUs."""
VARIABLES: Mapping[str, str] = {
    "gpus": "SLURM_GPUS",
    "gpus-per-node": "SLURM_GPUS_PER_NODE",
    "gpus-per-task": "SLURM_GPUS_PER_TASK",
    "cpus-per-gpu": "SLURM_CPUS_PER_GPU",
    "mem-per-gpu": "SLURM_MEM_PER_GPU",
    "ntasks-per-gpu": "SLURM_NTASKS_PER_GPU",
    "gpu-bind": "SLURM_GPU_BIND",
}
"""Variables of a job that have such an option as it was written, so that its steps follow it."""


_EXCLUSIVE: Mapping[str, tuple[str, ...]] = {
    "ntasks-per-gpu": ("gpus-per-task", "ntasks-per-node"),
    "cpus-per-gpu": ("cpus-per-task",),
}
"""Options, and those that must not be given besides."""


class RequestedGpus(NamedTuple):
    """Requested GPUs: one of the three, and in the first two each type once.

    `per_node` None: nothing was requested, not even `--gres=none`. `tasks_each` are the tasks that
    have a GPU together (--ntasks-per-gpu); None: nothing was requested.
    """

    per_node: tuple[Gres, ...] | None = None
    per_task: tuple[Gres, ...] = ()
    total: Gres | None = None
    tasks_each: int | None = None


def requested_gpus(values: Mapping[str, Any], *, is_step: bool = False) -> RequestedGpus:
    """Return the GPUs that options request.

    --gpus together with the GPUs of a node gives the number of nodes, and with those of a task the
    number of tasks (`resources`).

    Args:
        values: values of the options by long name.
        is_step: a step has tasks without --ntasks, too.

    Raises:
        InvalidInput: the options contradict each other, or request what is not supported.
    """
    of_node = _counts(values, "gpus-per-node")
    of_gres = _counts(values, "gres")
    per_task, in_all = _counts(values, "gpus-per-task"), _counts(values, "gpus")
    if of_node and of_gres:
        raise _invalid("--gres and --gpus-per-node both name the GPUs of a node", "leave one out")
    per_node = of_node or of_gres
    if per_node and per_task:
        raise _invalid(
            "GPUs are requested both for each node and for each task", "leave one of them out"
        )
    if len(in_all) > 1:
        raise _invalid(
            "--gpus names several types", "name the GPUs of each node: --gres=gpu:a100:2,gpu:t4:1"
        )
    total = in_all[0] if in_all else None
    if total is not None and per_node:
        _check_nodes(total, per_node)
        total = None
    if per_task:
        _check_tasks(values, per_task, total, is_step=is_step)
        total = None
    nodes = values["nodes"].least if "nodes" in values else 1
    count = _sum(in_all) or _sum(per_node) * nodes
    _check_sizes(values, count, is_step=is_step)
    is_named = any(name in values for name in OPTIONS)
    tasks_each = values.get("ntasks-per-gpu")
    if tasks_each is not None and not (per_node or total):
        total, is_named = _gpus_of_tasks(values, tasks_each), True
    return RequestedGpus(per_node if is_named else None, per_task, total, tasks_each)


def _check_sizes(values: Mapping[str, Any], count: int, *, is_step: bool) -> None:
    """Check what is requested for each of so many GPUs; 0: of those of the tasks, if any."""
    for name, others in _EXCLUSIVE.items():
        for other in others if name in values else ():
            if other in values:
                raise _invalid(f"--{name} and --{other} are mutually exclusive", "leave one out")
    for name in ("cpus-per-gpu", "mem-per-gpu"):
        # A step may have all GPUs of its job. With --ntasks-per-gpu, the tasks say how many.
        has_gpus = count or {"gpus-per-task", "ntasks-per-gpu"} & values.keys()
        if name in values and not (has_gpus or is_step):
            raise _invalid(f"--{name} needs GPUs", "request some: --gpus=1")
    tasks_each, tasks = values.get("ntasks-per-gpu"), values.get("ntasks")
    if tasks_each is None or not count or tasks is None:
        return
    if tasks > count * tasks_each or (tasks < count * tasks_each and not is_step):
        raise _invalid(
            f"{count} GPUs with {tasks_each} tasks each are not the {tasks} tasks of --ntasks",
            "leave out -n, or the GPUs",
        )


def _gpus_of_tasks(values: Mapping[str, Any], tasks_each: int) -> Gres:
    """Return the GPUs that so many tasks on each of them need."""
    nodes = values.get("nodes")
    tasks = values.get("ntasks")
    if tasks is None and nodes is not None and nodes.least == nodes.most:
        tasks = nodes.least * tasks_each
    if tasks is None:
        raise _invalid("--ntasks-per-gpu needs GPUs, or tasks", "add --gpus or -n")
    if tasks % tasks_each:
        raise _invalid("-n/--ntasks has to be a multiple of --ntasks-per-gpu", "change one of them")
    return Gres(GPU, "", tasks // tasks_each)


def _counts(values: Mapping[str, Any], name: str) -> tuple[Gres, ...]:
    """Return the GPUs of an option, each type once and with its number."""
    counts: dict[str, int] = {}
    for gres in values.get(name, ()):
        if gres.name != GPU:
            raise _invalid(f"there is no generic resource {gres.name[:40]!a}", "request gpu")
        counts[gres.type] = max(counts.get(gres.type, 0), gres.number)
    if "" in counts and len(counts) > 1:
        raise _invalid(f"--{name} has GPUs with and without a type", "name the type of all or none")
    return tuple(Gres(GPU, kind, count) for kind, count in counts.items() if count)


def _sum(gpus: Iterable[Gres]) -> int:
    return sum(gres.number for gres in gpus)


def _check_nodes(total: Gres, per_node: tuple[Gres, ...]) -> None:
    if total.number % _sum(per_node) or {total.type, ""} - {"", *(gres.type for gres in per_node)}:
        raise _invalid(
            f"--gpus={total.number} is no multiple of the {_sum(per_node)} GPUs of a node",
            "leave one of them out",
        )


def _check_tasks(
    values: Mapping[str, Any], per_task: tuple[Gres, ...], total: Gres | None, *, is_step: bool
) -> None:
    tasks = values.get("ntasks")
    if total is None and tasks is None and not is_step:
        raise _invalid(
            "--gpus-per-task used without either --gpus or -n/--ntasks is not allowed", "add -n"
        )
    if "overcommit" in values:
        raise _invalid("--gpus-per-task and --overcommit exclude each other", "leave one out")
    if total is None:
        return
    if total.number % _sum(per_task) or (tasks and tasks != total.number // _sum(per_task)):
        raise _invalid(
            "Based on --gpus and --gpus-per-task number of requested tasks differ from -n/--ntasks",
            "leave one of them out",
        )


def _invalid(message: str, remedy: str) -> InvalidInput:
    return InvalidInput(message, field="gres", remedy=remedy)
