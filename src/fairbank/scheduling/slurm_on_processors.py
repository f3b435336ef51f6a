"""Slurm's two passes over identical processors (facts, sections 5.3 and 6.2; `main` and `backfill` have all that nodes add to it).

All partitions are of the same processors. So when the first job of one does not fit, nothing is left for those behind it, in whatever
partition: the main pass is first come, first served in the order of priority. Backfill keeps room for as many as it tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from fairbank.scheduling.by_priority import Listed, S, Submitted
from fairbank.scheduling.fcfs import from_the_head
from fairbank.scheduling.keeping_room import keep_room
from fairbank.scheduling.parameters import Parameters
from fairbank.scheduling.plan import Plan
from fairbank.scheduling.processors import Processors
from fairbank.scheduling.slots import Slots
from fairbank.scheduling.snapshot import Snapshot


def main(snapshot: Snapshot[S, int, Processors[S]], line: Listed[S], parameters: Parameters, now: int, *, full: bool) -> Plan[S, int]:
    """Who starts from the head of the line. `full`: as far as it goes; else default_queue_depth, and partition_job_depth of each."""
    tested = line if full else _within(line, parameters.partition_job_depth).upto(parameters.default_queue_depth + 1)
    return _at_most(from_the_head(tested, snapshot.machine.copy(), now), parameters.sched_max_job_start)


def backfill(snapshot: Snapshot[S, int, Processors[S]], line: Listed[S], parameters: Parameters, now: int) -> Plan[S, int]:
    """Who starts in the gaps before those for whom room is kept."""
    machine = snapshot.machine
    tested = _considered(line, parameters).upto(parameters.bf_max_job_test)
    ahead: Slots[S] = Slots(
        machine,
        snapshot.running,
        now,
        window=parameters.window_seconds,
        resolution=parameters.bf_resolution,
        least_age=parameters.bf_min_age_reserve,
    )
    return _at_most(keep_room(tested, machine, ahead, now, most=None), parameters.bf_max_job_start)


def _within(line: Listed[S], depth: int) -> Listed[S]:
    """The first so many of each partition; 0: all."""
    return Listed(list(_capped(line, ((_partition, depth),)))) if depth else line


def _considered(line: Listed[S], parameters: Parameters) -> Listed[S]:
    """Without those of a user (or, with bf_max_job_assoc, of a user in a group), a partition or both that had as many as may be."""
    whose = (_association, parameters.bf_max_job_assoc) if parameters.bf_max_job_assoc else (_user, parameters.bf_max_job_user)
    caps = (whose, (_partition, parameters.bf_max_job_part), (_user_of_partition, parameters.bf_max_job_user_part))
    return Listed(list(_capped(line, caps))) if any(most for _, most in caps) else line


Kind = Callable[[Submitted], tuple[str | int, ...]]


def _association(job: Submitted) -> tuple[str | int, ...]:
    return ("association", job.user, job.group)


def _user(job: Submitted) -> tuple[str | int, ...]:
    return ("user", job.user)


def _partition(job: Submitted) -> tuple[str | int, ...]:
    return ("partition", job.partition)


def _user_of_partition(job: Submitted) -> tuple[str | int, ...]:
    return ("user of partition", job.user, job.partition)


def _capped(line: Listed[S], caps: Sequence[tuple[Kind, int]]) -> Iterator[S]:
    seen: Counter[tuple[str | int, ...]] = Counter()
    for _, job in line:
        for kind, most in caps:
            if most:
                seen[kind(job)] += 1
                if seen[kind(job)] > most:
                    break
        else:
            yield job


def _at_most(plan: Plan[S, int], starts: int) -> Plan[S, int]:
    """Without the starts beyond so many; 0: all."""
    return plan._replace(starts=plan.starts[:starts]) if 0 < starts < len(plan.starts) else plan
