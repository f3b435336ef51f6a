"""Simulated users who submit many jobs of all kinds, and operator actions on some of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.configuration import NODE_TIMEOUT
from tests.support.conditions import wait_until

AT_ONCE = 4
LONG = "sleep 600"
ONCE_LONG = "[ $SLURM_RESTART_COUNT ] || sleep 600"  # ends at once after a restart
FAILING_NODE = "c06"  # the node whose slurmd is killed; srun and salloc avoid it
RICH_USERS = ("alice", "bob", "carol")
ARRAY = 10
DONE_SECONDS = 240
NEVER_RUNS = "cancelled while pending"


class AcceptedJob(NamedTuple):
    """Job that Slurm accepted: kind, number, and number of jobs; tasks of an array count as
    jobs.
    """

    kind: str
    job: int
    size: int = 1


@dataclass
class Workload:
    """Simulated users. `accepted` has the accepted jobs in no particular order."""

    slurm: Cluster
    rng: random.Random
    accepted: list[AcceptedJob] = field(default_factory=list)

    def jobs(self) -> Counter[str]:
        """Return the number of jobs by kind."""
        counted: Counter[str] = Counter()
        for job in self.accepted:
            counted[job.kind] += job.size
        return counted

    def submit_many(self, count: int) -> None:
        """Submit `count` jobs of random kinds, a few users at a time. Raises AssertionError or
        TimeoutError if one fails.
        """
        kinds = ("batch", "failing", "memory", "gpu", "t4", "exclusive", "array", "srun", "salloc")
        weights = (30, 5, 8, 8, 4, 2, 3, 6, 3)
        under_way = []
        with ThreadPoolExecutor(AT_ONCE) as pool:
            while count > 0:
                kind = "batch" if count < ARRAY else self.rng.choices(kinds, weights)[0]
                size = ARRAY if kind == "array" else 1
                drawn = (
                    self.rng.choice(RICH_USERS),
                    self.rng.randint(1, 8),
                    self.rng.choice((0, 0, 1, 2, 3)),
                )
                under_way.append((kind, size, pool.submit(self._submit_one, kind, *drawn)))
                count -= size
        self.accepted += [AcceptedJob(kind, done.result(), size) for kind, size, done in under_way]

    def _submit_one(self, kind: str, user: str, cores: int, seconds: int) -> int:
        """Submit a job and return its number. For srun and salloc, wait for its successful end."""
        limits, sleep = ("--time=10", f"-c{cores}"), f"sleep {seconds}"
        if kind in ("srun", "salloc"):
            options = (*limits, f"--exclude={FAILING_NODE}")
            command = f"echo $SLURM_JOB_ID; {'srun ' if kind == 'salloc' else ''}{sleep}"
            return int(
                self.slurm.run(user, kind, *options, "sh", "-c", command, seconds=DONE_SECONDS)
                .checked()
                .out
            )
        options_of_kind, script = {
            "batch": (limits, sleep),
            "failing": (limits, f"{sleep}; exit 3"),
            "memory": (("--time=10", "-c1", f"--mem={cores * 8}G"), sleep),
            "gpu": (
                ("--time=10", "--partition=gpu", f"-c{cores}", f"--gres=gpu:{1 + cores % 4}"),
                sleep,
            ),
            "t4": (("--time=10", "--partition=gpu-t4", f"-c{cores * 4}", "--gres=gpu:1"), sleep),
            "exclusive": (("--time=10", "-N1", "--exclusive"), sleep),
            "array": ((*limits, f"--array=1-{ARRAY}"), sleep),
        }[kind]
        return self.slurm.submit(user, *options_of_kind, script=script)

    # ------------------------------------------------------------------ jobs with special ends

    def submit_job(self, kind: str, user: str, *options: str, script: str = LONG) -> int:
        """Submit a job of this kind and return its number."""
        job = self.slurm.submit(user, *options, script=script)
        self.accepted.append(AcceptedJob(kind, job))
        return job

    def run_job(self, kind: str, user: str, *options: str, script: str = LONG) -> int:
        """Submit a job, wait until it runs, and return its number."""
        job = self.submit_job(kind, user, *options, script=script)
        self.slurm.wait_for(job, "RUNNING", seconds=60)
        return job

    def reach_time_limit(self, count: int) -> list[int]:
        """Submit jobs that reach their limit of one minute."""
        return [self.submit_job("timeout", "bob", "--time=1", "-c2") for _ in range(count)]

    def submit_beyond_credit(self, count: int) -> list[int]:
        """Submit jobs of 20 SU for a project with little credit."""
        return [
            self.submit_job("beyond credit", "dave", "-c20", "--time=60", script="sleep 2")
            for _ in range(count)
        ]

    def fail_nodes(self, count: int) -> list[int]:
        """Run jobs on a node and kill its slurmd. Jobs with --no-requeue end; the others start
        again when the node is back.
        """
        lost = [
            self.run_job("no requeue", "alice", "--no-requeue", f"--nodelist={FAILING_NODE}")
            for _ in range(count)
        ]
        requeued = [
            self.run_job(
                "node failure", "carol", "--requeue", f"--nodelist={FAILING_NODE}", script=ONCE_LONG
            )
            for _ in range(count)
        ]
        self.slurm.kill(FAILING_NODE)
        for job in lost:
            self.slurm.wait_for(job, "NODE_FAIL", seconds=NODE_TIMEOUT * 4 + 30)
        for job in requeued:
            self.slurm.wait_for(job, "PENDING", seconds=NODE_TIMEOUT * 4 + 30)
        self.slurm.start(FAILING_NODE)
        self.start_requeued(*requeued)
        return lost + requeued

    def requeue_jobs(self, count: int) -> list[int]:
        """Run and requeue jobs that end at once the second time."""
        jobs = [
            self.run_job("requeue", "alice", "--requeue", "--time=10", script=ONCE_LONG)
            for _ in range(count)
        ]
        for job in jobs:
            self.slurm.root("scontrol", "requeue", str(job))
            self.slurm.wait_for(job, "PENDING")
        self.start_requeued(*jobs)
        return jobs

    def change_limits(self, count: int, wait_for_limit: Callable[[int, int], None]) -> list[int]:
        """Change the limit of running jobs twice, then cancel them. `seen(job, minutes)` waits
        until the new limit has arrived.
        """
        jobs = []
        for _ in range(count):
            job = self.run_job("limit", "bob", "--time=10")
            for minutes in (25, 15):
                self.slurm.root("scontrol", "update", f"jobid={job}", f"timelimit={minutes}")
                wait_for_limit(job, minutes)
            self.slurm.run("bob", "scancel", str(job)).checked()
            jobs.append(job)
        return jobs

    def cancel_jobs(self, count: int) -> list[int]:
        """Submit jobs and cancel them as their owner: alternately one that runs and one that is
        pending.
        """
        jobs = []
        for number in range(count):
            if number % 2:
                jobs.append(self.submit_job(NEVER_RUNS, "carol", "--hold"))
            else:
                jobs.append(self.run_job("cancelled", "carol"))
            self.slurm.run("carol", "scancel", str(jobs[-1])).checked()
        return jobs

    def suspend_jobs(self, count: int) -> list[int]:
        """Run jobs and suspend them for a while that costs nothing: alternately one that goes on
        and one that its owner cancels meanwhile.
        """
        jobs = []
        for _ in range(count):
            jobs.append(self.run_job("suspended", "alice", "-c8", script="sleep 20"))
            self.slurm.root("scontrol", "suspend", str(jobs[-1]))
            self.slurm.wait_for(jobs[-1], "SUSPENDED")
        for number, job in enumerate(jobs):
            if number % 2:
                self.slurm.run("alice", "scancel", str(job)).checked()
            else:
                self.slurm.root("scontrol", "resume", str(job))
        return jobs

    def start_requeued(self, *jobs: int) -> None:
        """Start requeued jobs in three seconds instead of two minutes. In the same second, their
        credentials would count as revoked.
        """
        for job in jobs:
            self.slurm.run("root", "scontrol", "update", f"jobid={job}", "starttime=now+3")

    def wait_until_done(self, held: str = "Allocation_exhausted") -> list[str]:
        """Wait until the queue has only jobs held for this reason; return their numbers."""

        def left() -> list[tuple[str, ...]]:
            lines = self.slurm.root(
                "squeue", "--noheader", "--array", "--format=%A|%T|%r"
            ).splitlines()
            return [tuple(line.split("|")) for line in lines]

        wait_until(
            lambda: all(reason == held for _, _, reason in left()),
            "the queue to be over",
            seconds=DONE_SECONDS,
        )
        return [number for number, _, _ in left()]
