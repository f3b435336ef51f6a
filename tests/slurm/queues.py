"""A queue at a real slurmctld and in the core: submitted while its partitions are down, then let
go, and what became of each job.
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
    """Actions of a scenario on the cluster. It names the jobs, and they run until they are
    cancelled.
    """

    slurm: Cluster
    jobs: dict[str, int] = field(default_factory=dict)
    undoing: list[tuple[str, ...]] = field(default_factory=list)

    def runs(self, name: str, *options: str, user: str = "alice") -> Queue:
        """A job that runs already when the others come."""
        self.waits(name, *options, user=user)
        self.slurm.wait_for(self.jobs[name], "RUNNING")
        return self

    def waits(
        self, name: str, *options: str, user: str = "alice", priority: int | None = None
    ) -> Queue:
        """A job of the queue."""
        self.jobs[name] = self.slurm.submit(user, f"--job-name={name}", *options, script=LONG)
        if priority is not None:
            self.tell("update", f"jobid={self.jobs[name]}", f"priority={priority}")
        return self

    def tell(self, *words: str, undo: tuple[str, ...] = ()) -> Queue:
        """scontrol, as root; `undo` when the scenario is over."""
        self.slurm.root("scontrol", *words)
        self.undoing += [("scontrol", *undo)] if undo else []
        return self

    def account(self, *words: str) -> Queue:
        """sacctmgr, as root, on a cluster that goes with the scenario."""
        self.slurm.root("sacctmgr", "--immediate", *words)
        return self

    def limits(self, what: str, name: str, **limits: str | int) -> Queue:
        """sacctmgr, for the time of the scenario: numbers, or numbers of one TRES."""
        modify = ("sacctmgr", "--immediate", "modify", what, name, "set")
        self.slurm.root(*modify, *(f"{key}={value}" for key, value in limits.items()))
        self.undoing.append(
            (*modify, *(f"{key}={_taken_back(value)}" for key, value in limits.items()))
        )
        return self

    def undone(self) -> None:
        """Nodes, partitions and limits as they were."""
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
    """The jobs elsewhere are there: one runs, one waits behind it."""
    whole = (
        f"--job-name={ELSEWHERE}",
        "--partition=gpu-t4",
        "--nodes=2",
        "--exclusive",
        "--time=1-0",
    )
    slurm.wait_for(slurm.submit("dave", *whole, script=LONG), "RUNNING")
    slurm.submit("dave", *whole, script=LONG)


def _queued(slurm: Cluster) -> list[str]:
    """Return the jobs that the scenario has left in the queue."""
    rows = [
        line.split("|")
        for line in slurm.root("squeue", "--noheader", "--format=%i|%j").splitlines()
    ]
    return [job for job, name in rows if name != ELSEWHERE]


def arranged(slurm: Cluster) -> None:
    """No job and no reservation, and idle nodes, as every scenario finds them."""
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
    """By the names that squeue gives: what became of each, who started in which order since the
    queue was let go, and who ran before and lost its place.
    """

    fates: Mapping[str, Fate]
    order: Sequence[str]
    gone: frozenset[str]


def asked(slurm: Cluster) -> dict[str, str]:
    """The answers to every question of a snapshot."""
    return {name: slurm.root(*words) for name, words in COMMANDS.items()}


def foretold(texts: Mapping[str, str], up: Sequence[str]) -> Outcome:
    """Return the result of the scheduler for this output, with these partitions up."""
    opened = dict(texts)
    opened["partitions"] = "".join(
        _opened(line, up) for line in texts["partitions"].splitlines(keepends=True)
    )
    said, unread = read_answers(opened)
    assert unread == ()
    now = build_queue(said)
    assert now.notes == []
    return Outcome(*_passes(now))


def _opened(line: str, up: Sequence[str]) -> str:
    return (
        line.replace(" State=DOWN ", " State=UP ")
        if any(line.startswith(f"PartitionName={name} ") for name in up)
        else line
    )


def _passes(now: LiveQueue) -> tuple[dict[str, Fate], list[str], frozenset[str]]:
    """Until nobody starts any more."""
    snapshot, fates, order, gone = now.snapshot, dict[str, Fate](), list[str](), set[int]()
    for _ in range(PASSES):
        plan = run_passes(snapshot, now.parameters, now.now)
        names = snapshot.machine.cluster.names
        for start in plan.starts:
            name = start.job.name
            order.append(name)
            fates[name] = Fate(name, nodes=names(start.placement.nodes))
            gone.update(start.placement.preempted)
        snapshot = apply_plan(snapshot, plan, now.now)
        for job in snapshot.queue.jobs():
            fates[job.name] = Fate(job.name, reason=plan.reason(job.number))
        if not plan.starts:
            break
    return (
        fates,
        order,
        frozenset(each.job.name for each in now.snapshot.running if each.number in gone),
    )


def let_go(slurm: Cluster, partitions: Sequence[str]) -> Callable[[], Outcome]:
    """Put these partitions up, wait until main and backfill have both looked twice, and return what
    then reads the outcome.
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
        gone = ran - {name for name, fate in fates.items() if fate.nodes}
        return Outcome(
            fates, list(_started(slurm, slurm.log("slurmctld")[written:])), frozenset(gone)
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
    """Both look only when something has changed, and a partition that is told once more that it is
    up has.
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
