"""Jobs of the core as squeue and scontrol show them."""

from __future__ import annotations

import grp
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property, lru_cache
from signal import strsignal
from typing import Any, TypeVar

from msgspec.structs import replace

from fairbank.cluster.dependency import Dependencies
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.resource_request import ALL_MEMORY, ResourceRequest
from fairbank.core.hostlist import compress
from fairbank.core.submission.arrays import ArrayTasks
from fairbank.core.time import LIMIT_MAX_SECONDS
from fairbank.core.tres import BillingRule, billing
from fairbank.jobqueue.arrays import task_ranges
from fairbank.report.slurm.job_rows import NO_LIMIT, JobLine
from fairbank.report.slurm.notation import licenses_text, shortened
from fairbank.scheduling.pending_job import PendingJob
from fairbank.wlm.controller.commands import gres_texts as gres
from fairbank.wlm.controller.job_files import JobFiles, shown_files
from fairbank.wlm.core.accounts import DEFAULT_QOS
from fairbank.wlm.core.job_states import RAISED_SIGNAL, JobState
from fairbank.wlm.core.jobs import ExpectedStart, HeldBy, Moment, Submission, WlmJob, WlmRun
from fairbank.wlm.core.requests.submission import requested_tres
from fairbank.wlm.core.state import CoreState

T = TypeVar("T")
Fields = Mapping[str, Callable[[T], Any]]
"""Functions that compute fields, by name."""


class ShownRequest:
    """Request of a job, and the run that has or had nodes: what queue and accounting both show.

    Its fields are computed one by one: a command asks for few, and there may be thousands of jobs.
    """

    def __init__(
        self, state: CoreState, request: PendingJob, submission: Submission, run: WlmRun | None
    ) -> None:
        self.state, self.request, self.submission = state, request, submission
        self.run, self.user = run, request.user
        self.allocation = None if run is None else run.allocation
        self.nodes = () if self.allocation is None else self.allocation.nodes
        self.grants = () if self.allocation is None else self.allocation.grants

    @property
    def _partition(self) -> str:
        run = self.run
        return self.request.partitions[0] if run is None else run.allocation.partition

    @cached_property
    def rules(self) -> PartitionRules | None:
        return self.state.partitions.get(self._partition)

    @cached_property
    def wanted(self) -> ResourceRequest:
        """Resources, with the default memory of the partition."""
        return self.state.wanted_in(self._partition, self.request)

    @cached_property
    def files(self) -> JobFiles:
        return shown_files(self.request, self.submission, self.nodes[0] if self.nodes else "")

    @property
    def requested(self) -> dict[str, int]:
        """TRES that it requests; all memory of its nodes is that of the smallest."""
        wanted = self.wanted
        if wanted.memory_per_node == ALL_MEMORY and wanted.memory_per_cpu is None:
            names = wanted.required or (self.rules.nodes if self.rules else ())
            nodes = self.state.configured
            least = min((nodes[name].memory for name in names or nodes), default=0)
            wanted = replace(wanted, memory_per_node=least)
        return requested_counts(wanted)

    @property
    def exit_status(self) -> int:
        return 0 if self.run is None else self.run.status

    @property
    def begun(self) -> int | None:
        """Begin of the script."""
        started = None if self.run is None else self.run.started
        return None if started is None else started.wall

    def tres(self, counts: Mapping[str, int]) -> str:
        return tres_text(counts, self.rules, self.state.settings.accounting.billing_rule)


def cells_of(
    shown: T, columns: Iterable[str], fields: Fields[T], defaults: Mapping[str, Any]
) -> list[Any]:
    """Return the columns of a job or run: those in `fields`, for all others the default."""
    return [fields[name](shown) if name in fields else defaults[name] for name in columns]


