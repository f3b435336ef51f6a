"""Fairbank's scheduler and a real slurmctld: in scripted queues, the same jobs start in the same
order on the same nodes, and the others wait for the same reason.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from fairbank.core.time import parse_instant
from fairbank.scheduling.machines.nodes import PreemptBy
from tests.slurm.conftest import RecordFigure
from tests.slurm.lab.cluster import Cluster
from tests.slurm.queues import (
    NODES,
    PARTITIONS,
    WHOLE,
    Scenario,
    ScenarioQueue,
    clean_up,
    predict,
    queue_cluster,
    read_texts,
    start_partitions,
    wait_for_completing,
)
from tests.slurm.scenarios import SCENARIOS
from tests.slurm.scenarios.holes import hole_just_fits
from tests.slurm.scenarios.preemption import PREEMPTING
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1_800)]


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    yield from queue_cluster("scheduling")


@pytest.fixture
def preempting(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Start a cluster with preemption, by the rule that the test names."""
    yield from queue_cluster("preempting", PreemptType=request.param.value, PreemptMode="CANCEL")


@pytest.fixture(scope="module")
def counted(record_figure: RecordFigure) -> Iterator[Counter[str]]:
    counts = Counter[str]()
    yield counts
    summary = ", ".join(f"{count} {what}" for what, count in counts.items())
    record_figure(f"queues at slurmctld and in the scheduler: {summary}")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda parameter: parameter.__name__)
def test_scheduler_agrees_with_slurmctld(
    scenario: Scenario, slurm: Cluster, counted: Counter[str]
) -> None:
    assert compare(scenario, slurm, counted) == []


@pytest.mark.parametrize(
    ("preempting", "scenario"),
    PREEMPTING,
    ids=lambda parameter: (
        parameter.value if isinstance(parameter, PreemptBy) else parameter.__name__
    ),
    indirect=["preempting"],
)
def test_preemption_agrees_with_slurmctld(
    preempting: Cluster, scenario: Scenario, counted: Counter[str]
) -> None:
    assert compare(scenario, preempting, counted) == []


def compare(scenario: Scenario, slurm: Cluster, counted: Counter[str]) -> list[str]:
    """Play a scenario, count it, and return the differences between slurmctld and the scheduler."""
    queue = ScenarioQueue(slurm)
    try:
        up = scenario(queue) or PARTITIONS
        ours = predict(read_texts(slurm), up)
        outcome = start_partitions(slurm, up)
        if ours.preempted:  # other jobs start after preempted jobs have ended
            wait_for_completing(slurm)
            start_partitions(slurm, up)
        theirs = outcome()
    finally:
        clean_up(slurm)
        queue.undo()
        slurm.wait_for_nodes("idle", nodes=NODES, seconds=60)
    names = {str(number): name for name, number in queue.jobs.items()}
    common = {name: outcome for name, outcome in theirs.outcomes.items() if name in ours.outcomes}
    differences = [
        f"{names.get(name.partition('_')[0], name)}: slurmctld {outcome},"
        f" the scheduler {ours.outcomes[name]}"
        for name, outcome in common.items()
        if outcome != ours.outcomes[name]
    ]
    differences += [
        f"the scheduler has {name}, slurmctld has not"
        for name in sorted(set(ours.outcomes) - set(common))
    ]
    if list(ours.order) != [name for name in theirs.order if name in ours.outcomes]:
        differences.append(
            f"slurmctld starts {list(theirs.order)}, the scheduler {list(ours.order)}"
        )
    if ours.preempted != theirs.preempted:
        differences.append(
            f"slurmctld ends {sorted(theirs.preempted)}, the scheduler {sorted(ours.preempted)}"
        )
    counted.update(
        {
            "scenarios": 1,
            "jobs compared": len(common),
            "jobs that lost their place": len(theirs.preempted),
            "differences": len(differences),
        }
    )
    return differences


