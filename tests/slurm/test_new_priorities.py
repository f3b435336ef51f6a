"""Passes of a real slurmctld after new priorities, and the same passes in the simulator: a job that
is now first starts, although nothing else happens.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairbank.core.time import parse_instant
from fairbank.priority.fairshare.decay import Decay
from fairbank.scheduling.slurm.parameters import parse_parameters
from fairbank.simulator.engine.usage_state import PriorityRules
from fairbank.slurm.parsers.config import read_config, read_settings
from tests.simulator.slurm_schedules import HOUR, MINUTE, job, starts
from tests.slurm.conftest import RecordFigure, own_cluster
from tests.slurm.frozen_cluster import counted_at
from tests.slurm.lab.cluster import Cluster
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(400)]

INTERVAL = 15
# Without backfill, which would also start the job. slurmctld waits a whole bf_interval first.
SETTINGS = {
    "SchedulerParameters": (
        f"batch_sched_delay=0,default_queue_depth=1000,sched_min_interval=2000,"
        f"sched_interval={INTERVAL},bf_interval=3600"
    ),
    "PriorityCalcPeriod": "1",
}
SCRIPT = "sleep 3600"


@pytest.fixture
def one_node() -> Iterator[Cluster]:
    """Start a cluster of one node."""
    with own_cluster("new-priorities", "small", SETTINGS) as cluster:
        yield cluster


def test_job_that_is_now_first_starts_with_the_next_full_pass(
    one_node: Cluster, record_figure: RecordFigure
) -> None:
    """Half of the node is free. Alice's large job is first and does not fit. At the next
    computation the usage of her running job counts, and Carol's job is first.
    """
    before = counted_at(one_node)
    wait_until(lambda: counted_at(one_node) > before, "slurmctld to count usage", seconds=90)
    tick = counted_at(one_node)
    runs = one_node.submit("alice", "-c32", "-t60", script=SCRIPT)
    one_node.wait_for(runs, "RUNNING")
    large = one_node.submit("alice", "-c64", "-t60", script=SCRIPT)
    small = one_node.submit("carol", "-c32", "-t60", script=SCRIPT)
    assert counted_at(one_node) == tick, "the jobs came too late to be in one period"
    one_node.wait_for(small, "RUNNING", seconds=2 * MINUTE + INTERVAL)
    assert one_node.states(large) == ["PENDING"]
    assert f"sched: Allocate JobId={small} " in one_node.log("slurmctld")

    shown = [one_node.job(number) for number in (runs, large, small)]
    submitted = [parse_instant(row["SubmitTime"]) - tick for row in shown]
    slurm = [parse_instant(shown[place]["StartTime"]) - tick for place in (0, 2)]
    config = read_config(one_node.root("scontrol", "show", "config"))
    settings = read_settings(config)
    rules = PriorityRules(
        settings=settings.factors,
        decay=Decay(settings.fair_share.half_life_seconds),
        calc_period=settings.fair_share.tick_seconds,
        algorithm=settings.fair_share.algorithm,
    )
    later = submitted[0] + 1  # in the trace: of jobs of one second the largest would go first
    jobs = [
        job(0, submitted[0], 32, HOUR, user=1),
        job(1, max(submitted[1], later), 64, HOUR, user=1),
        job(2, max(submitted[2], later), 32, HOUR, user=2),
    ]
    ours = starts(jobs, 64, rules, parse_parameters(config["SchedulerParameters"]))
    record_figure(f"seconds after a computation: slurmctld starts {slurm}, the simulator {ours}")
    assert ours[0] < ours[2] < ours[1]
    # Full passes of both are so many seconds apart, but do not begin at the same second.
    assert abs(ours[2] - slurm[1]) <= 2 * INTERVAL
