"""A tick of Slurm's priority thread over everybody's usage, and the same told from job records alone.

Source: docs/reference/slurm-rules.md, "Usage decay".
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
    faded_costs,
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
    copied,
    decayed,
    give_back,
    lines,
    nothing_used,
    reset,
    set_aside,
)

UNKNOWN = 0
"""The last tick when there was none yet: nothing fades, and jobs are charged from their start."""


class Rules(msgspec.Struct, frozen=True):
    """`limits`: AccountingStorageEnforce has them; without, only the ticks charge and only raw usage is kept (trap T7)."""

    decay: Decay
    limits: bool = True


class ChargedRows(NamedTuple):
    """Who is charged: the tree of associations, and which QOS have NoDecay."""

    parent: Ints
    spared: Bools


class UsageLedger(NamedTuple):
    """The usage of all associations and of all QOS."""

    associations: DecayedUsage
    qos: DecayedUsage


def unused(payers: ChargedRows, tres: int) -> UsageLedger:
    """Nobody used anything."""
    return UsageLedger(
        nothing_used(len(payers.parent), tres), nothing_used(len(payers.spared), tres)
    )


def ticked(
    books: UsageLedger,
    running: ChargedJobs,
    payers: ChargedRows,
    rules: Rules,
    *,
    last: int,
    now: int,
) -> UsageLedger:
    """The books after a tick at `now`: what was there fades, then what `running` jobs used since `last` is added.

    Raises InvalidInput when the clock went back since `last`.
    """
    remaining = rules.decay.remaining(now - last) if last != UNKNOWN else 1.0
    books = UsageLedger(
        decayed(books.associations, remaining), decayed(books.qos, remaining, payers.spared)
    )
    _charge(books, running, payers, rules, since=last, now=now, over=False)
    return books


def ended(
    books: UsageLedger, jobs: ChargedJobs, payers: ChargedRows, rules: Rules, *, last: int, now: int
) -> UsageLedger:
    """The books when `jobs` end: where `limits` are enforced, what they used since the tick at `last` is added, and what they did not
    use is given back."""
    if not rules.limits:
        return books
    books = UsageLedger(copied(books.associations), copied(books.qos))
    _charge(books, jobs, payers, rules, since=last, now=now, over=True)
    return books


def started(
    books: UsageLedger, jobs: ChargedJobs, payers: ChargedRows, rules: Rules
) -> UsageLedger:
    """The books when `jobs` start: what they may use at most is set aside. Raises InvalidInput when that is beyond counting."""
    if not rules.limits:
        return books
    books, most = UsageLedger(copied(books.associations), copied(books.qos)), may_use(jobs)
    set_aside(books.associations, lines(jobs.association, payers.parent), most)
    set_aside(books.qos, _qos_of(jobs), most)
    return books


def _charge(
    books: UsageLedger,
    jobs: ChargedJobs,
    payers: ChargedRows,
    rules: Rules,
    *,
    since: int,
    now: int,
    over: bool,
) -> None:
    """Add to `books` what `jobs` used in (`since`, `now`]: to their association and all above it, their QOS, and their partition's where
    that is another, by the job's own factor."""
    if not len(jobs.start):
        return
    seconds = seconds_run(jobs, since, now)
    faded, plain = faded_costs(jobs, seconds, rules.decay), costs(jobs, seconds)
    up, qos = lines(jobs.association, payers.parent), _qos_of(jobs)
    spared = payers.spared[qos.row]
    add(books.associations, up, faded, limits=rules.limits)
    add(books.qos, qos.only(~spared), faded, limits=rules.limits)
    add(books.qos, qos.only(spared), plain, limits=rules.limits)
    if rules.limits:
        back = gives_back(jobs, since, now, over=over)
        give_back(books.associations, up, back)
        give_back(books.qos, qos, back)


def _qos_of(jobs: ChargedJobs) -> ChargeRows:
    other = np.where(jobs.partition_qos != jobs.qos, jobs.partition_qos, -1)
    table = np.stack([jobs.qos, other], axis=1)
    return ChargeRows(np.nonzero(table >= 0)[0], table[table >= 0])


def renewed(books: UsageLedger) -> UsageLedger:
    """The books after a reset."""
    return UsageLedger(reset(books.associations), reset(books.qos))


class TickPeriod(msgspec.Struct, frozen=True):
    """Where counting begins: the books after the tick at `last`, and when usage was `reset` last; periods are local to `zone`."""

    books: UsageLedger
    last: int = UNKNOWN
    reset: int = UNKNOWN
    zone: tzinfo = UTC


def recounted(
    records: ChargedJobs,
    left: Ints,
    ticks: Iterable[int],
    payers: ChargedRows,
    rules: Rules,
    begin: TickPeriod,
) -> UsageLedger:
    """The books after the last of `ticks`, from records of finished and running jobs alone.

    `left` is when each job was gone (0: it runs), which is its end but for a job that ended suspended: ticks charged its pause, although
    its end is when it was suspended. A job that ends at the very second of a tick is still charged by it, and gives back its rest before
    the next. Raises InvalidInput for ticks that go back, and for a record that ends before it starts, naming its row.
    """
    records, gone = _checked(records, left)
    held = records._replace(
        end=np.zeros_like(records.end)
    )  # until it is gone, no tick knows of an end
    books, last, since = begin.books, begin.last, begin.reset
    for now in ticks:
        books = started(
            books, records.only((records.start > last) & (records.start <= now)), payers, rules
        )
        ends = np.flatnonzero((gone >= last) & (gone < now))
        books = ended(
            books,
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
            books = renewed(books)
        books = ticked(
            books,
            held.only((records.start <= now) & (gone >= now)),
            payers,
            rules,
            last=last,
            now=now,
        )
        last, since = now, boundary
    return books


def _checked(records: ChargedJobs, left: Ints) -> tuple[ChargedJobs, Ints]:
    """The records of jobs that started, each with an end where it is gone, and when that is."""
    backwards = ((records.end > 0) & (records.end < records.start)) | (
        (left > 0) & (left < records.start)
    )
    wrong = np.flatnonzero((records.start > 0) & backwards)
    if wrong.size:
        raise InvalidInput(
            f"record row {wrong[0]} ends before it starts",
            field="end",
            remedy="correct the record, or leave it out",
        )
    began = records.start > 0
    records, left = records.only(began), left[began]
    end = np.where((left > 0) & ((records.end <= 0) | (records.end > left)), left, records.end)
    return records._replace(end=end), np.where(left > 0, left, np.iinfo(np.int64).max)
