"""A tick of Slurm's priority thread over everybody's usage, and the same told from job records alone (facts 2.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from fairbank.priority.billing import Numbers
from fairbank.priority.charging import Jobs, costs, faded_costs, gives_back, may_use, seconds_run
from fairbank.priority.decay import Decay
from fairbank.priority.usage import Flags, Lines, Usage, added, decayed, lines, nothing_used, reserved, returned

UNKNOWN = 0
"""The last tick when there was none yet: nothing fades, and jobs are charged from their start."""


class Rules(msgspec.Struct, frozen=True):
    """`limits`: AccountingStorageEnforce has them; without, only the ticks charge and only raw usage is kept (trap T7)."""

    decay: Decay
    limits: bool = True


class Payers(NamedTuple):
    """Who is charged: the tree of associations, and which QOS have NoDecay."""

    parent: npt.NDArray[np.int32]
    spared: Flags


class Books(NamedTuple):
    """The usage of all associations and of all QOS."""

    associations: Usage
    qos: Usage


def unused(payers: Payers, tres: int) -> Books:
    """Nobody used anything."""
    return Books(nothing_used(len(payers.parent), tres), nothing_used(len(payers.spared), tres))


def ticked(books: Books, running: Jobs, payers: Payers, rules: Rules, *, last: int, now: int) -> Books:
    """The books after a tick at `now`: what was there fades, then what `running` jobs used since `last` is added.

    Raises Malformed when the clock went back since `last`.
    """
    remaining = rules.decay.remaining(now - last) if last != UNKNOWN else 1.0
    books = Books(decayed(books.associations, remaining), decayed(books.qos, remaining, payers.spared))
    return charged(books, running, payers, rules, since=last, now=now)


def charged(books: Books, jobs: Jobs, payers: Payers, rules: Rules, *, since: int, now: int, over: bool = False) -> Books:
    """The books with what `jobs` used in (`since`, `now`]: their association and all above it, their QOS, and their partition's where
    that is another, by the job's own factor. At an end (`over`) they give back what they did not use."""
    seconds = seconds_run(jobs, since, now)
    faded, plain = faded_costs(jobs, seconds, rules.decay), costs(jobs, seconds)
    up, qos = lines(jobs.association, payers.parent), _qos_of(jobs)
    fading = ~payers.spared[qos.row]
    book = added(books.qos, Lines(*(each[fading] for each in qos)), faded, limits=rules.limits)
    book = added(book, Lines(*(each[~fading] for each in qos)), plain, limits=rules.limits)
    books = Books(added(books.associations, up, faded, limits=rules.limits), book)
    if not rules.limits:
        return books
    back = gives_back(jobs, since, now, over=np.full(len(seconds), over))
    return Books(returned(books.associations, up, back), returned(books.qos, qos, back))


def started(books: Books, jobs: Jobs, payers: Payers, rules: Rules) -> Books:
    """The books when `jobs` start: what they may use at most is set aside. Raises Malformed when that is beyond counting."""
    if not rules.limits:
        return books
    most = may_use(jobs)
    up = lines(jobs.association, payers.parent)
    return Books(reserved(books.associations, up, most), reserved(books.qos, _qos_of(jobs), most))


def _qos_of(jobs: Jobs) -> Lines:
    other = np.where(jobs.partition_qos != jobs.qos, jobs.partition_qos, -1)
    table = np.stack([jobs.qos, other], axis=1)
    return Lines(np.nonzero(table >= 0)[0], table[table >= 0])


def recounted(
    records: Jobs, left: Numbers, ticks: Iterable[int], payers: Payers, rules: Rules, *, books: Books | None = None, last: int = UNKNOWN
) -> Books:
    """The books after the last of `ticks`, from records of finished and running jobs alone: `books` are those after the tick at `last`.

    `left` is when each job was gone (0: it runs), which is its end but for a job that ended suspended: ticks charged its pause, although
    its end is when it was suspended. A job that ends at the very second of a tick is still charged by it. Raises Malformed when the
    ticks go back.
    """
    books = unused(payers, records.alloc.shape[1]) if books is None else books
    records, left = records.only(records.start > 0), left[records.start > 0]  # what never started costs nothing
    gone = np.where(left > 0, left, np.iinfo(np.int64).max)
    held = records._replace(end=np.zeros_like(records.end))  # until it is gone, no tick knows of an end
    for now in ticks:
        rules.decay.remaining(now - last)
        books = started(books, records.only((records.start > last) & (records.start <= now)), payers, rules)
        if rules.limits:
            ended = np.flatnonzero((gone >= last) & (gone < now) & (records.start <= gone))
            for at in np.unique(gone[ended]).tolist():
                ending = records.only(ended[gone[ended] == at])
                books = charged(books, ending, payers, rules, since=last, now=at, over=True)
        books = ticked(books, held.only((records.start <= now) & (gone >= now)), payers, rules, last=last, now=now)
        last = now
    return books
