"""Times at which something is due for a job, as they follow from its state."""

from __future__ import annotations

from collections.abc import Iterator

from fairbank.core.slurm_numbers import UNLIMITED_SECONDS
from fairbank.scheduling.pending_job import PendingJob
from fairbank.wlm.core.events import TimerKind
from fairbank.wlm.core.jobs import WlmJob
from fairbank.wlm.core.state import CoreState

SUSPENSION_SECONDS = 3_600
"""Seconds after which a suspension is added up, and the bank moves the end of its hold."""

WARNING_DELAY = 10
"""Seconds after its begin at which a script is warned at the earliest, so that it can set its trap:
with a lead time as long as the limit. slurmctld tests every 30 s, so a bit later on average.
"""


def due_times(state: CoreState, job: WlmJob) -> Iterator[tuple[TimerKind, int]]:
    """Yield the timers of a job with their times, which may be over."""
    request, run = job.request, job.active_run
    if job.state.is_final:
        if job.ended is not None:
            yield TimerKind.FORGET, job.ended.mono + state.settings.cluster.min_job_age
    elif job.state.base == "PENDING":
        yield TimerKind.BEGIN, request.eligible
        if request.deadline is not None:
            yield TimerKind.DEADLINE, _last_start(state, request, request.deadline) + 1
    elif run is not None:
        if request.deadline is not None:
            yield TimerKind.DEADLINE, request.deadline
        if run.grace_ends is not None:
            yield TimerKind.GRACE, run.grace_ends
        if run.suspended is not None:
            yield TimerKind.SUSPENSION, run.suspended.mono + SUSPENSION_SECONDS
            return
        if run.started is None or request.limit is None:
            return
        begin = run.started.mono + run.paused
        if (seconds := state.settings.run_seconds(request.limit)) is not None:
            yield TimerKind.LIMIT, begin + seconds
        if (warning := job.submission.warning) is None or run.is_warned:
            return
        # A node that is not connected would miss it; its registration sets the timer again.
        if state.registered.issuperset({run.batch_node} if warning.to_script else run.left):
            delay = max(request.limit - warning.seconds, WARNING_DELAY)
            yield TimerKind.WARNING, begin + delay


def _last_start(state: CoreState, request: PendingJob, deadline: int) -> int:
    """Return the latest time at which a job with a deadline can start."""
    rules = [state.partitions[name] for name in request.partitions if name in state.partitions]
    least = min((request.least_seconds(one) for one in rules), default=0)
    # A job without any limit may start until its deadline, which then ends it.
    return deadline - (0 if least == UNLIMITED_SECONDS else least)
