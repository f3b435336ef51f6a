"""Snapshot of a live Slurm: nodes, running and pending jobs, and the rules of the scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import PartitionRules, PreemptMode
from fairbank.cluster.reservation import Reservation
from fairbank.core.errors import FairbankError, InvalidInput
from fairbank.priority.limits.chain import Enforced
from fairbank.scheduling.machines.node_rules import PreemptBy, Preemption, QosRules
from fairbank.scheduling.machines.node_snapshot import OnNodes, node_snapshot
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.pending_job import Active, PendingJob
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.slurm import parameters as known
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.slurm.parsers.jobs import SlurmJob
from fairbank.slurm.parsers.limits import LimitRecord, QosRecord
from fairbank.slurm.parsers.machine import Licence
from fairbank.slurm.queue_snapshot.jobs import SelectSettings, pending_jobs, running_job
from fairbank.slurm.queue_snapshot.limits import LimitInputs, SnapshotLimits
from fairbank.slurm.queue_snapshot.unsupported import (
    PARAMETERS,
    simplification_notes,
    unsupported_notes,
    with_one_reservation,
)


class QueueAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """Output of Slurm at `now`, in seconds since 1970.

    `partition_qos`: QOS by partition; `least_loaded`: partitions that prefer such nodes.
    """

    now: int
    config: Mapping[str, str]
    nodes: Sequence[Node]
    partitions: Sequence[PartitionRules]
    reservations: Sequence[Reservation]
    jobs: Sequence[SlurmJob]
    associations: Sequence[LimitRecord] = ()
    qos: Sequence[QosRecord] = ()
    qos_usage: Sequence[LimitRecord] = ()
    licences: Sequence[Licence] = ()
    partition_qos: Mapping[str, str] = {}
    least_loaded: Sequence[str] = ()


class LiveQueue(NamedTuple):
    """Queue of a live Slurm.

    `slurm_jobs` are the jobs as slurmctld has them, by their number here, of which each array task
    has one. `notes` are sentences on what differs from slurmctld.
    """

    now: int
    snapshot: OnNodes
    parameters: SchedulerParameters
    slurm_jobs: Mapping[int, SlurmJob]
    notes: Sequence[str]


def build_queue(answers: QueueAnswers) -> LiveQueue:
    """Build the queue.

    Raises InvalidInput if the output contradicts itself, as for unknown nodes.
    """
    notes = [
        *unsupported_notes(answers.config, answers.least_loaded),
        *simplification_notes(answers.jobs),
    ]
    settings = select_settings(answers.config)
    cluster = NodeTable(answers.nodes, answers.partitions)
    reservations = {reservation.name: reservation for reservation in answers.reservations}
    jobs = [
        with_one_reservation(slurm_job, reservations, answers.now) for slurm_job in answers.jobs
    ]
    slurm_jobs = {slurm_job.job_id: slurm_job for slurm_job in jobs}
    pending: list[PendingJob] = []
    for slurm_job in jobs:
        if slurm_job.is_pending:
            tasks = list(pending_jobs(slurm_job, settings))
            slurm_jobs.update((job.number, slurm_job) for job in tasks)
            pending += tasks
    active: list[Active] = []
    for slurm_job in jobs:
        if not slurm_job.is_pending:
            try:
                active.append(running_job(slurm_job, cluster, settings))
            except FairbankError as error:
                notes.append(f"job {slurm_job.squeue_name} is left out: {error.message}")
    parameters = scheduler_parameters(answers.config.get(PARAMETERS, ""), notes)
    nodes = Nodes(
        cluster,
        reservations=answers.reservations,
        preemption=preemption(answers.config, answers.qos),
        limits=SnapshotLimits(_limit_inputs(answers, slurm_jobs), answers.now),
    )
    return LiveQueue(
        answers.now,
        node_snapshot(nodes, pending=pending, running=active),
        parameters,
        slurm_jobs,
        notes,
    )


def _limit_inputs(answers: QueueAnswers, slurm_jobs: Mapping[int, SlurmJob]) -> LimitInputs:
    return LimitInputs(
        enforced=Enforced.parse(answers.config.get("AccountingStorageEnforce", "")),
        jobs=slurm_jobs,
        associations={
            (record.name, record.user, record.partition): record for record in answers.associations
        },
        qos={record.name: record for record in answers.qos},
        qos_usage={record.name: record for record in answers.qos_usage},
        partition_qos=answers.partition_qos,
        licences={record.name: record.free for record in answers.licences},
        nodes=[node.name for node in answers.nodes],
    )


def select_settings(config: Mapping[str, str]) -> SelectSettings:
    """Return the rules of SelectType and its parameters."""
    given = config.get("SelectTypeParameters", "").upper()
    whole = config.get("SelectType", "").endswith("linear")
    return SelectSettings(counts_memory="MEMORY" in given, whole_nodes=whole)


def preemption(config: Mapping[str, str], qualities: Sequence[QosRecord]) -> Preemption:
    """Return the rules of PreemptType, PreemptMode and each QOS."""
    kind = config.get("PreemptType", "")
    if kind not in {value.value for value in PreemptBy}:
        return Preemption()
    rules = {
        qos.name: QosRules(
            priority=qos.priority,
            preempts=qos.preempts,
            preempted=_mode(qos.mode),
            exempt_seconds=qos.exempt_seconds,
        )
        for qos in qualities
        if kind == PreemptBy.QOS.value
    }
    return Preemption(
        by=PreemptBy(kind),
        mode=_mode(config.get("PreemptMode", "OFF")) or PreemptMode.OFF,
        qos=rules,
    )


def _mode(text: str) -> PreemptMode | None:
    """Return the word of a list that says what happens to a job; GANG does not."""
    return next(
        (PreemptMode(word) for word in text.upper().split(",") if word in PreemptMode.__members__),
        None,
    )


def scheduler_parameters(text: str, notes: list[str]) -> SchedulerParameters:
    """Return the parameters that are known and within range.

    Unknown ones of other versions are noted. As in slurmctld, the default replaces a value out of
    range.
    """
    kept: list[str] = []
    for parameter in filter(None, (part.strip() for part in text.split(","))):
        try:
            known.parse_parameters(",".join([*kept, parameter]))
        except InvalidInput as error:
            notes.append(f"{PARAMETERS}: {error.message}, and is passed over")
        else:
            kept.append(parameter)
    return known.parse_parameters(",".join(kept))


def quote_requests(
    job: PendingJob, slurm_job: SlurmJob, cluster: str | None
) -> Iterator[dict[str, object]]:
    """Yield the body of `POST /quote` for each partition in which the job may run.

    None for a job without a limit of its own, whose hold depends on its partition's.
    """
    if job.limit is None:
        return
    tres = ",".join(
        f"{name}={count}{'M' if name == 'mem' else ''}" for name, count in slurm_job.tres.items()
    )
    for partition in job.partitions:
        yield {
            "account": slurm_job.account,
            "cluster": cluster,
            "partition": partition,
            "tres": tres,
            "time_limit": job.limit,
            "qos": slurm_job.qos or None,
        }
