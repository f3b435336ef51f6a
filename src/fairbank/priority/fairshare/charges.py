"""What a job is charged for a stretch of time, and what of its time limit it gives back.

A suspended job goes on costing: Slurm's controller never subtracts the pause (trap T8). A requeue, a preemption or a failed node gives
nothing back: each run of a job is a row of its own and stays charged. A job that runs over its limit is charged to its real end. A
resized job is two rows, one to the change and one from it.

Source: docs/reference/slurm-rules.md, "Usage".
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from fairbank.priority.fairshare.billing import Wholes
from fairbank.priority.fairshare.columns import Bools, Doubles, Ints, Long
from fairbank.priority.fairshare.decay import Decay
from fairbank.priority.fairshare.usage import Costs, check_counted

_RUNS = frozenset({"RUNNING", "SUSPENDED", "STOPPED"})
_NOT_YET_OR_NO_MORE = frozenset({"COMPLETING", "POWER_UP_NODE"})


def is_charged(state: Collection[str]) -> bool:
    """Whether a tick charges a job in this state: its base state and its flags, in Slurm's words."""
    return not _RUNS.isdisjoint(state) and _NOT_YET_OR_NO_MORE.isdisjoint(state)


class ChargedJobs(NamedTuple):
    """Jobs that hold something, in the order of Slurm's list; a row each.

    `association`, `qos`, `partition_qos`: rows of who is charged, -1 for none. `factor`: the usage factor of the job's own QOS.
    `start`, `end`: instants; the end is when it ended, or 0. `limit`: minutes. `billable`: the double; `alloc` [jobs, TRES]: as
    `billing.allocated` counts.
    """

    association: Ints
    qos: Ints
    partition_qos: Ints
    factor: Doubles
    start: Ints
    end: Ints
    limit: Ints
    billable: Doubles
    alloc: Wholes

    def only(self, which: Bools | Ints) -> ChargedJobs:
        """Some of them."""
        return ChargedJobs(
            self.association[which],
            self.qos[which],
            self.partition_qos[which],
            self.factor[which],
            self.start[which],
            self.end[which],
            self.limit[which],
            self.billable[which],
            self.alloc[which],
        )


def usage_factors(qos: Ints, factors: Doubles) -> Doubles:
    """The usage factor of each job's QOS: 1 where it has none, or where it was cleared (-1)."""
    own = np.where(qos >= 0, factors[qos], 1.0) if len(factors) else np.ones(len(qos))
    return np.where(own >= 0, own, 1.0)


def seconds_run(jobs: ChargedJobs, since: int, now: int) -> Doubles:
    """Seconds that each job ran in (`since`, `now`], before its end where that is known; never below 0."""
    finish = np.where(jobs.end > 0, np.minimum(jobs.end, now), now)
    seconds: Doubles = np.maximum(finish - np.maximum(jobs.start, since), 0).astype(np.float64)
    return seconds


def costs(jobs: ChargedJobs, seconds: Doubles) -> Costs:
    """What `seconds` of each job come to: faded ones for whoever's usage fades, the plain ones for a QOS with NoDecay."""
    wall = seconds * jobs.factor
    return Costs(
        seconds * jobs.billable * jobs.factor,
        wall,
        wall.astype(Long)[:, None] * jobs.alloc.astype(Long),
    )


def faded_costs(jobs: ChargedJobs, seconds: Doubles, decay: Decay) -> Costs:
    """What `seconds` just run come to where usage fades."""
    return costs(jobs, decay.faded(seconds))


def may_use(jobs: ChargedJobs) -> Wholes:
    """Run-seconds of each TRES that starting jobs set aside: counts by their whole time limit. Raises InvalidInput when beyond counting."""
    return _by_counts(jobs, jobs.limit * 60 * jobs.factor)


def gives_back(jobs: ChargedJobs, since: int, now: int, *, over: bool) -> Wholes:
    """Run-seconds that each job gives back for (`since`, `now`]: what it ran, but nothing beyond its limit; when `over`, all the rest.

    So usage and run-seconds together stay the same while a job runs within its limit.
    """
    begin, until = np.maximum(jobs.start, since), jobs.start + jobs.limit * 60
    left = np.maximum(until - begin, 0).astype(np.float64)
    return _by_counts(
        jobs, (left if over else np.minimum(left, seconds_run(jobs, since, now))) * jobs.factor
    )


def _by_counts(jobs: ChargedJobs, seconds: Doubles) -> Wholes:
    whole = np.trunc(seconds)
    check_counted(whole[:, None] * jobs.alloc.astype(np.float64), jobs.association)
    return np.minimum(whole, 2.0**62).astype(np.uint64)[:, None] * jobs.alloc
