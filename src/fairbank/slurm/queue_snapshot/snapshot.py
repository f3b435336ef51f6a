"""Snapshot of a live Slurm: nodes, running and pending jobs, and the rules of the scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import AccessList, PartitionRules, PreemptMode
from fairbank.cluster.reservation import Reservation
from fairbank.core.errors import FairbankError, InvalidInput, list_some
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.reasons import LimitKind
from fairbank.scheduling.machines.node_snapshot import OnNodes, node_snapshot
from fairbank.scheduling.machines.nodes import Nodes, PreemptBy, Preemption, QosRules
from fairbank.scheduling.machines.partition_access import CONFIG
from fairbank.scheduling.pending_job import Active, PendingJob
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.slurm import parameters as known
from fairbank.scheduling.slurm.parameters import NOT_MODELLED, SchedulerParameters
from fairbank.slurm.parsers.config import read_billing_rule, read_clock, read_config
from fairbank.slurm.parsers.jobs import SlurmJob, read_jobs
from fairbank.slurm.parsers.limits import (
    QOS_LIMITS,
    LimitRecord,
    QosRecord,
    read_association_limits,
    read_qos_usage,
)
from fairbank.slurm.parsers.machine import (
    Licence,
    read_hosts,
    read_least_loaded,
    read_licences,
    read_partition_qos,
    read_partition_rules,
    read_reservations,
)
from fairbank.slurm.parsers.values import ParsedRows
from fairbank.slurm.queue_snapshot.jobs import SelectSettings, pending_jobs, running_job
from fairbank.slurm.queue_snapshot.limits import LimitInputs, SnapshotLimits

ACCOUNTS_BELOW = (23, 2)
"""Release from which partitions accept also the accounts below those that they name, and test
groups together with access.
"""

RUN_MINUTES_TESTED = (24, 5)
"""Release from which slurmctld tests the limits of a QOS on the minutes that the running jobs of a
user or account may still take. Earlier ones only store them.
"""
_RUN_MINUTES = frozenset(
    {LimitKind.MAX_TRES_RUN_MINS_PER_USER, LimitKind.MAX_TRES_RUN_MINS_PER_ACCOUNT}
)


class QueueAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """Output of Slurm at `now`, in seconds since 1970.

    `partition_qos`: QOS by partition; `least_loaded`: partitions that prefer such nodes. `groups`:
    Unix groups of users, as far as they are known.
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
    groups: Mapping[str, tuple[str, ...]] = {}


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
    settings = select_settings(answers.config, answers.qos)
    partitions = [_with_access(rules, answers) for rules in answers.partitions]
    cluster = NodeTable(answers.nodes, partitions)
    reservations = {reservation.name: reservation for reservation in answers.reservations}
    jobs = [
        with_one_reservation(slurm_job, reservations, answers.now) for slurm_job in answers.jobs
    ]
    slurm_jobs = {slurm_job.job_id: slurm_job for slurm_job in jobs}
    pending: list[PendingJob] = []
    for slurm_job in jobs:
        if slurm_job.is_pending:
            groups = answers.groups.get(slurm_job.user, ())
            tasks = list(pending_jobs(slurm_job, settings, groups))
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


def _with_access(rules: PartitionRules, answers: QueueAnswers) -> PartitionRules:
    """Return the rules, with the accounts below those that the partition names, and with the
    reasons that this release gives (slurm-rules.md, "Partitions").
    """
    is_recent = _release(answers.config) >= ACCOUNTS_BELOW
    enforced = answers.config.get("EnforcePartLimits", "NO") != "NO"
    accounts = rules.accounts
    if is_recent and answers.config.get("AccountingStorageEnforce", "none").lower() == "none":
        accounts = None
    elif accounts is not None and is_recent:
        parents = {record.name: record.parent for record in answers.associations if not record.user}
        below = frozenset(name for name in parents if {*_above(name, parents)} & {*accounts.names})
        accounts = msgspec.structs.replace(accounts, below=below)
    return msgspec.structs.replace(
        rules,
        accounts=_tested_early(accounts, early=enforced),
        qos=_tested_early(rules.qos, early=enforced),
        groups=_tested_early(rules.groups, early=enforced or not is_recent),
    )


