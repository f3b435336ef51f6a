"""Starts of jobs: the check of a plan, the allocation, the verdict of the bank, the begin."""

from __future__ import annotations

import msgspec

from fairbank.cluster.partition_rules import PreemptMode
from fairbank.core.slurm_numbers import UNLIMITED_SECONDS
from fairbank.jobqueue.arrays import record_number
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.machines.partition_access import exclusion_reason
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.bindings import NodeBinding, bind
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.slurm.preemption import preempt_mode
from fairbank.wlm.core.effects import ChangeLimit, StartRun
from fairbank.wlm.core.ends import end_job, preempt_job, release_job, requeue_job
from fairbank.wlm.core.events import AccountsRead, AgentConnected, PlanMade, TimerKind, VerdictGiven
from fairbank.wlm.core.factors.accrue_times import note_accrue_times
from fairbank.wlm.core.factors.usage import note_associations
from fairbank.wlm.core.job_states import JobEvent, JobState
from fairbank.wlm.core.jobs import HeldBy, NodeGrant, RunAllocation, WlmJob, WlmRun
from fairbank.wlm.core.snapshot import expected_starts, occupied_nodes
from fairbank.wlm.core.transition import Transition

NO_ANSWER = "Fairbank_does_not_answer"
"""Reason of a job that is held because no agent answers, as with the plug-in of slurmctld."""


def carry_out(tx: Transition, made: PlanMade) -> None:
    """Carry out the starts of a plan that are still possible, and record the reasons of the rest.

    The plan may be of an older state: each start is checked against the present one.
    """
    plan = made.plan
    if _waits_for_completion(tx):
        return
    if made.has_reservations:
        starts = expected_starts(tx.state, plan)
        tx.state.plan_changes += starts != tx.state.expected_starts
        tx.state.expected_starts = starts
    nodes = occupied_nodes(tx.state, tx.now)
    held = {
        node: [grant.binding for _, grant in tx.state.grants_on(node)] for node in tx.state.nodes
    }
    for start in plan.starts:
        job = tx.state.jobs.get(record_number(start.job.number))
        if job is None or not _may_start(tx, nodes, job, start.job, start.placement):
            continue
        if start.placement.preempted:
            _preempt(tx, nodes, start.placement)
            continue  # the next pass starts it, when the nodes are free
        nodes.take(start.placement)
        bound = bind(nodes.cluster, start.placement, held)
        if nodes.free.overdrawn() & start.placement.nodes:
            nodes.give(start.placement)
            tx.request_plan()
            continue
        if bound is None:
            # The next pass would plan the same, for it does not count the jobs of each core. The
            # end of a job requests a pass.
            nodes.give(start.placement)
            tx.put_job(job, reason="Resources")
            continue
        nodes.limits.record_start(start.job, start.placement)
        for binding in bound:
            held[binding.node].append(binding)
        _allocate(tx, job, start.job, start.placement, bound)
        tx.state.backfilled += start.job.number in plan.backfilled
    _record_reasons(tx, plan)
    note_accrue_times(tx)


def _waits_for_completion(tx: Transition) -> bool:
    """Return True while a job has been completing for less than CompleteWait.

    A timer requests the next pass for one that takes longer; its end requests one, too.
    """
    wait = tx.state.settings.jobs.complete_wait
    ends = (
        job.run.ended.mono + wait
        for node in (tx.state.nodes if wait else ())
        for job in tx.state.jobs_on(node)
        if job.run is not None and job.run.ended is not None
    )
    last = max(ends, default=0)
    if last > tx.now.mono:
        tx.set_timer(TimerKind.COMPLETION, 0, last)
    return last > tx.now.mono


def _may_start(
    tx: Transition, nodes: Nodes, job: WlmJob, planned: PendingJob, placement: Placement
) -> bool:
    """Return True if nothing has changed since the plan that forbids the start."""
    request, partition, now = job.request, placement.partition, tx.now.wall
    if (
        job.state is not JobState.PENDING
        or job.hold_reason is not None
        or request.eligible > now
        or (job.tasks and planned.task not in job.tasks)
        or partition not in request.partitions
        or not _accepts_limit(request, planned.limit)
        or tx.state.settings.placed_request(request.wanted) != planned.wanted
        or request.reservation != planned.reservation
        or exclusion_reason(request, nodes.cluster, partition, by_least_time=True) is not None
    ):
        return False
    _, of_partition = nodes.cluster.partition(partition)
    usable = nodes.cluster.usable & of_partition
    end = now + planned.seconds(nodes.cluster.rules[partition])
    usable &= nodes.reservations.usable_nodes(request, now, end)
    if node_set.without(placement.nodes, usable):
        return False
    return nodes.limits.hold_reason(request, partition, placement) is None


def _accepts_limit(request: PendingJob, limit: int | None) -> bool:
    """Return True for the present time limit of a job, or a shorter one that --time-min allows."""
    if limit == request.limit:
        return True
    least, longest = request.time_min, request.limit or UNLIMITED_SECONDS
    return least is not None and limit is not None and least <= limit <= longest


