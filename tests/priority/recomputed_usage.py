"""Usage recomputed from job records alone
(slurm-rules.md, "Usage"): what the ticks of the product are compared with.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, tzinfo

import msgspec
import numpy as np

from fairbank.core.errors import InvalidInput
from fairbank.core.time import Instant
from fairbank.priority.fairshare.charges import ChargedJobs
from fairbank.priority.fairshare.columns import Ints, Long, Longs, Wholes
from fairbank.priority.fairshare.decay import last_reset
from fairbank.priority.fairshare.usage import DecayedUsage, cells, lines, nothing_used
from fairbank.priority.fairshare.usage_ticks import (
    UNKNOWN,
    ChargedRows,
    Rules,
    UsageLedger,
    apply_tick,
    end_jobs,
    reset_usage,
)


def zero_usage(payers: ChargedRows, tres: int) -> UsageLedger:
    """Return zero usage."""
    return UsageLedger(
        nothing_used(len(payers.parent), tres), nothing_used(len(payers.spared), tres)
    )


def rebuilt(own: DecayedUsage, parent: Ints) -> DecayedUsage:
    """Return the sums of all accounts, computed again from the own usage of each row, as Slurm does
    after a restart and when an account moves. The own usage of an account is that of its deleted
    users. Raises InvalidInput.
    """
    to = lines(np.arange(len(parent), dtype=np.int64), parent)
    sums = nothing_used(*own.tres.shape)
    np.add.at(sums.raw, to.row, own.raw[to.job])
    np.add.at(sums.tres.reshape(-1), cells(to.row, own.tres.shape[1]), own.tres[to.job].reshape(-1))
    np.add.at(sums.wall, to.row, own.wall[to.job])
    return sums


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


def minutes(seconds: Longs | Wholes) -> Wholes:
    """Return whole minutes, as Slurm limits and prints them; at most what 64 bits hold."""
    if seconds.dtype == np.uint64:
        return np.asarray(seconds, np.uint64) // np.uint64(60)
    return np.minimum(seconds / 60, np.nextafter(Long(2) ** 64, Long(0))).astype(np.uint64)