def _tested_early(access: AccessList | None, *, early: bool) -> AccessList | None:
    """Return the list; `early`: with the reason that slurmctld gives if it tests the list with the
    limits of the partition.
    """
    return access and msgspec.structs.replace(access, reason=CONFIG) if early else access


def _with_tested_limits(qos: QosRecord, config: Mapping[str, str]) -> QosRecord:
    """Return the QOS without limits that slurmctld of this release does not test."""
    if _release(config) >= RUN_MINUTES_TESTED:
        return qos
    tres = {kind: counts for kind, counts in qos.limits.tres.items() if kind not in _RUN_MINUTES}
    return msgspec.structs.replace(qos, limits=msgspec.structs.replace(qos.limits, tres=tres))


def _release(config: Mapping[str, str]) -> tuple[int, ...]:
    """Return the release as numbers; none if it is unknown."""
    return tuple(
        int(part) for part in config.get("SLURM_VERSION", "").split(".") if part.isdecimal()
    )


def _above(account: str, parents: Mapping[str, str]) -> Iterator[str]:
    """Yield the accounts above one."""
    seen = {account}
    while (account := parents.get(account, "")) and account not in seen:
        yield account
        seen.add(account)


def _limit_inputs(answers: QueueAnswers, slurm_jobs: Mapping[int, SlurmJob]) -> LimitInputs:
    return LimitInputs(
        enforced=Enforced.parse(answers.config.get("AccountingStorageEnforce", "")),
        jobs=slurm_jobs,
        associations={
            (record.name, record.user, record.partition): record for record in answers.associations
        },
        qos={record.name: _with_tested_limits(record, answers.config) for record in answers.qos},
        qos_usage={record.name: record for record in answers.qos_usage},
        partition_qos=answers.partition_qos,
        partitions={rules.name: rules for rules in answers.partitions},
        billing_rule=read_billing_rule(answers.config.get("PriorityFlags", "")),
        licences={record.name: record for record in answers.licences},
        nodes=[node.name for node in answers.nodes],
    )


def select_settings(config: Mapping[str, str], all_qos: Iterable[QosRecord]) -> SelectSettings:
    """Return the rules of SelectType and its parameters, SlurmUser, and the flags of QOS."""
    given = config.get("SelectTypeParameters", "").upper()
    whole = config.get("SelectType", "").endswith("linear")
    return SelectSettings(
        counts_memory="MEMORY" in given,
        whole_nodes=whole,
        slurm_user=config.get("SlurmUser", "root").partition("(")[0],
        qos_flags={qos.name: qos.flags for qos in all_qos if qos.flags},
    )


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


T = TypeVar("T")

_SHOW = ("scontrol", "--all", "--oneliner", "show")

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "nodes": (*_SHOW, "node"),
    "partitions": (*_SHOW, "partition"),
    "reservations": (*_SHOW, "reservation"),
    "licences": (*_SHOW, "license"),
    "limits": (*_SHOW, "assoc_mgr", "flags=assoc,qos"),
    "qos-limits": (
        "sacctmgr",
        "--noheader",
        "--parsable2",
        "show",
        "qos",
        f"format={','.join(QOS_LIMITS.columns).lower()}",
    ),
    "jobs": ("scontrol", "--all", "--details", "--oneliner", "show", "job"),
    "config": ("scontrol", "show", "config"),
}
"""By the names of the files in which output is recorded. Times must be in UTC.

Jobs come late, because they change fastest. The settings come last: they have the time, which must
not lie before the other output.
"""


def read_answers(texts: Mapping[str, str]) -> tuple[QueueAnswers, tuple[str, ...]]:
    """Read all output, and return also the lines that could not be read.

    Raises InvalidInput without a time.
    """
    unreadable: list[str] = []

    def rows(answer: ParsedRows[T]) -> tuple[T, ...]:
        unreadable.extend(map(str, answer.unreadable))
        return answer.rows

    fields: dict[str, Any] = {
        "nodes": rows(read_hosts(texts["nodes"])),
        "partitions": rows(read_partition_rules(texts["partitions"])),
        "reservations": rows(read_reservations(texts["reservations"])),
        "jobs": rows(read_jobs(texts["jobs"])),
        "licences": rows(read_licences(texts["licences"])),
        "associations": rows(read_association_limits(texts["limits"])),
        "qos_usage": rows(read_qos_usage(texts["limits"])),
        "qos": rows(QOS_LIMITS.read(texts["qos-limits"])),
    }
    answers = QueueAnswers(
        now=read_clock(texts["config"]),
        config=read_config(texts["config"]),
        partition_qos=read_partition_qos(texts["partitions"]),
        least_loaded=read_least_loaded(texts["partitions"]),
        **fields,
    )
    return answers, tuple(unreadable)


