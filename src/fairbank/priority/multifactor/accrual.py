"""Limits on the number of jobs of a user, account or QOS whose age counts (slurm-rules.md,
"Priority factors").

Without them all of a thousand jobs of a user would age while they wait for each other (RCAC,
"Age").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fairbank.priority.multifactor.pending_jobs import Indexes
from fairbank.priority.settings import Flag

Integers = npt.NDArray[np.int64]

NOT_YET = 0
NONE = -1
"""No limit; no QOS; no parent."""


class AccrualLimits(NamedTuple):
    """Number of jobs that may age at once, or NONE. The first three columns have a row for each
    association, the others for each QOS.

    `group` is GrpJobsAccrue and `each` MaxJobsAccrue, which users inherit. The QOS have
    GrpJobsAccrue, MaxJobsAccruePerAccount and MaxJobsAccruePerUser.
    """

    parent: Indexes
    group: Integers
    each: Integers
    qos_group: Integers
    qos_per_account: Integers
    qos_per_user: Integers


class AccrualQueue(NamedTuple):
    """Queue of a scheduling pass, as columns and in its order.

    `association` is the row of the user's own. `eligible_at`: begin time, 0 if the job has none
    yet. `ready`: neither held nor waiting for another job. `accrued_at`: time since when it ages.
    `tasks`: tasks of an array that are still to start, 1 for a single job. `qos`: the highest if a
    job has several.
    """

    user: Indexes
    account: Indexes
    association: Indexes
    qos: Indexes
    submitted_at: Integers
    eligible_at: Integers
    accrued_at: Integers
    ready: npt.NDArray[np.bool_]
    tasks: Integers


class AgedJobs(NamedTuple):
    """Jobs that begin to age: since when (NOT_YET: they do not), and how many tasks. Fewer tasks
    than a job has become jobs of their own.
    """

    at: Integers
    tasks: Integers


def accrue(
    queue: AccrualQueue,
    limits: AccrualLimits,
    *,
    flags: frozenset[Flag],
    limits_enforced: bool,
    now: int,
    first_of_qos: bool = False,
) -> AgedJobs:
    """Return the jobs that begin to age in this pass.

    A job without a limit ages since it was eligible, an array as a whole. Under a limit it ages
    from now on, if a place is free: each job that ages already takes one, until it leaves the
    queue.

    Args:
        limits: limits of associations and QOS.
        flags: PriorityFlags.
        limits_enforced: AccountingStorageEnforce contains limits.
        now: time in seconds.
        first_of_qos: of a QOS only the first limit that is set holds, of its group, an account and
            a user in this order, as in Slurm 22.05. Otherwise all hold.
    """
    new = queue.accrued_at == NOT_YET
    if Flag.ACCRUE_ALWAYS in flags:
        return _all(new, queue.submitted_at, queue)
    if not limits_enforced:
        return _all(new & (queue.eligible_at > 0), queue.eligible_at, queue)
    may = new & queue.ready & (queue.eligible_at > 0) & (queue.eligible_at <= now)
    scopes = list(_scopes(queue, limits, first_of_qos))
    concerned = np.logical_or.reduce([scope.limit != NONE for scope in scopes])
    started = _all(may & ~concerned, queue.eligible_at, queue)
    for row, tasks in _in_turn(np.flatnonzero(may & concerned), ~new, queue, scopes, limits.parent):
        started.at[row], started.tasks[row] = now, tasks
    return started


class LimitInUse(NamedTuple):
    """Limit of one kind, with an element for each job: its amount (NONE: it does not count for the
    job), what it counts, and how many tasks of that age already.
    """

    limit: Integers
    number: Indexes
    used: Integers


def limits_in_use(
    queue: AccrualQueue, limits: AccrualLimits, *, first_of_qos: bool = False
) -> Sequence[LimitInUse]:
    """Return the limits that count for the age of each job: of its QOS those of the group, an
    account and a user, then that of an association, whose row is `number`.

    Args:
        limits: limits of associations and QOS.
        first_of_qos: as `accrue` takes it.
    """
    scopes = list(_scopes(queue, limits, first_of_qos))
    taken = _taken(queue.accrued_at != NOT_YET, queue, scopes, limits.parent)
    return [
        LimitInUse(
            scope.limit,
            scope.number,
            np.array([counted.get(number, 0) for number in scope.number.tolist()], dtype=np.int64),
        )
        for scope, counted in zip(scopes, taken, strict=True)
    ]


def _all(which: npt.NDArray[np.bool_], since: Integers, queue: AccrualQueue) -> AgedJobs:
    return AgedJobs(np.where(which, since, NOT_YET), np.where(which, queue.tasks, 0))


# ---------------------------------------------------------------- whose limit concerns whom


class _Scope(NamedTuple):
    """Jobs that are counted together: a number for each job, and its limit or NONE."""

    number: Indexes
    limit: Integers


def _scopes(queue: AccrualQueue, limits: AccrualLimits, first_of_qos: bool) -> Iterator[_Scope]:
    """Yield the scopes of the QOS; for jobs without a limit there, the first limit on the way from
    the association to root.
    """
    free = np.ones(len(queue.qos), dtype=np.bool_)
    numbers = (queue.qos, _pair(queue.qos, queue.account), _pair(queue.qos, queue.user))
    for number, by_qos in zip(
        numbers, (limits.qos_group, limits.qos_per_account, limits.qos_per_user), strict=True
    ):
        limit = np.append(by_qos, NONE)[queue.qos]
        if first_of_qos:
            limit = np.where(free, limit, NONE)
        free &= limit == NONE
        yield _Scope(number, limit)
    where, limit = _on_the_way_up(limits)
    number = where[queue.association]
    yield _Scope(number, np.where(free, limit[queue.association], NONE))


def _pair(first: Indexes, second: Indexes) -> Indexes:
    several = int(second.max(initial=0)) + 1
    return first * several + second


def _on_the_way_up(limits: AccrualLimits) -> tuple[Indexes, Integers]:
    """Return for each association the one that limits it, and the limit. Its own group limit goes
    before an inherited one.
    """
    at = np.arange(len(limits.parent))
    while (higher := (at != NONE) & (np.append(limits.group, 0)[at] == NONE)).any():
        at[higher] = limits.parent[at[higher]]
    handed = (limits.group == NONE) & (limits.each != NONE)
    of_group = np.append(limits.group, NONE)[at]
    return np.where(handed, np.arange(len(at)), at), np.where(handed, limits.each, of_group)


# ---------------------------------------------------------------- one after the other


def _in_turn(
    rows: Indexes,
    ageing: npt.NDArray[np.bool_],
    queue: AccrualQueue,
    scopes: list[_Scope],
    parent: Indexes,
) -> Iterator[tuple[int, int]]:
    """Yield the rows that get a place, with the number of tasks."""
    taken = _taken(ageing, queue, scopes, parent)
    rows = rows[_may_have_a_place(rows, scopes, taken)]
    numbers = [scope.number[rows].tolist() for scope in scopes]
    limits = [scope.limit[rows].tolist() for scope in scopes]
    for place, (row, leaf, tasks) in enumerate(
        zip(
            rows.tolist(), queue.association[rows].tolist(), queue.tasks[rows].tolist(), strict=True
        )
    ):
        for number, limit, counted in zip(numbers, limits, taken, strict=True):
            if limit[place] != NONE:
                tasks = min(tasks, limit[place] - counted.get(number[place], 0))
        if tasks <= 0:
            continue
        yield row, tasks
        for number, counted in zip(numbers[:-1], taken, strict=False):
            counted[number[place]] = counted.get(number[place], 0) + tasks
        while leaf != NONE:
            taken[-1][leaf] = taken[-1].get(leaf, 0) + tasks
            leaf = int(parent[leaf])


def _taken(
    ageing: npt.NDArray[np.bool_], queue: AccrualQueue, scopes: list[_Scope], parent: Indexes
) -> list[dict[int, int]]:
    """Return the tasks that age by number of their scope, for each kind of scope."""
    taken = [_by_number(scope.number[ageing], queue.tasks[ageing]) for scope in scopes[:-1]]
    return [*taken, _up_to_root(queue.association[ageing], queue.tasks[ageing], parent)]


def _by_number(numbers: Indexes, tasks: Integers) -> dict[int, int]:
    distinct, which = np.unique(numbers, return_inverse=True)
    return dict(
        zip(distinct.tolist(), np.bincount(which, tasks).astype(np.int64).tolist(), strict=True)
    )


def _up_to_root(at: Indexes, tasks: Integers, parent: Indexes) -> dict[int, int]:
    counts = np.zeros(len(parent), dtype=np.int64)
    while len(at):
        np.add.at(counts, at, tasks)
        at = parent[at]
        at, tasks = at[at != NONE], tasks[at != NONE]
    where = np.flatnonzero(counts)
    return dict(zip(where.tolist(), counts[where].tolist(), strict=True))


def _may_have_a_place(
    rows: Indexes, scopes: list[_Scope], taken: list[dict[int, int]]
) -> npt.NDArray[np.bool_]:
    """Return False for jobs that come too late in any case, which are most of a long queue.

    If only one limit concerns jobs, each of them before in its scope takes a place, as long as
    there are any.
    """
    limited = np.array([scope.limit[rows] != NONE for scope in scopes])
    alone = limited.sum(axis=0) == 1
    keep = np.ones(len(rows), dtype=np.bool_)
    for scope, concerned, counted in zip(scopes, limited, taken, strict=True):
        which = np.flatnonzero(concerned & alone)
        numbers, groups = np.unique(scope.number[rows[which]], return_inverse=True)
        gone = np.array([counted.get(number, 0) for number in numbers.tolist()], dtype=np.int64)
        keep[which] = _rank(groups) < scope.limit[rows[which]] - gone[groups]
    return keep


def _rank(groups: Indexes) -> Indexes:
    """Return for each the number of its group that come before it."""
    order = np.argsort(groups, kind="stable")
    begins = np.searchsorted(groups[order], groups[order], side="left")
    rank = np.empty(len(groups), dtype=np.intp)
    rank[order] = np.arange(len(groups)) - begins
    return rank
