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
from fairbank.slurm.parsers.scheduler.jobs import SlurmJob
from fairbank.slurm.parsers.scheduler.limits import LimitRecord, QosRecord
from fairbank.slurm.parsers.scheduler.machine import Licence
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


def build_queue(said: QueueAnswers) -> LiveQueue:
    """Build the queue.

    Raises InvalidInput if the output contradicts itself, as for unknown nodes.
    """
    notes = [*unsupported_notes(said.config, said.least_loaded), *simplification_notes(said.jobs)]
    ways = select_settings(said.config)
    cluster = NodeTable(said.nodes, said.partitions)
    reservations = {each.name: each for each in said.reservations}
    jobs = [with_one_reservation(each, reservations, said.now) for each in said.jobs]
    told = {each.job_id: each for each in jobs}
    people: list[PendingJob] = []
    for each in jobs:
        if each.is_pending:
            tasks = list(pending_jobs(each, ways))
            told.update((job.number, each) for job in tasks)
            people += tasks
    active: list[Active] = []
    for each in jobs:
        if not each.is_pending:
            try:
                active.append(running_job(each, cluster, ways))
            except FairbankError as lost:
                notes.append(f"job {each.squeue_name} is left out: {lost.message}")
    parameters = scheduler_parameters(said.config.get(PARAMETERS, ""), notes)
    nodes = Nodes(
        cluster,
        reservations=said.reservations,
        preemption=preemption(said.config, said.qos),
        limits=SnapshotLimits(_limit_inputs(said, told), said.now),
    )
    return LiveQueue(
        said.now, node_snapshot(nodes, pending=people, running=active), parameters, told, notes
    )


def _limit_inputs(said: QueueAnswers, told: Mapping[int, SlurmJob]) -> LimitInputs:
    return LimitInputs(
        enforced=Enforced.parse(said.config.get("AccountingStorageEnforce", "")),
        jobs=told,
        associations={(each.name, each.user, each.partition): each for each in said.associations},
        qos={each.name: each for each in said.qos},
        qos_usage={each.name: each for each in said.qos_usage},
        partition_qos=said.partition_qos,
        licences={each.name: each.free for each in said.licences},
        nodes=[node.name for node in said.nodes],
    )


def select_settings(config: Mapping[str, str]) -> SelectSettings:
    """Return the rules of SelectType and its parameters."""
    given = config.get("SelectTypeParameters", "").upper()
    whole = config.get("SelectType", "").endswith("linear")
    return SelectSettings(counts_memory="MEMORY" in given, whole_nodes=whole)


def preemption(config: Mapping[str, str], qualities: Sequence[QosRecord]) -> Preemption:
    """Return the rules of PreemptType, PreemptMode and each QOS."""
    kind = config.get("PreemptType", "")
    if kind not in {each.value for each in PreemptBy}:
        return Preemption()
    rules = {
        each.name: QosRules(
            priority=each.priority,
            preempts=each.preempts,
            preempted=_mode(each.mode),
            exempt_seconds=each.exempt_seconds,
        )
        for each in qualities
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
    for each in filter(None, (part.strip() for part in text.split(","))):
        try:
            known.parse_parameters(",".join([*kept, each]))
        except InvalidInput as strange:
            notes.append(f"{PARAMETERS}: {strange.message}, and is passed over")
        else:
            kept.append(each)
    return known.parse_parameters(",".join(kept))


def quote_requests(
    job: PendingJob, told: SlurmJob, cluster: str | None
) -> Iterator[dict[str, object]]:
    """Yield the body of `POST /quote` for each partition in which the job may run.

    None for a job without a limit of its own, whose hold depends on its partition's.
    """
    if job.limit is None:
        return
    tres = ",".join(
        f"{name}={count}{'M' if name == 'mem' else ''}" for name, count in told.tres.items()
    )
    for partition in job.partitions:
        yield {
            "account": told.account,
            "cluster": cluster,
            "partition": partition,
            "tres": tres,
            "time_limit": job.limit,
            "qos": told.qos or None,
        }
