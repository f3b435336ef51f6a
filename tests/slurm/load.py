"""Load during faults: continuous job submission, and a client that polls the queue."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from tests.slurm.bank_cluster import AGENT_TIMEOUT_SECONDS
from tests.slurm.lab.cluster import Cluster
from tests.support.conditions import wait_until

QUEUE_MAX = 40
BEGUN = "begun"  # file in each user's home with job numbers and start times
USERS = ("alice", "bob", "carol", "dave")
TIMEOUT_SECONDS, RETRY_SECONDS = 300, 20
DUPLICATE = "launch failed requeued held"
POLL_SECONDS = AGENT_TIMEOUT_SECONDS - 1.0
"""Time limit of squeue. It is less than the agent's patience with the bank: a slurmctld that waited
for the bank would answer no squeue in time.
"""


class Submission(NamedTuple):
    """Job, and the times before and after its submission (seconds since 1970)."""

    job: int
    before: float
    after: float


class Operator:
    """Simulated operator. It starts requeued jobs in three seconds instead of two minutes; in the
    same second, their credentials would count as revoked. If slurmctld loses jobs and uses their
    numbers again, a slurmd that knows the old jobs refuses the new ones, and Slurm holds them and
    drains the node. The operator resumes the node and releases such jobs; `duplicate_launches`
    counts them.
    """

    def __init__(self, slurm: Cluster) -> None:
        self.slurm = slurm
        self.duplicate_launches = 0
        self._seen: dict[str, float] = {}

    def start_requeued_jobs(self) -> None:
        """Start requeued jobs once. After a timeout, the rest waits for the next call."""
        with contextlib.suppress(TimeoutError):
            self._start_requeued()

    def _start_requeued(self) -> None:
        result = self.slurm.run(
            "root", "squeue", "--noheader", "--states=PENDING", "--format=%A|%r", seconds=60
        )
        for job, reason in (line.split("|", 1) for line in result.out.splitlines()):
            now = time.monotonic()
            if now - self._seen.get(job, -RETRY_SECONDS) < RETRY_SECONDS:
                continue
            if reason == "BeginTime":
                self.slurm.run("root", "scontrol", "update", f"jobid={job}", "starttime=now+3")
            elif reason.replace("_", " ") == DUPLICATE:
                self.duplicate_launches += 1
                self._resume_nodes()
                self.slurm.run("root", "scontrol", "release", job)
            else:
                continue
            self._seen[job] = now

    def _resume_nodes(self) -> None:
        for node in (node for node, state in self.slurm.nodes().items() if "drain" in state):
            self.slurm.run("root", "scontrol", "update", f"nodename={node}", "state=resume")


class Load:
    """Submitter of scripts, GPU jobs and arrays while the queue is short, from `start` to `stop`.
    `failed` counts failed submissions.
    """

    def __init__(self, slurm: Cluster, rng: random.Random) -> None:
        self.slurm, self.rng = slurm, rng
        self.submitted: list[Submission] = []
        self.failed = 0
        self.operator = Operator(slurm)
        self._stopped = threading.Event()
        self._submitting = threading.Lock()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(TIMEOUT_SECONDS)
        assert not self._thread.is_alive()

    def wait_for_more(self, jobs: int) -> None:
        """Wait until this many more jobs are submitted, or the queue is full."""
        target = len(self.submitted) + jobs
        wait_until(
            lambda: len(self.submitted) >= target or self.is_full(),
            f"{jobs} more jobs",
            seconds=TIMEOUT_SECONDS,
        )

    def is_full(self) -> bool:
        return self._queued() >= QUEUE_MAX

    @contextmanager
    def paused(self) -> Iterator[None]:
        with self._submitting:
            yield

    def _queued(self) -> int:
        """Return the number of queued jobs. A timeout counts as a full queue; a failure as an empty
        one.
        """
        try:
            result = self.slurm.run(
                "root", "squeue", "--noheader", "--format=%i", "--array", seconds=60
            )
        except TimeoutError:
            return QUEUE_MAX
        return len(result.out.split()) if result.code == 0 else 0

    def _work(self) -> None:
        while not self._stopped.is_set():
            if self.is_full():
                self.operator.start_requeued_jobs()
                self._stopped.wait(0.2)
                continue
            with self._submitting:
                self._submit()

    def _submit(self) -> None:
        options = self.rng.choices(
            (
                (),
                ("-c4",),
                ("--mem=16G",),
                ("--partition=gpu", "--gres=gpu:1"),
                ("--partition=gpu-t4", "--gres=gpu:1"),
                ("--array=1-4",),
            ),
            (6, 3, 2, 3, 1, 2),
        )[0]
        script = (
            f'echo "$SLURM_JOB_ID $(date +%s)" >> "$HOME/{BEGUN}"\nsleep'
            f" {self.rng.choice((0, 0, 1, 2, 4))}"
        )
        before = time.time()
        try:
            job = self.slurm.submit(self.rng.choice(USERS), "--time=10", *options, script=script)
            self.submitted.append(Submission(job, before, time.time()))
        except (AssertionError, TimeoutError, ValueError):
            self.failed += 1


def script_starts(slurm: Cluster) -> dict[int, list[int]]:
    """Return the start times of each job's scripts (seconds since 1970), as the scripts wrote
    them.
    """
    starts: dict[int, list[int]] = defaultdict(list)
    for file in (slurm.file(user, BEGUN) for user in USERS):
        for job, start in (
            line.split() for line in (file.read_text().splitlines() if file.exists() else [])
        ):
            starts[int(job)].append(int(start))
    return starts


@dataclass(frozen=True)
class Poll:
    """One call of squeue: its start, its end, and its success."""

    begun: float
    ended: float
    answered: bool

    @property
    def seconds(self) -> float:
        return self.ended - self.begun


class QueuePoller:
    """Client that calls squeue repeatedly, from `start` to `stop`."""

    def __init__(self, slurm: Cluster) -> None:
        self.slurm = slurm
        self.polls: list[Poll] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(TIMEOUT_SECONDS)

    def _work(self) -> None:
        while not self._stopped.wait(0.1):
            begun, answered = time.monotonic(), False
            with contextlib.suppress(TimeoutError):
                answered = (
                    self.slurm.run("root", "squeue", "--noheader", seconds=POLL_SECONDS).code == 0
                )
            self.polls.append(Poll(begun, time.monotonic(), answered))


def missed_polls(polls: list[Poll]) -> int:
    """Return the number of polls without an answer in time."""
    return sum(1 for poll in polls if not poll.answered)


def describe_polls(polls: list[Poll]) -> str:
    """Return the durations of the polls as text."""
    seconds = sorted(poll.seconds for poll in polls if poll.answered)
    if not seconds:
        return f"none answered of {len(polls)}"
    return (
        f"{len(polls)} polls, {missed_polls(polls)} missed, median {median(seconds) * 1000:.0f} ms,"
        f" longest {seconds[-1] * 1000:.0f} ms"
    )
