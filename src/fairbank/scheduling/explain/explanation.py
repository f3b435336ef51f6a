"""Explanation of a job that waits for nodes: reason, likely start, and how to start earlier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairbank.cluster.dependency import Dependencies, DependencyState
from fairbank.core.time import iso
from fairbank.scheduling.explain.answer import (
    BankRefusal,
    Explanation,
    JobCheck,
    NoStartRange,
    StartRange,
)
from fairbank.scheduling.explain.checks import JobCredit, job_checks, least_nodes
from fairbank.scheduling.explain.deadline import DeadlineOutlook, deadline_outlook
from fairbank.scheduling.explain.dependencies import OpenDependencies, describe_condition
from fairbank.scheduling.explain.job_changes import AllowedChanges, suggest_earlier_start
from fairbank.scheduling.explain.job_view import JobView, job_view
from fairbank.scheduling.explain.rule_checks import (
    longest_limit_remedy,
    reason_figures,
    requested_nodes,
)
from fairbank.scheduling.explain.start_range import SimulatedRuns, start_range_on_nodes
from fairbank.scheduling.machines.node_snapshot import OnNodes
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import BAD_CONSTRAINTS, PRIORITY, RESOURCES, SchedulePlan
from fairbank.scheduling.reason import explain_reason
from fairbank.scheduling.slurm.main_pass import NOT_AVAILABLE
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.slurm.passes import run_passes
from fairbank.scheduling.slurm.queue_order import placement_request

_ON_NODES = frozenset({RESOURCES, PRIORITY, NOT_AVAILABLE, BAD_CONSTRAINTS})
"""Reasons of jobs that wait for nodes, or for jobs ahead that want them."""

TIMED = frozenset({"BeginTime", "Reservation"})
"""Reasons of jobs that are not in the queue yet, but will be at a known time."""


class StatedWait(NamedTuple):
    """Wait that the passes here do not explain: Slurm's reason, and a clause that explains it.
    `is_simulated`: the passes know when it ends, so that the job has a range of starts.
    """

    code: str
    clause: str
    is_simulated: bool = False


class JobFacts(NamedTuple):
    """Facts on a job that the scheduler does not know.

    credit         credit of the job; None: make no check
    refusal        refusal of the bank for the job
    release        command that releases it and who may run it, if it is held
    awaiting       dependencies of the job; None: make no check
    stated         why it waits if the passes do not tell that; then there is no advice
    more_checks    checks of rules that the passes do not know
    """

    credit: JobCredit | None = None
    refusal: BankRefusal | None = None
    release: str | None = None
    awaiting: OpenDependencies | None = None
    stated: StatedWait | None = None
    more_checks: Sequence[JobCheck] = ()


NO_FACTS, ANY_CHANGE = JobFacts(), AllowedChanges()


def explain_on_nodes(
    snapshot: OnNodes,
    parameters: SchedulerParameters,
    number: int,
    now: int,
    *,
    plan: SchedulePlan[PendingJob, Placement] | None = None,
    facts: JobFacts = NO_FACTS,
    runs: SimulatedRuns | None = None,
    allowed: AllowedChanges | None = ANY_CHANGE,
) -> Explanation:
    """Explain why a job waits, as Slurm's two passes decide.

    A job that may not start at all has no range, unless its time is known. Raises NotFound for a
    job that does not wait, or that starts now without `stated`.

    Args:
        snapshot: machine, queue and running jobs.
        parameters: SchedulerParameters of slurm.conf.
        now: time in seconds since 1970.
        plan: plan of the passes if it is known already.
        facts: facts that the scheduler does not know.
        runs: simulated runs; None: compute no range.
        allowed: the changes that the site lets the job make; None: search none.
    """
    plan = run_passes(snapshot, parameters, now) if plan is None else plan
    refusal, stated = facts.refusal, facts.stated
    if stated is not None:
        plan = _with_stated_wait(plan, number, stated)
    view = _with_lasting_cause(job_view(snapshot, plan, number, now))
    likely = advice = None
    if runs is not None and (stated is None or stated.is_simulated):
        likely = _likely_start(snapshot, parameters, runs, view)
    if allowed is not None and stated is None:
        advice = suggest_earlier_start(snapshot, parameters, plan, number, now, allowed, likely)
    start_range = likely if isinstance(likely, StartRange) else None
    deadline = deadline_outlook(view, start_range)
    checks = job_checks(view, credit=facts.credit, awaiting=facts.awaiting, refusal=refusal)
    of_deadline = () if deadline is None else (deadline.check,)
    return Explanation(
        number=number,
        code=view.code if refusal is None else refusal.held_as or view.code,
        headline=_headline(view, facts, deadline),
        checks=(*checks, *facts.more_checks, *of_deadline),
        position=view.position,
        ahead=view.ahead,
        waiting=len(view.names),
        # It is unknown when the bank will accept a job that it refuses.
        expected=None if view.reservation is None or refusal is not None else view.reservation.at,
        likely=None if refusal is not None else start_range,
        missing_range_reason=likely if isinstance(likely, NoStartRange) else None,
        advice=advice,
        refusal=refusal,
        remedy=facts.release or longest_limit_remedy(view),
    )


def _with_stated_wait(
    plan: SchedulePlan[PendingJob, Placement], number: int, stated: StatedWait
) -> SchedulePlan[PendingJob, Placement]:
    """Return the plan in which the job waits for what slurmctld says."""
    return plan._replace(
        starts=[start for start in plan.starts if start.job.number != number],
        reasons={**plan.reasons, number: stated.code},
    )


def _with_lasting_cause(view: JobView) -> JobView:
    """Return the view with the reason that slurmctld would give without the jobs ahead, if the job
    names nodes on which nothing starts. slurmctld gives Priority to all jobs behind one that waits.
    """
    usable = view.snapshot.machine.cluster.usable
    if (
        view.code == PRIORITY
        and view.filtered
        and all(
            node_set.without(placement_request(view.snapshot.machine, entry).required, usable)
            for entry, _ in view.filtered
        )
    ):
        return view._replace(code=NOT_AVAILABLE)
    return view


def _likely_start(
    snapshot: OnNodes, parameters: SchedulerParameters, runs: SimulatedRuns, view: JobView
) -> StartRange | NoStartRange:
    """Return the range of likely starts, or the reason why there is none."""
    if not view.is_queued and view.code not in TIMED:
        return NoStartRange.NOT_QUEUED
    # A component also waits for the jobs that are ahead of the others.
    is_alone = view.is_queued and view.job.het_job is None
    ahead = frozenset(view.ahead) if is_alone else None
    number = view.job.number
    return start_range_on_nodes(snapshot, parameters, runs, number, view.now, ahead=ahead)


DEPENDENCY, NEVER_MET = "Dependency", "DependencyNeverSatisfied"


def _headline(view: JobView, facts: JobFacts, deadline: DeadlineOutlook | None) -> str:
    """Return the sentences: why the job waits, that of the bank if it refuses the job, and that of
    a deadline at risk.
    """
    waits = _waits(view, facts.awaiting) if facts.stated is None else facts.stated.clause
    sentences = _wait_and_refusal(view, waits, facts.refusal)
    if deadline is None or not deadline.risk.value:
        return sentences
    return f"{sentences} {deadline.risk.value}"


def _wait_and_refusal(view: JobView, waits: str, refusal: BankRefusal | None) -> str:
    refused = "" if refusal is None else refusal.detail.removesuffix(".")
    if refusal is not None and refusal.held_as is not None:
        return f"Job {view.job.name} is held by the bank ({refusal.held_as}): {refused}."
    expected = (
        f" Reserved start: {iso(view.reservation.at)}."
        if view.reservation is not None and refusal is None
        else ""
    )
    would_refuse = f" The bank would refuse it: {refused}." if refused else ""
    return f"Job {view.job.name} {waits} ({view.code}).{expected}{would_refuse}"


def _waits(view: JobView, awaiting: OpenDependencies | None) -> str:
    """Return the clause, with the figures of this job."""
    behind = _behind(view) if view.code in (PRIORITY, NOT_AVAILABLE) and view.ahead else ""
    if view.code in _ON_NODES and view.is_queued:
        # Nodes that it names keep it waiting whatever is ahead.
        if (missing := requested_nodes(view)) is not None:
            return f"waits for nodes that it requests: {missing}{behind and f'; and {behind}'}"
        if view.code == RESOURCES:
            return _for_nodes(view)
    if behind:
        return f"waits {behind}"
    if view.code in (DEPENDENCY, NEVER_MET) and awaiting is not None and awaiting.on.open:
        return _for_others(awaiting.on, never=view.code == NEVER_MET)
    return f"waits: {reason_figures(view) or explain_reason(view.code).removesuffix('.')}"


def _behind(view: JobView) -> str:
    """Describe the jobs ahead."""
    first = f"job {view.names[view.ahead[0]]}"
    if len(view.ahead) == 1:
        return f"behind {first}"
    return f"behind {len(view.ahead):,} jobs, the first of which is {first}"


def _for_nodes(view: JobView) -> str:
    """Describe the partition with the most nodes that fit now."""
    entry, nodes = max(view.filtered, key=lambda partition: partition[1].fitting.bit_count())
    free, suitable = nodes.fitting.bit_count(), nodes.suitable.bit_count()
    least = least_nodes(view.snapshot.machine, entry, nodes)
    needed = "1 node" if least == 1 else f"{least:,} nodes"
    return f"waits for {needed}: {free:,} of the {suitable:,} suitable nodes are free now"


def _for_others(on: Dependencies, *, never: bool) -> str:
    """Describe the first dependency that is open, or lost."""
    if never:
        lost = next(
            (dependency for dependency in on.open if dependency.state is DependencyState.NEVER),
            on.open[0],
        )
        return f"waits for a dependency that can never be satisfied: {describe_condition(lost)}"
    first = describe_condition(on.open[0])
    if len(on.open) == 1:
        return f"waits until {first}"
    return (
        f"waits for {'one of ' if on.any_of else ''}{len(on.open):,} dependencies, the first of"
        f" which is: {first}"
    )
