"""Steps as srun asks for them: its options become a request for the core, and a launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from fairbank.core.errors import InvalidInput
from fairbank.core.hostlist import expand
from fairbank.core.slurm_numbers import STEP_TASKS_MAX
from fairbank.core.submission.gpus import requested_gpus
from fairbank.core.submission.options import read_values
from fairbank.core.submission.resources import (
    cpus_per_task,
    requested_tasks,
    required_hosts,
    step_nodes,
    tasks_per_node_of_step,
)
from fairbank.core.submission.support import check_supported
from fairbank.core.submission.values import Distribution, NodeRange
from fairbank.wlm.controller.commands.submissions import as_gpus, check_words
from fairbank.wlm.controller.job_files import symbols_of
from fairbank.wlm.controller.nodes.step_start import StepLaunch
from fairbank.wlm.core.events import CreateStep
from fairbank.wlm.core.jobs import Owner
from fairbank.wlm.core.requests.known_names import unknown
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.core.steps.step import StepDistribution, StepRequest
from fairbank.wlm.protocol.commands import CreateStepRequest


def build_step(request: CreateStepRequest, srun: Owner | None, state: CoreState) -> CreateStep:
    """Return the request for the core. `srun` is the process that makes it.

    Raises FairbankError if an option has a bad value or is not supported, or the job is unknown.
    """
    job = state.jobs.get(request.job)
    if job is None:
        raise unknown("job", request.job)
    check_supported(request.options)
    words = (*request.arguments, *(word for words in request.programs.values() for word in words))
    check_words(request.environment, words)
    values = read_values(request.options, "srun")
    launch = StepLaunch(request, values, symbols_of(job.request, job.submission))
    return CreateStep(request.job, _step_request(request, values), launch, srun)


def _step_request(request: CreateStepRequest, values: Mapping[str, Any]) -> StepRequest:
    shape: Distribution = values.get("distribution", Distribution("block"))
    named = tuple(expand(values.get("nodelist", ""), field="--nodelist"))
    tasks, gpus = requested_tasks(values), requested_gpus(values, is_step=True)
    is_arbitrary = shape.kind == "arbitrary"
    if is_arbitrary and len(named) != (tasks or len(named) or 1):
        raise InvalidInput(
            f"You asked for {tasks or 1} tasks but hostlist specified {len(named)} nodes",
            field="tasks-of-hosts",
            remedy="name the node of each task with --nodelist",
        )
    if (tasks or 0) > STEP_TASKS_MAX:
        raise InvalidInput(
            f"{tasks:,} tasks are too many for one step",
            field="--ntasks",
            remedy=f"at most {STEP_TASKS_MAX:,}",
        )
    distinct = len(set(named))
    nodes = NodeRange(distinct, distinct) if is_arbitrary else step_nodes(values)
    has_nodes = is_arbitrary or "nodes" in values
    return StepRequest(
        name=values.get("job-name") or (request.arguments or ("",))[0].rpartition("/")[2],
        tasks=tasks or (len(named) if is_arbitrary else None),
        cpus_per_task=cpus_per_task(values),
        tasks_per_node=tasks_per_node_of_step(values),
        nodes=nodes.least if has_nodes else None,
        nodes_max=nodes.most if has_nodes else None,
        named=named if is_arbitrary else required_hosts(values),
        excluded=tuple(expand(values.get("exclude", ""), field="--exclude")),
        relative=values.get("relative"),
        distribution=cast("StepDistribution", shape.kind),
        plane=shape.together,
        memory=values.get("mem", 0),
        memory_per_cpu=values.get("mem-per-cpu", 0),
        exact=any(name in values for name in ("exact", "exclusive", "cpus-per-gpu")),
        overlap="overlap" in values,
        overcommit="overcommit" in values,
        gpus=None if gpus.per_node is None else as_gpus(gpus.per_node),
        gpus_per_task=as_gpus(gpus.per_task),
        total_gpus=None if gpus.total is None else as_gpus([gpus.total])[0],
        tasks_per_gpu=gpus.tasks_each,
        cpus_per_gpu=values.get("cpus-per-gpu", 0),
        submit_line=request.submit_line,
        key=request.key,
    )