def _preempt(tx: Transition, nodes: Nodes, placement: Placement) -> None:
    for number in placement.preempted:
        victim = tx.state.jobs.get(number)
        run = None if victim is None else victim.active_run
        if victim is None or run is None:
            continue
        partition = run.allocation.partition
        mode = preempt_mode(nodes, (partition, victim.request.qos))
        rules = nodes.cluster.rules.get(partition)
        grace = 0 if rules is None else rules.grace_seconds
        preempt_job(tx, victim, requeues=mode is PreemptMode.REQUEUE, grace=grace)


def _allocate(
    tx: Transition,
    job: WlmJob,
    planned: PendingJob,
    placement: Placement,
    bound: tuple[NodeBinding, ...],
) -> None:
    """Store the allocation. The start is sent at once, or when the bank has allowed it."""
    if job.tasks:
        job = tx.split_task(job, planned.task)
    grants = tuple(
        NodeGrant(binding, share.cpus, share.memory, share.gpus)
        for binding, share in zip(bound, placement.shares, strict=True)
    )
    allocation = RunAllocation(placement.partition, grants, placement.sharing)
    most = tx.state.partitions[placement.partition].max_seconds
    limit = min(filter(None, (planned.limit, most)), default=None)
    run = WlmRun(
        run=job.identity(tx.state.settings.cluster.cluster_name),
        allocation=allocation,
        allocated=tx.now,
        left=allocation.nodes,
    )
    job = tx.move(
        job,
        JobEvent.ALLOCATED,
        request=msgspec.structs.replace(job.request, limit=limit),
        run=run,
        reason="Prolog" if tx.state.settings.bank.socket else "None",
        admin_comment="",
    )
    if tx.state.settings.bank.socket:
        tx.send_to_agent("prolog", job, run)
    else:
        _send_start(tx, job, run)


def _send_start(tx: Transition, job: WlmJob, run: WlmRun) -> None:
    run = msgspec.structs.replace(run, is_allowed=True)
    tx.put_job(job, run=run, reason="None")
    for node in run.left:
        send_start_to(tx, job, run, node)
    arm_start(tx, job)


def send_start_to(tx: Transition, job: WlmJob, run: WlmRun, node: str) -> None:
    """Send the start to a node. A node that knows the run ignores it."""
    seconds = tx.state.settings.run_seconds(job.request.limit)
    tx.send(node, StartRun(run, job.request, job.submission, seconds))


def send_limit_to(tx: Transition, job: WlmJob, run: WlmRun, node: str) -> None:
    """Send the time limit of a run, which may have changed."""
    seconds = tx.state.settings.run_seconds(job.request.limit)
    begin = None if run.started is None else run.started.mono + run.paused
    if run.suspended is not None and seconds is not None:
        seconds, begin = max(seconds - run.ran(tx.now), 0), None  # its time stands still
    tx.send(node, ChangeLimit(run.run, seconds, begin))


def arm_start(tx: Transition, job: WlmJob) -> None:
    """Set the timer by which the script must have begun."""
    at = tx.now.mono + tx.state.settings.jobs.batch_start_timeout
    tx.set_timer(TimerKind.START, job.number, at)


def take_verdict(tx: Transition, verdict: VerdictGiven) -> None:
    """Start the run, or put its job back with the bank's reason. A late verdict changes nothing."""
    tx.put("messages", verdict.message, None)
    job = tx.state.job_of(verdict.run)
    run = None if job is None else job.active_run
    if job is None or run is None or run.is_allowed:
        return
    if verdict.action == "run":
        _send_start(tx, job, run)
    elif verdict.action == "hold":
        job = requeue_job(tx, job, held_by=HeldBy.BANK, reason=verdict.reason)
        tx.put_job(job, admin_comment=verdict.text)
    else:
        job = end_job(tx, job, JobEvent.CANCELLED, verdict.reason)
        tx.put_job(job, admin_comment=verdict.text)


def connect_agent(tx: Transition, event: AgentConnected) -> None:
    """Release the jobs that were held for lack of an answer, and report the running ones."""
    for job in list(tx.state.jobs.values()):
        run = job.active_run
        waits = job.state.base == "PENDING"
        if waits and job.held_by is HeldBy.BANK and job.reason == NO_ANSWER:
            release_job(tx, job)
        elif run is not None and run.started is not None:
            tx.send_to_agent("limit", job, run)


def take_accounts(tx: Transition, event: AccountsRead) -> None:
    """Take over the accounts of the bank. Jobs of a user who is no member any more do not start."""
    known = tx.state.bank_accounts
    if known == event.accounts:
        return
    for name in known.keys() - event.accounts.keys():
        tx.put("accounts", name, None)
    for name, account in event.accounts.items():
        if known.get(name) != account:
            tx.put("accounts", name, account)
    note_associations(tx)
    tx.request_plan()


def _record_reasons(tx: Transition, plan: SchedulePlan[PendingJob, Placement]) -> None:
    """Record why jobs wait. A record of an array has the reason of its first task."""
    reasons = {record_number(number): plan.reasons[number] for number in sorted(plan.reasons)[::-1]}
    for number, reason in reasons.items():
        job = tx.state.jobs.get(number)
        if job is None or job.reason == reason:  # as nearly all of them
            continue
        if job.state.is_waiting and job.hold_reason is None:
            tx.put_job(job, reason=reason)
