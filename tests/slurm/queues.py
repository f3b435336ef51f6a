"""Scripted queue on a real slurmctld and in Fairbank's scheduler: submitted while its partitions
are down, then started, with the outcome of each job.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fairbank.core.hostlist import compress, expand
from fairbank.scheduling.machines.node_snapshot import apply_plan
from fairbank.scheduling.slurm.passes import run_passes
from fairbank.slurm.parsers import words
from fairbank.slurm.queue_snapshot.answers import COMMANDS, read_answers
from fairbank.slurm.queue_snapshot.snapshot import LiveQueue, build_queue
from tests.slurm.conftest import own_cluster
from tests.slurm.lab.cluster import Cluster
from tests.support.conditions import wait_until

LONG = "sleep 3600"
WHOLE = "--exclusive"
PASSES = 4
"""Main and backfill passes of the scheduler. slurmctld has run as many when its queue is stable."""


@dataclass
class ScenarioQueue:
    """Actions of a scenario on the cluster. The scenario names the jobs, which run until they are
    cancelled.
    """

    slurm: Cluster
    jobs: dict[str, int] = field(default_factory=dict)
    undo_commands: list[tuple[str, ...]] = field(default_factory=list)

    def submit_running(self, name: str, *options: str, user: str = "alice") -> ScenarioQueue:
        """Submit a job and wait until it runs."""
        self.submit(name, *options, user=user)
        self.slurm.wait_for(self.jobs[name], "RUNNING")
        return self

    def submit(
        self, name: str, *options: str, user: str = "alice", priority: int | None = None
    ) -> ScenarioQueue:
        """Submit a job."""
        self.jobs[name] = self.slurm.submit(user, f"--job-name={name}", *options, script=LONG)
        if priority is not None:
            self.scontrol("update", f"jobid={self.jobs[name]}", f"priority={priority}")
        return self

    def scontrol(self, *arguments: str, undo: tuple[str, ...] = ()) -> ScenarioQueue:
        """Run scontrol as root, and its `undo` at the end of the scenario."""
        self.slurm.root("scontrol", *arguments)
        self.undo_commands += [("scontrol", *undo)] if undo else []
        return self

    def sacctmgr(self, *arguments: str) -> ScenarioQueue:
        """Run sacctmgr as root, on a cluster that is removed after the scenario."""
        self.slurm.root("sacctmgr", "--immediate", *arguments)
        return self

    def set_limits(self, kind: str, name: str, **limits: str | int) -> ScenarioQueue:
        """Set limits with sacctmgr for the duration of the scenario: numbers, or numbers of one
        TRES.
        """
        modify = ("sacctmgr", "--immediate", "modify", kind, name, "set")
        self.slurm.root(*modify, *(f"{key}={value}" for key, value in limits.items()))
        self.undo_commands.append(
            (*modify, *(f"{key}={_unset(value)}" for key, value in limits.items()))
        )
        return self

    def undo(self) -> None:
        """Restore nodes, partitions and limits."""
        for command in self.undo_commands:
            self.slurm.root(*command)

    def down(self, *partitions: str) -> ScenarioQueue:
        for name in partitions or PARTITIONS:
            self.scontrol("update", f"partitionname={name}", "state=down")
        return self


Scenario = Callable[[ScenarioQueue], Sequence[str] | None]
"""Function that builds a queue. It may return the partitions to set up."""

PARTITIONS = ("cpu", "gpu")
NODES = ("c01", "c02", "c03", "c04", "c05", "c06", "g01", "g02")
ELSEWHERE = "elsewhere"
"""Name of jobs in a partition that no scenario uses. One of them stays pending, so that backfill
always has a job: sdiag does not count a cycle without one.
"""

SETTINGS = {
    "Licenses": "matlab:2",
    "SchedulerParameters": (
        "batch_sched_delay=0,bf_interval=1,bf_continue,default_queue_depth=1000,"
        "sched_min_interval=2000"
    ),
    "PriorityCalcPeriod": "5",
}


def queue_cluster(name: str, **more: str) -> Iterator[Cluster]:
    """Start a separate cluster with licenses and a backfill pass every second."""
    with own_cluster(name, changes={**SETTINGS, **more}) as cluster:
        occupy_other_partition(cluster)
        yield cluster


def occupy_other_partition(slurm: Cluster) -> None:
    """Submit two jobs to the other partition: one runs, one waits. Both end behind bf_window."""
    options = (
        f"--job-name={ELSEWHERE}",
        "--partition=gpu-t4",
        "--nodes=2",
        "--exclusive",
        "--time=2-0",
    )
    slurm.wait_for(slurm.submit("dave", *options, script=LONG), "RUNNING")
    slurm.submit("dave", *options, script=LONG)


def _queued(slurm: Cluster) -> list[str]:
    """Return the jobs that the scenario has left in the queue."""
    rows = [
        line.split("|")
        for line in slurm.root("squeue", "--noheader", "--format=%i|%j").splitlines()
    ]
    return [job for job, name in rows if name != ELSEWHERE]


def clean_up(slurm: Cluster) -> None:
    """Remove all jobs and reservations of the scenario, and set the partitions up."""
    if jobs := {re.split(r"[_+]", name)[0] for name in _queued(slurm)}:
        slurm.root("scancel", *jobs)
    wait_until(lambda: not _queued(slurm), "the queue to be empty", seconds=60)
    for line in slurm.root("scontrol", "--oneliner", "show", "reservation").splitlines():
        if line.startswith("ReservationName="):
            slurm.root("scontrol", "delete", line.split()[0])
    for name in PARTITIONS:
        slurm.root("scontrol", "update", f"partitionname={name}", "state=up")


def _unset(limit: str | int) -> str:
    tres, sign, _ = str(limit).rpartition("=")
    return f"{tres}{sign}-1"


class JobOutcome(NamedTuple):
    """Final state of a job or array task: the nodes where it runs, or the reason why it waits."""

    name: str
    nodes: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return f"runs on {self.nodes}" if self.nodes else f"waits ({self.reason})"


class QueueOutcome(NamedTuple):
    """Outcome of each job by squeue's name, the order of starts since the partitions went up, and
    the preempted jobs.
    """

    outcomes: Mapping[str, JobOutcome]
    order: Sequence[str]
    preempted: frozenset[str]


def read_texts(slurm: Cluster) -> dict[str, str]:
    """Return the output of each command of a snapshot."""
    return {name: slurm.root(*words) for name, words in COMMANDS.items()}


def predict(texts: Mapping[str, str], up: Sequence[str]) -> QueueOutcome:
    """Return the scheduler's result for this output, with these partitions up."""
    changed = dict(texts)
    changed["partitions"] = "".join(
        _set_up_in(line, up) for line in texts["partitions"].splitlines(keepends=True)
    )
    answers, unreadable = read_answers(changed)
    assert unreadable == ()
    live_queue = build_queue(answers)
    assert live_queue.notes == []
    return QueueOutcome(*_passes(live_queue))