def test_why_explains_a_live_queue(slurm: Cluster, record_figure: RecordFigure) -> None:
    """The reason is slurmctld's, the start agrees with slurmctld's to a minute, and a running or
    unknown job is reported as such.
    """
    queue = ScenarioQueue(slurm)
    fairbank = (sys.executable, "-m", "fairbank.cli", "why")
    try:
        hole_just_fits(queue)
        start_partitions(slurm, PARTITIONS)
        reasons = dict(
            line.split("|", 1) for line in slurm.root("squeue", "-h", "-o", "%A|%r").splitlines()
        )
        for name in ("all", "long"):
            job = str(queue.jobs[name])
            (data,) = json.loads(slurm.root(*fairbank, job, "--json"))["data"]
            assert (data["code"], data["slurm_reason"]) == (reasons[job], reasons[job])
            assert (data["name"], data["user"]) == (name, "alice")
            assert abs(parse_instant(data["expected"]) - parse_instant(data["slurm_expects"])) <= 60
            for line in (
                slurm.run("root", *fairbank, job, environment={"COLUMNS": "120"})
                .checked()
                .out.splitlines()
            ):
                record_figure(line)
        behind = json.loads(slurm.root(*fairbank, str(queue.jobs["long"]), "--json"))["data"][0]
        pending = slurm.root("squeue", "--noheader", "--states=PENDING", "--format=%A").split()
        # on a slow machine the hole before `all` is too small for `short` by the time slurmctld
        # looks: then it is ahead, too
        assert behind["ahead"] == [
            job for job in (str(queue.jobs[name]) for name in ("all", "short")) if job in pending
        ]
        assert behind["suggestion"]["option"], f"nothing would start it sooner of {behind['tried']}"
        runs, unknown = (
            slurm.run("root", *fairbank, job) for job in (str(queue.jobs["first"]), "4000000")
        )
        assert (runs.code, " of alice has been running since " in runs.out) == (0, True)
        assert (unknown.code, "slurmctld has no job 4000000 that waits" in unknown.err) == (3, True)
    finally:
        clean_up(slurm)
        queue.undo()


def test_why_explains_dependencies_of_a_live_queue(
    slurm: Cluster, record_figure: RecordFigure
) -> None:
    """slurmctld's text for each kind of dependency is parsed, and each is reported with the state
    of its job.
    """
    queue = ScenarioQueue(slurm)
    fairbank = (sys.executable, "-m", "fairbank.cli", "why")

    def checks(name: str) -> dict[str, str]:
        (data,) = json.loads(
            slurm.root(*fairbank, str(queue.jobs[name]), "--json", "--no-likely", "--no-advice")
        )["data"]
        assert data["code"] == data["slurm_reason"]
        record_figure(f"{name}: {data['headline']}")
        evidence = {check["what"]: check["evidence"] for check in data["checks"]}
        assert evidence["no job ahead"] == "it is not in the queue while it is held"
        assert "suitable nodes in cpu" in evidence
        return evidence

    try:
        queue.submit_running("first", "-N1", WHOLE, "-t30")
        fails = slurm.submit("alice", "--job-name=fails", "-N1", "-t5", script="exit 3")
        slurm.wait_for(fails, "FAILED")
        queue.submit("array", "--array=1-3", "--hold", "-N1", "-t30")
        first, array = queue.jobs["first"], queue.jobs["array"]
        queue.submit("all", f"-dafterok:{first},afterany:{array}", "-N1", "-t30")
        queue.submit("any", f"-dafternotok:{first}?after:{array}_2", "-N1", "-t30")
        queue.submit("soon", f"-dafter:{first}+60", "-N1", "-t30")
        queue.submit("first", "-dsingleton", "-N1", "-t30")
        queue.submit("never", f"-dafterok:{fails}", "-N1", "-t30")
        queue.submit("tasks", f"-daftercorr:{array}", "--array=2-3", "-N1", "-t30")
        lost = ("squeue", "--noheader", "--format=%r", f"--jobs={queue.jobs['never']}")
        wait_until(lambda: "NeverSatisfied" in slurm.root(*lost), "slurmctld to look", seconds=60)

        text = checks("all")["dependencies"]
        assert text.startswith(f"job {first} has completed: not yet, it runs until ")
        assert text.endswith(
            f"every task of array {array} has ended: not yet, job {array}_1 and 2 more wait"
            " (JobHeldUser)"
        )
        text = checks("any")["dependencies"]
        assert text.startswith(
            f"one of these is enough: job {first} has failed: not yet, it runs until "
        )
        assert text.endswith(
            f"job {array}_2 has started or was cancelled: not yet, it waits (JobHeldUser)"
        )
        assert checks("soon")["dependencies"].startswith(
            f"60 minutes have passed since job {first} started: not yet, that is at "
        )
        assert f"job {first} runs until " in checks("first")["dependencies"]
        assert checks("never")["dependencies"].startswith(
            f"job {fails} has completed: can never be satisfied, it ended as FAILED; so "
        )
        assert (
            checks("tasks")["dependencies"]
            == f"job {array}_2 has completed: not yet, it waits (JobHeldUser)"
        )
    finally:
        clean_up(slurm)
        queue.undo()
