"""Changes of a job's request that may start it earlier on nodes: another partition or QOS, less
memory, shared nodes, a shorter limit, fewer CPUs, GPUs or nodes.
"""

from __future__ import annotations

import shlex
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import msgspec

from fairbank.cluster.node import Gpus
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.scheduling.explain.answer import EarlierStartAdvice, NoStartRange, StartRange
from fairbank.scheduling.explain.deadline import latest_start
from fairbank.scheduling.explain.earlier_start import (
    Candidate,
    find_earlier_start,
    largest_amount,
    request_change,
    shorter_limit,
    soonest_known,
)
from fairbank.scheduling.machines.node_snapshot import OnNodes, replace_job
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.slurm.passes import run_passes

replace = msgspec.structs.replace

FEWER_CPUS, FEWER_GPUS, FEWER_NODES = "fewer CPUs", "fewer GPUs", "fewer nodes"
"""Names of searches among the changes that were tried."""


class AllowedChanges:
    """Changes that the site lets a job make. By default all but another QOS."""

    def partitions(self, job: PendingJob, name: str) -> tuple[str, ...] | None:
        """Return the partitions to request so that a job may also, or only, run in another one;
        None if it may not.
        """
        return (*job.partitions, name)

    def with_other_qos(self, job: PendingJob) -> Iterable[PendingJob]:
        """Return the job with each other QOS that it may have."""
        return ()

    def is_accepted(self, job: PendingJob) -> bool:
        """Return True if the job would be accepted with this request at its start."""
        return True


def suggest_earlier_start(
    snapshot: OnNodes,
    parameters: SchedulerParameters,
    plan: SchedulePlan[PendingJob, Placement],
    number: int,
    now: int,
    allowed: AllowedChanges | None = None,
    likely: StartRange | NoStartRange | None = None,
) -> EarlierStartAdvice:
    """Return the one change that starts the job earliest, and earlier than `plan` and than half of
    the simulated runs do; of equal ones the smallest sacrifice. Nothing is tried for a held job.

    Each change takes one pass over the whole queue with the job changed, so that it delays no job
    ahead.

    Args:
        snapshot: machine, queue and running jobs.
        parameters: SchedulerParameters of slurm.conf.
        plan: plan of the passes without a change.
        now: time in seconds since 1970.
        allowed: the changes that the site lets the job make.
        likely: range of the simulated runs without a change.
    """
    job, allowed = snapshot.queue.job(number), allowed or AllowedChanges()
    if job is None or job.held is not None:
        return EarlierStartAdvice(None, ())
    expected = soonest_known(_start(plan, number, now), likely)

    def start(changed: PendingJob) -> int | None:
        at = _start(run_passes(replace_job(snapshot, changed), parameters, now), number, now)
        latest = latest_start(changed, snapshot.machine.cluster)
        if at is not None and latest is not None and at > latest:
            return None  # slurmctld would remove the job (DeadLine)
        is_earlier = at is not None and (expected is None or at < expected)
        # Only a change that helps is worth the question, which may go to another host.
        return None if is_earlier and not allowed.is_accepted(changed) else at

    return find_earlier_start(expected, _candidates(job, snapshot, start, allowed))


def _start(plan: SchedulePlan[PendingJob, Placement], number: int, now: int) -> int | None:
    """Return the start of the job; None if it is unknown."""
    if any(start.job.number == number for start in plan.starts):
        return now
    return next(
        (reservation.at for reservation in plan.reservations if reservation.job.number == number),
        None,
    )


Start = Callable[[PendingJob], int | None]


def _candidates(
    job: PendingJob, snapshot: OnNodes, start: Start, allowed: AllowedChanges
) -> Iterator[Candidate]:
    """Yield the changes, the smallest sacrifice first: what the job gets stays the same, then it
    gets less time, then fewer resources.
    """
    for option, changed in _changes(job, snapshot, allowed):
        yield request_change(option, partial(start, changed))
    if job.wanted.exclusive:
        shared = with_request(job, exclusive=False)
        yield request_change("--exclusive", partial(start, shared), leaves_out=True)
    yield from shorter_limit(
        _limit(job, snapshot), lambda seconds: start(replace(job, limit=seconds, time_min=None))
    )
    for fewer in fewer_resources(job, snapshot):
        if fewer.most > fewer.least:
            yield fewer.search(snapshot, start)


