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
from fairbank.slurm.queue_snapshot.snapshot import COMMANDS, LiveQueue, build_queue, read_answers
from tests.slurm.lab.cluster import Cluster
from tests.support.conditions import wait_until

LONG = "sleep 3600"
WHOLE = "--exclusive"
PASSES = 4
"""Main and backfill passes of the core, one after the other, as often as slurmctld has run them
when it has come to rest.
"""


@dataclass
class Queue:
    """Actions of a scenario on the cluster. The scenario names the jobs, which run until they are
    cancelled.
    """

    slurm: Cluster
    jobs: dict[str, int] = field(default_factory=dict)
    undoing: list[tuple[str, ...]] = field(default_factory=list)

    def runs(self, name: str, *options: str, user: str = "alice") -> Queue:
        """Submit a job and wait until it runs."""
        self.waits(name, *options, user=user)
        self.slurm.wait_for(self.jobs[name], "RUNNING")
        return self

    def waits(
        self, name: str, *options: str, user: str = "alice", priority: int | None = None
    ) -> Queue:
        """Submit a job."""
        self.jobs[name] = self.slurm.submit(user, f"--job-name={name}", *options, script=LONG)
        if priority is not None:
            self.tell("update", f"jobid={self.jobs[name]}", f"priority={priority}")
        return self

    def tell(self, *arguments: str, undo: tuple[str, ...] = ()) -> Queue:
        """Run scontrol as root, and its `undo` at the end of the scenario."""
        self.slurm.root("scontrol", *arguments)
        self.undoing += [("scontrol", *undo)] if undo else []
        return self

    def account(self, *arguments: str) -> Queue:
        """Run sacctmgr as root, on a cluster that is removed after the scenario."""
        self.slurm.root("sacctmgr", "--immediate", *arguments)
        return self

    def limits(self, kind: str, name: str, **limits: str | int) -> Queue:
        """Set limits with sacctmgr for the duration of the scenario: numbers, or numbers of one
        TRES.
        """
        modify = ("sacctmgr", "--immediate", "modify", kind, name, "set")
        self.slurm.root(*modify, *(f"{key}={value}" for key, value in limits.items()))
        self.undoing.append(
            (*modify, *(f"{key}={_taken_back(value)}" for key, value in limits.items()))
        )
        return self

    def undone(self) -> None:
        """Restore nodes, partitions and limits."""
        for command in self.undoing:
            self.slurm.root(*command)

    def down(self, *partitions: str) -> Queue:
        for name in partitions or PARTITIONS:
            self.tell("update", f"partitionname={name}", "state=down")
        return self


Scenario = Callable[[Queue], Sequence[str] | None]
"""Function that plays a queue. It may return the partitions to be put up."""

PARTITIONS = ("cpu", "gpu")
NODES = ("c01", "c02", "c03", "c04", "c05", "c06", "g01", "g02")
ELSEWHERE = "elsewhere"
"""Jobs of this name are in a partition that no scenario uses. One of them waits for ever, so that
backfill always has somebody to look at: a cycle without is not counted.
"""

SETTINGS = {
    "Licenses": "matlab:2",
    "SchedulerParameters": (
        "batch_sched_delay=0,bf_interval=1,bf_continue,default_queue_depth=1000,"
        "sched_min_interval=2000"
    ),
    "PriorityCalcPeriod": "5",
}


