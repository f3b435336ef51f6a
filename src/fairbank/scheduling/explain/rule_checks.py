"""Checks of the rules that keep a job from its nodes: partitions, limits, and nodes that it names.
Each has the figures that are compared.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from fairbank.core.time import show_duration
from fairbank.scheduling.explain.answer import JobCheck
from fairbank.scheduling.explain.job_view import FilteredNodes, JobView
from fairbank.scheduling.machines.nodes import LimitCheck, Nodes
from fairbank.scheduling.machines.partition_access import (
    TIME_LIMIT,
    PartitionTest,
    Subject,
    exclusion_reason,
    partition_tests,
)
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.search import find_placement
from fairbank.scheduling.reason import explain_reason
from fairbank.scheduling.slurm.queue_order import QueueEntry, placement_request


def partition_checks(job: PendingJob, nodes: Nodes, name: str) -> Iterator[JobCheck]:
    """Yield whether a partition accepts the job, and the test of each setting that it has.

    Args:
        job: the pending job.
        nodes: nodes with their partitions.
        name: name of a partition that the job requested; it need not exist any more.
    """
    what = f"partition {name} accepts it"
    if name not in nodes.cluster.rules:
        yield JobCheck(what, False, "there is no such partition any more")
        return
    reason = exclusion_reason(job, nodes.cluster, name, by_least_time=True)
    evidence = "within its limits" if reason is None else explain_reason(reason)
    yield JobCheck(what, reason is None, evidence)
    for test in _partition_tests(job, nodes, name):
        figures, passes = partition_figures(test), test.reason is None
        if test.subject is not Subject.FAIR_SHARE:
            yield JobCheck(f"{test.setting} of {name}", passes, figures)
        elif name == job.partitions[0]:  # it is the same in each partition
            yield JobCheck(f"{test.setting} of QOS {job.qos}", passes, figures)


def limit_checks(view: JobView, name: str) -> Iterator[JobCheck]:
    """Yield whether limits hold the job in a partition, and the test of each other limit."""
    checks = _limit_tests(view, name)
    first = next((check for check in checks if check.reason is not None), None)
    if first is not None:
        yield _limit_check(f"limits in {name}", first)
    else:
        yield JobCheck(f"limits in {name}", True, "none is reached")
    for check in checks:
        if check is not first:
            yield _limit_check(f"another limit in {name}", check)


def _limit_check(what: str, check: LimitCheck) -> JobCheck:
    reason = "" if check.reason is None else f"{check.reason}: "
    return JobCheck(what, check.reason is None, f"{reason}{check.figures}")


def requested_nodes_check(nodes: Nodes, entry: QueueEntry, filtered: FilteredNodes) -> JobCheck:
    """Check that the job can use now the nodes that it names (--nodelist).

    Args:
        nodes: all nodes of the cluster.
        entry: the job in one of its partitions.
        filtered: nodes of that partition, with the causes why the job cannot use some.
    """
    required = placement_request(nodes, entry).required
    missing = node_set.without(required, filtered.fitting)
    names = nodes.cluster.names
    return JobCheck(
        f"requested nodes in {entry.rules.name}",
        not missing,
        "; ".join(_unusable_nodes(nodes, entry, filtered, missing))
        or f"{names(required)} can be used now",
    )


def reason_figures(view: JobView) -> str | None:
    """Return the figures behind the reason of the job as a clause; None if it has none."""
    for name in view.job.partitions:
        for test in _partition_tests(view.job, view.snapshot.machine, name):
            if test.reason == view.code:
                is_qos = test.subject is Subject.FAIR_SHARE
                whose = f"QOS {view.job.qos}" if is_qos else f"partition {name}"
                return f"{test.setting} of {whose} is {partition_figures(test)}"
        for check in _limit_tests(view, name):
            if check.reason == view.code:
                return str(check.figures)
    return None


def longest_limit_remedy(view: JobView) -> str | None:
    """Return the command with the longest time limit that one of its partitions allows a job whose
    limit is too long for all of them; None if that is not what it waits for.
    """
    if view.code != TIME_LIMIT:
        return None
    job, nodes, longest = view.job, view.snapshot.machine, dict[int, str]()
    for name in job.partitions:
        tests = [test for test in _partition_tests(job, nodes, name) if test.reason is not None]
        seconds = nodes.cluster.rules[name].max_seconds if tests else None
        if seconds is None or {test.reason for test in tests} != {TIME_LIMIT}:
            continue
        shorter = msgspec.structs.replace(job, limit=seconds, time_min=None)
        # A limit on wall time may be lower still.
        if all("Wall" not in (check.reason or "") for check in nodes.limits.checks(shorter, name)):
            longest.setdefault(seconds, name)
    if not longest:
        return None
    limit = max(longest)
    return (
        f"scontrol update jobid={job.array or job.name} timelimit={show_duration(limit)}, the"
        f" longest limit that partition {longest[limit]} allows"
    )


def requested_nodes(view: JobView) -> str | None:
    """Return what keeps the nodes that the job names from it in its partitions, besides jobs ahead;
    None if nothing does in one of them.
    """
    nodes, evidence = view.snapshot.machine, list[str]()
    for entry, filtered in view.filtered:
        required = placement_request(nodes, entry).required
        missing = node_set.without(required, filtered.fitting)
        for exclusion in filtered.excluded:
            if exclusion.is_by_order:
                missing = node_set.without(missing, exclusion.nodes)
        if not missing:
            return None
        evidence += _unusable_nodes(nodes, entry, filtered, missing)
    return "; ".join(dict.fromkeys(evidence)) or None


def _partition_tests(job: PendingJob, nodes: Nodes, name: str) -> Iterator[PartitionTest]:
    if name in nodes.cluster.rules:
        yield from partition_tests(job, nodes.cluster, name, by_least_time=True)


_SENTENCES = {
    Subject.STATE: "{allowed}",
    Subject.CPUS: "{allowed} for all of its jobs, and this job asks for {requested} in all",
    Subject.MEMORY: "{allowed} MiB, and this job asks for {requested} MiB",
    Subject.RESERVATION: "{allowed}, and the reservation of this job is {requested}",
    Subject.USER: "{allowed}, and the user of this job is {requested}",
    Subject.HOST: "{allowed}, and this job comes from {requested}",
    Subject.QOS: "{allowed}, and the QOS of this job is {requested}",
    Subject.ACCOUNT: "{allowed}, and the account of this job is {requested}",
    Subject.GROUPS: "{allowed}, and the groups of its user are {requested}",
    # Of the association, times PriorityWeightFairshare if that is not 0: see slurm-rules.md.
    Subject.FAIR_SHARE: "{allowed}, and the fair share of this job by its weight is {requested}",
}


def partition_figures(test: PartitionTest) -> str:
    """Return what is allowed, and what the job has of it."""

    def show(amount: float | str | tuple[str, ...]) -> str:
        if isinstance(amount, tuple):
            return ",".join(amount)
        if isinstance(amount, str):
            return amount
        if test.subject is Subject.SECONDS:
            return show_duration(int(amount))
        if test.subject is Subject.FAIR_SHARE:
            return f"{amount:,.6f}".rstrip("0").rstrip(".")
        return str(amount)

    sentence = _SENTENCES.get(test.subject, "{allowed}, and this job asks for {requested}")
    ignored = f"; its QOS overrides this ({test.flag})" if test.flag else ""
    return f"{sentence.format(allowed=show(test.allowed), requested=show(test.requested))}{ignored}"


def _limit_tests(view: JobView, name: str) -> list[LimitCheck]:
    """Return the tests of limits: on the nodes that the job would get now, as slurmctld counts what
    is allocated; without such nodes, of what it requests.
    """
    nodes = view.snapshot.machine
    tests = list(nodes.limits.checks(view.job, name))
    if any(test.reason is not None for test in tests):
        return tests
    for entry, filtered in view.filtered:
        if entry.rules.name == name:
            request = placement_request(nodes, entry)
            placement = find_placement(nodes.cluster, nodes.free, request, filtered.fitting)
            if placement is not None:
                return list(nodes.limits.checks(view.job, name, placement))
    # The pass tested the limit on nodes that the job gets later: how many are new to their owner
    # depends on them.
    return [
        LimitCheck(view.code, test.figures)
        if getattr(test.figures, "reason", None) == view.code
        else test
        for test in tests
    ]


def _unusable_nodes(
    nodes: Nodes, entry: QueueEntry, filtered: FilteredNodes, missing: NodeSet
) -> Iterator[str]:
    """Yield why the job cannot use some nodes now: their names, the cause, and the reason that the
    administrator gave.
    """
    cluster = nodes.cluster
    if outside := node_set.without(missing, entry.nodes):
        yield f"{cluster.names(outside)}: not in partition {entry.rules.name}"
    for exclusion in filtered.excluded:
        by_reason = dict[str, NodeSet]()
        for place in node_set.each(exclusion.nodes & missing):
            node = cluster.nodes[place]
            reason = "" if node.state.is_usable else node.reason
            by_reason[reason] = by_reason.get(reason, node_set.NO_NODES) | node_set.one(place)
        for reason, affected in by_reason.items():
            yield f"{cluster.names(affected)}: {exclusion.cause}{reason and f', {reason}'}"
