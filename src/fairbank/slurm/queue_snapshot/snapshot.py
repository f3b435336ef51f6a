"""The snapshot of a live Slurm: its machine, who runs and who waits there, and the rules by which its nodes are given away."""

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
from fairbank.slurm.parsers.limits import Bound, Quality
from fairbank.slurm.parsers.machine import Licence
from fairbank.slurm.queue_snapshot.alternatives import in_one, simplified
from fairbank.slurm.queue_snapshot.jobs import Ways, running, waiting
from fairbank.slurm.queue_snapshot.limits import LimitInputs, SnapshotLimits
from fairbank.slurm.queue_snapshot.unsupported import PARAMETERS, lacking


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """What a Slurm was asked at `now`, in seconds since 1970. `of_partition`: the QOS of partitions that have one; `least_loaded`: those
    whose least loaded nodes go first."""

    now: int
    config: Mapping[str, str]
    nodes: Sequence[Node]
    partitions: Sequence[PartitionRules]
    reservations: Sequence[Reservation]
    jobs: Sequence[SlurmJob]
    associations: Sequence[Bound] = ()
    qualities: Sequence[Quality] = ()
    used_by_qualities: Sequence[Bound] = ()
    licences: Sequence[Licence] = ()
    of_partition: Mapping[str, str] = {}
    least_loaded: Sequence[str] = ()


class Live(NamedTuple):
    """`told` is each job as slurmctld tells it, by its number here: each task of an array has one. `notes`: what is not as it is there, in
    sentences."""

    now: int
    snapshot: OnNodes
    parameters: SchedulerParameters
    told: Mapping[int, SlurmJob]
    notes: Sequence[str]


def live(said: Answers) -> Live:
    """Raises InvalidInput where the answers contradict each other, as when a node is in two partitions' lists and not among the nodes."""
    notes = [*lacking(said.config, said.least_loaded), *simplified(said.jobs)]
    ways = ways_of(said.config)
    cluster = NodeTable(said.nodes, said.partitions)
    reservations = {each.name: each for each in said.reservations}
    jobs = [in_one(each, reservations, said.now) for each in said.jobs]
    told = {each.job_id: each for each in jobs}
    people: list[PendingJob] = []
    for each in jobs:
        if each.waits:
            tasks = list(waiting(each, ways))
            told.update((job.number, each) for job in tasks)
            people += tasks
    active: list[Active] = []
    for each in jobs:
        if not each.waits:
            try:
                active.append(running(each, cluster, ways))
            except FairbankError as lost:
                notes.append(f"job {each.squeue_name} is left out: {lost.message}")
    parameters = parameters_of(said.config.get(PARAMETERS, ""), notes)
    nodes = Nodes(
        cluster,
        reservations=said.reservations,
        preemption=preemption_of(said.config, said.qualities),
        limits=SnapshotLimits(_grounds(said, told), said.now),
    )
    return Live(
        said.now, node_snapshot(nodes, pending=people, running=active), parameters, told, notes
    )


def _grounds(said: Answers, told: Mapping[int, SlurmJob]) -> LimitInputs:
    return LimitInputs(
        enforced=Enforced.parse(said.config.get("AccountingStorageEnforce", "")),
        jobs=told,
        associations={(each.name, each.user, each.partition): each for each in said.associations},
        qualities={each.name: each for each in said.qualities},
        used_by={each.name: each for each in said.used_by_qualities},
        of_partition=said.of_partition,
        licences={each.name: each.free for each in said.licences},
        nodes=[node.name for node in said.nodes],
    )


def ways_of(config: Mapping[str, str]) -> Ways:
    """By SelectType and its parameters."""
    given = config.get("SelectTypeParameters", "").upper()
    whole = config.get("SelectType", "").endswith("linear")
    return Ways(memory="MEMORY" in given, whole=whole)


def preemption_of(config: Mapping[str, str], qualities: Sequence[Quality]) -> Preemption:
    """By PreemptType, PreemptMode and what each QOS says."""
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
    """The word of a list that says what becomes of a job; GANG says nothing of that."""
    return next(
        (PreemptMode(word) for word in text.upper().split(",") if word in PreemptMode.__members__),
        None,
    )


def parameters_of(text: str, notes: list[str]) -> SchedulerParameters:
    """Those that are known here and within range. What another version of Slurm has beside them is noted, and slurmctld's default taken for
    what is out of range, as it does itself."""
    kept: list[str] = []
    for each in filter(None, (part.strip() for part in text.split(","))):
        try:
            known.parse_parameters(",".join([*kept, each]))
        except InvalidInput as strange:
            notes.append(f"{PARAMETERS}: {strange.message}, and is passed over")
        else:
            kept.append(each)
    return known.parse_parameters(",".join(kept))


def requests(job: PendingJob, told: SlurmJob, cluster: str | None) -> Iterator[dict[str, object]]:
    """The body of `POST /quote` for each partition that it may run in. None for a job without a time limit of its own, whose hold depends
    on how long its partition lets it run."""
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