def _changes(
    job: PendingJob, snapshot: OnNodes, allowed: AllowedChanges
) -> Iterator[tuple[str, PendingJob]]:
    """Yield the options to add of which there is one each."""
    wanted, memory = job.wanted, job.wanted.memory_per_node
    for name, rules in snapshot.machine.cluster.rules.items():
        is_new = name not in job.partitions and rules.can_start_jobs
        partitions = allowed.partitions(job, name) if is_new else None
        if partitions is not None:
            yield (
                f"-p {shlex.quote(','.join(partitions))}",
                replace(job, partitions=partitions, priorities=()),
            )
    for other in allowed.with_other_qos(job):
        yield f"-q {shlex.quote(other.qos)}", other
    if memory is wanted.memory_per_cpu is wanted.memory_per_gpu is None:
        least = (
            min(node.memory // max(node.cpus, 1) for node in snapshot.machine.cluster.nodes)
            * wanted.cpus_per_task
        )
        if least:  # --mem=0 would be all there is
            yield f"--mem={least}M", with_request(job, memory_per_node=least)
    elif memory is not None and memory > 1:
        yield f"--mem={memory // 2}M", with_request(job, memory_per_node=memory // 2)
    elif (by_cpu := wanted.memory_per_cpu or 0) > 1:
        yield f"--mem-per-cpu={by_cpu // 2}M", with_request(job, memory_per_cpu=by_cpu // 2)
    elif (by_gpu := wanted.memory_per_gpu or 0) > 1:
        yield f"--mem-per-gpu={by_gpu // 2}M", with_request(job, memory_per_gpu=by_gpu // 2)


def _limit(job: PendingJob, snapshot: OnNodes) -> int:
    """Return how many seconds the job may run now."""
    rules = snapshot.machine.cluster.rules
    return max((job.seconds(rules[name]) for name in job.partitions if name in rules), default=0)


# --- fewer resources ---


class FewerResources(NamedTuple):
    """Resource of which the job may request less: from `least` up to below `most`. `changed`
    returns the job with an amount, `option` the option of sbatch that requests it.
    """

    name: str
    least: int
    most: int
    changed: Callable[[int], PendingJob]
    option: Callable[[PendingJob], str]

    def search(self, snapshot: OnNodes, start: Start) -> Candidate:
        """Return the search, from the least amount that no QOS refuses (MinTRES)."""

        def is_allowed(amount: int) -> bool:
            job, limits = self.changed(amount), snapshot.machine.limits
            return any(
                not any((check.reason or "").startswith("QOSMin") for check in checks)
                for checks in (limits.checks(job, name) for name in job.partitions)
            )

        amounts = range(self.least, self.most)
        return largest_amount(
            self.name,
            self.least + bisect_left(amounts, True, key=is_allowed),
            self.most,
            lambda amount: start(self.changed(amount)),
            lambda amount: self.option(self.changed(amount)),
        )


def fewer_resources(job: PendingJob, snapshot: OnNodes) -> Iterator[FewerResources]:
    """Yield the resources of which the job may request less: CPUs, GPUs, nodes."""
    if not job.wanted.exclusive:  # else it gets whole nodes
        yield from _fewer_cpus(job)
    for at, (_, most) in enumerate(job.wanted.gpus):
        yield FewerResources(
            FEWER_GPUS,
            1,
            most,
            partial(_with_gpus, job, at),
            lambda changed: gpu_option(changed.wanted.gpus),
        )
    if (total := job.wanted.total_gpus) is not None:
        yield FewerResources(
            FEWER_GPUS,
            1,
            total.number,
            lambda number: with_request(job, total_gpus=total._replace(number=number)),
            lambda changed: gpu_option(filter(None, [changed.wanted.total_gpus]), "--gpus"),
        )
    yield _fewer_nodes(job, snapshot)


def _fewer_cpus(job: PendingJob) -> Iterator[FewerResources]:
    """Yield CPUs of each task, else tasks on each node, else tasks."""
    wanted = job.wanted
    if wanted.cpus_per_task > 1:
        yield FewerResources(
            FEWER_CPUS,
            1,
            wanted.cpus_per_task,
            partial(_with_cpus, job),
            lambda changed: f"-c {changed.wanted.cpus_per_task}",
        )
    elif wanted.tasks_per_node is not None and wanted.tasks_per_node > 1:
        yield FewerResources(
            FEWER_CPUS,
            1,
            wanted.tasks_per_node,
            partial(_with_tasks_per_node, job),
            # With the job's own -n these would need more nodes.
            lambda changed: (
                f"-n {changed.wanted.least_tasks} --ntasks-per-node={changed.wanted.tasks_per_node}"
            ),
        )
    else:
        yield FewerResources(
            FEWER_CPUS,
            wanted.nodes,
            wanted.least_tasks,
            lambda tasks: with_request(job, tasks=tasks),
            lambda changed: f"-n {changed.wanted.tasks}",
        )


def _with_cpus(job: PendingJob, cpus: int) -> PendingJob:
    return with_request(
        job,
        cpus_per_task=cpus,
        cpus_per_node=_scaled(job.wanted.cpus_per_node, cpus, job.wanted.cpus_per_task),
    )


def _with_tasks_per_node(job: PendingJob, tasks: int) -> PendingJob:
    wanted = job.wanted
    before = wanted.tasks_per_node or 1
    return with_request(
        job,
        tasks=max(wanted.nodes, _scaled(wanted.least_tasks, tasks, before)),
        tasks_per_node=tasks,
        cpus_per_node=_scaled(wanted.cpus_per_node, tasks, before),
    )


def _scaled(amount: int, number: int, of: int) -> int:
    """Return `amount` times `number` / `of`, rounded up."""
    return -(-amount * number // of)


def _with_gpus(job: PendingJob, at: int, number: int) -> PendingJob:
    """Return the job with another number of the GPUs at this place of its request."""
    gpus = list(job.wanted.gpus)
    gpus[at] = gpus[at]._replace(number=number)
    return with_request(job, gpus=tuple(gpus))


def gpu_option(gpus: Iterable[Gpus], option: str = "--gpus-per-node") -> str:
    """Return the option that requests GPUs, by default of each node."""
    listed = ",".join(f"{kind}:{number}".lstrip(":") for kind, number in gpus)
    return f"{option}={shlex.quote(listed)}"


def _fewer_nodes(job: PendingJob, snapshot: OnNodes) -> FewerResources:
    """Return nodes, with as many tasks on each as before."""
    wanted, rules = job.wanted, snapshot.machine.cluster.rules
    least = max(
        1,
        len(set(wanted.required)),
        *(rules[name].min_nodes for name in job.partitions if name in rules),
    )

    def changed(nodes: int) -> PendingJob:
        tasks = _scaled(wanted.least_tasks, nodes, wanted.nodes)
        return with_request(job, nodes=nodes, max_nodes=nodes, tasks=tasks)

    return FewerResources(
        FEWER_NODES,
        least,
        wanted.nodes,
        changed,
        lambda changed: f"-N {changed.wanted.nodes} -n {changed.wanted.tasks}",
    )


def with_request(job: PendingJob, **changes: object) -> PendingJob:
    """Return the job with another request, and the TRES that follow from it."""
    wanted = replace(job.wanted, **changes)
    return replace(job, wanted=wanted, tres=_tres(job.tres, job.wanted, wanted))


def _tres(
    tres: Mapping[str, int], before: ResourceRequest, after: ResourceRequest
) -> Mapping[str, int]:
    """Return the requested TRES after a change. What does not depend on it stays as it is."""
    counts = dict(tres)
    if "cpu" in tres:
        counts["cpu"] = _scaled(tres["cpu"], after.cpus, before.cpus)
    if "node" in tres:
        counts["node"] = after.nodes
    if "mem" in tres:
        if after.memory_per_node not in (None, before.memory_per_node):
            counts["mem"] = (after.memory_per_node or 0) * after.nodes
        elif before.memory_per_node:
            counts["mem"] = _scaled(tres["mem"], after.nodes, before.nodes)
        elif before.memory_per_gpu and after.memory_per_gpu:
            sizes = (one.gpu_count * (one.memory_per_gpu or 0) for one in (after, before))
            counts["mem"] = _scaled(tres["mem"], *sizes)
        else:
            by_cpu = (after.memory_per_cpu or 1), (before.memory_per_cpu or 1)
            counts["mem"] = _scaled(tres["mem"], after.cpus * by_cpu[0], before.cpus * by_cpu[1])
    for name in tres:
        if name.startswith("gres/") and not name.startswith("gres/gpu"):
            counts[name] = _scaled(tres[name], after.nodes, before.nodes)
    if "gres/gpu" in tres and after.gpu_count != before.gpu_count:
        counts["gres/gpu"] = after.gpu_count
    if after.gpus and (after.gpus != before.gpus or after.nodes != before.nodes):
        for kind, number in after.gpus:
            if (name := f"gres/gpu:{kind}".lower()) in tres:
                counts[name] = after.nodes * number
    return counts
