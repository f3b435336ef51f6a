"""Steps of runs, as accounting and the queue show them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from fairbank.core.hostlist import compress
from fairbank.report.slurm.sacct import AccountingLine, TaskUsage
from fairbank.report.slurm.steps import BATCH, StepLine
from fairbank.wlm.controller.commands.accounting_lines import ShownRun, StepFacts
from fairbank.wlm.controller.commands.job_filter import selected_jobs
from fairbank.wlm.controller.commands.job_lines import Fields, cells_of, exit_code, tres_text
from fairbank.wlm.core.job_states import BEGUN
from fairbank.wlm.core.jobs import Moment, RunAllocation, WlmJob, WlmRun
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.core.steps.step import EndedStep, WlmStep
from fairbank.wlm.protocol.commands import RowFilter
from fairbank.wlm.protocol.frames import OUT_OF_MEMORY_STATUS
from fairbank.wlm.protocol.messages import RunUsage

_KIBIBYTE = 1_024
_DISTRIBUTIONS = {
    "block": "Block", "cyclic": "Cyclic", "plane": "Plane", "arbitrary": "Arbitrary",
}  # fmt: skip


def batch_step(run: ShownRun) -> StepFacts | None:
    """Return the step of the batch script; None if the run has none, or it has not begun."""
    if run.allocation is None or run.begun is None or not run.submission.script:
        return None
    status = run.exit_status if run.status is None else run.status
    waits_or_runs = run.record.state in ("PENDING", "RUNNING", "SUSPENDED")
    return StepFacts(
        BATCH,
        BATCH,
        run.begun,
        run.nodes[:1],
        tres_of(run.allocation, run.nodes[:1]),
        # How the script ended, whatever the run is.
        run.record.state if waits_or_runs else _state(status),
        status,
        run.record.ended if run.is_over else None,
        run.elapsed,
        usage=run.usage,
        suspended=0 if run.run is None else run.run.paused_until(run.now),
    )


def live_step(
    step: WlmStep, run: WlmRun, now: Moment, threads: int, usage: RunUsage | None
) -> StepFacts:
    """Return a step that runs.

    Args:
        step: the step.
        run: its run.
        now: the time.
        threads: CPUs of a core.
        usage: that of the nodes on which it runs; None: not known.
    """
    if usage is not None:
        usage = step.usage.with_node(usage)
    facts = _facts(step, run.allocation, threads)
    return facts._replace(
        elapsed=step.ran(run, now), suspended=step.suspended(run, now), usage=usage
    )


def ended_step(record: EndedStep, allocation: RunAllocation, threads: int) -> StepFacts:
    """Return a step that has ended."""
    facts = _facts(record.step, allocation, threads)
    return facts._replace(
        state=record.state, ended=record.ended, elapsed=record.elapsed, suspended=record.suspended
    )


def _facts(step: WlmStep, allocation: RunAllocation, threads: int) -> StepFacts:
    given = {grant.binding.node: grant.cpus for grant in allocation.grants}
    cpus = sum(min(len(one.cores) * threads, given[one.node]) for one in step.grants)
    gpus = sum(len(one.gpus) for one in step.grants)
    return StepFacts(
        str(step.number),
        step.request.name,
        step.started.wall,
        step.nodes,
        tres_of(allocation, step.nodes) | {"cpu": cpus, "gres/gpu": gpus},
        status=step.status,
        tasks=step.tasks,
        canceller=step.canceller,
        submit_line=step.request.submit_line,
        usage=step.usage,
    )


def tres_of(allocation: RunAllocation, nodes: Collection[str]) -> dict[str, int]:
    """Return the TRES that a run has on some of its nodes."""
    grants = tuple(grant for grant in allocation.grants if grant.binding.node in nodes)
    return RunAllocation(allocation.partition, grants).tres


def _state(status: int) -> str:
    if status == OUT_OF_MEMORY_STATUS:
        return "OUT_OF_MEMORY"
    code, signal = exit_code(status)
    return "CANCELLED" if signal else "FAILED" if code else "COMPLETED"


# --- accounting ---


class ShownStep:
    """Step of a run for accounting."""

    def __init__(self, run: ShownRun, facts: StepFacts) -> None:
        self.run, self.facts, self.user = run, facts, run.user

    def cells(self, columns: Iterable[str]) -> list[Any]:
        """Return some fields of its `AccountingLine`."""
        return cells_of(self, columns, STEP_FIELDS, AccountingLine._field_defaults)

    @property
    def tres(self) -> str:
        rule = self.run.state.settings.accounting.billing_rule
        return tres_text(self.facts.tres, None, rule, is_billed=False)

    def most(self, amount: Callable[[RunUsage], int]) -> TaskUsage | None:
        """Return the most of a usage by one node, which counts for all of its tasks."""
        facts = self.facts
        if facts.usage is None:
            return None
        most, is_single = amount(facts.usage), facts.tasks == 1
        node = facts.nodes[0] if len(facts.nodes) == 1 else None
        return TaskUsage(most, node, 0 if is_single else None, most if is_single else None)

    @property
    def processor(self) -> TaskUsage | None:
        """Processor time: of a single task, else the average."""
        facts = self.facts
        if facts.usage is None:
            return None
        seconds = int(facts.usage.cpu_seconds) // facts.tasks
        if facts.tasks > 1:
            return TaskUsage(None, None, None, seconds)
        return TaskUsage(seconds, facts.nodes[0], 0, seconds)


STEP_FIELDS: Fields[ShownStep] = {
    "job_id": lambda s: s.run.request.number,
    "label": lambda s: s.run.label,
    "cluster": lambda s: s.run.record.identity.cluster,
    "account": lambda s: s.run.request.account or None,
    "step": lambda s: s.facts.step,
    "name": lambda s: s.facts.name,
    "state": lambda s: s.facts.state,
    "cancelled_by": lambda s: s.facts.canceller,
    "exit_code": lambda s: exit_code(s.facts.status),
    "submitted": lambda s: s.run.record.identity.submitted,
    "started": lambda s: s.facts.started,
    "ended": lambda s: s.facts.ended,
    "elapsed": lambda s: s.facts.elapsed,
    "suspended": lambda s: s.facts.suspended,
    "nodes": lambda s: compress(s.facts.nodes),
    "node_count": lambda s: len(s.facts.nodes),
    "allocated_nodes": lambda s: len(s.facts.nodes),
    "requested_nodes": lambda s: len(s.facts.nodes),
    "cpus": lambda s: s.facts.tres["cpu"],
    "requested_cpus": lambda s: s.facts.tres["cpu"],
    "tasks": lambda s: s.facts.tasks,
    "allocated_tres": lambda s: s.tres,
    "submit_line": lambda s: s.facts.submit_line or None,
    "total_cpu": lambda s: s.facts.cpu_milliseconds,
    "processor": lambda s: s.processor,
    "virtual": lambda s: s.most(lambda usage: usage.virtual_max_kib * _KIBIBYTE),
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
            facts = live_step(step, run, now, state.threads_of(step.nodes), None)
            yield _line(job, step.started, facts.elapsed)._replace(
                step=facts.step,
                name=facts.name,
                nodes=compress(facts.nodes),
                node_count=len(facts.nodes),
                cpus=facts.tres["cpu"],
                tasks=facts.tasks,
                tres=tres_text(
                    facts.tres, None, state.settings.accounting.billing_rule, is_billed=False
                ),
                distribution=_DISTRIBUTIONS[step.request.distribution],
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
