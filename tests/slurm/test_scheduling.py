"""The core beside a real slurmctld: scripted queues, and which jobs start, in which order, on which nodes, and why each other one waits."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.conftest import Tell, guarded
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.packages import Unobtainable, check
from tests.slurm.queues import PARTITIONS, SETTINGS, Queue, arranged, asked, foretold, let_go
from tests.slurm.scenarios import SCENARIOS, Scenario

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1_800)]


@pytest.fixture(scope="module")
def slurm(checkout: Path) -> Iterator[Cluster]:
    """A cluster of its own, with licences, and a backfill pass every second."""
    try:
        check()
    except Unobtainable as why:
        pytest.skip(f"Slurm: {why}")
    name = f"scheduling-{os.getpid()}"
    with guarded(name, checkout):
        cluster = Cluster.up(name, changes=SETTINGS)
        try:
            yield cluster
        finally:
            cluster.down()


@pytest.fixture(scope="module")
def counted(tell: Tell) -> Iterator[Counter[str]]:
    counts = Counter[str]()
    yield counts
    told = ", ".join(f"{count} {what}" for what, count in counts.items())
    tell(f"queues at slurmctld and in the core: {told}")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_the_core_does_what_slurmctld_does(scenario: Scenario, slurm: Cluster, counted: Counter[str]) -> None:
    arranged(slurm)
    queue = Queue(slurm)
    up = scenario(queue) or PARTITIONS
    ours = foretold(asked(slurm), up)
    theirs = let_go(slurm, up)()
    names = {str(number): name for name, number in queue.jobs.items()}
    new = {name: fate for name, fate in theirs.fates.items() if name in ours.fates}
    counted["scenarios"] += 1
    counted["jobs compared"] += len(new)
    wrong = [
        f"{names.get(name.partition('_')[0], name)}: slurmctld {fate}, the core {ours.fates[name]}"
        for name, fate in new.items()
        if fate != ours.fates[name]
    ]
    wrong += [f"the core has {name}, slurmctld has not" for name in sorted(set(ours.fates) - set(new))]
    if list(ours.order) != [name for name in theirs.order if name in ours.fates]:
        wrong.append(f"slurmctld starts {list(theirs.order)}, the core {list(ours.order)}")
    counted["differences"] += len(wrong)
    assert wrong == []
