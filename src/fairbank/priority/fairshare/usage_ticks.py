"""Ticks of Slurm's priority thread over all usage, and the same usage recomputed from job records
(docs/reference/slurm-rules.md, "Usage").

The embedded workload manager keeps its usage with them. Next to Slurm, `sshare` reports usage that
is decayed already. The tests compare the ticks with the usage that a real slurmctld keeps.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, tzinfo
from typing import NamedTuple

import msgspec
import numpy as np

from fairbank.core.errors import InvalidInput
from fairbank.core.time import Instant
from fairbank.priority.fairshare.charges import (
    ChargedJobs,
    costs,
    decay_costs,
    gives_back,
    may_use,
    seconds_run,
)
from fairbank.priority.fairshare.columns import Bools, Ints
from fairbank.priority.fairshare.decay import Decay, last_reset
from fairbank.priority.fairshare.usage import (
    ChargeRows,
    DecayedUsage,
    add,
    copy_usage,
    decay_usage,
    give_back,
    lines,
    nothing_used,
    reset,
    set_aside,
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


def zero_usage(payers: ChargedRows, tres: int) -> UsageLedger:
    """Return zero usage."""
    return UsageLedger(
        nothing_used(len(payers.parent), tres), nothing_used(len(payers.spared), tres)
    )


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
        rules: rules of usage.
        last: time of the last tick in seconds since 1970.
        now: time of this tick.
    """
    remaining = rules.decay.remaining(now - last) if last != UNKNOWN else 1.0
    usage = UsageLedger(
        decay_usage(usage.associations, remaining), decay_usage(usage.qos, remaining, payers.spared)
    )
    _charge(usage, running, payers, rules, since=last, now=now, over=False)
    return usage


def end_jobs(
    usage: UsageLedger, jobs: ChargedJobs, payers: ChargedRows, rules: Rules, *, last: int, now: int
) -> UsageLedger:
    """Return the usage when jobs end. If limits are enforced, their use since the last tick is
    added, and the rest of their run-seconds is given back.

    Args:
        usage: usage before.
        jobs: jobs that end.
        payers: rows that are charged.
        rules: rules of usage.
        last: time of the last tick in seconds since 1970.
        now: time of the end.
    """
    if not rules.limits:
        return usage
    usage = UsageLedger(copy_usage(usage.associations), copy_usage(usage.qos))
    _charge(usage, jobs, payers, rules, since=last, now=now, over=True)
    return usage


def start_jobs(
    usage: UsageLedger, jobs: ChargedJobs, payers: ChargedRows, rules: Rules
) -> UsageLedger:
    """Return the usage when jobs start: their run-seconds are reserved.

    Args:
        usage: usage before; it stays as it is.
        jobs: jobs that start, with their time limits.
        payers: rows that are charged.
        rules: rules of usage; without limits nothing is reserved.

    Raises:
        InvalidInput: run-seconds are beyond what Slurm counts.
    """
    if not rules.limits:
        return usage
    usage, most = UsageLedger(copy_usage(usage.associations), copy_usage(usage.qos)), may_use(jobs)
    set_aside(usage.associations, lines(jobs.association, payers.parent), most)
    set_aside(usage.qos, _qos_of(jobs), most)
    return usage


def _charge(
    usage: UsageLedger,
    jobs: ChargedJobs,
    payers: ChargedRows,
    rules: Rules,
    *,
    since: int,
    now: int,
    over: bool,
) -> None:
    """Add to `usage`, in place, the use of `jobs` in (`since`, `now`]: to their association and all
    above it, their QOS, and their partition's QOS if that is another, by the job's own factor.
    """
    if not len(jobs.start):
        return
    seconds = seconds_run(jobs, since, now)
    faded, plain = decay_costs(jobs, seconds, rules.decay), costs(jobs, seconds)
    up, qos = lines(jobs.association, payers.parent), _qos_of(jobs)
    spared = payers.spared[qos.row]
    add(usage.associations, up, faded, limits=rules.limits)
    add(usage.qos, qos.only(~spared), faded, limits=rules.limits)
    add(usage.qos, qos.only(spared), plain, limits=rules.limits)
    if rules.limits:
        back = gives_back(jobs, since, now, over=over)
        give_back(usage.associations, up, back)
        give_back(usage.qos, qos, back)


