"""Every check that a job has to pass before it starts, each with what was found."""

from __future__ import annotations

from collections.abc import Iterator

from fairbank.core.time import iso
from fairbank.scheduling.admission import exclusion_reason
from fairbank.scheduling.explain.answer import JobCheck
from fairbank.scheduling.explain.dependencies import OpenDependencies, dependency_check
from fairbank.scheduling.explain.funds import CreditCheckInput, credit_check
from fairbank.scheduling.explain.job_view import JobView
from fairbank.scheduling.explain.node_filter import FilteredNodes
from fairbank.scheduling.machines.node_snapshot import OnNodes
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.reason import explain_reason
from fairbank.scheduling.slurm.queue_order import QueueEntry, placement_request


def job_checks(
    view: JobView, *, funds: CreditCheckInput | None, awaiting: OpenDependencies | None
) -> Iterator[JobCheck]:
    """In the order in which it has to pass them: may it start at all, would nodes do and are they free, limits, credit, its turn."""
    job, nodes = view.job, view.there.machine
    may_start = _may_start(job, nodes, view.now)
    yield may_start
    if awaiting is not None:
        yield dependency_check(awaiting)
    for name in job.partitions:
        yield _partition(job, nodes, name)
    for entry, found in view.sifted:
        yield _able(nodes, entry, found)
        yield _free(view.there, entry, found)
    for name in job.partitions:
        yield _limits(nodes, job, name)
    if funds is not None:
        yield credit_check(funds)
    yield _turn(view, held=not may_start.ok)


def least_nodes(nodes: Nodes, entry: QueueEntry, found: FilteredNodes) -> int:
    """How many nodes it needs at least: as many as it asks for, and enough for its tasks if nobody else were there."""
    request = placement_request(nodes, entry)
    room = nodes.places.empty.tasks(request.demand)[node_set.places(found.able)]
    left, tasks = 0, 0
    for fits in sorted(room.tolist(), reverse=True):
        if tasks >= request.tasks:
            break
        left, tasks = left + 1, tasks + fits
    return max(request.least, left)


def _may_start(job: PendingJob, nodes: Nodes, now: int) -> JobCheck:
    if job.held is not None:
        return JobCheck("nothing holds it back", False, explain_reason(job.held))
    if job.eligible > now:
        return JobCheck("nothing holds it back", False, f"it may start from {iso(job.eligible)} on")
    if job.reservation is None:
        return JobCheck("nothing holds it back", True, f"it may start since {iso(job.eligible)}")
    if job.reservation not in nodes.reserved.named:
        return JobCheck(
            "nothing holds it back", False, f"there is no reservation {job.reservation}"
        )
    reserved, _ = nodes.reserved.named[job.reservation]
    when = f"reservation {reserved.name} is from {iso(reserved.begin)} to {iso(reserved.end)}"
    if not reserved.is_for(job.user, job.account):
        return JobCheck("nothing holds it back", False, f"{when}, for others")
    return JobCheck(
        "nothing holds it back",
        reserved.is_active(now) or (reserved.flexible and not reserved.is_over(now)),
        when,
    )


def _partition(job: PendingJob, nodes: Nodes, name: str) -> JobCheck:
    wrong = exclusion_reason(job, nodes.cluster, name, shortest=True)
    return JobCheck(
        f"partition {name} takes it",
        wrong is None,
        "within its limits" if wrong is None else explain_reason(wrong),
    )


def _able(nodes: Nodes, entry: QueueEntry, found: FilteredNodes) -> JobCheck:
    """Whether there are nodes at all that would do."""
    request, lasting = (
        placement_request(nodes, entry),
        [each for each in found.excluded if each.lasting],
    )
    said = [
        f"{found.able.bit_count():,} of {entry.nodes.bit_count():,} would do, and it wants {least_nodes(nodes, entry, found):,}"
    ]
    said += [f"{each.cause}: {nodes.cluster.names(each.nodes)}" for each in lasting]
    fits = nodes.places.ever(request)
    if not fits and found.able.bit_count() >= request.least:
        said.append("but not together, with all that it asks for")
    return JobCheck(f"nodes of {entry.rules.name} that would do", fits, "; ".join(said))


def _free(snapshot: OnNodes, entry: QueueEntry, found: FilteredNodes) -> JobCheck:
    """Whether enough of those are free."""
    nodes = snapshot.machine
    names, wants = nodes.cluster.names, least_nodes(nodes, entry, found)
    request, fitting = placement_request(nodes, entry), found.fitting.bit_count()
    tasks = int(nodes.room.tasks(request.demand)[node_set.places(found.fitting)].sum())
    said = [f"{fitting:,} are free now, and it wants {wants:,}"]
    if fitting >= wants and tasks < request.tasks:
        said.append(f"they have room for {tasks:,} of its {request.tasks:,} tasks")
    said += [f"{each.cause}: {names(each.nodes)}" for each in found.excluded if not each.lasting]
    if ends := [job.ends for job in snapshot.running if job.placement.nodes & found.able]:
        said.append(f"the first job there ends by {iso(min(ends))}, the last by {iso(max(ends))}")
    return JobCheck(
        f"nodes of {entry.rules.name} that are free",
        fitting >= wants and tasks >= request.tasks,
        "; ".join(said),
    )


def _limits(nodes: Nodes, job: PendingJob, name: str) -> JobCheck:
    held = nodes.limits.holds(job, name)
    return JobCheck(
        f"limits in {name}",
        held is None,
        "none is reached" if held is None else f"{held}: {explain_reason(held)}",
    )


def _turn(view: JobView, *, held: bool) -> JobCheck:
    """Whether it has a turn, and somebody is before it."""
    if not view.queued:
        since = "something holds it back" if held else "no partition takes it"
        return JobCheck("its turn", False, f"it has no place in the queue as long as {since}")
    if not view.ahead:
        return JobCheck("its turn", True, "nobody who wants its nodes is ahead")
    first = view.planned.get(view.ahead[0])
    when = f", for which room is kept at {iso(first.at)}" if first is not None else ""
    others = f" and {len(view.ahead) - 1:,} more" if len(view.ahead) > 1 else ""
    return JobCheck(
        "its turn",
        False,
        f"ahead {'are' if others else 'is'} job {view.names[view.ahead[0]]}{when}{others}",
    )
