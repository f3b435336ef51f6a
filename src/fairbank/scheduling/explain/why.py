"""Why one job waits, put together from what a pass decided and from what the pass looked at."""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.scheduling.admission import outside
from fairbank.scheduling.explain.answer import Check, Why
from fairbank.scheduling.explain.conditions import Dependency, Funds, credit, depends
from fairbank.scheduling.explain.sieve import Sifted, sift
from fairbank.scheduling.nodes import Nodes
from fairbank.scheduling.on_nodes import OnNodes, carried_out
from fairbank.scheduling.order import Entry, entries, requested
from fairbank.scheduling.pending import Pending
from fairbank.scheduling.placement import nodeset
from fairbank.scheduling.placement.room import Placement
from fairbank.scheduling.plan import PRIORITY, RESOURCES, Plan, Planned
from fairbank.scheduling.reason import sentence
from fairbank.values.time import iso
from fairbank.values.trouble import Unknown


def why(
    snapshot: OnNodes,
    plan: Plan[Pending, Placement],
    number: int,
    now: int,
    *,
    funds: Funds | None = None,
    dependencies: Sequence[Dependency] | None = None,
    any_of: bool = False,
) -> Why:
    """`plan` is what a pass made of the snapshot. Raises Unknown for a job that does not wait there.

    `funds` and `dependencies` are judged where somebody knows them; `any_of`: one of these is enough.
    """
    nodes = snapshot.machine
    job = next((each for each in snapshot.queue.jobs() if each.number == number), None)
    if job is None or any(start.job.number == number for start in plan.starts):
        raise Unknown(f"job {number} does not wait", field="job", remedy="look among the jobs that run or have ended")
    starts = {start.job.number for start in plan.starts}
    order = [entry for entry in entries(nodes, snapshot.queue.jobs(), now, shortest=True)[0] if entry.job.number not in starts]
    mine = [entry for entry in order if entry.job.number == number and not entry.soft]
    numbers = list(dict.fromkeys(entry.job.number for entry in order))
    ahead = _ahead(order, mine)
    planned = {each.job.number: each for each in plan.planned}
    code, checks = plan.why(number), [_may_start(job, nodes, now)]
    checks += [depends(dependencies, any_of=any_of)] if dependencies is not None else []
    checks += [_partition(job, nodes, name) for name in job.partitions]
    after = carried_out(snapshot, plan, now)
    before = [planned[each] for each in ahead if each in planned]
    sifted = [(entry, sift(after.machine, entry, before, now)) for entry in mine]
    for entry, found in sifted:
        checks += [_able(after.machine, entry, found), _free(after, entry, found)]
    checks += [_limits(after.machine, job, name) for name in job.partitions]
    checks += [credit(funds)] if funds is not None else []
    names = {entry.job.number: entry.job.name for entry in order}
    checks.append(_turn(ahead, planned, names))
    headline = _headline(job, code, after.machine, sifted, [names[each] for each in ahead], planned.get(number))
    if funds is not None and not funds.enough:
        headline += f" The bank would not let it start: it needs {funds.said}."
    return Why(
        number=number,
        code=code,
        headline=headline,
        checks=tuple(checks),
        position=numbers.index(number) + 1 if number in numbers else None,
        ahead=ahead,
        waiting=len(numbers),
        expected=planned[number].at if number in planned else None,
    )


def _ahead(order: list[Entry], mine: list[Entry]) -> tuple[int, ...]:
    """Whoever stands before its last entry and wants nodes that it could have."""
    if not mine:
        return ()
    nodes = mine[0].nodes
    for entry in mine[1:]:
        nodes |= entry.nodes
    upto, own = order.index(mine[-1]), mine[0].job.number
    return tuple(dict.fromkeys(each.job.number for each in order[:upto] if each.nodes & nodes and each.job.number != own))


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
    return Check("nothing holds it back", reserved.running(now) or (reserved.flexible and not reserved.over(now)), when)


def _partition(job: Pending, nodes: Nodes, name: str) -> Check:
    wrong = outside(job, nodes.cluster, name, shortest=True)
    return Check(f"partition {name} takes it", wrong is None, "within its limits" if wrong is None else sentence(wrong))