def _qos_of(jobs: ChargedJobs) -> ChargeRows:
    other = np.where(jobs.partition_qos != jobs.qos, jobs.partition_qos, -1)
    table = np.stack([jobs.qos, other], axis=1)
    return ChargeRows(np.nonzero(table >= 0)[0], table[table >= 0])


def reset_usage(usage: UsageLedger) -> UsageLedger:
    """Return the usage after a reset."""
    return UsageLedger(reset(usage.associations), reset(usage.qos))


class TickPeriod(msgspec.Struct, frozen=True):
    """Usage after the tick at `last`, and time of the last `reset`, in periods of `zone`."""

    usage: UsageLedger
    last: int = UNKNOWN
    reset: int = UNKNOWN
    zone: tzinfo = UTC


def recompute_usage(
    records: ChargedJobs,
    gone_at: Ints,
    ticks: Iterable[int],
    payers: ChargedRows,
    rules: Rules,
    begin: TickPeriod,
) -> UsageLedger:
    """Return the usage after the last of `ticks`, from records of finished and running jobs alone.

    A job that ends in the very second of a tick is still charged by it, and gives back its rest
    before the next. Raises InvalidInput for ticks that go back, and for a record that ends before
    it starts, naming its row.

    Args:
        records: finished and running jobs.
        gone_at: time when each job was gone (0: it runs). It is its end, but for a job that ended
            while suspended: ticks charged its pause, although its end is the begin of the
            suspension.
        ticks: times of the ticks.
        payers: rows that are charged.
        rules: rules of usage.
        begin: usage at the begin.
    """
    records, gone = _checked(records, gone_at)
    # Until a job is gone, no tick knows of its end.
    held = records._replace(end=np.zeros_like(records.end))
    usage, last, since = begin.usage, begin.last, begin.reset
    for now in ticks:
        usage = start_jobs(
            usage, records.only((records.start > last) & (records.start <= now)), payers, rules
        )
        ends = np.flatnonzero((gone >= last) & (gone < now))
        usage = end_jobs(
            usage,
            records.only(ends[np.argsort(gone[ends], kind="stable")]),
            payers,
            rules,
            last=last,
            now=now,
        )
        boundary = (
            last_reset(rules.decay.reset, since, now, begin.zone)
            if since != UNKNOWN
            else Instant(now)
        )
        if since != UNKNOWN and boundary > since:
            usage = reset_usage(usage)
        usage = apply_tick(
            usage,
            held.only((records.start <= now) & (gone >= now)),
            payers,
            rules,
            last=last,
            now=now,
        )
        last, since = now, boundary
    return usage


def _checked(records: ChargedJobs, gone_at: Ints) -> tuple[ChargedJobs, Ints]:
    """Return the records of started jobs, with an end if gone, and the time when they are."""
    backwards = ((records.end > 0) & (records.end < records.start)) | (
        (gone_at > 0) & (gone_at < records.start)
    )
    wrong = np.flatnonzero((records.start > 0) & backwards)
    if wrong.size:
        raise InvalidInput(
            f"record row {wrong[0]} ends before it starts",
            field="end",
            remedy="correct the record, or leave it out",
        )
    began = records.start > 0
    records, gone_at = records.only(began), gone_at[began]
    end = np.where(
        (gone_at > 0) & ((records.end <= 0) | (records.end > gone_at)), gone_at, records.end
    )
    return records._replace(end=end), np.where(gone_at > 0, gone_at, np.iinfo(np.int64).max)
