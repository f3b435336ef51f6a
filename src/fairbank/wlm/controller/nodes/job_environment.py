"""Environment of a batch job: variables of its submission, and of its run. Pure.

Source: docs/reference/slurm-rules.md, "Environment and files of jobs".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.hostlist import compress
from fairbank.core.submission.gpus import VARIABLES as GPU_VARIABLES
from fairbank.core.submission.options import ARBITRARY_HOSTS
from fairbank.jobqueue.arrays import task_ranges
from fairbank.report.slurm.notation import licenses_text
from fairbank.scheduling.pending_job import PendingJob
from fairbank.wlm.core.accounts import DEFAULT_QOS
from fairbank.wlm.core.effects import StartRun
from fairbank.wlm.core.jobs import NodeGrant
from fairbank.wlm.core.steps.layout import task_counts

_BY_OPTION = {
    "cpus-per-task": "SLURM_CPUS_PER_TASK",
    "ntasks-per-node": "SLURM_NTASKS_PER_NODE",
    "dependency": "SLURM_JOB_DEPENDENCY",
    "distribution": "SLURM_DISTRIBUTION",
    "export": "SLURM_EXPORT_ENV",
    **GPU_VARIABLES,
}
"""Variables that have an option as it was written, by its long name."""
_OF_JOB = ("SLURM_JOB", "SLURM_ARRAY_", "SLURM_STEP", "SLURM_NTASKS", "SLURM_MEM_PER_", "SLURMD_")
_ALSO_OF_JOB = frozenset(
    (
        *_BY_OPTION.values(),
        ARBITRARY_HOSTS,
        "SLURM_RESTART_COUNT",
        "SLURM_NPROCS",
        "SLURM_NNODES",
        "SLURM_NODELIST",
        "SLURM_GPUS_ON_NODE",
    )
)


def submission_environment(
    environment: bytes, options: Mapping[str, str], directory: str, host: str
) -> bytes:
    """Return the environment with which a job is stored: entries NAME=value, separated by NUL.

    Variables of a job within which this one is submitted are left out. The options are texts by
    their long names; `host` is where the command runs, in this directory.
    """
    variables = {
        "SLURM_SUBMIT_DIR": directory,
        "SLURM_SUBMIT_HOST": host,
        **{name: options[option] for option, name in _BY_OPTION.items() if option in options},
    }
    if options.get("distribution", "").lower() == "arbitrary" and "nodelist" in options:
        variables[ARBITRARY_HOSTS] = options["nodelist"]
    own = [entry for entry in environment.split(b"\0") if entry and not _is_of_job(entry)]
    return b"\0".join((*own, *to_entries(variables)))


def to_entries(variables: Mapping[str, str]) -> Iterator[bytes]:
    """Yield variables as NAME=value."""
    for name, value in variables.items():
        yield f"{name}={value}".encode(errors="surrogateescape")


def run_variables(
    start: StartRun, wanted: ResourceRequest, array_tasks: Sequence[int], now: int
) -> dict[str, str]:
    """Return the variables of a run on its first node.

    Args:
        wanted: resources that the job requests, with the defaults of its partition.
        array_tasks: numbers of all tasks of its array, ascending; empty: it is none.
        now: time of the start in seconds since 1970.
    """
    request, allocation = start.request, start.run.allocation
    nodes, cpus = compress(allocation.nodes), [grant.cpus for grant in allocation.grants]
    tasks = run_lengths(tasks_by_node(wanted, allocation.grants))
    job = str(request.number)
    variables = {
        "SLURM_CLUSTER_NAME": start.run.run.cluster,
        "SLURM_JOB_ID": job,
        "SLURM_JOBID": job,
        "SLURM_JOB_NAME": start.submission.name,
        "SLURM_JOB_QOS": request.qos or DEFAULT_QOS,
        "SLURM_JOB_PARTITION": allocation.partition,
        "SLURM_JOB_USER": request.user,
        "SLURM_JOB_UID": str(start.submission.uid),
        "SLURM_JOB_GID": str(start.submission.gid),
        "SLURM_JOB_NODELIST": nodes,
        "SLURM_NODELIST": nodes,
        "SLURM_JOB_NUM_NODES": str(len(cpus)),
        "SLURM_NNODES": str(len(cpus)),
        "SLURM_JOB_CPUS_PER_NODE": run_lengths(cpus),
        "SLURM_TASKS_PER_NODE": tasks,
        "SLURM_CPUS_ON_NODE": str(cpus[0]),
        "SLURM_JOB_START_TIME": str(now),
        "SLURM_OOM_KILL_STEP": "0",
        "ENVIRONMENT": "BATCH",
        **_optional(start, wanted, now),
    }
    if array_tasks:
        variables |= _array_variables(request, array_tasks)
    return variables


def run_lengths(counts: Sequence[int]) -> str:
    """Return counts as Slurm writes them: `72(x2),36`."""
    runs = [(count, sum(1 for _ in group)) for count, group in groupby(counts)]
    return ",".join(f"{count}(x{length})" if length > 1 else str(count) for count, length in runs)


def tasks_by_node(wanted: ResourceRequest, grants: Sequence[NodeGrant]) -> list[int]:
    """Return the number of tasks on each node.

    Without --ntasks, the CPUs decide. Otherwise the tasks go round the nodes that have CPUs for
    them, and when none has any more, round all (--overcommit).
    """
    fitting = [max(grant.cpus // wanted.cpus_per_task, 1) for grant in grants]
    if wanted.tasks_per_node is not None:
        fitting = [min(count, wanted.tasks_per_node) for count in fitting]
    if wanted.gpus_per_task and (most := wanted.tasks_per_gpu) is not None:
        numbers = [len(grant.binding.gpus) for grant in grants]
        fitting = [min(count, gpus * most) for count, gpus in zip(fitting, numbers, strict=True)]
    return fitting if wanted.tasks is None else task_counts(fitting, wanted.tasks)


def _optional(start: StartRun, wanted: ResourceRequest, now: int) -> dict[str, str]:
    """Return the variables that only some jobs have."""
    request = start.request
    limit = request.limit
    variables = {
        "SLURM_JOB_ACCOUNT": request.account or None,
        "SLURM_NTASKS": wanted.tasks,
        "SLURM_NPROCS": wanted.tasks,
        "SLURM_MEM_PER_NODE": wanted.memory_per_node,
        "SLURM_MEM_PER_CPU": wanted.memory_per_cpu,
        "SLURM_JOB_END_TIME": None if limit is None else now + limit,
        "SLURM_RESTART_COUNT": start.run.run.restart or None,
        "SLURM_JOB_RESERVATION": request.reservation,
        "SLURM_JOB_LICENSES": licenses_text(request.licenses),
    }
    return {name: str(value) for name, value in variables.items() if value is not None}


def _array_variables(request: PendingJob, tasks: Sequence[int]) -> dict[str, str]:
    ranges = task_ranges(tasks)
    numbers = {
        "JOB_ID": request.array,
        "TASK_ID": request.task,
        "TASK_COUNT": len(tasks),
        "TASK_MIN": tasks[0],
        "TASK_MAX": tasks[-1],
        "TASK_STEP": ranges[0].step if len(ranges) == 1 else 1,
    }
    return {f"SLURM_ARRAY_{name}": str(number) for name, number in numbers.items()}


def _is_of_job(entry: bytes) -> bool:
    name = entry.partition(b"=")[0].decode(errors="surrogateescape")
    return name in _ALSO_OF_JOB or name.startswith(_OF_JOB)
