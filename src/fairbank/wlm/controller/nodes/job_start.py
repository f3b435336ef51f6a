"""Start message of a run: environment, paths of its files, binding. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from fairbank.cluster.node import Node
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.submission.file_patterns import expand_pattern, task_symbols
from fairbank.wlm.controller.job_files import output_pattern, symbols_of
from fairbank.wlm.controller.nodes.job_environment import run_variables, to_entries
from fairbank.wlm.core.effects import StartRun
from fairbank.wlm.protocol.messages import StartJob

_IDLE = "/bin/sleep", "100000000"
"""Program on the nodes of a job that do not run a batch script: it holds the run there."""


class StartDetails(NamedTuple):
    """Details of a start beside the effect of the core.

    `wanted` are the resources that the job requests, with the defaults of its partition.
    `array_tasks` are the numbers of all tasks of its array. `cpus` are those to which it is bound;
    empty: none. `appends` is JobFileAppend. `now` is in seconds since 1970. `has_memory`: jobs have
    as much memory as they request.
    """

    script: bytes
    environment: bytes
    wanted: ResourceRequest
    array_tasks: Sequence[int] = ()
    cpus: tuple[int, ...] = ()
    appends: bool = False
    now: int = 0
    has_memory: bool = False


def start_message(start: StartRun, node: str, details: StartDetails) -> StartJob:
    """Return the message that starts a run on a node.

    Raises:
        InvalidInput: a file pattern has a symbol whose value has a slash.
    """
    run, submission = start.run, start.submission
    grants = run.allocation.grants if details.has_memory else ()
    memory = sum(grant.memory for grant in grants if grant.binding.node == node)
    gpus = next(one.binding.gpus for one in run.allocation.grants if one.binding.node == node)
    if node != run.batch_node or not submission.script:
        return StartJob(
            run=run.run,
            script=b"",
            arguments=_IDLE,
            environment=(b"PATH=/usr/bin:/bin",),
            directory="/",
            output="/dev/null",
            seconds=start.seconds,
            memory=memory,
            gpus=gpus,
        )
    variables = run_variables(start, details.wanted, details.array_tasks, details.now)
    return StartJob(
        run=run.run,
        script=details.script,
        arguments=submission.arguments,
        environment=(
            *(entry for entry in details.environment.split(b"\0") if entry),
            *to_entries(variables),
        ),
        directory=submission.directory,
        input=_path(start, submission.input, "input") or "/dev/null",
        output=_path(start, output_pattern(start.request, submission), "output"),
        error=_path(start, submission.error, "error"),
        append=submission.open_mode == "append" or (not submission.open_mode and details.appends),
        umask=submission.umask,
        limits=dict(submission.limits),
        cpus=details.cpus,
        seconds=start.seconds,
        memory=memory,
        gpus=gpus,
    )


def bound_cpus(start: StartRun, nodes: Sequence[Node], host: Sequence[int]) -> tuple[int, ...]:
    """Return the CPUs of this host to which a run is bound on its first node.

    A host that has too few binds nothing.
    """
    binding = start.run.allocation.grants[0].binding
    by_core = cpus_by_core(binding.node, nodes, host)
    if not by_core.keys() >= set(binding.cores):
        return ()
    return tuple(cpu for core in binding.cores for cpu in by_core[core])


def cpus_by_core(
    name: str, nodes: Sequence[Node], host: Sequence[int]
) -> dict[int, tuple[int, ...]]:
    """Return the CPUs of this host by the cores of a node; cores for which it has too few are left
    out.

    The nodes have the CPUs of the host in their order; those of a core are adjacent.
    """
    first = 0
    for node in nodes:
        if node.name == name:
            ends = range(first + node.threads, len(host) + 1, node.threads)
            return {
                core: tuple(host[end - node.threads : end])
                for core, end in zip(range(node.cores), ends, strict=False)
            }
        first += node.cpus
    return {}


def _path(start: StartRun, pattern: str, field: str) -> str:
    """Return the path of a file of the job; empty for an empty pattern."""
    if not pattern:
        return ""
    symbols = symbols_of(start.request, start.submission)
    symbols |= task_symbols(start.request.number, node=start.run.batch_node)
    path = expand_pattern(pattern, symbols, field=field)
    return str(PurePosixPath(start.submission.directory, path))
