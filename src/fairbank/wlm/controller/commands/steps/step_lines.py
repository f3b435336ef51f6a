"""Steps of runs, as accounting and the queue show them."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from fairbank.core.hostlist import compress
from fairbank.report.slurm.sacct import AccountingLine, GpuUse, TaskUsage
from fairbank.report.slurm.steps import BATCH, StepLine
from fairbank.wlm.controller.commands.accounting_lines import ShownRun
from fairbank.wlm.controller.commands.job_filter import selected_jobs
from fairbank.wlm.controller.commands.job_lines import Fields, cells_of, exit_code, tres_text
from fairbank.wlm.core.job_states import BEGUN
from fairbank.wlm.core.jobs import Moment, RunAllocation, WlmJob
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.core.steps.step import EndedStep, WlmStep
from fairbank.wlm.protocol.commands import RowFilter
from fairbank.wlm.protocol.frames import OUT_OF_MEMORY_STATUS
from fairbank.wlm.protocol.messages import RunUsage

_KIBIBYTE = 1_024
_DISTRIBUTIONS = {
    "block": "Block", "cyclic": "Cyclic", "plane": "Plane", "arbitrary": "Arbitrary",
}  # fmt: skip


class ShownStep(NamedTuple):
    """Step of a run for accounting. `ended` is None while it runs, `usage` while nothing is known
    of it.
    """

    run: ShownRun
    step: str
    name: str
    started: int
    nodes: tuple[str, ...]
    tres: Mapping[str, int]
    state: str = "RUNNING"
    status: int = 0
    ended: int | None = None
    elapsed: int = 0
    tasks: int = 1
    canceller: int | None = None
    submit_line: str = ""
    usage: RunUsage | None = None
    suspended: int = 0

    @property
    def user(self) -> str:
        return self.run.user

    @property
    def cpu_milliseconds(self) -> int | None:
        """Processor time; None: not known."""
        return None if self.usage is None else int(self.usage.cpu_seconds * 1_000)

    @property
    def gpu_use(self) -> GpuUse | None:
        """Use of its GPUs, as far as it is known."""
        usage = self.usage
        if usage is None or not usage.gpu_seconds:
            return None
        return GpuUse(usage.gpu_busy_seconds, usage.gpu_seconds, usage.sampled_seconds)

    @property
    def processor(self) -> TaskUsage | None:
        """Processor time: of a single task, else the average."""
        if self.usage is None:
            return None
        seconds = int(self.usage.cpu_seconds) // self.tasks
        if self.tasks > 1:
            return TaskUsage(None, None, None, seconds)
        return TaskUsage(seconds, self.nodes[0], 0, seconds)

    def most(self, amount: Callable[[RunUsage], int]) -> TaskUsage | None:
        """Return the most of a usage by one node, which counts for all of its tasks."""
        if self.usage is None:
            return None
        most, is_single = amount(self.usage), self.tasks == 1
        node = self.nodes[0] if len(self.nodes) == 1 else None
        return TaskUsage(most, node, 0 if is_single else None, most if is_single else None)

    def cells(self, columns: Iterable[str]) -> list[Any]:
        """Return some fields of its `AccountingLine`."""
        return cells_of(self, columns, STEP_FIELDS, AccountingLine._field_defaults)


def batch_step(run: ShownRun) -> ShownStep | None:
    """Return the step of the batch script; None if the run has none, or it has not begun."""
    if run.allocation is None or run.begun is None or not run.submission.script:
        return None
    outcome = run.outcome
    status = run.exit_status if outcome is None or outcome.status is None else outcome.status
    state = run.record.state
    if state not in ("PENDING", "RUNNING", "SUSPENDED"):
        # How the script ended, whatever the run is.
        is_lost = outcome is not None and outcome.cause == "step_daemon_killed"
        state = "FAILED" if is_lost else _state(status)
    return ShownStep(
        run,
        BATCH,
        BATCH,
        run.begun,
        run.nodes[:1],
        tres_of(run.allocation, run.nodes[:1]),
        state,
        status,
        run.record.ended if run.is_over else None,
        run.elapsed,
        usage=run.usage,
        suspended=0 if run.run is None else run.run.paused_until(run.now),
    )


def live_step(run: ShownRun, step: WlmStep, usage: RunUsage | None) -> ShownStep | None:
    """Return a step that runs; None if its run has no nodes.

    `usage` is that of the nodes on which it runs; None: not known.
    """
    if run.run is None:
        return None
    return _shown_step(run, step, run.run.allocation)._replace(
        elapsed=step.ran(run.run, run.now),
        suspended=step.suspended(run.run, run.now),
        usage=None if usage is None else step.usage.with_node(usage),
    )


def ended_step(run: ShownRun, record: EndedStep) -> ShownStep | None:
    """Return a step that has ended; None if its run has no nodes."""
    if run.allocation is None:
        return None
    return _shown_step(run, record.step, run.allocation)._replace(
        state=record.state, ended=record.ended, elapsed=record.elapsed, suspended=record.suspended
    )


def _shown_step(run: ShownRun, step: WlmStep, allocation: RunAllocation) -> ShownStep:
    return ShownStep(
        run,
        str(step.number),
        step.request.name,
        step.started.wall,
        step.nodes,
        _tres_of_step(step, allocation, run.state.threads_of(step.nodes)),
        status=step.status,
        tasks=step.tasks,
        canceller=step.canceller,
        submit_line=step.request.submit_line,
        usage=step.usage,
    )


def _tres_of_step(step: WlmStep, allocation: RunAllocation, threads: int) -> dict[str, int]:
    """Return the TRES of a step. `threads` are the CPUs of a core."""
    given = {grant.binding.node: grant.cpus for grant in allocation.grants}
    cpus = sum(min(len(one.cores) * threads, given[one.node]) for one in step.grants)
    gpus = sum(len(one.gpus) for one in step.grants)
    return tres_of(allocation, step.nodes) | {"cpu": cpus, "gres/gpu": gpus}


def tres_of(allocation: RunAllocation, nodes: Collection[str]) -> dict[str, int]:
    """Return the TRES that a run has on some of its nodes."""
    grants = tuple(grant for grant in allocation.grants if grant.binding.node in nodes)
    return RunAllocation(allocation.partition, grants).tres


def _state(status: int) -> str:
    if status == OUT_OF_MEMORY_STATUS:
        return "OUT_OF_MEMORY"
    code, signal = exit_code(status)
    return "CANCELLED" if signal else "FAILED" if code else "COMPLETED"


STEP_FIELDS: Fields[ShownStep] = {
    "job_id": lambda s: s.run.request.number,
    "label": lambda s: s.run.label,
    "cluster": lambda s: s.run.record.identity.cluster,
    "account": lambda s: s.run.request.account or None,
    "step": lambda s: s.step,
    "name": lambda s: s.name,
    "state": lambda s: s.state,
    "cancelled_by": lambda s: s.canceller,
    "exit_code": lambda s: exit_code(s.status),
    "submitted": lambda s: s.run.record.identity.submitted,
    "started": lambda s: s.started,
    "ended": lambda s: s.ended,
    "elapsed": lambda s: s.elapsed,
    "suspended": lambda s: s.suspended,
    "nodes": lambda s: compress(s.nodes),
    "node_count": lambda s: len(s.nodes),
    "allocated_nodes": lambda s: len(s.nodes),
    "requested_nodes": lambda s: len(s.nodes),
    "cpus": lambda s: s.tres["cpu"],
    "requested_cpus": lambda s: s.tres["cpu"],
    "tasks": lambda s: s.tasks,
    "allocated_tres": lambda s: tres_text(
        s.tres, None, s.run.state.settings.accounting.billing_rule, is_billed=False
    ),
    "submit_line": lambda s: s.submit_line or None,
    "total_cpu": lambda s: s.cpu_milliseconds,
    "processor": lambda s: s.processor,
    "virtual": lambda s: s.most(lambda usage: usage.virtual_max_kib * _KIBIBYTE),
    "gpu_use": lambda s: s.gpu_use,
    "resident": lambda s: s.most(lambda usage: usage.resident_max_kib * _KIBIBYTE),
}
"""Fields of `AccountingLine` that a step has. All others have its default."""


# --- the queue ---


def step_lines(state: CoreState, now: Moment, wanted: RowFilter) -> Iterator[StepLine]:
    """Yield the steps that run of the jobs that fit a filter: of each job the script first."""
    steps: dict[object, list[WlmStep]] = {}
    for step in state.steps.values():
        steps.setdefault(step.run, []).append(step)
    for job in selected_jobs(state, wanted):
        run = job.active_run
        if run is None or run.started is None or job.state not in BEGUN:
            continue
        line = _line(job, run.started, run.ran(now))._replace(nodes=run.batch_node)
        if job.submission.script:
            yield line
        for step in sorted(steps.get(run.run, ()), key=lambda step: step.number):
            tres = _tres_of_step(step, run.allocation, state.threads_of(step.nodes))
            yield _line(job, step.started, step.ran(run, now))._replace(
                step=str(step.number),
                name=step.request.name,
                nodes=compress(step.nodes),
                node_count=len(step.nodes),
                cpus=tres["cpu"],
                tasks=step.tasks,
                tres=tres_text(tres, None, state.settings.accounting.billing_rule, is_billed=False),
                distribution=_DISTRIBUTIONS[step.request.distribution],
                srun_host=None if step.srun is None else socket.gethostname(),
                srun_pid=0 if step.srun is None else step.srun.pid,
            )


def _line(job: WlmJob, started: Moment, elapsed: int) -> StepLine:
    request, run = job.request, job.run
    return StepLine(
        job.number,
        job.name,
        request.array,
        None if request.array is None else request.task,
        user=request.user,
        uid=job.submission.uid,
        partition="" if run is None else run.allocation.partition,
        started=started.wall,
        elapsed=elapsed,
    )
