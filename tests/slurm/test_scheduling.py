"""The core beside a real slurmctld: scripted queues, and which jobs start, in which order, on which
nodes, and why each other one waits.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.core.time import parse_instant
from fairbank.scheduling.machines.nodes import PreemptBy
from tests.slurm.conftest import Tell, guarded
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.packages import Unobtainable, check
from tests.slurm.queues import (
    NODES,
    PARTITIONS,
    SETTINGS,
    WHOLE,
    Queue,
    Scenario,
    arranged,
    asked,
    at_rest,
    foretold,
    let_go,
    settled,
)
from tests.slurm.scenarios import SCENARIOS
from tests.slurm.scenarios.holes import hole_just_fits
from tests.slurm.scenarios.preemption import PREEMPTING
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1_800)]


def scheduling(checkout: Path, name: str, **more: str) -> Iterator[Cluster]:
    """A cluster of its own, with licences, and a backfill pass every second."""
    try:
        check()
    except Unobtainable as why:
        pytest.skip(f"Slurm: {why}")
    name = f"{name}-{os.getpid()}"
    with guarded(name, checkout):
        cluster = Cluster.up(name, changes={**SETTINGS, **more})
        try:
            settled(cluster)
            yield cluster
        finally:
            cluster.down()


@pytest.fixture(scope="module")
def slurm(checkout: Path) -> Iterator[Cluster]:
    yield from scheduling(checkout, "scheduling")


@pytest.fixture
def preempting(checkout: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """One where jobs take the place of others, by the rule that the test names."""
    yield from scheduling(
        checkout, "preempting", PreemptType=request.param.value, PreemptMode="CANCEL"
    )


@pytest.fixture(scope="module")
def counted(tell: Tell) -> Iterator[Counter[str]]:
    counts = Counter[str]()
    yield counts
    told = ", ".join(f"{count} {what}" for what, count in counts.items())
    tell(f"queues at slurmctld and in the core: {told}")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_the_core_does_what_slurmctld_does(
    scenario: Scenario, slurm: Cluster, counted: Counter[str]
) -> None:
    assert compared(scenario, slurm, counted) == []


@pytest.mark.parametrize(
    ("preempting", "scenario"),
    PREEMPTING,
    ids=lambda each: each.value if isinstance(each, PreemptBy) else each.__name__,
    indirect=["preempting"],
)
def test_the_core_lets_take_the_place_of_others_as_slurmctld_does(
    preempting: Cluster, scenario: Scenario, counted: Counter[str]
) -> None:
    assert compared(scenario, preempting, counted) == []


def compared(scenario: Scenario, slurm: Cluster, counted: Counter[str]) -> list[str]:
    """Play a scenario, count it, and say how slurmctld and the core differ."""
    queue = Queue(slurm)
    try:
        up = scenario(queue) or PARTITIONS
        ours = foretold(asked(slurm), up)
        outcome = let_go(slurm, up)
        if ours.gone:  # they need a while to go, and others then start
            at_rest(slurm)
            let_go(slurm, up)
        theirs = outcome()
    finally:
        arranged(slurm)
        queue.undone()
        slurm.wait_for_nodes("idle", nodes=NODES, seconds=60)
    names = {str(number): name for name, number in queue.jobs.items()}
    new = {name: fate for name, fate in theirs.fates.items() if name in ours.fates}
    wrong = [
        f"{names.get(name.partition('_')[0], name)}: slurmctld {fate}, the core {ours.fates[name]}"
        for name, fate in new.items()
        if fate != ours.fates[name]
    ]
    wrong += [
        f"the core has {name}, slurmctld has not" for name in sorted(set(ours.fates) - set(new))
    ]
    if list(ours.order) != [name for name in theirs.order if name in ours.fates]:
        wrong.append(f"slurmctld starts {list(theirs.order)}, the core {list(ours.order)}")
    if ours.gone != theirs.gone:
        wrong.append(f"slurmctld ends {sorted(theirs.gone)}, the core {sorted(ours.gone)}")
    counted.update(
        {
            "scenarios": 1,
            "jobs compared": len(new),
            "jobs that lost their place": len(theirs.gone),
            "differences": len(wrong),
        }
    )
    return wrong


def test_why_explains_a_live_queue(slurm: Cluster, tell: Tell) -> None:
    """The reason is slurmctld's, the start what it expects to a minute, and who runs or is not
    there is told so.
    """
    queue = Queue(slurm)
    fairbank = (sys.executable, "-m", "fairbank.cli", "why")
    try:
        hole_just_fits(queue)
        let_go(slurm, PARTITIONS)
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
                .done()
                .out.splitlines()
            ):
                tell(line)
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
        assert (runs.code, "does not wait: it is running since" in runs.err) == (7, True)
        assert (unknown.code, "slurmctld has no job 4000000 that waits" in unknown.err) == (3, True)
    finally:
        arranged(slurm)
        queue.undone()


def test_why_names_the_jobs_that_others_wait_for_at_a_live_queue(
    slurm: Cluster, tell: Tell
) -> None:
    """slurmctld's own words for each kind of dependency are read, and each is reported with what
    the job does.
    """
    queue = Queue(slurm)
    fairbank = (sys.executable, "-m", "fairbank.cli", "why")

    def checks(name: str) -> dict[str, str]:
        (data,) = json.loads(
            slurm.root(*fairbank, str(queue.jobs[name]), "--json", "--no-likely", "--no-advice")
        )["data"]
        assert data["code"] == data["slurm_reason"]
        tell(f"{name}: {data['headline']}")
        found = {check["what"]: check["evidence"] for check in data["checks"]}
        assert found["no job ahead"] == "it is not in the queue while it is held"
        assert "suitable nodes in cpu" in found
        return found

    try:
        queue.runs("first", "-N1", WHOLE, "-t30")
        fails = slurm.submit("alice", "--job-name=fails", "-N1", "-t5", script="exit 3")
        slurm.wait_for(fails, "FAILED")
        queue.waits("array", "--array=1-3", "--hold", "-N1", "-t30")
        first, array = queue.jobs["first"], queue.jobs["array"]
        queue.waits("all", f"-dafterok:{first},afterany:{array}", "-N1", "-t30")
        queue.waits("any", f"-dafternotok:{first}?after:{array}_2", "-N1", "-t30")
        queue.waits("soon", f"-dafter:{first}+60", "-N1", "-t30")
        queue.waits("first", "-dsingleton", "-N1", "-t30")
        queue.waits("never", f"-dafterok:{fails}", "-N1", "-t30")
        queue.waits("tasks", f"-daftercorr:{array}", "--array=2-3", "-N1", "-t30")
        lost = ("squeue", "--noheader", "--format=%r", f"--jobs={queue.jobs['never']}")
        wait_until(lambda: "NeverSatisfied" in slurm.root(*lost), "slurmctld to look", seconds=60)

        said = checks("all")["dependencies"]
        assert said.startswith(f"job {first} has completed: not yet, it runs until ")
        assert said.endswith(
            f"every task of array {array} has ended: not yet, job {array}_1 and 2 more wait"
            " (JobHeldUser)"
        )
        said = checks("any")["dependencies"]
        assert said.startswith(
            f"one of these is enough: job {first} has failed: not yet, it runs until "
        )
        assert said.endswith(
            f"job {array}_2 has started or was cancelled: not yet, it waits (JobHeldUser)"
        )
        assert checks("soon")["dependencies"].startswith(
            f"60 minutes have passed since job {first} began: not yet, that is at "
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
        arranged(slurm)
        queue.undone()
