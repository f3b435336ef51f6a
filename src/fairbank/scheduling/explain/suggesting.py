"""What would start a job sooner: a shorter limit, another partition, less memory, nodes that are shared. Each was planned, not guessed."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from fairbank.scheduling.explain.answer import Suggestion
from fairbank.scheduling.on_nodes import OnNodes, with_job
from fairbank.scheduling.parameters import Parameters
from fairbank.scheduling.pending import Pending
from fairbank.scheduling.placement.room import Placement
from fairbank.scheduling.plan import Plan
from fairbank.scheduling.slurm import both
from fairbank.values.time import show_duration

MINUTE = 60


def suggest(snapshot: OnNodes, parameters: Parameters, plan: Plan[Pending, Placement], number: int, now: int) -> Suggestion | None:
    """The one change that starts the job soonest, sooner than `plan` does; of several the first that is tried. None where none does.

    Every change is one pass over the whole queue with the job changed, so that nobody ahead is delayed by it.
    """
    job = next((each for each in snapshot.queue.jobs() if each.number == number and each.held is None), None)
    if job is None:
        return None
    found, soonest = None, _start(plan, number, now)
    for option, changed in _changes(job, snapshot, parameters, now):
        at = _start(both(with_job(snapshot, changed), parameters, now), number, now)
        if at is not None and (soonest is None or at < soonest):
            found, soonest = Suggestion(option, at), at
    return found


def _start(plan: Plan[Pending, Placement], number: int, now: int) -> int | None:
    """When the job starts; None where nobody can say."""
    if any(start.job.number == number for start in plan.starts):
        return now
    return next((each.at for each in plan.planned if each.job.number == number), None)


def _changes(job: Pending, snapshot: OnNodes, parameters: Parameters, now: int) -> Iterator[tuple[str, Pending]]:
    """What may be changed, the smallest sacrifice first."""
    wanted = job.wanted
    for name, rules in snapshot.machine.cluster.rules.items():
        if name not in job.partitions and rules.up:
            yield f"-p {','.join((*job.partitions, name))}", msgspec.structs.replace(job, partitions=(*job.partitions, name), priorities=())
    if wanted.memory_per_node is None and wanted.memory_per_cpu is None:
        least = min(node.memory // max(node.cpus, 1) for node in snapshot.machine.cluster.nodes) * wanted.cpus_per_task
        if least:  # --mem=0 would be all there is
            yield f"--mem={least}M", _wanting(job, memory_per_node=least)
    elif wanted.memory_per_node is not None and wanted.memory_per_node > 1:
        yield f"--mem={wanted.memory_per_node // 2}M", _wanting(job, memory_per_node=wanted.memory_per_node // 2)
    if wanted.exclusive:
        yield "without --exclusive", _wanting(job, exclusive=False)
    if (longest := _longest(job, snapshot, parameters, now)) is not None:
        yield f"-t {show_duration(longest)}", msgspec.structs.replace(job, limit=longest)


def _wanting(job: Pending, **other: object) -> Pending:
    return msgspec.structs.replace(job, wanted=msgspec.structs.replace(job.wanted, **other))


def _longest(job: Pending, snapshot: OnNodes, parameters: Parameters, now: int) -> int | None:
    """The longest limit in whole minutes, shorter than its own, with which it would start now."""

    def starts(minutes: int) -> bool:
        shorter = msgspec.structs.replace(job, limit=minutes * MINUTE, time_min=None)
        return _start(both(with_job(snapshot, shorter), parameters, now), job.number, now) == now

    there = [snapshot.machine.cluster.rules[name] for name in job.partitions if name in snapshot.machine.cluster.rules]
    low, high = 1, max((job.seconds(rules) for rules in there), default=0) // MINUTE
    if high <= 1 or not starts(low):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if starts(middle) else (low, middle)
    return low * MINUTE
