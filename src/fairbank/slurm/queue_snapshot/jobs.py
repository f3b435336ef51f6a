"""Jobs of a live Slurm as the scheduler's model has them: pending, task by task, and running."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.scheduling.machines.machine import RunningJob
from fairbank.scheduling.pending_job import YEAR, Active, PendingJob
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.free_resources import NodeShare, Placement
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.reason import NAMES
from fairbank.slurm.parsers.scheduler.jobs import SlurmJob

TASK_STEP = 1 << 32
"""A task without a number of its own gets that of its array plus this many times its position."""

_COMPUTED_REASONS = frozenset(
    "None Resources Priority PartitionDown PartitionInactive PartitionTimeLimit PartitionNodeLimit"
    " PartitionConfig BeginTime Dependency Reservation ReqNodeNotAvail JobArrayTaskLimit Licenses"
    " NodeDown MaxJobsPerAccount Constraints SchedDefer".split()
)
"""Reasons that the model computes from the snapshot, so slurmctld's last pass does not count.
Limits of accounting are computed as well.
"""
_LIMIT_PREFIXES = (
    "Assoc",
    "QOSGrp",
    "QOSMax",
    "QOSMin",
    "MaxTRES",
    "MaxCpu",
    "MaxMem",
    "MaxNode",
    "MaxGRES",
    "MaxBilling",
)
_KNOWN_REASONS = frozenset(NAMES.values())


class SelectSettings(msgspec.Struct, frozen=True):
    """Rules of the cluster for nodes: memory is counted, or every job gets whole nodes."""

    counts_memory: bool = True
    whole_nodes: bool = False


def pending_jobs(told: SlurmJob, ways: SelectSettings) -> Iterator[PendingJob]:
    """Yield the job, or each task of its array that has not started."""
    single = msgspec.structs.replace(
        _common_fields(told),
        wanted=_adjusted_request(told.wanted, ways),
        eligible=told.submitted if told.eligible is None else told.eligible,
        time_min=told.time_min,
        held=hold_reason(told),
    )
    if not told.tasks:
        yield single
    for place, task in enumerate(told.tasks):
        number = told.job_id + place * TASK_STEP
        yield msgspec.structs.replace(single, number=number, task=task)


def hold_reason(told: SlurmJob) -> str | None:
    """Return why it may not start, whatever is free; None where the scheduler has to find out."""
    stated = (
        told.reason in _KNOWN_REASONS
        and told.reason not in _COMPUTED_REASONS
        and not told.reason.startswith(_LIMIT_PREFIXES)
    )
    if stated:
        return told.reason
    if told.priority == 0:
        return "JobHeldAdmin"
    return None if told.dependencies.is_met else "Dependency"


def running_job(slurm_job: SlurmJob, cluster: NodeTable, settings: SelectSettings) -> Active:
    """Return a running job.

    Args:
        slurm_job: the job as slurmctld has it.
        cluster: nodes and partitions.
        settings: rules for nodes.

    Raises:
        InvalidInput: its allocation is not printed.
        NotFound: it runs on a node that does not exist.
    """
    if not slurm_job.allocated:
        raise InvalidInput(
            f"it is not told what job {slurm_job.job_id} has",
            field="CPU_IDs",
            remedy="ask with scontrol --details show job",
        )
    shares: list[NodeShare] = []
    for given in slurm_job.allocated:
        for name in given.nodes:
            if name not in cluster.place:
                raise NotFound(
                    f"job {slurm_job.job_id} runs on {name}, and there is no such node",
                    field="Nodes",
                    remedy="ask again",
                )
            shares.append(
                NodeShare(
                    cluster.place[name],
                    given.cpus,
                    given.memory if settings.counts_memory else 0,
                    given.gpus,
                )
            )
    shares.sort(key=lambda share: share.place)
    partition = slurm_job.partitions[0]
    rules = cluster.rules.get(partition)
    sharing = rules is not None and rules.rows_for(slurm_job.wanted) > 1
    where = Placement(
        node_set.of(share.place for share in shares), tuple(shares), partition, sharing=sharing
    )
    started = slurm_job.submitted if slurm_job.started is None else slurm_job.started
    return RunningJob(
        started + YEAR if slurm_job.ends is None else slurm_job.ends,
        slurm_job.job_id,
        where,
        _common_fields(slurm_job),
        started,
    )


def _common_fields(told: SlurmJob) -> PendingJob:
    """Return the fields that pending and running jobs share."""
    return PendingJob(
        number=told.job_id,
        array=told.array,
        task=-1 if told.task is None else told.task,
        user=told.user,
        account=told.account,
        qos=told.qos,
        partitions=told.partitions,
        priority=told.priority,
        submitted=told.submitted,
        limit=told.limit,
        reservation=told.reservation,
    )


def _adjusted_request(wanted: ResourceRequest, ways: SelectSettings) -> ResourceRequest:
    """Return the request; if memory is not counted, for 1 MiB, which is always free."""
    if not ways.counts_memory:
        wanted = msgspec.structs.replace(wanted, memory_per_node=1, memory_per_cpu=None)
    return (
        msgspec.structs.replace(wanted, exclusive=True, shared=False)
        if ways.whole_nodes
        else wanted
    )
