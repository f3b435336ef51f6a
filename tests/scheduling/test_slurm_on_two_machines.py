"""Slurm's two passes on nodes of one CPU each and on processors: the same rules on different
machines. Main passes start the same jobs. Backfill plans a job on certain nodes, and on processors
only a number of them. So both plan the same up to the first job for which enough processors are
free all the time, but not the same nodes. Runs end so far apart here that each has its own stretch
(`scheduling.slurm.node_times`). Where ends share a stretch, nodes are chosen from a larger set, of
which the last may become free later. Processors have no minimum time (--time-min), because no trace
has one. Here they plan with it, until a job has started with more.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.scheduling.machines import node_snapshot
from fairbank.scheduling.machines.node_snapshot import OnNodes
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.machines.priority_queue import JobList, PriorityQueue
from fairbank.scheduling.machines.processors import Processors
from fairbank.scheduling.pending_job import Active, PendingJob, to_running
from fairbank.scheduling.placement.free_resources import FreeResources, Placement
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.placement.search import find_placement
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.slurm import backfill, main_pass, processor_passes
from fairbank.scheduling.slurm.node_times import STRETCH
from fairbank.scheduling.slurm.parameters import SchedulerParameters, can_reserve, expected_end
from fairbank.scheduling.snapshot import FOR_EVER, Snapshot
from fairbank.simulator.engine.clock import OnProcessors
from fairbank.simulator.traces.workload import TraceJob

MINUTE, HOUR = 60, 3_600
SIZE = 6
_RUNS = 1_000
"""Behind the numbers of those who wait."""


class QueueCase(NamedTuple):
    """Running jobs with ends and numbers of processors; waiting jobs in queue order with their
    minimum time; and the time limit of jobs that gave a minimum.
    """

    now: int
    running: list[tuple[int, int]]
    waiting: list[TraceJob]
    longer: Mapping[int, int] = {}
    size: int = SIZE

    def on_nodes(self) -> OnNodes:
        cluster = NodeTable(
            [Node(name=f"n{number}") for number in range(self.size)],
            [PartitionRules(name="1"), PartitionRules(name="2")],
        )
        nodes, free, there = Nodes(cluster), FreeResources(cluster), list[Active]()
        for number, (ends, wide) in enumerate(self.running, start=_RUNS):
            expected = ResourceRequest(nodes=wide, exclusive=True)
            where = find_placement(
                cluster, free, nodes.search.request(expected, "1"), cluster.usable
            )
            assert where is not None
            free.take(where)
            there.append(
                to_running(
                    PendingJob(number=number, wanted=expected, partitions=("1",)),
                    where,
                    self.now - HOUR,
                    ends - self.now + HOUR,
                )
            )
        return node_snapshot.node_snapshot(
            nodes, pending=[self._pending(job) for job in self.waiting], running=there
        )

    def _pending(self, job: TraceJob) -> PendingJob:
        longer = self.longer.get(job.number)
        return PendingJob(
            number=job.number,
            user=str(job.user),
            account=str(job.group),
            wanted=ResourceRequest(nodes=job.processors, exclusive=True),
            partitions=(str(job.partition),),
            priority=_RUNS - job.number,
            submitted=job.submitted,
            eligible=job.submitted,
            limit=longer or job.limit,
            time_min=job.limit if longer else None,
        )

    def on_processors(self) -> OnProcessors:
        result: OnProcessors = Snapshot(Processors(self.size), PriorityQueue())
        for number, (ends, wide) in enumerate(self.running, start=_RUNS):
            result.begin(
                TraceJob(number, 0, wide, ends - self.now + HOUR, 1, 1, number, 1, 1),
                wide,
                self.now - HOUR,
            )
        return result


@st.composite
def snapshots(draw: st.DrawFn) -> QueueCase:
    now = 1_000_000 + draw(st.integers(0, 3_599))
    running, busy = list[tuple[int, int]](), SIZE - draw(st.integers(0, 3))
    for turn in sorted(draw(st.sets(st.integers(0, 12), min_size=1, max_size=4))):
        if wide := draw(st.integers(0, busy)):
            running.append((now + 100 * turn if turn else now - draw(st.integers(0, 60)), wide))
            busy -= wide
    around = st.builds(
        lambda turn, more: max(100 * turn + more, 1), st.integers(0, 30), st.integers(-61, 61)
    )
    kind = st.integers(1, 2)
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, 600), st.integers(1, SIZE), around, kind, kind, kind),
            min_size=2,
            max_size=10,
        )
    )
    waiting = [
        TraceJob(number, now - waited, wide, limit, limit, partition, number, user, group)
        for number, (waited, wide, limit, partition, user, group) in enumerate(rows)
    ]
    longer = {
        job.number: job.limit + draw(st.integers(1, 2_000))
        for job in waiting
        if draw(st.integers(0, 5)) == 0
    }
    return QueueCase(now, running, waiting, longer)


often_none = st.sampled_from([0, 0, 0, 0, 1, 2, 3, 4])
slurm_parameters = st.builds(
    SchedulerParameters,
    default_queue_depth=st.integers(0, 8),
    partition_job_depth=often_none,
    sched_max_job_start=often_none,
    bf_max_job_test=st.sampled_from([2, 5, 500, 500]),
    bf_max_job_user=often_none,
    bf_max_job_part=often_none,
    bf_max_job_user_part=often_none,
    bf_max_job_assoc=often_none,
    bf_max_job_start=often_none,
    bf_window=st.sampled_from([5, 20, 1_440, 1_440]),
    bf_resolution=st.sampled_from([1, 7, 60, 60, 300, 3_600]),
    bf_min_age_reserve=st.sampled_from([0, 0, 0, 60, 300]),
    bf_window_linear=st.just(1),
)
"""As slurm.conf may have it, where each end has a stretch of its own."""


@given(snapshots(), slurm_parameters, st.booleans())
@settings(max_examples=200, deadline=None)
def test_main_pass_starts_the_same_jobs(
    case: QueueCase, parameters: SchedulerParameters, full: bool
) -> None:
    now = case.now
    fixed = case._replace(longer={})  # backfill alone gives less
    decisions = main_pass.main_pass(fixed.on_nodes(), parameters, now, full=full)
    here = processor_passes.main_pass(
        fixed.on_processors(), JobList(fixed.waiting), parameters, now, full=full
    )
    assert [start.job.number for start in decisions.starts] == [
        start.job.number for start in here.starts
    ]


@given(snapshots(), slurm_parameters)
@settings(max_examples=400, deadline=None)
def test_backfill_plans_are_equal_until_nodes_conflict(
    case: QueueCase, parameters: SchedulerParameters
) -> None:
    now, nodes, line = case.now, case.on_nodes(), JobList(case.waiting)
    decisions = backfill.backfill(nodes, parameters, now)
    here = processor_passes.backfill(case.on_processors(), line, parameters, now, fully=True)
    assert (
        processor_passes.backfill(case.on_processors(), line, parameters, now).starts == here.starts
    )
    on_nodes_at, on_processors_at = _kept(decisions, parameters, now), _kept(here, parameters, now)
    given_more = {
        start.job.number
        for start in decisions.starts
        if start.job.limit != case.waiting[start.job.number].limit
    }
    for job in case.waiting:
        at, later = (
            on_processors_at.get(job.number, FOR_EVER),
            on_nodes_at.get(job.number, FOR_EVER),
        )
        if at != later:
            assert at < later
            assert (
                _share_a_stretch(case, decisions, parameters)
                or _left(case, nodes, decisions, parameters, job, at) < job.processors
            )
            return
        if job.number in given_more:
            return


def _share_a_stretch(
    case: QueueCase, plan: SchedulePlan[PendingJob, Placement], parameters: SchedulerParameters
) -> bool:
    """Return whether two jobs may end in one stretch, of which nodes use the last end only."""
    started = [case.now + (start.job.limit or 0) for start in plan.starts]
    ends = sorted([*started, *(expected_end(at, case.now) for at, _ in case.running)])
    longest = 2 * STRETCH + parameters.bf_window_linear * len(ends)
    return any(later - end <= longest for end, later in pairwise(ends))


def _kept(
    plan: SchedulePlan[TraceJob, int] | SchedulePlan[PendingJob, Placement],
    parameters: SchedulerParameters,
    now: int,
) -> dict[int, int]:
    """Return the start time of each job that starts now or has a reservation."""
    last = (now + parameters.window_seconds) // parameters.bf_resolution * parameters.bf_resolution
    kept = {
        reservation.job.number: reservation.at
        for reservation in plan.reservations
        if reservation.at < last and can_reserve(parameters, now - reservation.job.submitted)
    }
    return kept | {start.job.number: now for start in plan.starts}


def _left(
    case: QueueCase,
    nodes: OnNodes,
    plan: SchedulePlan[PendingJob, Placement],
    parameters: SchedulerParameters,
    job: TraceJob,
    at: int,
) -> int:
    """Return the number of free nodes from then until the end of a job, beside running and earlier
    jobs.
    """
    now, step, taken = case.now, parameters.bf_resolution, 0
    for run in nodes.running:
        taken |= run.placement.nodes if expected_end(run.ends, now) > at else 0
    for start in plan.starts:
        taken |= (
            start.placement.nodes
            if start.job.number < job.number and now + case.waiting[start.job.number].limit > at
            else 0
        )
    for reservation in plan.reservations:
        begin, end = (
            reservation.at // step,
            -(-(reservation.at + case.waiting[reservation.job.number].limit) // step),
        )
        within = reservation.at < (now + parameters.window_seconds) // step * step
        if (
            within
            and reservation.job.number < job.number
            and begin * step <= at + job.limit
            and end * step > at
        ):
            taken |= reservation.placement.nodes
    return case.size - taken.bit_count()


NOON = 1_700_000_000
"""Twenty seconds into a minute."""
DEFAULT = SchedulerParameters()


def vector(now: int, minutes: int, longer: Mapping[int, int] | None = None) -> QueueCase:
    """Return four processors, two of them busy for an hour, and jobs that need four for two hours,
    two for two hours, and two for 90 minutes.
    """
    wide = [(4, 120), (2, minutes), (2, 90)]
    waiting = [
        TraceJob(at, now - 60, many, lasts * MINUTE, 1, 1, at, 1, 1)
        for at, (many, lasts) in enumerate(wide)
    ]
    return QueueCase(now, [(now + HOUR, 2)], waiting, longer or {}, size=4)


def when(
    machine: str, case: QueueCase, parameters: SchedulerParameters = DEFAULT
) -> dict[int, int]:
    """Return the start time of each job."""
    if machine == "nodes":
        return _kept(backfill.backfill(case.on_nodes(), parameters, case.now), parameters, case.now)
    line = JobList(case.waiting)
    return _kept(
        processor_passes.backfill(case.on_processors(), line, parameters, case.now, fully=True),
        parameters,
        case.now,
    )


@pytest.mark.parametrize("machine", ["nodes", "processors"])
@pytest.mark.parametrize(
    ("now", "minutes", "at"),
    [(NOON, 59, NOON), (NOON, 60, 1_700_010_840), (NOON + 40, 60, NOON + 40 + 3 * HOUR)],
)
def test_plan_begins_when_the_blocking_plan_ends(
    machine: str, now: int, minutes: int, at: int
) -> None:
    """A job that ends in the minute in which the first plan begins waits for the end of that plan,
    rounded up to whole minutes.
    """
    behind = -(-(now + 3 * HOUR) // MINUTE) * MINUTE
    assert when(machine, vector(now, minutes)) == {0: now + HOUR, 1: at, 2: behind}


@pytest.mark.parametrize("now", [NOON, NOON + 39, NOON + 40])
def test_shorter_time_ends_a_whole_minute_before_a_plan_begins(now: int) -> None:
    """The job requests four hours and accepts half an hour."""
    plan = backfill.backfill(vector(now, 30, {1: 4 * HOUR}).on_nodes(), SchedulerParameters(), now)
    assert [(start.job.number, start.job.limit) for start in plan.starts] == [
        (1, (60 if now == NOON + 40 else 59) * MINUTE)
    ]


@pytest.mark.parametrize("machine", ["nodes", "processors"])
def test_two_jobs_wait_for_the_same_end_within_a_minute(machine: str) -> None:
    """The plan of the first job begins with that minute, before any job has nodes."""
    waiting = [TraceJob(number, NOON, 2, HOUR, HOUR, 1, number, 1, 1) for number in range(3)]
    case = QueueCase(NOON, [(NOON + HOUR, 4)], waiting, size=4)
    assert when(machine, case) == {0: NOON + HOUR, 1: NOON + HOUR, 2: NOON + 2 * HOUR + 40}


@pytest.mark.parametrize("machine", ["nodes", "processors"])
@pytest.mark.parametrize(("ends", "kept"), [(3_579, True), (3_580, False), (3_590, False)])
def test_no_reservation_beyond_the_last_whole_step_of_bf_window(
    machine: str, ends: int, kept: bool
) -> None:
    """The window of an hour ends 20 seconds into a minute, so it ends at the start of that
    minute.
    """
    wide = [(4, HOUR), (2, 2 * HOUR)]
    waiting = [
        TraceJob(number, NOON, many, lasts, lasts, 1, number, 1, 1)
        for number, (many, lasts) in enumerate(wide)
    ]
    result = when(
        machine,
        QueueCase(NOON, [(NOON + ends, 2)], waiting, size=4),
        SchedulerParameters(bf_window=60),
    )
    assert result == ({0: NOON + ends} if kept else {1: NOON})


@pytest.mark.parametrize("late", [0, 5, 29, 30, 1_000])
@pytest.mark.parametrize("machine", ["nodes", "processors"])
def test_job_past_its_limit_is_expected_to_end_soon(machine: str, late: int) -> None:
    """KillWait after the limit, then at any second."""
    waiting = [TraceJob(0, NOON, 4, HOUR, HOUR, 1, 0, 1, 1)]
    assert when(machine, QueueCase(NOON, [(NOON - late, 2)], waiting, size=4)) == {
        0: NOON + max(30 - late, 1)
    }
