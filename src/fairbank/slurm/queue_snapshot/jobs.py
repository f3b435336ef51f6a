"""Jobs of a live Slurm as the scheduler's model has them: pending, task by task, and running."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import msgspec

from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.slurm_numbers import UNLIMITED_SECONDS
from fairbank.jobqueue.arrays import queued_tasks
from fairbank.scheduling.machines.partition_access import USAGE_THRESHOLD
from fairbank.scheduling.pending_job import Active, PendingJob
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.free_resources import NodeShare, Placement
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.reason import NAMES
from fairbank.scheduling.snapshot import RunningJob
from fairbank.slurm.parsers.jobs import SlurmJob
from fairbank.slurm.parsers.squeue import COMMENT_PREFIX

_COMPUTED_REASONS = frozenset(
    "None Resources Priority PartitionDown PartitionInactive PartitionTimeLimit PartitionNodeLimit"
    " PartitionConfig BeginTime Dependency Reservation ReqNodeNotAvail JobArrayTaskLimit Licenses"
    " NodeDown MaxJobsPerAccount Constraints SchedDefer AccountNotAllowed QOSNotAllowed".split()
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
    """Rules of the cluster: memory is counted, or every job gets whole nodes; SlurmUser, the flags
    of each QOS, and the UsageThreshold of those that enforce one.
    """

    counts_memory: bool = True
    whole_nodes: bool = False
    slurm_user: str = "root"
    qos_flags: Mapping[str, frozenset[str]] = {}
    thresholds: Mapping[str, float] = {}


def pending_jobs(
    slurm_job: SlurmJob,
    settings: SelectSettings,
    groups: tuple[str, ...] = (),
    fair_share: float | None = None,
) -> Iterator[PendingJob]:
    """Yield the job, or each task of its array that has not started.

    Args:
        slurm_job: the job as Slurm shows it.
        settings: the rules of its cluster for requests and QOS.
        groups: names of its user's Unix groups; empty: unknown.
        fair_share: what slurmctld compares with UsageThreshold (`explain.queue_input.fair_shares`);
            None: unknown.
    """
    held = hold_reason(slurm_job)
    job = msgspec.structs.replace(
        _common_fields(slurm_job, settings),
        wanted=_adjusted_request(slurm_job.wanted, settings),
        eligible=slurm_job.submitted if slurm_job.eligible is None else slurm_job.eligible,
        time_min=slurm_job.time_min,
        held=None if held == USAGE_THRESHOLD and fair_share is not None else held,
        groups=groups,
        least_fair_share=settings.thresholds.get(slurm_job.qos),
        fair_share=fair_share,
        is_privileged=slurm_job.uid == 0 or slurm_job.user == settings.slurm_user,
        submit_host=slurm_job.submit_host,
    )
    if slurm_job.tasks:
        yield from queued_tasks(job, slurm_job.tasks)
    else:
        yield job


def hold_reason(slurm_job: SlurmJob) -> str | None:
    """Return why it may not start, whatever is free; None where the scheduler has to find out."""
    is_stated = (
        slurm_job.reason in _KNOWN_REASONS
        and slurm_job.reason not in _COMPUTED_REASONS
        and not slurm_job.reason.startswith(_LIMIT_PREFIXES)
    )
    if is_stated:
        return slurm_job.reason
    if slurm_job.priority == 0:
        return "JobHeldAdmin"
    return None if slurm_job.dependencies.is_met else "Dependency"


def is_held_by_bank(slurm_job: SlurmJob) -> bool:
    """Return True if the plug-in holds the job because the bank refused it.

    The plug-in shows words of its own as reason; a hold by a person replaces them by Slurm's.
    """
    return (
        slurm_job.priority == 0
        and slurm_job.reason not in _KNOWN_REASONS
        and slurm_job.admin_comment.startswith(COMMENT_PREFIX)
    )


def running_job(
    slurm_job: SlurmJob,
    cluster: NodeTable,
    settings: SelectSettings,
    unread_nodes: Collection[str] = (),
) -> Active:
    """Return a running job, on the nodes that could be read.

    Raises InvalidInput if its allocation is not printed, NotFound for a node that does not exist.
    """
    if not slurm_job.allocated:
        raise InvalidInput(
            f"scontrol does not show the allocation of job {slurm_job.job_id}",
            field="CPU_IDs",
            remedy="ask with scontrol --details show job",
        )
    shares: list[NodeShare] = []
    for job_nodes in slurm_job.allocated:
        for name in job_nodes.nodes:
            if name in unread_nodes:
                continue
            if name not in cluster.place:
                raise NotFound(
                    f"job {slurm_job.job_id} runs on {name}, and there is no such node",
                    field="Nodes",
                    remedy="ask again",
                )
            memory = job_nodes.memory if settings.counts_memory else 0
            place = cluster.place[name]
            shares.append(NodeShare(place, job_nodes.cpus, memory, job_nodes.gpus))
    shares.sort(key=lambda share: share.place)
    partition = slurm_job.partitions[0]
    rules = cluster.rules.get(partition)
    sharing = rules is not None and rules.rows_for(slurm_job.wanted) > 1
    where = Placement(
        node_set.of(share.place for share in shares), tuple(shares), partition, sharing=sharing
    )
    started = slurm_job.submitted if slurm_job.started is None else slurm_job.started
    ends = started + UNLIMITED_SECONDS if slurm_job.ends is None else slurm_job.ends
    return RunningJob(ends, slurm_job.job_id, where, _common_fields(slurm_job, settings), started)


def _common_fields(slurm_job: SlurmJob, settings: SelectSettings) -> PendingJob:
    """Return the fields that pending and running jobs share."""
    return PendingJob(
        number=slurm_job.job_id,
        array=slurm_job.array,
        task=-1 if slurm_job.task is None else slurm_job.task,
        user=slurm_job.user,
        account=slurm_job.account,
        qos=slurm_job.qos,
        partitions=slurm_job.partitions,
        priority=slurm_job.priority,
        submitted=slurm_job.submitted,
        limit=slurm_job.limit,
        reservation=slurm_job.reservation,
        deadline=slurm_job.deadline,
        tres=slurm_job.tres,
        licenses=slurm_job.licenses,
        throttle=slurm_job.throttle,
        qos_flags=settings.qos_flags.get(slurm_job.qos, frozenset()),
        het_job=slurm_job.het_job,
        het_offset=slurm_job.het_offset,
    )


def _adjusted_request(request: ResourceRequest, settings: SelectSettings) -> ResourceRequest:
    """Return the request; if memory is not counted, for 1 MiB, which is always free."""
    if not settings.counts_memory:
        request = request.with_memory(per_node=1)
    if not settings.whole_nodes:
        return request
    return msgspec.structs.replace(request, exclusive=True, shared=False)
