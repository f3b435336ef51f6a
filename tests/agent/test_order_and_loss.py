"""Property: any order, repetition or loss of messages gives the same ledger."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from hypothesis import event, given
from hypothesis import strategies as st

from fairbank.agent.outage_policy import OutagePolicy, PartitionTerms
from fairbank.agent.reports.bank_status import SenderSettings
from tests.agent.bank import InProcessBank
from tests.agent.plugin import epilog_event, limit_event, prolog_request
from tests.agent.world import World

JOBS = 6
ELAPSED = 120  # seconds: two SU-minutes for each billing unit
FAST = "/dev/shm" if Path("/dev/shm").is_dir() else None

STEPS = st.sampled_from(
    "next next next send send arrive arrive write listen listen again reconnect kill lost "
    "answer-lost full time load".split()
)
PLAN = st.lists(st.tuples(STEPS, st.integers(0, JOBS - 1)), min_size=10, max_size=120)
LIVES = st.lists(
    st.sampled_from(("plain", "longer", "shorter", "cancelled early", "without request")),
    min_size=JOBS,
    max_size=JOBS,
)

WINDOWS = st.sampled_from((1, 3, 4_000))
"""Reports in memory; with few, most reports wait on disk."""


class JobLives:
    """Lives of jobs in Slurm; a job starts when its verdict says so."""

    def __init__(self, world: World, lives: list[str]) -> None:
        self._world = world
        self._todo = {job + 1: list(_LIFE[life]) for job, life in enumerate(lives)}
        self._waits: set[int] = set()
        self.begun: dict[int, int] = {}

    def next(self, job: int) -> None:
        """Take the next step of a job, unless it waits for its verdict."""
        if job in self._waits or not self._todo[job]:
            return
        billing = Fraction(job)
        match self._todo[job].pop(0):
            case "ask":
                self._waits.add(job)
                self._world.deliver(prolog_request(job, billing=billing))
            case "ask and cancel":
                self._world.deliver(prolog_request(job, billing=billing))
            case "start":
                self.begun[job] = job
                self._world.deliver(limit_event(job, 3_600, billing=billing))
            case "longer":
                self._world.deliver(limit_event(job, 7_200, billing=billing))
            case "shorter":
                self._world.deliver(limit_event(job, 1_800, billing=billing))
            case "end":
                self._world.deliver(epilog_event(job, ELAPSED, billing=billing))
            case "vanish":
                self._world.deliver(
                    epilog_event(job, 1, begun=False, state="CANCELLED", billing=billing)
                )

    def listen(self) -> None:
        self._world.read_replies()
        while self._world.verdicts:
            request, verdict = self._world.verdicts.pop(0)
            job = request.run.job_id
            if job in self._waits:
                self._waits.discard(job)
                if verdict.action == "run":
                    self.begun[job] = job
                else:
                    self._todo[job] = ["vanish"]

    def advance(self) -> bool:
        """Take a step of each job; return whether any job was not finished."""
        busy = bool(self._waits) or any(self._todo.values())
        for job in self._todo:
            self.next(job)
        return busy


_LIFE = {
    "plain": ("ask", "end"),
    "longer": ("ask", "longer", "end"),
    "shorter": ("ask", "longer", "shorter", "end"),
    "cancelled early": ("ask and cancel", "vanish"),
    "without request": ("start", "longer", "end"),
}


@contextmanager
def world_of(credit: int, terms: PartitionTerms, window: int, gather: float = 0) -> Iterator[World]:
    with tempfile.TemporaryDirectory(dir=FAST) as folder:
        bank = InProcessBank(credit)
        world = World(
            Path(folder), bank, terms, senders=SenderSettings(1, 3, 5, gather), window=window
        )
        try:
            yield world
        finally:
            world.close()
            bank.close()


def play(world: World, lives: JobLives, plan: list[tuple[str, int]]) -> None:
    for step, which in plan:
        match step:
            case "next":
                lives.next(which + 1)
            case "send":
                world.send()
            case "arrive" | "lost" | "answer-lost" if world.in_flight:
                world.finish_request(
                    which, is_received=step != "lost", is_answered=step == "arrive"
                )
            case "write":
                world.write()
            case "load":
                world.load()
            case "listen":
                lives.listen()
            case "again" if world.unanswered:
                world.repeat(list(world.unanswered)[which % len(world.unanswered)])
            case "reconnect":
                world.reconnect()
            case "kill":
                world.kill()
            case "full":
                world.disk_full = not world.disk_full
            case "time":
                world.pass_time(1.0 + which)
    world.disk_full = False
    for _ in range(50):
        world.run_until_idle()
        lives.listen()
        if not lives.advance():
            world.run_until_idle()
            return
    raise AssertionError("the lives do not end")


@given(
    PLAN,
    LIVES,
    st.sampled_from(list(OutagePolicy)),
    st.sampled_from((0, 2)),
    WINDOWS,
    st.sampled_from((0, 2)),
)
def test_ledger_is_the_same_after_any_order_repetition_or_loss(
    plan: list[tuple[str, int]],
    kinds: list[str],
    policy: OutagePolicy,
    optimistic_start: int,
    window: int,
    gather: int,
) -> None:
    with world_of(
        10**6,
        PartitionTerms(patience=4, outage_policy=policy, optimistic_start=optimistic_start),
        window,
        gather,
    ) as world:
        lives = JobLives(world, kinds)
        play(world, lives, plan)
        event(f"{len(lives.begun)} of {JOBS} began")
        charged = sum(2 * job for job in lives.begun.values())
        assert world.bank.sums() == (charged, 0)
        assert world.bank.refusals() == []
        assert world.bank.is_sound()


@given(PLAN, LIVES, st.sampled_from(list(OutagePolicy)), WINDOWS)
def test_project_never_pays_beyond_its_credit(
    plan: list[tuple[str, int]], kinds: list[str], policy: OutagePolicy, window: int
) -> None:
    with world_of(400, PartitionTerms(patience=4, outage_policy=policy), window) as world:
        lives = JobLives(world, kinds)
        play(world, lives, plan)
        runs = {run.reported.run.job_id: run for run in world.bank.runs()}
        assert world.bank.sums() == (sum(run.charged for run in runs.values()), 0)
        assert world.bank.is_sound()
        for job in lives.begun:  # a run without a hold may find no credit left
            assert runs[job].charged + runs[job].written_off == 2 * job
        assert all(run.charged == 0 for job, run in runs.items() if job not in lives.begun)
