"""Charges of jobs for an interval (slurm-rules.md, "Usage").

A suspended job is charged on: Slurm's controller never subtracts the pause. A requeue, a preemption
or a failed node gives nothing back: each run of a job is its own row and stays charged. A job over
its limit is charged to its real end. A resized job is two rows, one until the change and one from
it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fairbank.priority.fairshare.columns import Bools, Doubles, Ints, Long, Wholes
from fairbank.priority.fairshare.decay import Decay
from fairbank.priority.fairshare.usage import Costs


class ChargedJobs(NamedTuple):
    """Jobs with resources, one row each, in the order of Slurm's list.

    `association`, `qos`, `partition_qos`: rows that are charged, -1 for none. `factor`: usage
    factor of the job's own QOS. `start`, `end`: times; `end` is 0 while the job runs. `billable`:
    billing units as a double; `alloc` [jobs, TRES]: counts as Slurm allocated them.
    """

    association: Ints
    qos: Ints
    partition_qos: Ints
    factor: Doubles
    start: Ints
    end: Ints
    billable: Doubles
    alloc: Wholes

    def only(self, which: Bools | Ints) -> ChargedJobs:
        """Return some of the jobs."""
        return ChargedJobs(
            self.association[which],
            self.qos[which],
            self.partition_qos[which],
            self.factor[which],
            self.start[which],
            self.end[which],
            self.billable[which],
            self.alloc[which],
        )


def seconds_run(jobs: ChargedJobs, since: int, now: int) -> Doubles:
    """Return the seconds that each job ran in (`since`, `now`], up to its end if known.

    Args:
        jobs: jobs that have started.
        since: start of the interval in seconds since 1970.
        now: end of the interval in seconds since 1970.
    """
    finish = np.where(jobs.end > 0, np.minimum(jobs.end, now), now)
    seconds: Doubles = np.maximum(finish - np.maximum(jobs.start, since), 0).astype(np.float64)
    return seconds


def costs(jobs: ChargedJobs, seconds: Doubles) -> Costs:
    """Return the cost of `seconds` of each job: decayed, or plain for a QOS with NoDecay."""
    wall = seconds * jobs.factor
    return Costs(
        seconds * jobs.billable * jobs.factor,
        wall,
        wall.astype(Long)[:, None] * jobs.alloc.astype(Long),
    )


def decay_costs(jobs: ChargedJobs, seconds: Doubles, decay: Decay) -> Costs:
    """Return the cost of an interval that just passed if usage decays.

    Args:
        jobs: jobs that ran in it.
        seconds: seconds that each job ran in it.
        decay: half-life; each interval decays by its whole length.
    """
    return costs(jobs, faded(decay, seconds))


def faded(decay: Decay, seconds: Doubles) -> Doubles:
    """Return seconds as they count: each interval decays by its whole length, as in Slurm."""
    # NumPy's own power differs from the C library's in the last bit; most jobs share one length,
    # so few powers are taken.
    lengths, which = np.unique(seconds, return_inverse=True)
    powers = np.array([math.pow(decay.a_second, length) for length in lengths.tolist()])
    result: Doubles = seconds * powers[which] if len(seconds) else seconds
    return result
