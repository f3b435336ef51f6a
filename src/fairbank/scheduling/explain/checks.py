"""Checks that a job must pass before it starts, each with its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from fairbank.core.time import iso
from fairbank.core.units import show_shortfall, show_su
from fairbank.scheduling.explain.answer import BankRefusal, JobCheck
from fairbank.scheduling.explain.dependencies import OpenDependencies, dependency_check
from fairbank.scheduling.explain.job_view import FilteredNodes, JobView
from fairbank.scheduling.explain.rule_checks import (
    limit_checks,
    partition_checks,
    requested_nodes_check,
)
from fairbank.scheduling.machines.node_snapshot import OnNodes
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.search import usable_gpus
from fairbank.scheduling.reason import explain_reason
from fairbank.scheduling.slurm.queue_order import QueueEntry, placement_request

SHORT = "INSUFFICIENT_CREDIT"
"""The bank's code for too little credit."""


class JobCredit(msgspec.Struct, frozen=True, kw_only=True):
    """Credit in SU-minutes: the hold when the job starts, and what is available.

    `reason`, `detail` and `remedies` are the code, message and remedies of the refusal that the job
    would get; None and empty if it can be paid. `accepted`: the bank lets the job start, if with a
    reason because it only observes. `longest_seconds`: longest time limit that the credit pays.
    """

    project: str
    resource: str
    requested: int
    available: int
    accepted: bool = False
    reason: str | None = None
    detail: str | None = None
    remedies: tuple[str, ...] = ()
    longest_seconds: int = 0

    @property
    def is_enough(self) -> bool:
        return self.accepted or self.reason is None

    @property
    def evidence(self) -> str:
        """Hold that the job needs, beside what its project has."""
        payer = f"{self.project}/{self.resource}"
        hold = f"a hold of {show_su(self.requested)} SU"
        available = f"available {show_su(self.available)} of {payer}"
        if self.reason is None:
            return f"{hold}, {available}"
        if self.reason == SHORT:
            short = show_shortfall(self.requested, self.available)
            text = f"{hold}, {available}: short by {short} SU"
        else:
            # The message has the figures that count for this reason.
            text = f"{hold} of {payer}: {(self.detail or self.reason).removesuffix('.')}"
        return f"{text}, which the bank only observes" if self.accepted else text


def credit_check(credit: JobCredit) -> JobCheck:
    """Check that the bank can pay for the job now."""
    return JobCheck("credit", credit.is_enough, f"needs {credit.evidence}")


def job_checks(
    view: JobView,
    *,
    credit: JobCredit | None,
    awaiting: OpenDependencies | None,
    refusal: BankRefusal | None,
) -> Iterator[JobCheck]:
    """Yield the checks: may it start, partitions, nodes, limits, credit, position.

    Args:
        view: the pending job, and all that it must pass.
        credit: credit for the job; None leaves its check out.
        awaiting: dependencies that are still open; None leaves their check out.
        refusal: refusal by the bank; None: it refused nothing.
    """
    job, nodes = view.job, view.snapshot.machine
    may_start = _eligible_check(job, nodes, view.now)
    if refusal is not None and refusal.held_as is not None:
        may_start = JobCheck("eligible", False, "the bank refused its start and holds it")
    yield may_start
    if awaiting is not None:
        yield dependency_check(awaiting)
    for name in job.partitions:
        yield from partition_checks(job, nodes, name)
    for entry, filtered in view.filtered:
        if job.wanted.required:
            yield requested_nodes_check(nodes, entry, filtered)
        yield _suitable_nodes_check(nodes, entry, filtered)
        yield _free_nodes_check(view.snapshot, entry, filtered)
    for name in job.partitions:
        yield from limit_checks(view, name)
    if credit is not None:
        yield credit_check(credit)
    yield _position_check(view, held=not may_start.ok)


def least_nodes(nodes: Nodes, entry: QueueEntry, filtered: FilteredNodes) -> int:
    """Return how many nodes the job needs: as requested, and enough for its tasks and GPUs.

    Args:
        nodes: all nodes of the cluster.
        entry: the job in one of its partitions.
        filtered: nodes of that partition, of which those count that the job could use at some time.
    """
    request = placement_request(nodes, entry)
    empty, places = nodes.search.empty, node_set.places(filtered.suitable)
    count = _fewest(empty.tasks(request.demand)[places].tolist(), request.tasks)
    if request.gpus is not None:
        gpus_by_node = usable_gpus(empty, request.gpus.type, request.demand)[places].tolist()
        count = max(count, _fewest(gpus_by_node, request.gpus.number))
    return max(request.least, count)


