"""Steps as srun asks for them: its options become a request for the core, and a launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.hostlist import expand
from fairbank.core.submission.options import read_values
from fairbank.core.submission.resources import node_range
from fairbank.core.submission.support import check_supported
from fairbank.core.submission.values import Distribution
from fairbank.wlm.controller.commands.submissions import check_words
from fairbank.wlm.controller.nodes.step_start import StepLaunch
from fairbank.wlm.core.events import CreateStep
from fairbank.wlm.core.jobs import WlmJob
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.core.steps.step import StepDistribution, StepRequest
from fairbank.wlm.protocol.commands import CreateStepRequest

TASKS_MAX = 10_000
"""Most tasks of a step: each has three pipes to its step daemon, on one host."""


def build_step(request: CreateStepRequest, state: CoreState) -> CreateStep:
    """Return the request for the core.

    Raises FairbankError if an option has a bad value or is not supported, or the job is unknown.
    """
    job = state.jobs.get(request.job)
    if job is None:
        raise NotFound(
            f"there is no job {request.job}", field="job", remedy="squeue lists the jobs"
        )
    check_supported(request.options)
    words = (*request.arguments, *(word for words in request.programs.values() for word in words))
    check_words(request.environment, words)
    values = read_values(request.options, "srun")
    launch = StepLaunch(
        arguments=request.arguments,
        programs=request.programs,
        environment=tuple(entry for entry in request.environment.split(b"\0") if entry),
        directory=request.directory,
        umask=request.umask,
        limits=request.limits,
        input=request.input,
        output=values.get("output", ""),
        error=values.get("error", ""),
        append=values.get("open-mode") == "append",
        symbols=_symbols(job),
        input_rank=request.input_rank,
        terminal=request.terminal,
    )
    return CreateStep(request.job, _step_request(request, values), launch)


def _step_request(request: CreateStepRequest, values: Mapping[str, Any]) -> StepRequest:
    shape: Distribution = values.get("distribution", Distribution("block"))
    named = tuple(expand(values.get("nodelist", ""), field="--nodelist"))
    if shape.kind == "arbitrary" and not named:
        raise InvalidInput(
            "the distribution arbitrary needs the node of each task",
            field="--distribution",
            remedy="name them with --nodelist",
        )
    tasks = values.get("ntasks")
    if (tasks or 0) > TASKS_MAX:
        raise InvalidInput(
            f"{tasks:,} tasks are too many for one step",
            field="--ntasks",
            remedy=f"at most {TASKS_MAX:,}",
        )
    has_nodes = "nodes" in values
    return StepRequest(
        name=values.get("job-name") or (request.arguments or ("",))[0].rpartition("/")[2],
        tasks=tasks,
        cpus_per_task=values.get("cpus-per-task", 1),
        tasks_per_node=values.get("ntasks-per-node"),
        nodes=node_range(values).least if has_nodes else None,
        named=named if shape.kind == "arbitrary" else tuple(dict.fromkeys(named)),
        excluded=tuple(expand(values.get("exclude", ""), field="--exclude")),
        relative=values.get("relative"),
        distribution=cast("StepDistribution", shape.kind),
        plane=shape.together,
        exact="exact" in values or "exclusive" in values,
        overlap="overlap" in values,
        overcommit="overcommit" in values,
        submit_line=request.submit_line,
    )


def _symbols(job: WlmJob) -> dict[str, int | str]:
    """Return the symbols of file patterns that all tasks share, but those of the step."""
    request = job.request
    symbols: dict[str, int | str] = {
        "A": request.array or request.number,
        "j": request.number,
        "u": request.user,
        "x": job.submission.name,
    }
    return symbols | ({"a": request.task} if request.array is not None else {})
