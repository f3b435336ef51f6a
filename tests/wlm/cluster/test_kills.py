"""Kills of all processes of a cluster at random moments: no job is lost, none is charged twice."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from fairbank.bank.query import RunQuery
from fairbank.bank.run import RESOLVED, RunState
from fairbank.wlm.controller.state_store import AccountedRun
from fairbank.wlm.core.jobs import WlmJob
from fairbank.wlm.stepd.step import StepStart
from tests.support.conditions import wait_until
from tests.support.figures import LogFigure
from tests.wlm.cluster.live_cluster import LiveCluster

# Each run writes its begin and its end; a child lives a little longer than the script.
SCRIPT = """\
run=$SLURM_JOB_ID.${{SLURM_RESTART_COUNT:-0}}
echo start $run
(sleep 0.2 &)
sleep 0.{tenths}
echo end $run
exit {code}
"""


class Campaign:
    """Jobs and kills.

    `accepted` are all submissions, `jobs` those that are neither arrays nor have dependants,
    `requeued` those that a request put back, and `parents` has the dependency of a job: its type
    and the job before it. `kinds` can be killed, and `steps_below` is the pattern of the
    directories of steps. `figures` are lines to show.
    """

    kinds: tuple[str, ...] = (
        "controller", "node", "launcher", "step daemon", "script", "agent", "bank", "supervisor",
    )  # fmt: skip
    steps_below = "*/jobs/*"

    def __init__(self, cluster: LiveCluster, seed: int) -> None:
        self.cluster, self.random = cluster, random.Random(seed)
        self.accepted: list[int] = []
        self.jobs: list[int] = []
        self.requeued: set[int] = set()
        self.parents: dict[int, tuple[str, int]] = {}
        self.suspended: list[int] = []
        self.kills: Counter[str] = Counter()
        self.figures: list[str] = []

    # ------------------------------------------------------------------ what happens

    def run(self, kills: int, jobs: int) -> None:
        """Kill processes, each after some submissions."""
        deck: list[str] = []
        for _ in range(kills):
            for _ in range(self.random.randint(1, 2 * jobs - 1)):
                self.submit()
            if not deck:
                deck = self.random.sample(self.kinds, len(self.kinds))
            self.kills[self.kill(deck.pop())] += 1
            self.cluster.check_live()
        self.resume()

    def resume(self) -> None:
        """Let the suspended jobs go on."""
        while self.suspended:
            self.cluster.change("resume", self.suspended.pop())

    def submit(self) -> None:
        """Submit a job of some kind, and suspend, requeue or cancel one of the last."""
        kind = self.random.choice(
            ["job", "job", "wide", "array", "chain", "suspend", "requeue", "cancel"]
        )
        if kind == "array":
            self._submit(array=f"0-{self.random.randint(1, 4)}%2")
        elif kind == "wide":
            self._submit(nodes="2", ntasks="2")
        elif kind == "chain":
            code = self.random.choice([0, 0, 3])
            parent = self._submit(code)
            for type_ in self.random.sample(["afterok", "afternotok", "afterany"], 2):
                child = self._submit(dependency=f"{type_}:{parent}", kill_on_invalid_dep="yes")
                self.parents[child] = (type_, parent)
        else:
            self.jobs.append(self._submit())
            job = self.random.choice(self.jobs[-10:])
            if kind == "requeue":
                self.requeued.add(job)
                self.cluster.change("requeue", job)
            elif kind == "cancel":
                self.cluster.change("cancel", job)
            elif kind == "suspend":
                self.resume()
                self.cluster.change("suspend", job)
                self.suspended.append(job)

    def _submit(self, code: int = 0, **options: str) -> int:
        script = SCRIPT.format(tenths=self.random.randint(0, 4), code=code)
        job = self.cluster.submit(script, output="%j.out", **options)
        self.accepted.append(job)
        return job

    def kill(self, kind: str) -> str:
        """Kill a process, and return what it was."""
        cluster = self.cluster
        if kind == "supervisor":
            os.kill(cluster.supervisor(), signal.SIGKILL)
            cluster.fairbank("cluster", "up")
            return kind
        pid: int | None
        if kind in ("step daemon", "script"):
            step = self.random.choice(self.steps())
            pid = step.daemon if kind == "step daemon" else step.script
        else:
            pid = cluster.launcher() if kind == "launcher" else cluster.daemon(kind)
        if pid is None:
            return "nothing"
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return kind

    def steps(self) -> list[StepStart]:
        """Return the steps that live, at least one."""
        self.submit()
        steps: list[StepStart] = []

        def has_steps() -> bool:
            steps[:] = self.cluster.steps(self.steps_below)
            return bool(steps)

        wait_until(has_steps, "a step")
        return steps

    # ------------------------------------------------------------------ what is left

    def check(self) -> list[str]:
        """Check the invariants by what is on the disk.

        Returns:
            What was done, in lines.
        """
        rows, runs = self.cluster.stored()
        jobs = {row.value.number: row.value for row in rows if isinstance(row.value, WlmJob)}
        assert [row for row in rows if row.table == "messages"] == []
        ends = self.check_ends(jobs, runs)
        self.check_order(runs, ends)
        check_cores(runs)
        charged = self.check_bank(runs)
        self.check_outputs(runs)
        return [
            f"{len(ends)} jobs, {len(runs)} runs, {charged} charges, 0 differences",
            f"kills: {dict(self.kills)}, ends: {dict(Counter(ends.values()))}",
            *self.figures,
        ]

    def check_ends(self, jobs: dict[int, WlmJob], runs: list[AccountedRun]) -> dict[int, str]:
        """Check W4: each job has one final state, and a record for each run.

        Returns:
            The final states by job.
        """
        records: defaultdict[int, dict[int, str]] = defaultdict(dict)
        arrays: set[int] = set()
        for run in runs:
            identity, request = run.record.identity, run.record.request
            assert identity.restart not in records[identity.job_id], identity
            records[identity.job_id][identity.restart] = run.record.state
            arrays.add(request.array or request.number)
        assert set(self.accepted) <= arrays
        ends: dict[int, str] = {}
        for number, states in records.items():
            assert sorted(states) == [*range(len(states))], number
            ends[number] = states.pop(len(states) - 1)
            assert ends[number] != "REQUEUED", number
            # A request may put a job back that has ended.
            assert number in self.requeued or set(states.values()) <= {"REQUEUED"}
        # Those that have ended long ago are not known any more.
        for number, job in jobs.items():
            assert job.state.is_final, job.name
            assert job.state.value == ends[number], job.name
        return ends

    def check_order(self, runs: list[AccountedRun], ends: dict[int, str]) -> None:
        """Check W6 by the times of the parents, and how dependants ended."""
        ended = {
            run.record.identity.job_id: run.record.ended
            for run in runs
            if run.record.state != "REQUEUED"
        }
        for run in runs:
            child, allocated = run.record.identity.job_id, run.record.run
            if child not in self.parents or allocated is None:
                continue
            type_, parent = self.parents[child]
            assert allocated.allocated.wall >= ended[parent]
            if type_ != "afterany":
                assert (ends[parent] == "COMPLETED") is (type_ == "afterok")

    def check_bank(self, runs: list[AccountedRun]) -> int:
        """Check W5: what began is charged, and nothing else; no hold is open.

        Returns:
            The number of charges.
        """
        bank = self.cluster.bank_runs(RunQuery())
        states = Counter(row.state for row in bank.values())
        assert set(states) <= {*RESOLVED}
        for run in runs:
            row, own = bank.pop(str(run.record.identity), None), run.record.run
            if own is not None and own.started is not None and own.elapsed:
                assert row is not None, run.record.identity
                assert row.end is not None
                assert (row.end.outcome, row.end.elapsed_seconds) == (own.end, own.elapsed)
            elif row is not None:
                assert row.charged == 0
        assert bank == {}
        return states[RunState.CHARGED]

    def check_outputs(self, runs: list[AccountedRun]) -> None:
        """Check W2 and the outputs: no run has begun twice, and what completed has all lines."""
        lines: Counter[str] = Counter()
        for file in self.cluster.home.glob("*.out"):
            lines.update(file.read_text().splitlines())
        for run in runs:
            identity = run.record.identity
            name = f"{identity.job_id}.{identity.restart}"
            started, ended = lines.pop(f"start {name}", 0), lines.pop(f"end {name}", 0)
            assert ended <= started <= 1, name
            if run.record.state == "COMPLETED":
                assert ended == 1, name
        # Lines of node daemon and controller end a job's output; scripts write no other ones.
        assert [line for line in lines if line.startswith(("start ", "end "))] == []


def check_cores(runs: list[AccountedRun]) -> None:
    """Check W1 by accounting: a core is allocated again only after the end of the run before."""
    uses: defaultdict[tuple[str, int], list[tuple[int, int, str]]] = defaultdict(list)
    for run in runs:
        own = run.record.run
        if own is None or own.ended is None:
            continue
        for grant in own.allocation.grants:
            for core in grant.binding.cores:
                times = (own.allocated.mono, own.ended.mono, str(own.run))
                uses[grant.binding.node, core].append(times)
    for use in uses.values():
        for before, after in pairwise(sorted(use)):
            assert before[1] <= after[0], (before, after)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LiveCluster]:
    started = LiveCluster(tmp_path)
    yield started
    started.close()


def check_kills(campaign: Campaign, kills: int, jobs: int) -> list[str]:
    """Run a campaign, check what is left, and return what was done, in lines."""
    cluster = campaign.cluster
    campaign.run(kills, jobs)
    cluster.settle()
    cluster.fairbank("audit", "verify")
    cluster.fairbank("doctor", "--cluster")
    # Without a grace period, in which a run that the bank does not know is no difference.
    cluster.fairbank("reconcile", "--grace", "0")
    cluster.fairbank("cluster", "down")
    # A step daemon that keeps output for an srun sees within a moment that its job is forgotten.
    wait_until(lambda: not cluster.processes(), "the end of all processes", seconds=5)
    assert cluster.traces() == []
    return campaign.check()


@pytest.mark.slow
def test_kills_lose_no_job_and_charge_none_twice(cluster: LiveCluster) -> None:
    check_kills(Campaign(cluster, seed=1), kills=6, jobs=4)


@pytest.mark.campaign
def test_many_kills_lose_no_job_and_charge_none_twice(
    cluster: LiveCluster, rounds: Callable[[int, int], int], log_figure: LogFigure
) -> None:
    for line in check_kills(Campaign(cluster, seed=2), kills=rounds(200, 60), jobs=10):
        log_figure(line)