def _needed(nodes: Nodes, entry: Entry, found: Sifted) -> int:
    """How many nodes it needs at least: as many as it asks for, and enough for its tasks if nobody else were there."""
    request = requested(nodes, entry)
    room = nodes.places.empty.tasks(request.demand)[nodeset.places(found.able)]
    left, tasks = 0, 0
    for fits in sorted(room.tolist(), reverse=True):
        if tasks >= request.tasks:
            break
        left, tasks = left + 1, tasks + fits
    return max(request.least, left)


def _able(nodes: Nodes, entry: Entry, found: Sifted) -> Check:
    """Whether there are nodes at all that would do."""
    request, lasting = requested(nodes, entry), [each for each in found.excluded if each.lasting]
    said = [f"{found.able.bit_count():,} of {entry.nodes.bit_count():,} would do, and it wants {_needed(nodes, entry, found):,}"]
    said += [f"{each.cause}: {nodes.cluster.names(each.nodes)}" for each in lasting]
    fits = nodes.places.ever(request)
    if not fits and found.able.bit_count() >= request.least:
        said.append("but not together, with all that it asks for")
    return Check(f"nodes of {entry.rules.name} that would do", fits, "; ".join(said))


def _free(snapshot: OnNodes, entry: Entry, found: Sifted) -> Check:
    """Whether enough of those are free."""
    nodes = snapshot.machine
    names, needed = nodes.cluster.names, _needed(nodes, entry, found)
    request, fitting = requested(nodes, entry), found.fitting.bit_count()
    tasks = int(nodes.room.tasks(request.demand)[nodeset.places(found.fitting)].sum())
    said = [f"{fitting:,} are free now, and it wants {needed:,}"]
    if fitting >= needed and tasks < request.tasks:
        said.append(f"they have room for {tasks:,} of its {request.tasks:,} tasks")
    said += [f"{each.cause}: {names(each.nodes)}" for each in found.excluded if not each.lasting]
    if ends := [job.ends for job in snapshot.running if job.placement.nodes & found.able]:
        said.append(f"the first job there ends by {iso(min(ends))}, the last by {iso(max(ends))}")
    return Check(f"nodes of {entry.rules.name} that are free", fitting >= needed and tasks >= request.tasks, "; ".join(said))


def _limits(nodes: Nodes, job: Pending, name: str) -> Check:
    held = nodes.limits.holds(job, name)
    return Check(f"limits in {name}", held is None, "none is reached" if held is None else f"{held}: {sentence(held)}")


def _turn(ahead: tuple[int, ...], planned: dict[int, Planned[Pending, Placement]], names: dict[int, str]) -> Check:
    """Whether somebody is before it."""
    if not ahead:
        return Check("its turn", True, "nobody who wants its nodes is ahead")
    first = planned.get(ahead[0])
    when = f", for which room is kept at {iso(first.at)}" if first is not None else ""
    others = f" and {len(ahead) - 1:,} more" if len(ahead) > 1 else ""
    return Check("its turn", False, f"ahead {'are' if others else 'is'} job {names[ahead[0]]}{when}{others}")


def _headline(
    job: Pending,
    code: str,
    nodes: Nodes,
    sifted: list[tuple[Entry, Sifted]],
    ahead: list[str],
    planned: Planned[Pending, Placement] | None,
) -> str:
    """The reason, with the figures of this job where it is about nodes or about others."""
    expected = f" Room is kept for it at {iso(planned.at)}." if planned is not None else ""
    if code == RESOURCES and sifted:
        entry, found = max(sifted, key=lambda each: each[1].fitting.bit_count())
        free, able, least = found.fitting.bit_count(), found.able.bit_count(), _needed(nodes, entry, found)
        many = "1 node" if least == 1 else f"{least:,} nodes"
        return f"Job {job.name} waits for {many}: {free:,} of the {able:,} that would do are free now ({code}).{expected}"
    if code == PRIORITY and ahead:
        some = f"job {ahead[0]}" if len(ahead) == 1 else f"{len(ahead):,} jobs, first of them job {ahead[0]}"
        return f"Job {job.name} waits behind {some} ({code}).{expected}"
    return f"Job {job.name} waits: {sentence(code).removesuffix('.')} ({code}).{expected}"