class ShownJob(ShownRequest):
    """Job, tasks of an array that have not started, or with `task` one of these."""

    def __init__(self, state: CoreState, job: WlmJob, now: Moment, task: int | None = None) -> None:
        self.waits = job.state.base == "PENDING"
        run = None if self.waits else job.run
        super().__init__(state, job.request, job.submission, run)
        self.job, self.now = job, now
        self.is_record = bool(job.tasks) and task is None
        self.task = task if task is not None else job.request.task

    @property
    def exit_status(self) -> int:
        return self.job.exit_status if self.waits else super().exit_status

    @property
    def expected(self) -> ExpectedStart | None:
        return self.state.expected_starts.get(self.job.number) if self.waits else None

    @property
    def start(self) -> int | None:
        """Start, or that which is expected; a job does not start before its begin time.

        Of a job whose script has not begun, Slurm shows its allocation, or its end.
        """
        if self.begun is None and self.job.ended is not None:
            return self.job.ended.wall
        if self.begun is None and self.run is not None:
            return self.run.allocated.wall
        start = self.begun if self.expected is None else self.expected.at
        begin = self.request.eligible
        return max(start or 0, begin) if self.waits and begin > self.now.wall else start

    @property
    def end(self) -> int | None:
        """End, or that by its time limit."""
        if self.job.ended is not None:
            ended = None if self.run is None else self.run.ended
            return (ended or self.job.ended).wall
        limit, start = self.request.limit, self.start
        paused = 0 if self.run is None else self.run.paused_until(self.now)
        return None if start is None or limit is None else start + paused + limit

    @property
    def eligible(self) -> int | None:
        """Time from which it may start; None: it is held, or depends on others, from the start."""
        since = self.job.eligible_since or (self.request.submitted if self.job.run else 0)
        return max(self.request.eligible, since) or None

    @property
    def accrued(self) -> int | None:
        """Time from which its age counts, which that of a held job does not."""
        if self.state.limits_accrual:
            return self.job.accrued or None
        is_held = self.waits and self.job.hold_reason is not None
        at = None if is_held else self.eligible
        return None if at is None or at > self.now.wall else at

    @property
    def never_ran(self) -> bool:
        """True for a job that ended while it waited."""
        return self.job.ended is not None and self.run is None

    @property
    def is_held_by_bank(self) -> bool:
        return self.waits and self.job.held_by is HeldBy.BANK

    def cells(self, columns: Iterable[str]) -> list[Any]:
        """Return some fields of its `JobLine`."""
        return cells_of(self, columns, FIELDS, JobLine._field_defaults)


def shown_tasks(job: ShownJob) -> Iterator[ShownJob]:
    """Yield the job, or each task of its array that has not started."""
    if not job.job.tasks:
        yield job
    for task in job.job.tasks:
        yield ShownJob(job.state, job.job, job.now, task)


def _description(shown: ShownJob) -> str:
    """Return what is shown instead of the reason; empty: nothing."""
    if shown.is_held_by_bank:
        return shown.job.reason
    if shown.job.reason == RAISED_SIGNAL and shown.run is not None:
        number = exit_code(shown.run.status)[1]
        return f"{RAISED_SIGNAL}:{number}({strsignal(number)})"
    is_requeued = shown.job.state in (JobState.REQUEUE_HOLD, JobState.SPECIAL_EXIT)
    return "job requeued in held state" if is_requeued else ""


