"""Ticks of Slurm's priority thread over all usage (docs/reference/slurm-rules.md, "Usage").

The embedded workload manager keeps its usage with them. Next to Slurm, `sshare` reports usage that
is decayed already. The tests compare the ticks with the usage that a real slurmctld keeps.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from fairbank.priority.fairshare.charges import ChargedJobs, costs, decay_costs, seconds_run
from fairbank.priority.fairshare.columns import Bools, Ints
from fairbank.priority.fairshare.decay import Decay
from fairbank.priority.fairshare.usage import (
    ChargeRows,
    DecayedUsage,
    add,
    copy_usage,
    decay_usage,
    lines,
    nothing_used,
)

UNKNOWN = 0
"""Value of the last tick if there was none: jobs are charged from their start."""


class Rules(msgspec.Struct, frozen=True):
    """Rules of usage. `limits`: AccountingStorageEnforce contains limits. Without it only ticks
    charge, and only raw usage is counted, as in Slurm.
    """

    decay: Decay
    limits: bool = True


class ChargedRows(NamedTuple):
    """Rows that are charged: the tree of associations, and the QOS with NoDecay."""

    parent: Ints
    spared: Bools


class UsageLedger(NamedTuple):
    """Usage of all associations and of all QOS."""

    associations: DecayedUsage
    qos: DecayedUsage


def apply_tick(
    usage: UsageLedger,
    running: ChargedJobs,
    payers: ChargedRows,
    rules: Rules,
    *,
    last: int,
    now: int,
) -> UsageLedger:
    """Return the usage after a tick: earlier usage decays, then the use of running jobs since the
    last tick is added.

    Raises InvalidInput if the clock went back since `last`.

    Args:
        usage: usage before.
        running: running jobs.
        payers: rows that are charged.
        last: time of the last tick in seconds since 1970.
        now: time of this tick.
    """
    remaining = rules.decay.remaining(now - last) if last != UNKNOWN else 1.0
    usage = UsageLedger(
        decay_usage(usage.associations, remaining), decay_usage(usage.qos, remaining, payers.spared)
    )
    _charge(usage, running, payers, rules, since=last, now=now)
    return usage


def end_jobs(
    usage: UsageLedger, jobs: ChargedJobs, payers: ChargedRows, rules: Rules, *, last: int, now: int
) -> UsageLedger:
    """Return the usage when jobs end. If limits are enforced, their use since the last tick is
    added.

    Args:
        usage: usage before.
        jobs: jobs that end.
        payers: rows that are charged.
        last: time of the last tick in seconds since 1970.
        now: time of the end.
    """
    if not rules.limits:
        return usage
    usage = UsageLedger(copy_usage(usage.associations), copy_usage(usage.qos))
    _charge(usage, jobs, payers, rules, since=last, now=now)
    return usage


def _charge(
    usage: UsageLedger,
    jobs: ChargedJobs,
    payers: ChargedRows,
    rules: Rules,
    *,
    since: int,
    now: int,
) -> None:
    """Add to `usage`, in place, the use of `jobs` in (`since`, `now`]: to their association and all
    above it, their QOS, and their partition's QOS if that is another, by the job's own factor.
    """
    if not len(jobs.start):
        return
    seconds = seconds_run(jobs, since, now)
    faded, plain = decay_costs(jobs, seconds, rules.decay), costs(jobs, seconds)
    up, qos = lines(jobs.association, payers.parent), qos_rows(jobs)
    spared = payers.spared[qos.row]
    add(usage.associations, up, faded, limits=rules.limits)
    add(usage.qos, qos.only(~spared), faded, limits=rules.limits)
    add(usage.qos, qos.only(spared), plain, limits=rules.limits)


def qos_rows(jobs: ChargedJobs) -> ChargeRows:
    """Return the QOS that are charged for each job: its own and that of its partition."""
    other = np.where(jobs.partition_qos != jobs.qos, jobs.partition_qos, -1)
    table = np.stack([jobs.qos, other], axis=1)
    return ChargeRows(np.nonzero(table >= 0)[0], table[table >= 0])


def reset_usage(usage: UsageLedger) -> UsageLedger:
    """Return the usage after a reset. A QOS with NoDecay is reset, too, although the manual says
    otherwise.
    """
    return UsageLedger(*(nothing_used(*rows.tres.shape) for rows in usage))
