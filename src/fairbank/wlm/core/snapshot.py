"""Snapshot of the state for a scheduling pass, and for the check of a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from fairbank.cluster.license import License
from fairbank.core.slurm_numbers import UNLIMITED_SECONDS
from fairbank.jobqueue.arrays import queued_tasks, record_number
from fairbank.jobqueue.limits import CountedJob, LimitInputs, QueueLimits
from fairbank.priority.limits.usage import LimitTest
from fairbank.scheduling.machines.node_snapshot import OnNodes, node_snapshot
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.pending_job import Active, PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.slurm.passes import run_passes
from fairbank.scheduling.snapshot import RunningJob
from fairbank.wlm.core.factors.usage import used_associations, used_qos
from fairbank.wlm.core.jobs import ExpectedStart, Moment, WlmJob, WlmRun
from fairbank.wlm.core.state import CoreState


def pass_snapshot(state: CoreState, now: Moment) -> OnNodes:
    """Return everything that a scheduling pass may read."""
    return _snapshot(state, now, [*_queued_jobs(state)])


def expected_starts(
    state: CoreState, plan: SchedulePlan[PendingJob, Placement]
) -> dict[int, ExpectedStart]:
    """Return the expected starts of a plan; that of an array is the first of its tasks."""
    starts: dict[int, ExpectedStart] = {}
    for reserved in plan.reservations:
        number = record_number(reserved.job.number)
        starts.setdefault(number, _expected(state, reserved.at, reserved.placement))
    return starts


def expected_start(state: CoreState, number: int, now: Moment) -> ExpectedStart | str:
    """Return when a pending job would start if passes were made now, or the reason why it waits."""
    snapshot = pass_snapshot(state, now)
    plan = run_passes(snapshot, state.settings.scheduling.parameters, now.wall)
    for start in plan.starts:
        if record_number(start.job.number) == number:
            return _expected(state, now.wall, start.placement)
    return expected_starts(state, plan).get(number) or plan.reason(number)


def _expected(state: CoreState, at: int, placement: Placement) -> ExpectedStart:
    nodes = (state.table.nodes[share.place].name for share in placement.shares)
    return ExpectedStart(at, tuple(nodes))


def occupied_nodes(state: CoreState, now: Moment) -> Nodes:
    """Return the machine with what the runs hold, for the check of a plan."""
    return _snapshot(state, now, []).machine


def _snapshot(state: CoreState, now: Moment, pending: list[PendingJob]) -> OnNodes:
    nodes = Nodes(
        state.table,
        reservations=state.reservations.values(),
        preemption=state.settings.scheduling.preemption,
        limits=queue_limits(state, now),
    )
    running = [_active(job, job.run, state, now) for job in _with_nodes(state) if job.run]
    return node_snapshot(nodes, pending=pending, running=running)


def ending_limits(state: CoreState, now: Moment) -> list[tuple[WlmJob, LimitTest]]:
    """Return the running jobs that a limit of accounting ends, each with the limit."""
    if not state.settings.accounting.enforced.limits:
        return []
    limits = queue_limits(state, now)
    tests = [
        (job, limits.ending_limit(job.request, run.ran(now) // 60))
        for job in _with_nodes(state)
        if (run := job.active_run) is not None and run.started is not None
    ]
    return [(job, test) for job, test in tests if test is not None]


def _with_nodes(state: CoreState) -> Iterator[WlmJob]:
    """Yield the jobs that hold nodes, also those that are being cleaned up."""
    numbers = {job.number for node in state.nodes for job in state.jobs_on(node)}
    return (state.jobs[number] for number in sorted(numbers))


def _queued_jobs(state: CoreState) -> Iterator[PendingJob]:
    """Yield the waiting jobs, and each task of an array that has not started."""
    for job in state.jobs.values():
        if not job.state.is_waiting:
            continue
        request = job.request
        held = job.hold_reason or _account_reason(state, request)
        wanted = state.settings.placed_request(request.wanted)
        if held is not None or wanted is not request.wanted:
            request = msgspec.structs.replace(request, held=held, wanted=wanted)
        if job.tasks:
            yield from queued_tasks(request, job.tasks)
        else:
            yield request


def _account_reason(state: CoreState, request: PendingJob) -> str | None:
    """Return the reason of a job whose account or QOS its user may not use any more."""
    reasons = [state.account_reason(request, partition) for partition in request.partitions]
    # The first partition decides for which the user has an association.
    return next((one for one in reasons if one != "InvalidAccount"), "InvalidAccount")


def remaining_seconds(job: WlmJob, run: WlmRun, now: Moment) -> int:
    """Return how long a run has left, at least a second; one that is ending has no more."""
    if run.end:
        return 1
    limit = job.request.limit or UNLIMITED_SECONDS
    begun = run.started or run.allocated
    return max(begun.mono + run.paused_until(now) + limit - now.mono, 1)


def _active(job: WlmJob, run: WlmRun, state: CoreState, now: Moment) -> Active:
    placement = run.allocation.placement(state.table, run.left)
    ends = now.wall + remaining_seconds(job, run, now)
    reservation = state.reservations.get(job.request.reservation or "")
    if reservation is not None and not reservation.flexible:
        ends = min(ends, max(reservation.end, now.wall + 1))
    begun = run.started or run.allocated
    started = now.wall - (now.mono - begun.mono)
    return RunningJob(ends, job.number, placement, job.request, started)


def queue_limits(state: CoreState, now: Moment) -> QueueLimits:
    """Return the limits with their usage. Runs that are ending count no more."""
    accounting = state.settings.accounting
    counted: dict[int, CountedJob] = {}
    licenses = Counter[str]()
    for job in _with_nodes(state):
        run = job.active_run
        if run is not None:
            counted[job.number] = _counted(job, run, state, now)
            licenses.update(job.request.licenses)
    inputs = LimitInputs(
        enforced=accounting.enforced,
        running=counted,
        associations=used_associations(state),
        qos=used_qos(state),
        partitions=state.partitions,
        billing_rule=accounting.billing_rule,
        licenses={
            name: License(name, total, total - licenses[name])
            for name, total in state.settings.scheduling.licenses.items()
        },
        nodes=tuple(state.configured),
        submitted=[
            (CountedJob(*key, {}), count) for key, count in state.submitted.items() if count
        ],
    )
    return QueueLimits(inputs)


def _counted(job: WlmJob, run: WlmRun, state: CoreState, now: Moment) -> CountedJob:
    request, allocation = job.request, run.allocation
    return CountedJob(
        request.account,
        request.user,
        request.qos,
        allocation.partition,
        {**request.tres, **allocation.tres},
        request.array,
        frozenset(allocation.nodes),
        remaining_seconds(job, run, now),
    )