def _set_up_in(line: str, up: Sequence[str]) -> str:
    return (
        line.replace(" State=DOWN ", " State=UP ")
        if any(line.startswith(f"PartitionName={name} ") for name in up)
        else line
    )


def _passes(live_queue: LiveQueue) -> tuple[dict[str, JobOutcome], list[str], frozenset[str]]:
    """Run passes until no job starts."""
    snapshot, outcomes, order, preempted = (
        live_queue.snapshot,
        dict[str, JobOutcome](),
        list[str](),
        set[int](),
    )
    for _ in range(PASSES):
        plan = run_passes(snapshot, live_queue.parameters, live_queue.now)
        names = snapshot.machine.cluster.names
        for start in plan.starts:
            name = start.job.name
            order.append(name)
            outcomes[name] = JobOutcome(name, nodes=names(start.placement.nodes))
            preempted.update(start.placement.preempted)
        snapshot = apply_plan(snapshot, plan, live_queue.now)
        for job in snapshot.queue.jobs():
            outcomes[job.name] = JobOutcome(job.name, reason=plan.reason(job.number))
        if not plan.starts:
            break
    return (
        outcomes,
        order,
        frozenset(
            running_job.job.name
            for running_job in live_queue.snapshot.running
            if running_job.number in preempted
        ),
    )


def start_partitions(slurm: Cluster, partitions: Sequence[str]) -> Callable[[], QueueOutcome]:
    """Set these partitions up, wait for two main and two backfill passes, and return a function
    that reads the outcome.
    """
    before, written = passes(slurm), len(slurm.log("slurmctld"))
    ran = {outcome.name for outcome in _read_outcomes(slurm) if outcome.nodes}
    for name in partitions:
        slurm.root("scontrol", "update", f"partitionname={name}", "state=up")
    wait_until(
        lambda: _has_scheduled(slurm, before, partitions[0]),
        "slurmctld to have looked at the queue",
        seconds=60,
    )

    def outcome() -> QueueOutcome:
        outcomes = {outcome.name: outcome for outcome in _read_outcomes(slurm)}
        preempted = ran - {name for name, outcome in outcomes.items() if outcome.nodes}
        return QueueOutcome(
            outcomes, list(_started(slurm, slurm.log("slurmctld")[written:])), frozenset(preempted)
        )

    return outcome


def wait_for_completing(slurm: Cluster) -> None:
    """Wait until all ended jobs have left the queue."""
    wait_until(
        lambda: not slurm.root("squeue", "--noheader", "--states=COMPLETING").strip(),
        "jobs that were ended to go",
        seconds=60,
    )


def passes(slurm: Cluster) -> tuple[int, int]:
    """Return the numbers of main and backfill passes."""
    main, backfill = (
        int(count) for count in re.findall(r"Total cycles: +(\d+)", slurm.root("sdiag"))
    )
    return main, backfill


def _has_scheduled(slurm: Cluster, before: tuple[int, int], partition: str) -> bool:
    """Return True after enough passes. Slurm schedules only after a change, so otherwise set the
    partition up once more.
    """
    main, backfill = passes(slurm)
    if main >= before[0] + 3 and backfill >= before[1] + 3:
        return True
    slurm.root("scontrol", "update", f"partitionname={partition}", "state=up")
    return False


def _read_outcomes(slurm: Cluster) -> Iterator[JobOutcome]:
    for line in slurm.root("squeue", "--noheader", "--array", "--format=%i|%T|%r|%N").splitlines():
        name, state, reason, nodes = line.split("|")
        yield (
            JobOutcome(name, nodes=_sorted(nodes))
            if state in ("RUNNING", "CONFIGURING")
            else JobOutcome(name, reason=words.reason(reason))
        )


def _sorted(nodes: str) -> str:
    return compress(sorted(expand(nodes)))


_STARTED = re.compile(
    r"sched(?:/backfill)?: (?:Allocate |_start_job: Started )JobId=(?:(\d+_\d+)\(\d+\)|(\d+))"
)


def _started(slurm: Cluster, log: str) -> Iterator[str]:
    for match in _STARTED.finditer(log):
        yield match[1] or match[2]
