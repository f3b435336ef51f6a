"""Runs of jobs, ended or not, as sacct shows them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fairbank.cluster.job import Run
from fairbank.core.hostlist import compress
from fairbank.jobqueue.arrays import record_name
from fairbank.report.slurm.job_rows import NO_LIMIT
from fairbank.report.slurm.sacct import AccountingLine, TaskUsage
from fairbank.wlm.controller.commands.job_lines import (
    DEFAULT_QOS,
    GroupName,
    exit_code,
    job_files,
    licenses_text,
    requested_counts,
    tres_text,
    with_defaults,
)
from fairbank.wlm.core.jobs import EndedRun, Moment, WlmJob
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.protocol.messages import RunUsage

_KIBIBYTE = 1_024


class Accounted(NamedTuple):
    """Run for accounting. `is_over` is False for one that waits or runs."""

    record: EndedRun
    is_over: bool
    usage: RunUsage | None = None
    admin_comment: str = ""

    @property
    def label(self) -> str:
        """Job id as sacct shows it."""
        request = self.record.request
        if self.record.tasks:
            return record_name(request.number, self.record.tasks, request.throttle)
        return request.name


def live_run(job: WlmJob, cluster: str, usage: Mapping[Run, RunUsage]) -> Accounted:
    """Return the run of a job that waits or runs, with its usage if it is known."""
    waits = job.state.base == "PENDING"
    record = EndedRun(
        identity=job.identity(cluster),
        request=job.request,
        submission=job.submission,
        state=job.state.base,
        reason=job.reason,
        ended=0,
        tasks=job.tasks,
        run=None if waits else job.run,
    )
    own = usage.get(record.identity)
    return Accounted(record, is_over=False, usage=own, admin_comment=job.admin_comment)


def accounting_line(
    accounted: Accounted, state: CoreState, now: Moment, group: GroupName
) -> AccountingLine:
    """Return the line of a run.

    Args:
        accounted: the run.
        state: the state of the cluster.
        now: the current time.
        group: function from a gid to the name of the group.
    """
    record = accounted.record
    request, submission, run = record.request, record.submission, record.run
    allocation = None if run is None else run.allocation
    nodes = () if allocation is None else allocation.nodes
    where = request.partitions[0] if allocation is None else allocation.partition
    rules, rule = state.partitions.get(where), state.settings.billing_rule
    wanted = with_defaults(request.wanted, rules)
    wanted_counts = requested_counts(wanted)
    tres = {} if allocation is None else allocation.tres
    started = None if run is None or run.started is None else run.started
    eligible = max(request.eligible, record.identity.submitted)
    files = job_files(request, submission, nodes[0] if nodes else "")
    elapsed = 0
    if run is not None and started is not None:
        elapsed = run.elapsed if accounted.is_over else max(now.mono - started.mono, 0)
    return AccountingLine(
        job_id=request.number,
        label=accounted.label,
        name=submission.name,
        user=request.user,
        uid=submission.uid,
        group=group(submission.gid),
        gid=submission.gid,
        account=request.account or None,
        cluster=record.identity.cluster,
        partition=",".join(request.partitions) if allocation is None else where,
        qos=request.qos or DEFAULT_QOS,
        requested_qos=request.qos or None,
        wckey=submission.wckey or None,
        priority=request.priority,
        state=record.state,
        cancelled_by=record.canceller,
        reason=record.reason,
        exit_code=exit_code(0 if run is None else run.status),
        derived_exit_code=(0, 0),
        restarts=record.identity.restart,
        submitted=record.identity.submitted,
        eligible=eligible,
        started=None if started is None else started.wall,
        ended=record.ended if accounted.is_over else None,
        elapsed=elapsed,
        planned=None if started is None else max(started.wall - eligible, 0),
        limit=request.limit if request.limit is not None else NO_LIMIT,
        nodes=compress(nodes),
        node_count=len(nodes) or wanted.nodes,
        allocated_nodes=len(nodes),
        requested_nodes=wanted.nodes,
        cpus=tres.get("cpu", 0),
        requested_cpus=wanted.cpus,
        requested_memory=wanted_counts["mem"],
        tasks=1,
        requested_tres=tres_text(wanted_counts, rules, rule),
        allocated_tres=tres_text(tres, rules, rule) if tres else None,
        features=wanted.constraint or None,
        licenses=licenses_text(request.licences),
        reservation=request.reservation,
        comment=submission.comment or None,
        admin_comment=accounted.admin_comment or None,
        extra=submission.extra or None,
        work_dir=submission.directory,
        std_in=files.input,
        std_out=files.output,
        std_err=files.error,
        **_usage(accounted.usage, nodes),
    )


def _usage(usage: RunUsage | None, nodes: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields with the usage of the batch script, which has one task."""
    if usage is None:
        return {}
    node = nodes[0] if nodes else ""
    amounts = {
        "processor": int(usage.cpu_seconds),
        "virtual": usage.virtual_max_kib * _KIBIBYTE,
        "resident": usage.resident_max_kib * _KIBIBYTE,
    }
    fields = {name: TaskUsage(most, node, 0, most) for name, most in amounts.items()}
    return {"total_cpu": int(usage.cpu_seconds * 1_000), **fields}