def settled(slurm: Cluster) -> None:
    """Submit two jobs to the other partition: one runs, one waits."""
    options = (
        f"--job-name={ELSEWHERE}",
        "--partition=gpu-t4",
        "--nodes=2",
        "--exclusive",
        "--time=1-0",
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


def arranged(slurm: Cluster) -> None:
    """Remove all jobs and reservations of the scenario, and set the partitions up."""
    if jobs := {name.partition("_")[0] for name in _queued(slurm)}:
        slurm.root("scancel", *jobs)
    wait_until(lambda: not _queued(slurm), "the queue to be empty", seconds=60)
    for line in slurm.root("scontrol", "--oneliner", "show", "reservation").splitlines():
        if line.startswith("ReservationName="):
            slurm.root("scontrol", "delete", line.split()[0])
    for name in PARTITIONS:
        slurm.root("scontrol", "update", f"partitionname={name}", "state=up")


def _taken_back(limit: str | int) -> str:
    tres, sign, _ = str(limit).rpartition("=")
    return f"{tres}{sign}-1"


class Fate(NamedTuple):
    """Final state of a job or array task: the nodes where it runs, or the reason why it waits."""

    name: str
    nodes: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return f"runs on {self.nodes}" if self.nodes else f"waits ({self.reason})"


class Outcome(NamedTuple):
    """Outcome of each job by squeue's name, the order of starts since the partitions went up, and
    the preempted jobs.
    """

    fates: Mapping[str, Fate]
    order: Sequence[str]
    gone: frozenset[str]


def asked(slurm: Cluster) -> dict[str, str]:
    """Return the output of each command of a snapshot."""
    return {name: slurm.root(*words) for name, words in COMMANDS.items()}


def foretold(texts: Mapping[str, str], up: Sequence[str]) -> Outcome:
    """Return the scheduler's result for this output, with these partitions up."""
    changed = dict(texts)
    changed["partitions"] = "".join(
        _opened(line, up) for line in texts["partitions"].splitlines(keepends=True)
    )
    answers, unreadable = read_answers(changed)
    assert unreadable == ()
    live_queue = build_queue(answers)
    assert live_queue.notes == []
    return Outcome(*_passes(live_queue))


def _opened(line: str, up: Sequence[str]) -> str:
    return (
        line.replace(" State=DOWN ", " State=UP ")
        if any(line.startswith(f"PartitionName={name} ") for name in up)
        else line
    )


def _passes(live_queue: LiveQueue) -> tuple[dict[str, Fate], list[str], frozenset[str]]:
    """Run passes until no job starts."""
    snapshot, fates, order, preempted = (
        live_queue.snapshot,
        dict[str, Fate](),
        list[str](),
        set[int](),
    )
    for _ in range(PASSES):
        plan = run_passes(snapshot, live_queue.parameters, live_queue.now)
        names = snapshot.machine.cluster.names
        for start in plan.starts:
            name = start.job.name
            order.append(name)
            fates[name] = Fate(name, nodes=names(start.placement.nodes))
            preempted.update(start.placement.preempted)
        snapshot = apply_plan(snapshot, plan, live_queue.now)
        for job in snapshot.queue.jobs():
            fates[job.name] = Fate(job.name, reason=plan.reason(job.number))
        if not plan.starts:
            break
    return (
        fates,
        order,
        frozenset(
            running_job.job.name
            for running_job in live_queue.snapshot.running
            if running_job.number in preempted
        ),
    )


def let_go(slurm: Cluster, partitions: Sequence[str]) -> Callable[[], Outcome]:
    """Set these partitions up, wait for two main and two backfill passes, and return a function
    that reads the outcome.
    """
    before, written = passes(slurm), len(slurm.log("slurmctld"))
    ran = {fate.name for fate in _fates(slurm) if fate.nodes}
    for name in partitions:
        slurm.root("scontrol", "update", f"partitionname={name}", "state=up")
    wait_until(
        lambda: _looked(slurm, before, partitions[0]),
        "slurmctld to have looked at the queue",
        seconds=60,
    )

    def outcome() -> Outcome:
        fates = {fate.name: fate for fate in _fates(slurm)}
        preempted = ran - {name for name, fate in fates.items() if fate.nodes}
        return Outcome(
            fates, list(_started(slurm, slurm.log("slurmctld")[written:])), frozenset(preempted)
        )

    return outcome


def at_rest(slurm: Cluster) -> None:
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


def _looked(slurm: Cluster, before: tuple[int, int], partition: str) -> bool:
    """Return True after enough passes. Slurm schedules only after a change, so otherwise set the
    partition up once more.
    """
    main, backfill = passes(slurm)
    if main >= before[0] + 3 and backfill >= before[1] + 3:
        return True
    slurm.root("scontrol", "update", f"partitionname={partition}", "state=up")
    return False


def _fates(slurm: Cluster) -> Iterator[Fate]:
    for line in slurm.root("squeue", "--noheader", "--array", "--format=%i|%T|%r|%N").splitlines():
        name, state, reason, nodes = line.split("|")
        yield (
            Fate(name, nodes=_sorted(nodes))
            if state in ("RUNNING", "CONFIGURING")
            else Fate(name, reason=words.reason(reason))
        )


def _sorted(nodes: str) -> str:
    return compress(sorted(expand(nodes)))


_STARTED = re.compile(
    r"sched(?:/backfill)?: (?:Allocate |_start_job: Started )JobId=(?:(\d+_\d+)\(\d+\)|(\d+))"
)


def _started(slurm: Cluster, log: str) -> Iterator[str]:
    for match in _STARTED.finditer(log):
        yield match[1] or match[2]