@lru_cache(maxsize=1_000)
def group_name(gid: int) -> str:
    """Return the name of a group, or its number."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


COMMON_FIELDS: Fields[ShownRequest] = {
    "name": lambda s: s.submission.name,
    "user": lambda s: s.user,
    "uid": lambda s: s.submission.uid,
    "group": lambda s: group_name(s.submission.gid),
    "gid": lambda s: s.submission.gid,
    "account": lambda s: s.request.account or None,
    "partition": lambda s: (
        ",".join(s.request.partitions) if s.allocation is None else s.allocation.partition
    ),
    "qos": lambda s: s.request.qos or DEFAULT_QOS,
    "nodes": lambda s: compress(s.nodes) if s.nodes else "",
    "requested_tres": lambda s: s.tres(s.requested),
    "allocated_tres": lambda s: None if s.allocation is None else s.tres(s.allocation.tres),
    "features": lambda s: s.wanted.constraint or None,
    "reservation": lambda s: s.request.reservation,
    "licenses": lambda s: licenses_text(s.request.licenses),
    "exit_code": lambda s: exit_code(s.exit_status),
    "memory_is_per_cpu": lambda s: s.wanted.memory_per_cpu is not None,
    "derived_exit_code": lambda s: exit_code(0 if s.run is None else s.run.derived),
    "work_dir": lambda s: s.submission.directory,
    "std_in": lambda s: s.files.input,
    "std_out": lambda s: s.files.output,
    "std_err": lambda s: s.files.error,
    "comment": lambda s: s.submission.comment or None,
    "extra": lambda s: s.submission.extra or None,
    "system_comment": lambda s: s.run.failure or None if s.run else None,
    "wckey": lambda s: s.submission.wckey or None,
}
"""Fields that a job has in the queue and in accounting."""
FIELDS: Fields[ShownJob] = {
    **COMMON_FIELDS,
    "job_id": lambda s: s.job.number,
    "priority": lambda s: 0 if s.job.held_by or (s.run and s.run.suspended) else s.request.priority,
    "nice": lambda s: s.submission.nice,
    "state": lambda s: s.job.state.base,
    "flag": lambda s: _flag(s.job.state),
    "reason": lambda s: "JobHeldAdmin" if s.is_held_by_bank else s.job.shown_reason(s.now.wall),
    "description": _description,
    "dependency": lambda s: dependency_text(s.job.dependencies) or None,
    "array_job": lambda s: s.request.array,
    "task": lambda s: s.task if s.task >= 0 and not s.is_record else None,
    "tasks_left": lambda s: (
        str(ArrayTasks(task_ranges(s.job.tasks), s.request.throttle)) if s.is_record else ""
    ),
    "throttle": lambda s: s.request.throttle,
    "submitted": lambda s: s.request.submitted,
    "eligible": lambda s: s.eligible,
    "accrued": lambda s: s.accrued,
    "started": lambda s: s.start,
    "ends": lambda s: s.end,
    "deadline": lambda s: s.request.deadline,
    "elapsed": lambda s: _elapsed(s.job, s.now),
    "waited": lambda s: max((s.begun or s.now.wall) - s.request.submitted, 0),
    "suspended": lambda s: _suspension_time(s.run),
    "seconds_before_suspension": lambda s: 0 if s.run is None else s.run.ran_before,
    "limit": lambda s: _limit(s.state, s.job),
    "least_limit": lambda s: s.request.time_min,
    "planned_nodes": lambda s: None if s.expected is None else compress(s.expected.nodes),
    "required_nodes": lambda s: compress(s.wanted.required) or None,
    "excluded_nodes": lambda s: compress(s.wanted.excluded) or None,
    "is_batch": lambda s: bool(s.submission.script),
    "batch_host": lambda s: s.nodes[0] if s.nodes else None,
    "submit_host": lambda s: s.request.submit_host or None,
    "node_count": lambda s: len(s.nodes) or s.request.wanted.nodes,
    "most_nodes": lambda s: 0 if s.nodes else s.wanted.max_nodes or 0,
    "cpus": lambda s: s.request.wanted.cpus if s.allocation is None else s.allocation.tres["cpu"],
    "tasks": lambda s: None if s.never_ran else s.wanted.least_tasks,
    "cpus_per_task": lambda s: s.wanted.cpus_per_task,
    "tasks_per_node": lambda s: s.wanted.tasks_per_node or 0,
    "cpus_per_tres": lambda s: gres.per_gpu(s.wanted.cpus_per_gpu),
    "memory_per_tres": lambda s: gres.per_gpu(s.wanted.memory_per_gpu),
    "tres_bind": lambda s: gres.tres_bind(s.wanted, s.submission.gpu_binding),
    "tasks_per_tres": lambda s: s.wanted.tasks_per_gpu,
    "tres_per_job": lambda s: gres.tres_per_job(s.wanted),
    "tres_per_node": lambda s: gres.tres_text(s.wanted.gpus),
    "tres_per_task": lambda s: gres.tres_per_task(s.wanted),
    "gres": lambda s: gres.job_gres(s.grants),
    "least_cpus": lambda s: max(s.wanted.cpus_per_node, s.wanted.cpus_per_task),
    "least_memory": lambda s: s.wanted.memory_per_cpu or s.wanted.memory_per_node or 0,
    "least_tmp": lambda s: s.wanted.tmp,
    "shares": lambda s: gres.job_shares(s.grants, s.state, has_ended=s.job.ended is not None),
    "preferred_features": lambda s: s.wanted.prefer or None,
    "sharing": lambda s: "NO" if s.wanted.exclusive else "YES" if s.wanted.shared else "OK",
    "contiguous": lambda s: s.wanted.contiguous,
    "requeue": lambda s: s.submission.may_requeue,
    "restarts": lambda s: s.job.restarts,
    "command": lambda s: s.submission.command or None,
    "kill_invalid": lambda s: "Yes" if s.submission.kill_invalid else None,
    "admin_comment": lambda s: s.job.admin_comment or None,
    "mail_user": lambda s: (s.submission.mail_user or s.user) if s.submission.mail_types else None,
    "mail_type": lambda s: ",".join(sorted(s.submission.mail_types)) or None,
}
"""Fields of `JobLine`. All others have its default."""
FIELDS_OF_RECORD = frozenset({
    "job_id", "name", "user", "uid", "gid", "account", "partition", "qos", "priority", "nice",
    "state", "flag", "reason", "description", "dependency", "array_job", "task", "tasks_left",
    "throttle", "submitted", "deadline", "elapsed", "least_limit", "nodes", "is_batch",
    "submit_host", "node_count", "cpus", "reservation", "licenses", "requeue", "restarts",
    "exit_code", "command", "work_dir", "comment", "admin_comment", "wckey",
})  # fmt: skip
"""Fields that follow from the record of a job alone while it waits and its begin time is over."""


def dependency_text(dependencies: Dependencies) -> str:
    """Return the dependencies that are not met, such as `afterok:7(unfulfilled)`.

    Of several that `?` joins, none matters when one is met.
    """
    return "" if dependencies.is_met else dependencies.text


def requested_counts(wanted: ResourceRequest) -> dict[str, int]:
    """Return the TRES that a job requests."""
    memory = (wanted.memory_per_node or 0) * wanted.nodes
    memory += (wanted.memory_per_cpu or 0) * wanted.cpus
    memory += (wanted.memory_per_gpu or 0) * wanted.gpu_count
    return {"cpu": wanted.cpus, "mem": memory, **requested_tres(wanted)}


def tres_text(
    counts: Mapping[str, int],
    rules: PartitionRules | None,
    rule: BillingRule,
    *,
    is_billed: bool = True,
) -> str:
    """Return TRES such as `cpu=4,mem=8G,node=1,billing=4`, but no zeros; memory is in MiB.

    The billing units follow from the weights of the partition. The types of GPUs are not shown.
    """
    exact = {name: Fraction(count) for name, count in counts.items()}
    billed = is_billed and int(billing(exact, None if rules is None else rules.weights, rule))
    shown = {
        name: shortened(count, unit="M") if name == "mem" else str(count)
        for name, count in sorted(
            {**counts, "billing": billed}.items(), key=lambda one: one[0].startswith("gres/")
        )
        if count and ":" not in name
    }
    return ",".join(f"{name}={count}" for name, count in shown.items())


def exit_code(status: int) -> tuple[int, int]:
    """Return exit code and signal of a status of wait(2)."""
    return status >> 8, status & 0x7F


def _flag(state: JobState) -> str:
    """Return the flag that is shown; a job that was requeued and held is PENDING."""
    return state.shown if state.flags and state is not JobState.REQUEUE_HOLD else ""


def _suspension_time(run: WlmRun | None) -> int | None:
    """Return when a run was suspended, or resumed later."""
    last = None if run is None else run.suspended or run.resumed
    return None if last is None else last.wall


def _elapsed(job: WlmJob, now: Moment) -> int:
    run = job.run
    return 0 if job.state.base == "PENDING" or run is None else run.ran(now)


def _limit(state: CoreState, job: WlmJob) -> int | None:
    """Return the time limit; None: that of the partition, which the job gets when it starts."""
    limit = job.request.limit
    if limit is not None:
        return NO_LIMIT if limit >= LIMIT_MAX_SECONDS else limit
    rules = (state.partitions.get(name) for name in job.request.partitions)
    has_most = any(one is not None and one.max_seconds for one in rules)
    return None if has_most and job.state.base == "PENDING" else NO_LIMIT
