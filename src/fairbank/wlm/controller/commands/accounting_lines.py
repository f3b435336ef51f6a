"""Runs of jobs, ended or not, as sacct shows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fairbank.core.time import LIMIT_MAX_SECONDS
from fairbank.jobqueue.arrays import record_name
from fairbank.report.slurm.job_rows import NO_LIMIT
from fairbank.report.slurm.sacct import AccountingLine
from fairbank.wlm.controller.commands.job_lines import COMMON_FIELDS, Fields, ShownRequest, cells_of
from fairbank.wlm.core.jobs import EndedRun, Moment, WlmJob
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.protocol.messages import RunOutcome, RunUsage

if TYPE_CHECKING:
    from fairbank.wlm.controller.commands.steps.step_lines import ShownStep


def live_record(job: WlmJob, cluster: str) -> EndedRun:
    """Return the record of a job that waits or runs, as if it ended now."""
    waits = job.state.base == "PENDING"
    return EndedRun(
        identity=job.identity(cluster),
        request=job.request,
        submission=job.submission,
        state=job.state.base,
        reason=job.waited_for,
        eligible_since=job.eligible_since,
        ended=0,
        tasks=job.tasks,
        run=None if waits else job.run,
    )


class ShownRun(ShownRequest):
    """Run for accounting, with what several of its fields need.

    record  the run
    job     its job while it waits or runs; None: it has ended
    usage   usage of its script as far as its node has reported it; that of `outcome` if it is known
    outcome end of the script as its node has reported it: that of the run may have been decided
            before
    steps   its steps, if they are listed
    """

    def __init__(
        self,
        state: CoreState,
        record: EndedRun,
        now: Moment,
        *,
        job: WlmJob | None = None,
        usage: RunUsage | None = None,
        outcome: RunOutcome | None = None,
    ) -> None:
        super().__init__(state, record.request, record.submission, record.run)
        self.record, self.now, self.job, self.is_over = record, now, job, job is None
        self.usage, self.outcome = usage if outcome is None else outcome.usage, outcome
        self.steps: list[ShownStep] = []
        self.allocated = {} if self.allocation is None else self.allocation.tres

    @property
    def label(self) -> str:
        """Job id as sacct shows it."""
        if self.record.tasks:
            return record_name(self.request.number, self.record.tasks, self.request.throttle)
        return self.request.name

    @property
    def eligible(self) -> int | None:
        """Time from which it might start; None: it was held, or depended on others, to the end."""
        submitted = 0 if self.run is None else self.record.identity.submitted
        return max(self.request.eligible, self.record.eligible_since or submitted) or None

    @property
    def planned(self) -> int | None:
        """Seconds from the time from which it might start to its start."""
        if self.begun is None:
            return None
        return max(self.begun - (self.eligible or self.record.identity.submitted), 0)

    @property
    def elapsed(self) -> int:
        """Seconds from its start to its end, or to now."""
        return 0 if self.run is None else self.run.ran(self.now)

    def cells(self, columns: Iterable[str]) -> list[Any]:
        """Return some fields of its `AccountingLine`."""
        return cells_of(self, columns, FIELDS, AccountingLine._field_defaults)


FIELDS: Fields[ShownRun] = {
    **COMMON_FIELDS,
    "job_id": lambda s: s.request.number,
    "label": lambda s: s.label,
    "cluster": lambda s: s.record.identity.cluster,
    "requested_qos": lambda s: s.request.qos or None,
    "priority": lambda s: s.request.priority,
    "state": lambda s: s.record.state,
    "cancelled_by": lambda s: s.record.canceller,
    "reason": lambda s: s.record.reason,
    "restarts": lambda s: s.record.identity.restart,
    "submitted": lambda s: s.record.identity.submitted,
    "eligible": lambda s: s.eligible,
    "started": lambda s: s.begun,
    "ended": lambda s: s.record.ended if s.is_over else None,
    "elapsed": lambda s: s.elapsed,
    "suspended": lambda s: 0 if s.run is None else s.run.paused_until(s.now),
    "planned": lambda s: s.planned,
    "limit": lambda s: _limit(s.request.limit),
    "node_count": lambda s: len(s.nodes) or s.wanted.nodes,
    "allocated_nodes": lambda s: len(s.nodes),
    "requested_nodes": lambda s: s.wanted.nodes,
    "cpus": lambda s: s.allocated.get("cpu", 0),
    "submit_line": lambda s: s.submission.submit_line or None,
    "requested_cpus": lambda s: s.wanted.cpus,
    "requested_memory": lambda s: s.requested["mem"],
    "admin_comment": lambda s: s.job.admin_comment or None if s.job else None,
    "user_cpu": lambda s: 0,
    "system_cpu": lambda s: 0,
    "total_cpu": lambda s: sum(step.cpu_milliseconds or 0 for step in s.steps),
}
"""Fields of `AccountingLine`. All others have its default."""


def _limit(seconds: int | None) -> int:
    return NO_LIMIT if seconds is None or seconds >= LIMIT_MAX_SECONDS else seconds
