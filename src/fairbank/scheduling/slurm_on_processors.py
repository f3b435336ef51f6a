"""Slurm's two passes over identical processors (facts, sections 5.3 and 6.2; `main` and `backfill` have all that nodes add to it).

All partitions are of the same processors. So when the first job of one does not fit, nothing is left for those behind it, in whatever
partition: the main pass is first come, first served in the order of priority. Backfill keeps room for as many as it tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

from fairbank.scheduling.by_priority import Listed, Submitted
from fairbank.scheduling.fcfs import from_the_head
from fairbank.scheduling.keeping_room import keep_room
from fairbank.scheduling.parameters import Parameters
from fairbank.scheduling.plan import Plan
from fairbank.scheduling.processors import Processors
from fairbank.scheduling.slots import Slots
from fairbank.scheduling.snapshot import Snapshot

S = TypeVar("S", bound=Submitted)


def main(snapshot: Snapshot[S, int, Processors[S]], line: Listed[S], parameters: Parameters, now: int, *, full: bool) -> Plan[S, int]:
    """Who starts from the head of the line. `full`: as far as it goes; else default_queue_depth."""
    tested = line if full else line.upto(parameters.default_queue_depth + 1)
    return _at_most(from_the_head(tested, snapshot.machine.copy(), now), parameters.sched_max_job_start)


def backfill(snapshot: Snapshot[S, int, Processors[S]], line: Listed[S], parameters: Parameters, now: int) -> Plan[S, int]:
    """Who starts in the gaps before those for whom room is kept."""
    machine = snapshot.machine
    tested = _considered(line, parameters).upto(parameters.bf_max_job_test)
    ahead: Slots[S] = Slots(machine, snapshot.running, now, window=parameters.window_seconds, resolution=parameters.bf_resolution)
    return _at_most(keep_room(tested, machine, ahead, now, most=None), parameters.bf_max_job_start)


def _considered(line: Listed[S], parameters: Parameters) -> Listed[S]:
    """Without those of a user, a partition or both that had as many as may be."""
    caps = (parameters.bf_max_job_user, parameters.bf_max_job_part, parameters.bf_max_job_user_part)
    return Listed(list(_capped(line, caps))) if any(caps) else line


def _capped(line: Listed[S], caps: tuple[int, int, int]) -> Iterator[S]:
    seen: Counter[tuple[str, int, int]] = Counter()
    for _, job in line:
        kinds = ("user", job.user, 0), ("partition", job.partition, 0), ("both", job.user, job.partition)
        for kind, most in zip(kinds, caps, strict=True):
            if most:
                seen[kind] += 1
                if seen[kind] > most:
                    break
        else:
            yield job


def _at_most(plan: Plan[S, int], starts: int) -> Plan[S, int]:
    """Without the starts beyond so many; 0: all."""
    return plan._replace(starts=plan.starts[:starts]) if 0 < starts < len(plan.starts) else plan
