"""Every check that a job has to pass before it starts, each with what was found."""

from __future__ import annotations

from collections.abc import Iterator

from fairbank.scheduling.admission import outside
from fairbank.scheduling.explain.answer import Check
from fairbank.scheduling.explain.dependencies import (Awaiting, depends)
from fairbank.scheduling.explain.funds import Funds, credit
from fairbank.scheduling.explain.node_filter import Sifted
from fairbank.scheduling.explain.job_view import View
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.machines.node_snapshot import OnNodes
from fairbank.scheduling.slurm.queue_order import (Entry, requested)
from fairbank.scheduling.pending_job import Pending
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.reason import sentence
from fairbank.core.time import iso


def evidence(view: View, *, funds: Funds | None, awaiting: Awaiting | None) -> Iterator[Check]:
    """In the order in which it has to pass them: may it start at all, would nodes do and are they free, limits, credit, its turn."""
    job, nodes = view.job, view.there.machine
    may_start = _may_start(job, nodes, view.now)
    yield may_start
    if awaiting is not None:
        yield depends(awaiting)
    for name in job.partitions:
        yield _partition(job, nodes, name)
    for entry, found in view.sifted:
        yield _able(nodes, entry, found)
        yield _free(view.there, entry, found)
    for name in job.partitions:
        yield _limits(nodes, job, name)
    if funds is not None:
        yield credit(funds)
    yield _turn(view, held=not may_start.ok)


def needed(nodes: Nodes, entry: Entry, found: Sifted) -> int:
    """How many nodes it needs at least: as many as it asks for, and enough for its tasks if nobody else were there."""
    request = requested(nodes, entry)
    room = nodes.places.empty.tasks(request.demand)[node_set.places(found.able)]
    left, tasks = 0, 0
    for fits in sorted(room.tolist(), reverse=True):
        if tasks >= request.tasks:
            break
        left, tasks = left + 1, tasks + fits
    return max(request.least, left)


def _may_start(job: Pending, nodes: Nodes, now: int) -> Check:
    if job.held is not None:
        return Check("nothing holds it back", False, sentence(job.held))
    if job.eligible > now:
        return Check("nothing holds it back", False, f"it may start from {iso(job.eligible)} on")
    if job.reservation is None:
        return Check("nothing holds it back", True, f"it may start since {iso(job.eligible)}")
    if job.reservation not in nodes.reserved.named:
        return Check("nothing holds it back", False, f"there is no reservation {job.reservation}")
    reserved, _ = nodes.reserved.named[job.reservation]
    when = f"reservation {reserved.name} is from {iso(reserved.begin)} to {iso(reserved.end)}"
    if not reserved.is_for(job.user, job.account):
        return Check("nothing holds it back", False, f"{when}, for others")
    return Check(
        "nothing holds it back",
        reserved.running(now) or (reserved.flexible and not reserved.over(now)),
        when,
    )


def _partition(job: Pending, nodes: Nodes, name: str) -> Check:
    wrong = outside(job, nodes.cluster, name, shortest=True)
    return Check(
        f"partition {name} takes it",
        wrong is None,
        "within its limits" if wrong is None else sentence(wrong),
    )


def _able(nodes: Nodes, entry: Entry, found: Sifted) -> Check:
    """Whether there are nodes at all that would do."""
    request, lasting = requested(nodes, entry), [each for each in found.excluded if each.lasting]
    said = [
        f"{found.able.bit_count():,} of {entry.nodes.bit_count():,} would do, and it wants {needed(nodes, entry, found):,}"
    ]
    said += [f"{each.cause}: {nodes.cluster.names(each.nodes)}" for each in lasting]
    fits = nodes.places.ever(request)
    if not fits and found.able.bit_count() >= request.least:
        said.append("but not together, with all that it asks for")
    return Check(f"nodes of {entry.rules.name} that would do", fits, "; ".join(said))


def _free(snapshot: OnNodes, entry: Entry, found: Sifted) -> Check:
    """Whether enough of those are free."""
    nodes = snapshot.machine
    names, wants = nodes.cluster.names, needed(nodes, entry, found)
    request, fitting = requested(nodes, entry), found.fitting.bit_count()
    tasks = int(nodes.room.tasks(request.demand)[node_set.places(found.fitting)].sum())
    said = [f"{fitting:,} are free now, and it wants {wants:,}"]
    if fitting >= wants and tasks < request.tasks:
        said.append(f"they have room for {tasks:,} of its {request.tasks:,} tasks")
    said += [f"{each.cause}: {names(each.nodes)}" for each in found.excluded if not each.lasting]
    if ends := [job.ends for job in snapshot.running if job.placement.nodes & found.able]:
        said.append(f"the first job there ends by {iso(min(ends))}, the last by {iso(max(ends))}")
    return Check(
        f"nodes of {entry.rules.name} that are free",
        fitting >= wants and tasks >= request.tasks,
        "; ".join(said),
    )


def _limits(nodes: Nodes, job: Pending, name: str) -> Check:
    held = nodes.limits.holds(job, name)
    return Check(
        f"limits in {name}",
        held is None,
        "none is reached" if held is None else f"{held}: {sentence(held)}",
    )


def _turn(view: View, *, held: bool) -> Check:
    """Whether it has a turn, and somebody is before it."""
    if not view.queued:
        since = "something holds it back" if held else "no partition takes it"
        return Check("its turn", False, f"it has no place in the queue as long as {since}")
    if not view.ahead:
        return Check("its turn", True, "nobody who wants its nodes is ahead")
    first = view.planned.get(view.ahead[0])
    when = f", for which room is kept at {iso(first.at)}" if first is not None else ""
    others = f" and {len(view.ahead) - 1:,} more" if len(view.ahead) > 1 else ""
    return Check(
        "its turn",
        False,
        f"ahead {'are' if others else 'is'} job {view.names[view.ahead[0]]}{when}{others}",
    )
