"""Queries to a store, and results that are not rows of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import msgspec

from fairbank.bank.allocation import Allocation, ShownState
from fairbank.bank.entry import Kind, StateSince
from fairbank.bank.project import Member
from fairbank.bank.run import RunState, UserSums
from fairbank.core.time import Instant
from fairbank.core.time_zone import ZoneOffsets
from fairbank.core.usage_groups import OTHERS

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE_MAX = 1_000
"""Maximum number of rows of a page. A store may read one more, to see whether more rows follow."""

NO_QOS = "-"
"""Group of the runs whose QOS is not known. No QOS has this name."""
_USAGE_SUMS = (
    *("runs", "failed", "charged", "elapsed_seconds", "core_seconds", "gpu_seconds"),
    *("waited_seconds", "cpu_seconds", "given_seconds", "wasted"),
    *("occupied", "without_size", "early"),
)


class JournalRange(msgspec.Struct, frozen=True):
    """Range of journals by the id of the allocation, from `first` up to, not including, `end`.

    None is unbounded.
    """

    first: int | None = None
    end: int | None = None

    def __contains__(self, journal: int) -> bool:
        return (self.first is None or journal >= self.first) and (
            self.end is None or journal < self.end
        )


ALL_JOURNALS = JournalRange()


class RowLimit(msgspec.Struct, frozen=True):
    """At most `limit` rows of an answer."""

    limit: int = 100

    @property
    def size(self) -> int:
        """Number of rows at most: `limit`, between 0 and PAGE_MAX + 1."""
        return max(0, min(self.limit, PAGE_MAX + 1))

    @property
    def and_one(self) -> Self:
        """The same page with one more row, which shows whether more rows follow."""
        return msgspec.structs.replace(self, limit=self.limit + 1)


class Page(RowLimit, frozen=True):
    """Rows after the row with id `after`, ascending, or descending if `newest_first`.

    Ids of entries and runs follow time: what begins after another answer has a higher id, on every
    server. Overlapping transactions of two servers may commit in the other order. So a client that
    follows the newest rows by `after` should read about one minute back, and skip what it knows.
    """

    after: int | None = None
    newest_first: bool = False


class GroupPage(RowLimit, frozen=True):
    """Rows of usage after the key `after` (`Usage.key`), ascending.

    With `largest`, the `limit` rows of each unit with the largest charges, the largest first; of
    days, weeks and months the latest, in their order.
    """

    after: tuple[str | int, str, str] | None = None
    largest: bool = False


class DebitPage(RowLimit, frozen=True):
    """Debits after that of `after`, an (allocation, owner), ascending."""

    after: tuple[int, int] | None = None


class Visibility(msgspec.Struct, frozen=True):
    """Rows that a user may see: all, or those of `projects` and those owned by `uid`.

    A run belongs to the project that it ran for and to the project whose allocation pays: members
    of both see it. In the journals of `own_jobs_of` the user sees the entries of their own jobs,
    and those that are about no job.
    """

    everything: bool = False
    uid: int | None = None
    projects: frozenset[int] = frozenset()
    own_jobs_of: frozenset[int] = frozenset()

    def can_see(self, project: int) -> bool:
        return self.everything or project in self.projects


ALL = Visibility(everything=True)


class ProjectQuery(msgspec.Struct, frozen=True, kw_only=True):
    visibility: Visibility = ALL
    ids: frozenset[int] | None = None
    gname: str | None = None
    gid: int | None = None
    account: str | None = None
    removed: bool | None = None


class AllocationQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Query for allocations. `active_at` selects by the period alone, so that it also works for the
    past.

    `shown_state` selects by `Allocation.shown_state` at a time. `open_at` selects the
    allocations that have not ended at this time, and with `or_latest` also the latest one of each
    project and resource. Shared allocations of the projects `lenders` are found in addition,
    because their child projects draw on them. `is_short_term` selects those with a partition or a
    reservation of their own.
    """

    visibility: Visibility = ALL
    ids: frozenset[int] | None = None
    projects: frozenset[int] | None = None
    is_short_term: bool = False
    resource: str | None = None
    category: str | None = None
    shown_state: tuple[ShownState, Instant] | None = None
    active_at: Instant | None = None
    open_at: Instant | None = None
    or_latest: bool = False
    lenders: frozenset[int] = frozenset()

    @property
    def is_without_removed(self) -> bool:
        """True unless removed allocations are asked for by state or by number."""
        return self.ids is None and self.shown_state is None


class PeriodQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of queries for rows of a period: `since` <= time < `until`."""

    visibility: Visibility = ALL
    projects: frozenset[int] | None = None
    since: Instant | None = None
    until: Instant | None = None


class JobRowQuery(PeriodQuery, frozen=True, kw_only=True):
    """Fields of queries for runs and refused jobs.

    `projects` are those of the jobs, not of the allocations. `allocation` is the one that pays or
    refuses; `category` and `active_at` are about it.
    """

    ids: frozenset[int] | None = None
    owner: int | None = None
    allocation: int | None = None
    resource: str | None = None
    category: str | None = None
    active_at: Instant | None = None
    cluster: str | None = None
    job_id: int | None = None


class RunQuery(JobRowQuery, frozen=True, kw_only=True):
    """Query for runs by their start.

    `failed` selects ended runs: true those that failed (`RunEnd.is_failure`), false those that
    ended as COMPLETED.
    `closed` selects open holds (false) or all other runs (true), `measured` measured use (true) or
    jobs (false). `job_ids` are numbers of jobs on any cluster.
    """

    job_ids: frozenset[int] | None = None
    state: RunState | None = None
    closed: bool | None = None
    failed: bool | None = None
    measured: bool | None = None
    partition: str | None = None


class EntryQuery(PeriodQuery, frozen=True, kw_only=True):
    """Query for entries by their time.

    `projects` are those of the runs; for entries without a run, those of the allocations. The
    registry is visible only to users who may see everything, but owners see all entries that name
    them.
    """

    ids: frozenset[int] | None = None
    owner: int | None = None
    allocation: int | None = None
    kinds: frozenset[Kind] | None = None


class RefusalQuery(JobRowQuery, frozen=True, kw_only=True):
    """Query for refused jobs by the time of the refusal.

    `projects` and `resource` are those of the job, even if it has no allocation. `account` also
    finds jobs that named this account while no project had it. In addition to the entries that a
    user may see, refusals of jobs of the user's projects are visible: a project without an
    allocation has refusals too. Refusals for other reasons than `bank.refusals.CREDIT_REASONS`
    are of faulty reports: with `sender` only those of reports of this user are found, with None
    all of them.
    """

    account: str | None = None
    sender: int | None = None


class UsageQuery(PeriodQuery, frozen=True, kw_only=True):
    """Query for closed runs by their end, of some owners and resources.

    Days, weeks and months are those of the time zone with `offsets`, which cover the period.
    `price_groups` are (resource, cluster, name of the clusters with its prices), as
    `cluster.partition.price_groups` has them. A cluster without prices is a group of its own;
    measured use of a resource that no cluster bills is one without clusters: a TiB-day costs 1 SU
    on each system.
    """

    owners: frozenset[int] | None = None
    allocations: frozenset[int] | None = None
    resources: frozenset[str] | None = None
    offsets: ZoneOffsets = ()
    price_groups: tuple[tuple[str, str, str], ...] = ()


class Usage(msgspec.Struct, frozen=True):
    """Usage of a group of runs of one resource, on clusters with the same prices.

    `group` is the uid, the project or allocation by number, the day, ISO week or month (in the zone
    of the query), the allocation with the uid (`12/5001`; the allocation alone for measured use,
    which has no user), the job with its cluster (`darwin/4711`; the system alone for measured use,
    which is no job), or a name: NO_QOS if the QOS is not known. A restarted job, and a job id that
    was used again, is one group. Resource and clusters are the unit of `charged`: amounts of
    different units cannot be added.

    `runs` counts no measured use (`RunRecord.is_measured`), whose charge is in `charged`.
    `failed` counts those of `RunEnd.is_failure`. `charged` is in SU-minutes, less refunds.
    `core_seconds` and `gpu_seconds` are those of the processors and GPUs that the runs had, as far
    as these are known. `waited_seconds` is from submission to start. `cpu_seconds`, `given_seconds`
    and `wasted` are as in `bank.efficiency`. `occupied` is the sum of `RunRecord.occupied`,
    `without_size` the number of runs of which it is not known. `early` counts runs that failed
    early; `early_exit` is their wait status if it is known and the same for all.
    """

    group: str | int
    resource: str
    clusters: str
    runs: int
    failed: int
    charged: int
    elapsed_seconds: int
    core_seconds: int = 0
    gpu_seconds: int = 0
    waited_seconds: int = 0
    cpu_seconds: int = 0
    given_seconds: int = 0
    wasted: int = 0
    occupied: int = 0
    without_size: int = 0
    early: int = 0
    early_exit: int | None = None

    @property
    def key(self) -> tuple[str | int, str, str]:
        """Group and unit, the order of all rows."""
        return self.group, self.resource, self.clusters

    def plus(self, other: Usage) -> Usage:
        """Return the sum of both under the key of this one."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in _USAGE_SUMS}
        exits = {usage.early_exit for usage in (self, other) if usage.early}
        early_exit = exits.pop() if len(exits) == 1 else None
        return msgspec.structs.replace(self, early_exit=early_exit, **sums)

    def others(self, parts: Iterable[Usage]) -> Usage | None:
        """Return what the parts of this usage lack of it, as group OTHERS; None: nothing."""
        mine = [part for part in parts if part.key[1:] == self.key[1:]]
        rest = {
            name: getattr(self, name) - sum(getattr(part, name) for part in mine)
            for name in _USAGE_SUMS
        }
        if not any(rest.values()):
            return None
        return msgspec.structs.replace(self, group=OTHERS, early_exit=None, **rest)


class ListedMember(msgspec.Struct, frozen=True):
    """Member of a project, by a row of the bank or through the project's Unix group."""

    member: Member
    by_group: bool


class UserRow(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Sums of one user in one allocation."""

    allocation: int
    uid: int
    sums: UserSums


class OpenHolds(msgspec.Struct, frozen=True):
    """Credit that runs hold now, their number, and the latest deadline of their holds, which is
    later than the time limit of the job. `set_by` is the last entry that set one of these holds.
    """

    held: int
    runs: int
    deadline: Instant
    set_by: int


class Balance(msgspec.Struct, frozen=True):
    """Allocation with what one user used of it, and since when it is not active."""

    allocation: Allocation
    sums: UserSums
    inactive_since: StateSince | None


class DebitQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Query for charges by allocation and owner."""

    visibility: Visibility = ALL
    projects: frozenset[int] | None = None
    allocation: int | None = None
    owner: int | None = None


class RepeatedKey(msgspec.Struct, frozen=True):
    """Key with which an actor has several entries, an error; with the first and last entry."""

    actor: int
    key: str
    first: int
    last: int


class WrongUsage(msgspec.Struct, frozen=True):
    """Allocation whose sums of usage have other charges than itself, in SU-minutes."""

    allocation: int
    summed: int
    charged: int


class Debit(msgspec.Struct, frozen=True):
    """Charges of an owner in an allocation, less refunds, in SU-minutes, with the last run."""

    allocation: int
    owner: int
    charged: int
    latest: int | None
