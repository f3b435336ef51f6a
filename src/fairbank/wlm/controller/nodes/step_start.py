"""Start message of a step: environment and files of its tasks, their programs and CPUs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple, cast

from fairbank.core.hostlist import compress
from fairbank.core.submission.file_patterns import Symbols, expand_pattern, task_symbols
from fairbank.core.submission.task_cpus import CpuBinding
from fairbank.core.submission.task_gpus import GpuBinding
from fairbank.wlm.controller.nodes.job_environment import run_lengths, to_entries
from fairbank.wlm.core.effects import StartTasks
from fairbank.wlm.core.steps.step import StepGrant, WlmStep
from fairbank.wlm.protocol.commands import CreateStepRequest
from fairbank.wlm.protocol.messages import StartStep, TaskStart


class StepLaunch(NamedTuple):
    """Launch of a step: the request of srun, its options as values, and the symbols of file
    patterns that all tasks share.
    """

    request: CreateStepRequest
    options: Mapping[str, Any]
    symbols: Symbols

    @property
    def binding(self) -> CpuBinding:
        binding: CpuBinding = self.options.get("cpu-bind", CpuBinding())
        return binding

    @property
    def gpu_binding(self) -> GpuBinding:
        """Binding to GPUs: as --gpu-bind says, or as other options imply."""
        default = GpuBinding()
        if number := sum(gres.number for gres in self.options.get("gpus-per-task", ())):
            default = GpuBinding("per_task", number)
        if together := self.options.get("ntasks-per-gpu"):
            default = GpuBinding("single", together)
        binding: GpuBinding = self.options.get("gpu-bind", default)
        return binding

    def program(self, option: str) -> tuple[str, ...]:
        """Return the path of the program that an option names; nothing if there is none."""
        name = self.options.get(option)
        return (str(PurePosixPath(self.request.directory, name)),) if name else ()

    def path(self, pattern: str, symbols: Symbols) -> str:
        """Return the path of a file; empty for a stream."""
        if not pattern:
            return ""
        path = expand_pattern(pattern, self.symbols | symbols, field="output")
        return str(PurePosixPath(self.request.directory, path))


def start_step_message(
    start: StartTasks,
    node: str,
    cpus_of_cores: Mapping[int, Sequence[int]],
    run_gpus: tuple[int, ...] = (),
    *,
    counts_own_gpus: bool = False,
) -> StartStep:
    """Return the message that starts the tasks of a step on a node.

    Args:
        start: the effect of the core; its `launch` is a StepLaunch.
        node: name of the node.
        cpus_of_cores: CPUs of this host by the number of the core; empty: nothing is bound.
        run_gpus: GPUs of its run on the node.
        counts_own_gpus: a list of GPUs counts those of the step, since it can open no others.

    Raises:
        InvalidInput: a file pattern has a symbol whose value has a slash.
    """
    step = start.step
    launch = cast("StepLaunch", start.launch)
    request = launch.request
    names = [grant.node for grant in step.grants]
    grant = step.grants[names.index(node)]
    # A larger number is the name of a file, which srun gives to all tasks.
    is_task = (request.input_rank or 0) < sum(len(one.ranks) for one in step.grants)
    return StartStep(
        run=step.run,
        step=step.number,
        node_index=names.index(node),
        tasks=tuple(_tasks(step, grant, launch, names.index(node), cpus_of_cores, counts_own_gpus)),
        arguments=request.arguments,
        environment=(
            *filter(None, request.environment.split(b"\0")),
            *to_entries(step_variables(step, grant)),
        ),
        directory=request.directory,
        append=launch.options.get("open-mode") == "append",
        input_rank=request.input_rank if is_task else None,
        terminal=request.terminal,
        shows_cpus=launch.binding.is_verbose,
        shows_gpus=launch.gpu_binding.is_verbose,
        prologs=launch.program("task-prolog"),
        epilogs=launch.program("task-epilog"),
        umask=request.umask,
        limits=request.limits,
        gpus=grant.gpus,
        run_gpus=run_gpus,
    )


def _tasks(
    step: WlmStep,
    grant: StepGrant,
    launch: StepLaunch,
    node_index: int,
    cpus_of_cores: Mapping[int, Sequence[int]],
    counts_own_gpus: bool,
) -> list[TaskStart]:
    tasks = []
    cpus = [cpu for core in grant.cores for cpu in cpus_of_cores.get(core, ())]
    per_task = step.request.cpus_per_task
    for local, rank in enumerate(grant.ranks):
        symbols = task_symbols(step.run.job_id, step.number, grant.node, node_index, rank)
        own = cpus[local * per_task : (local + 1) * per_task]
        # More tasks than cores: all have all of them.
        own = own if len(own) == per_task and not step.request.overcommit else cpus
        gpus = tuple(launch.gpu_binding.gpus_of(local, grant.gpus, is_relative=counts_own_gpus))
        if gpus == grant.gpus and not launch.gpu_binding.is_verbose:
            gpus = ()  # as the step says
        tasks.append(
            TaskStart(
                rank,
                launch.request.programs.get(rank, ()),
                tuple(launch.binding.cpus_of(local, own, cpus)),
                input=launch.path(launch.request.input, symbols),
                output=launch.path(launch.options.get("output", ""), symbols),
                error=launch.path(launch.options.get("error", ""), symbols),
                gpus=gpus,
            )
        )
    return tasks


def step_variables(step: WlmStep, grant: StepGrant) -> dict[str, str]:
    """Return the variables of the tasks of a step on one of its nodes."""
    names = compress([one.node for one in step.grants])
    counts = [len(one.ranks) for one in step.grants]
    tasks = str(sum(counts))
    variables = {
        "SLURM_STEP_ID": str(step.number),
        "SLURM_STEPID": str(step.number),
        "SLURM_STEP_NODELIST": names,
        "SLURM_STEP_NUM_NODES": str(len(counts)),
        "SLURM_STEP_NUM_TASKS": tasks,
        "SLURM_STEP_TASKS_PER_NODE": run_lengths(counts),
        "SLURM_NTASKS": tasks,
        "SLURM_NPROCS": tasks,
        "SLURM_NNODES": str(len(counts)),
        "SLURM_NODELIST": names,
        "SLURM_TASKS_PER_NODE": run_lengths(counts),
        "SLURM_CPUS_ON_NODE": str(len(grant.cores)),
        "SLURM_DISTRIBUTION": step.request.distribution,
    }
    if step.request.cpus_per_task > 1:
        variables["SLURM_CPUS_PER_TASK"] = str(step.request.cpus_per_task)
    return variables
