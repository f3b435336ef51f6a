"""People of the lab who submit jobs of all kinds, many at a time, and what operators do to some of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.configuration import NODE_TIMEOUT
from tests.support.waiting import wait_until

AT_ONCE = 4
LONG = "sleep 600"
ONCE_LONG = "[ $SLURM_RESTART_COUNT ] || sleep 600"  # ends at once when it is started again
DOOMED = "c06"  # the node whose slurmd dies
RICH_USERS = ("alice", "bob", "carol")
ARRAY = 10
OVER_SECONDS = 240


@dataclass
class Crowd:
    """`jobs` counts what was submitted, by kind; tasks of an array are jobs."""

    slurm: Cluster
    rng: random.Random
    jobs: Counter[str] = field(default_factory=Counter)

    def mass(self, count: int) -> None:
        """So many jobs, of kinds drawn by lot, by a few users at a time."""
        kinds = ("batch", "failing", "memory", "gpu", "t4", "exclusive", "array", "srun", "salloc")
        weights = (30, 5, 8, 8, 4, 2, 3, 6, 3)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            while count > 0:
                kind = "batch" if count < ARRAY else self.rng.choices(kinds, weights)[0]
                size = ARRAY if kind == "array" else 1
                pool.submit(self._one, kind, self.rng.choice(RICH_USERS), self.rng.randint(1, 8), self.rng.choice((0, 0, 1, 2, 3)))
                self.jobs[kind] += size
                count -= size

    def _one(self, kind: str, user: str, cores: int, seconds: int) -> None:
        here, sleep = ("--time=10", f"-c{cores}"), f"sleep {seconds}"
        if kind == "srun":
            self.slurm.run(user, "srun", *here, "sleep", str(seconds), seconds=OVER_SECONDS)
        elif kind == "salloc":
            self.slurm.run(user, "salloc", *here, "srun", "sleep", str(seconds), seconds=OVER_SECONDS)
        else:
            words, script = {
                "batch": (here, sleep),
                "failing": (here, f"{sleep}; exit 3"),
                "memory": (("--time=10", "-c1", f"--mem={cores * 8}G"), sleep),
                "gpu": (("--time=10", "--partition=gpu", f"-c{cores}", f"--gres=gpu:{1 + cores % 4}"), sleep),
                "t4": (("--time=10", "--partition=gpu-t4", f"-c{cores * 4}", "--gres=gpu:1"), sleep),
                "exclusive": (("--time=10", "-N1", "--exclusive"), sleep),
                "array": ((*here, f"--array=1-{ARRAY}"), sleep),
            }[kind]
            self.slurm.submit(user, *words, script=script)

    # ------------------------------------------------------------------ what happens to some

    def running(self, kind: str, user: str, *options: str, script: str = LONG) -> int:
        """A job that runs by now."""
        job = self.slurm.submit(user, *options, script=script)
        self.jobs[kind] += 1
        self.slurm.wait_for(job, "RUNNING", seconds=60)
        return job

    def timeouts(self, count: int) -> list[int]:
        """Jobs that reach their limit of a minute."""
        self.jobs["timeout"] += count
        return [self.slurm.submit("bob", "--time=1", "-c2", script=LONG) for _ in range(count)]

    def failed_nodes(self, count: int) -> list[int]:
        """Jobs on a node whose slurmd is killed: those that may not be requeued end there, the others start again when it is back."""
        lost = [self.running("no requeue", "alice", "--no-requeue", f"--nodelist={DOOMED}") for _ in range(count)]
        again = [self.running("node failure", "carol", "--requeue", f"--nodelist={DOOMED}", script=ONCE_LONG) for _ in range(count)]
        self.slurm.kill(DOOMED)
        for job in lost:
            self.slurm.wait_for(job, "NODE_FAIL", seconds=NODE_TIMEOUT * 4 + 30)
        for job in again:
            self.slurm.wait_for(job, "PENDING", seconds=NODE_TIMEOUT * 4 + 30)
        self.slurm.start(DOOMED)
        self.hasten(*again)
        return lost + again

    def requeued(self, count: int) -> list[int]:
        """Jobs that an operator puts back into the queue, and that end at once the second time."""
        jobs = [self.running("requeue", "alice", "--requeue", "--time=10", script=ONCE_LONG) for _ in range(count)]
        for job in jobs:
            self.slurm.root("scontrol", "requeue", str(job))
            self.slurm.wait_for(job, "PENDING")
        self.hasten(*jobs)
        return jobs

    def changed_limits(self, count: int, seen: Callable[[int, int], None]) -> list[int]:
        """Jobs whose limit is changed twice as they run; `seen(job, minutes)` waits until that is known. Then they are cancelled."""
        jobs = []
        for _ in range(count):
            job = self.running("limit", "bob", "--time=10")
            for minutes in (25, 15):
                self.slurm.root("scontrol", "update", f"jobid={job}", f"timelimit={minutes}")
                seen(job, minutes)
            self.slurm.run("bob", "scancel", str(job)).done()
            jobs.append(job)
        return jobs

    def cancelled(self, count: int) -> list[int]:
        """Jobs cancelled by their owners: one as it runs, one before it could, in turn."""
        jobs = []
        for number in range(count):
            if number % 2:
                jobs.append(self.slurm.submit("carol", "--hold"))
                self.jobs["cancelled while pending"] += 1
            else:
                jobs.append(self.running("cancelled", "carol"))
            self.slurm.run("carol", "scancel", str(jobs[-1])).done()
        return jobs

    def suspended(self, count: int) -> list[int]:
        """Jobs that stand still for a while, for which nobody pays."""
        jobs = []
        for _ in range(count):
            jobs.append(self.running("suspended", "alice", "-c8", script="sleep 20"))
            self.slurm.root("scontrol", "suspend", str(jobs[-1]))
            self.slurm.wait_for(jobs[-1], "SUSPENDED")
        for job in jobs:
            self.slurm.root("scontrol", "resume", str(job))
        return jobs

    def hasten(self, *jobs: int) -> None:
        """Start them soon, not two minutes after they were requeued; within the same second their credentials would count as revoked."""
        for job in jobs:
            self.slurm.run("root", "scontrol", "update", f"jobid={job}", "starttime=now+3")

    def wait_until_over(self, held: str = "Allocation_exhausted") -> list[str]:
        """Until nothing is left in the queue but what is held for that reason. Those jobs, by number."""

        def left() -> list[tuple[str, ...]]:
            lines = self.slurm.root("squeue", "--noheader", "--array", "--format=%A|%T|%r").splitlines()
            return [tuple(line.split("|")) for line in lines]

        wait_until(lambda: all(reason == held for _, _, reason in left()), "the queue to be over", seconds=OVER_SECONDS)
        return [number for number, _, _ in left()]
