"""What may be asked of the books, and what comes back that is no row of theirs."""

from __future__ import annotations

from enum import Enum

import msgspec

from fairbank.bank.allocation import Standing
from fairbank.bank.entry import Kind
from fairbank.bank.run import RunState, UserSums
from fairbank.core.time import Instant

PAGE_MAX = 1_000
"""The most rows that anybody may ask for at once; one more may be read, to see whether there are more."""

NO_QOS = "-"
"""The group of runs of which nobody told the QOS: no name can be that."""


class Books(msgspec.Struct, frozen=True):
    """A stretch of books by their numbers, from `first` up to but not including `end`; None: without a bound on that side."""

    first: int | None = None
    end: int | None = None

    def __contains__(self, book: int) -> bool:
        return (self.first is None or book >= self.first) and (self.end is None or book < self.end)


EVERY_BOOK = Books()


class Page(msgspec.Struct, frozen=True):
    """At most `limit` rows beyond the row numbered `after`, in rising order, or in falling order when `newest_first`.

    Numbers of entries, and of runs, follow time: what begins after something else was answered has the higher numbers, on
    whichever server. Transactions of two servers that overlap may commit in the other order. So who follows the newest rows by
    a rising `after` should look back by as long as a transaction may take, a minute or so, and know again what was read before.
    """

    limit: int = 100
    after: int | None = None
    newest_first: bool = False

    @property
    def size(self) -> int:
        """How many rows it may have: `limit`, kept between none and one more than PAGE_MAX."""
        return bounded(self.limit)

    @property
    def and_one(self) -> Page:
        """With the row behind it, if there is one: whoever has to tell whether the page is the last looks for that."""
        return msgspec.structs.replace(self, limit=self.limit + 1)


def bounded(limit: int) -> int:
    """How many rows a page of `limit` may have."""
    return max(0, min(limit, PAGE_MAX + 1))


class Visibility(msgspec.Struct, frozen=True):
    """What the asker may see: everything, or the rows of `projects` and those owned by `uid`.

    A run is of the project that it ran for and of the one whose allocation carries it: the members of both see it.
    """

    everything: bool = False
    uid: int | None = None
    projects: frozenset[int] = frozenset()

    def sees(self, project: int) -> bool:
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
    """`active_at` picks by the period alone, so that it also answers for the past, whose allocations have ended since.
    `stands` picks those that stand so at that instant, as `Allocation.standing` says.

    What the projects `lenders` share is found beside what `sight` sees of `projects`: their children draw on it.
    """

    visibility: Visibility = ALL
    ids: frozenset[int] | None = None
    projects: frozenset[int] | None = None
    resource: str | None = None
    category: str | None = None
    stands: tuple[Standing, Instant] | None = None
    active_at: Instant | None = None
    lenders: frozenset[int] = frozenset()


class RunQuery(msgspec.Struct, frozen=True, kw_only=True):
    """`since` <= start < `until`; `projects` are those that the runs ran for, whoever paid; `allocation` is the one that carries them, and
    `resource`, `category` and `active_at` are about it. `failed`: those whose end was told, and was otherwise than COMPLETED, or was that.
    """

    visibility: Visibility = ALL
    ids: frozenset[int] | None = None
    projects: frozenset[int] | None = None
    resource: str | None = None
    category: str | None = None
    active_at: Instant | None = None
    allocation: int | None = None
    owner: int | None = None
    state: RunState | None = None
    failed: bool | None = None
    cluster: str | None = None
    job_id: int | None = None
    partition: str | None = None
    since: Instant | None = None
    until: Instant | None = None


class EntryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """`since` <= at < `until`; `projects` are, of entries about runs, those that these ran for, of others those of the books'
    allocations. Only an all-seeing sight sees the registry, but an owner sees entries that name them (their refusals)
    wherever these are."""

    visibility: Visibility = ALL
    ids: frozenset[int] | None = None
    book: int | None = None
    projects: frozenset[int] | None = None
    kinds: frozenset[Kind] | None = None
    owner: int | None = None
    since: Instant | None = None
    until: Instant | None = None


class RefusalQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Refused jobs: `since` <= at < `until`. `projects` and `resource` are what the job asked for, whether or not that led to an
    allocation; `account` finds beside them what asked for this account while no project had it. `category` and `active_at` are about the
    allocation that was met. Seen are, beside what a sight sees of entries, the
    refusals of jobs that asked for the credit of its projects: a project without an allocation has its refusals too.
    """

    visibility: Visibility = ALL
    ids: frozenset[int] | None = None
    allocation: int | None = None
    projects: frozenset[int] | None = None
    account: str | None = None
    resource: str | None = None
    category: str | None = None
    active_at: Instant | None = None
    owner: int | None = None
    cluster: str | None = None
    job_id: int | None = None
    since: Instant | None = None
    until: Instant | None = None


class UsageBy(Enum):
    USER = "user"
    DAY = "day"
    MONTH = "month"
    PARTITION = "partition"
    ALLOCATION = "allocation"
    JOB = "job"
    QOS = "qos"


class UsageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Runs, charged or released, whose end lies in `since` <= ended < `until`; `projects` and `allocation` as in RunQuery."""

    visibility: Visibility = ALL
    projects: frozenset[int] | None = None
    allocation: int | None = None
    resource: str | None = None
    owner: int | None = None
    since: Instant | None = None
    until: Instant | None = None


class GroupPage(msgspec.Struct, frozen=True):
    """At most `limit` groups beyond the group `after`, in rising order. `after` is a group as Usage has it."""

    limit: int = 100
    after: str | int | None = None

    @property
    def size(self) -> int:
        """How many groups it may have."""
        return bounded(self.limit)

    @property
    def and_one(self) -> GroupPage:
        """With the group behind it, if there is one."""
        return msgspec.structs.replace(self, limit=self.limit + 1)


class Usage(msgspec.Struct, frozen=True):
    """What a group of runs used. `group` is the uid, the day or month (UTC, ISO), the partition, the allocation, the job
    with its cluster (`darwin/4711`), or the QOS, NO_QOS for the runs of which nobody told one. The runs of a job are one where it was
    restarted, and where its number came again.

    `failed` counts the runs that ended otherwise than COMPLETED; `charged` is in SU-minutes, refunds taken off. `waited_seconds` is from
    submission to start. `cpu_seconds`, `given_seconds` and `wasted` are as in bank.efficiency. `early` counts the runs that failed
    early, and `early_exit` is the wait status that all these ended with; None where there are several, or nobody told.
    """

    group: str | int
    runs: int
    failed: int
    charged: int
    elapsed_seconds: int
    waited_seconds: int = 0
    cpu_seconds: int = 0
    given_seconds: int = 0
    wasted: int = 0
    early: int = 0
    early_exit: int | None = None


class UserRow(msgspec.Struct, frozen=True):
    """One user's sums in one allocation."""

    allocation: int
    uid: int
    sums: UserSums


class DebitQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Allocations of `projects` that `sight` sees, and whose charges in them."""

    visibility: Visibility = ALL
    projects: frozenset[int] | None = None
    allocation: int | None = None
    owner: int | None = None


class DebitPage(msgspec.Struct, frozen=True):
    """At most `limit` debits beyond that of `after`, an (allocation, owner), in rising order."""

    limit: int = 100
    after: tuple[int, int] | None = None

    @property
    def size(self) -> int:
        """How many it may have."""
        return bounded(self.limit)

    @property
    def and_one(self) -> DebitPage:
        """With the debit behind it, if there is one."""
        return msgspec.structs.replace(self, limit=self.limit + 1)


class RepeatedKey(msgspec.Struct, frozen=True):
    """A key under which an actor has more than one entry, which may not be: the first of them, and the last."""

    actor: int
    key: str
    first: int
    last: int


class Debit(msgspec.Struct, frozen=True):
    """What one owner was charged in one allocation, in SU-minutes, refunds taken off. `latest` is the number of the latest charged run."""

    allocation: int
    owner: int
    charged: int
    latest: int | None