PARAMETERS = "SchedulerParameters"

_SELECT = frozenset(
    "CR_LLN CR_ONE_TASK_PER_CORE CR_PACK_NODES CR_SOCKET CR_SOCKET_MEMORY LL_SHARED_GRES".split()
)
"""Ways to choose nodes other than by weight, position and single cores."""
_PREEMPT = frozenset(
    "min_exempt_priority reclaim_licenses reorder_count strict_order youngest_first".split()
)
_FLAT = frozenset({"", "(null)", "N/A", "none", "default", "flat"})


def unsupported_notes(config: Mapping[str, str], least_loaded: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each setting; `least_loaded` are the partitions that prefer such
    nodes.
    """
    yield from _setting_note(
        PARAMETERS, NOT_MODELLED.intersection(_names(config.get(PARAMETERS, "")))
    )
    yield from _setting_note(
        "SelectTypeParameters",
        _SELECT.intersection(map(str.upper, _names(config.get("SelectTypeParameters", "")))),
    )
    yield from _setting_note("LLN of partitions", least_loaded)
    topology = config.get("TopologyPlugin", "")
    yield from _setting_note(
        "TopologyPlugin", () if topology.removeprefix("topology/") in _FLAT else (topology,)
    )
    if config.get("PreemptType") in {PreemptBy.PARTITION.value, PreemptBy.QOS.value}:
        yield from _setting_note(
            "PreemptParameters", _PREEMPT.intersection(_names(config.get("PreemptParameters", "")))
        )


def _names(text: str) -> Iterator[str]:
    """Yield the names of `defer,bf_max_time=60` in lower case, since Slurm ignores it."""
    for word in text.lower().split(","):
        yield word.partition("=")[0].strip()


def _setting_note(setting: str, names: Iterable[str]) -> Iterator[str]:
    if listed := sorted(names):
        yield (
            f"{setting}: {', '.join(listed)}: not modelled here, so that slurmctld may decide"
            " otherwise"
        )


def with_one_reservation(
    slurm_job: SlurmJob, reservations: Mapping[str, Reservation], now: int
) -> SlurmJob:
    """Return the job in the reservation in which it may start soonest; of several, the first to
    begin.

    slurmctld has an entry in its queue for each reservation; here one stands for all.
    """
    names = _reservation_names(slurm_job)
    if len(names) < 2:
        return slurm_job
    return msgspec.structs.replace(
        slurm_job,
        reservation=min(names, key=lambda name: _rank(reservations.get(name), slurm_job, now)),
    )


def _rank(reservation: Reservation | None, slurm_job: SlurmJob, now: int) -> tuple[int, int]:
    """Rank reservations: usable now, to come, over, for others, unknown."""
    if reservation is None:
        return 4, 0
    if not reservation.is_for(slurm_job.user, slurm_job.account):
        return 3, reservation.begin
    if reservation.is_over(now):
        return 2, reservation.begin
    return 0 if reservation.is_active(now) or reservation.flexible else 1, reservation.begin


def simplification_notes(jobs: Iterable[SlurmJob]) -> Iterator[str]:
    """Yield sentences on pending jobs that the passes treat otherwise than slurmctld does: of their
    QOS or reservations only one counts here.
    """
    waiting = [slurm_job for slurm_job in jobs if slurm_job.is_pending]
    yield from _job_note(
        "of several QOS only the first counts here",
        [slurm_job for slurm_job in waiting if slurm_job.other_qos],
    )
    yield from _job_note(
        "of several reservations only one counts here, the soonest",
        [slurm_job for slurm_job in waiting if len(_reservation_names(slurm_job)) > 1],
    )


def _reservation_names(slurm_job: SlurmJob) -> list[str]:
    return (slurm_job.reservation or "").split(",")


def _job_note(sentence: str, jobs: list[SlurmJob]) -> Iterator[str]:
    if jobs:
        yield f"{sentence}: job {list_some([slurm_job.squeue_name for slurm_job in jobs])}"