def _fewest(amounts: Iterable[int], needed: int) -> int:
    """Return how many of these amounts make up what is needed; all if they do not."""
    count = 0
    for amount in sorted(amounts, reverse=True):
        if needed <= 0:
            break
        count, needed = count + 1, needed - amount
    return count


def _eligible_check(job: PendingJob, nodes: Nodes, now: int) -> JobCheck:
    if job.held is not None:
        return JobCheck("eligible", False, explain_reason(job.held))
    if job.eligible > now:
        return JobCheck("eligible", False, f"from {iso(job.eligible)} on")
    if job.reservation is None:
        return JobCheck("eligible", True, f"since {iso(job.eligible)}")
    if job.reservation not in nodes.reservations.named:
        return JobCheck("eligible", False, f"there is no reservation {job.reservation}")
    reserved, _ = nodes.reservations.named[job.reservation]
    when = f"reservation {reserved.name} is from {iso(reserved.begin)} to {iso(reserved.end)}"
    if not reserved.is_for(job.user, job.account):
        return JobCheck("eligible", False, f"{when}, for others")
    is_open = reserved.is_active(now) or (reserved.flexible and not reserved.is_over(now))
    return JobCheck("eligible", is_open, when)


def _suitable_nodes_check(nodes: Nodes, entry: QueueEntry, filtered: FilteredNodes) -> JobCheck:
    """Check that suitable nodes exist."""
    request = placement_request(nodes, entry)
    permanent = [exclusion for exclusion in filtered.excluded if exclusion.is_permanent]
    evidence = [
        f"{filtered.suitable.bit_count():,} of {entry.nodes.bit_count():,} are suitable, and it"
        f" needs {least_nodes(nodes, entry, filtered):,}"
    ]
    evidence += [
        f"{exclusion.cause}: {nodes.cluster.names(exclusion.nodes)}" for exclusion in permanent
    ]
    fits = nodes.search.can_ever_fit(request)
    if not fits and filtered.suitable.bit_count() >= request.least:
        evidence.append("but not together with the whole request")
    return JobCheck(f"suitable nodes in {entry.rules.name}", fits, "; ".join(evidence))


def _free_nodes_check(snapshot: OnNodes, entry: QueueEntry, filtered: FilteredNodes) -> JobCheck:
    """Check that enough suitable nodes are free."""
    nodes = snapshot.machine
    names, needed = nodes.cluster.names, least_nodes(nodes, entry, filtered)
    request, fitting = placement_request(nodes, entry), filtered.fitting.bit_count()
    tasks = int(nodes.free.tasks(request.demand)[node_set.places(filtered.fitting)].sum())
    evidence = [f"{fitting:,} are free now, and it needs {needed:,}"]
    if fitting >= needed and tasks < request.tasks:
        evidence.append(f"{tasks:,} of its {request.tasks:,} tasks fit on them")
    evidence += [
        f"{exclusion.cause}: {names(exclusion.nodes)}"
        for exclusion in filtered.excluded
        if not exclusion.is_permanent
    ]
    if ends := [job.ends for job in snapshot.running if job.placement.nodes & filtered.suitable]:
        evidence.append(
            f"the first job there ends by {iso(min(ends))}, the last by {iso(max(ends))}"
        )
    return JobCheck(
        f"free nodes in {entry.rules.name}",
        fitting >= needed and tasks >= request.tasks,
        "; ".join(evidence),
    )


def _position_check(view: JobView, *, held: bool) -> JobCheck:
    """Check that the job is in the queue and no job is ahead."""
    if not view.is_queued:
        since = "it is held" if held else "no partition accepts it"
        return JobCheck("no job ahead", False, f"it is not in the queue while {since}")
    if not view.ahead:
        return JobCheck("no job ahead", True, "no other job wants its nodes first")
    first = view.reservations.get(view.ahead[0])
    when = f" with a reserved start at {iso(first.at)}" if first is not None else ""
    others = f" and {len(view.ahead) - 1:,} more" if len(view.ahead) > 1 else ""
    return JobCheck("no job ahead", False, f"job {view.names[view.ahead[0]]}{when}{others}")
