"""The jobs of a live Slurm as the scheduler has them: who waits, task by task, and who runs where."""

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
from fairbank.slurm.parsers.jobs import SlurmJob

TASK_STEP = 1 << 32
"""A task that has no number of its own has that of its array and this many times its place in it."""

_FOUND_HERE = frozenset(
    "None Resources Priority PartitionDown PartitionInactive PartitionTimeLimit PartitionNodeLimit PartitionConfig BeginTime Dependency "
    "Reservation ReqNodeNotAvail JobArrayTaskLimit Licenses NodeDown MaxJobsPerAccount Constraints SchedDefer".split()
)
"""Reasons that follow from the snapshot, so that the last pass of slurmctld is not believed. So do limits of accounting."""
_OF_LIMITS = (
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
_STATED = frozenset(NAMES.values())


class Ways(msgspec.Struct, frozen=True):
    """How the cluster gives nodes away. `memory`: it counts memory; `whole`: every job has its nodes for itself."""

    memory: bool = True
    whole: bool = False


def waiting(told: SlurmJob, ways: Ways) -> Iterator[PendingJob]:
    """The job, or each task of its array that has to start yet."""
    single = msgspec.structs.replace(
        _of_whom(told),
        wanted=_within(told.wanted, ways),
        eligible=told.submitted if told.eligible is None else told.eligible,
        time_min=told.time_min,
        held=held(told),
    )
    if not told.tasks:
        yield single
    for place, task in enumerate(told.tasks):
        number = told.job_id + place * TASK_STEP
        yield msgspec.structs.replace(single, number=number, task=task)


def held(told: SlurmJob) -> str | None:
    """Why nobody may start it yet, whatever is free; None where the scheduler itself has to find out."""
    stated = (
        told.reason in _STATED
        and told.reason not in _FOUND_HERE
        and not told.reason.startswith(_OF_LIMITS)
    )
    if stated:
        return told.reason
    if told.priority == 0:
        return "JobHeldAdmin"
    return None if told.depends.is_met else "Dependency"


def running(told: SlurmJob, cluster: NodeTable, ways: Ways) -> Active:
    """Raises InvalidInput where it is not told what it has, NotFound for nodes that are not
    there.
    """
    if not told.given:
        raise InvalidInput(
            f"it is not told what job {told.job_id} has",
            field="CPU_IDs",
            remedy="ask with scontrol --details show job",
        )
    shares: list[NodeShare] = []
    for given in told.given:
        for name in given.nodes:
            if name not in cluster.place:
                raise NotFound(
                    f"job {told.job_id} runs on {name}, and there is no such node",
                    field="Nodes",
                    remedy="ask again",
                )
            shares.append(
                NodeShare(
                    cluster.place[name], given.cpus, given.memory if ways.memory else 0, given.gpus
                )
            )
    shares.sort(key=lambda share: share.place)
    partition = told.partitions[0]
    rules = cluster.rules.get(partition)
    sharing = rules is not None and rules.rows_for(told.wanted) > 1
    where = Placement(
        node_set.of(share.place for share in shares), tuple(shares), partition, sharing=sharing
    )
    started = told.submitted if told.started is None else told.started
    return RunningJob(
        started + YEAR if told.ends is None else told.ends,
        told.job_id,
        where,
        _of_whom(told),
        started,
    )


def _of_whom(told: SlurmJob) -> PendingJob:
    """What is the same of those that wait and those that run."""
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


def _within(wanted: ResourceRequest, ways: Ways) -> ResourceRequest:
    """Where memory is not counted the least of it is asked for, which is always there."""
    if not ways.memory:
        wanted = msgspec.structs.replace(wanted, memory_per_node=1, memory_per_cpu=None)
    return msgspec.structs.replace(wanted, exclusive=True, shared=False) if ways.whole else wanted
