"""Long history in an empty store: allocations whose jobs were held for and charged many times.

Every entry follows from the one before it in its journal, and every row from the entries, as if the
bank had written them. The journals grow side by side, as in production: the entries of one
journal lie far apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

import msgspec

from benchmarks.bank import ACTOR, MEMORY, benchmark_bank
from benchmarks.measure import Say
from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Entry, Kind, link_of
from fairbank.bank.project import Project
from fairbank.bank.query import UserRow
from fairbank.bank.run import ReportedRun, RunEnd, RunRecord, RunState, UserSums
from fairbank.cluster.job import Run
from fairbank.core.time import DAY, Instant
from fairbank.core.units import SuMinutes
from fairbank.store.contract import Store

CLUSTER, PARTITION, OUTCOME = "past", "standard", "COMPLETED"
BEGIN, ELAPSED_SECONDS = Instant(1_700_000_000), 1_800
HELD, CHARGED = SuMinutes(60), SuMinutes(30)
OPENED = 2  # entries with which a journal begins: it is opened, and credit put into it
FIRST_UID, USERS = 100_000, 10

_ROWS_AT_ONCE = 5_000
_replace = msgspec.structs.replace
T = TypeVar("T")


class HistorySize(msgspec.Struct, frozen=True):
    """Size of the history: `jobs_each` jobs on each of `allocations` allocations, within a year."""

    allocations: int
    jobs_each: int

    @property
    def entries(self) -> int:
        """Number of entries in the journals of the allocations; journal 0 has one more for each
        allocation.
        """
        return self.allocations * (OPENED + 2 * self.jobs_each)

    def started(self, job: int) -> Instant:
        """Return the start of the job with this number within its allocation."""
        return Instant(BEGIN + job * 365 * DAY // self.jobs_each)


def fill_store(store: Store, past: HistorySize, say: Say) -> None:
    """Write the history into `store`, which must be empty."""
    with benchmark_bank(MEMORY, past.allocations) as begun, begun.bank.store.reading() as reader:
        projects, entries, registry = (
            list(reader.scan(Project)),
            list(reader.scan(Entry)),
            reader.registry(),
        )
        allocations = list(reader.scan(Allocation))
    entries.sort(key=lambda entry: entry.id)
    rows = _Rows(past, allocations, entries[-1].id)
    with store.restoring(replace=False) as filling:
        filling.insert(Project, projects)
        filling.insert(Entry, entries)
        for number, chunk in enumerate(_chunks(rows.entries())):
            filling.insert(Entry, chunk)
            if number % 200 == 0:
                say(f"{number * _ROWS_AT_ONCE:,} of {past.entries:,} entries written")
        filling.insert(Allocation, rows.closing())
        for chunk_of_users in _chunks(rows.users()):
            filling.insert(UserRow, chunk_of_users)
        for chunk_of_runs in _chunks(rows.runs()):
            filling.insert(RunRecord, chunk_of_runs)
        filling.registry(registry)


class _Rows:
    """History as rows. Only the hash links are kept; the rest follows from the number of a job."""

    def __init__(self, past: HistorySize, opened: list[Allocation], last_entry: int) -> None:
        self._past, self._opened, self._last_entry = past, opened, last_entry
        self._links = [allocation.link for allocation in opened]

    def entries(self) -> Iterator[Entry]:
        """Yield the entries by number: the first hold of every allocation, every first charge,
        every second hold and so on.
        """
        for job in range(self._past.jobs_each):
            for unlinked in (self._hold, self._charge):
                for place in range(len(self._opened)):
                    entry = unlinked(job, place)
                    link = self._links[place] = link_of(entry, entry.link)
                    yield _replace(entry, link=link)

    def closing(self) -> list[Allocation]:
        """Return the allocations at the end, after `entries` is exhausted."""
        jobs = self._past.jobs_each
        return [
            _replace(
                allocation,
                charged=SuMinutes(jobs * CHARGED),
                seq=allocation.seq + 2 * jobs,
                link=link,
            )
            for allocation, link in zip(self._opened, self._links, strict=True)
        ]

    def users(self) -> Iterator[UserRow]:
        for allocation in self._opened:
            for user in range(min(USERS, self._past.jobs_each)):
                jobs = len(range(user, self._past.jobs_each, USERS))
                yield UserRow(allocation.id, FIRST_UID + user, UserSums(SuMinutes(jobs * CHARGED)))

    def runs(self) -> Iterator[RunRecord]:
        for job in range(self._past.jobs_each):
            start = self._past.started(job)
            for place, allocation in enumerate(self._opened):
                held_by = self._held_by(job, place)
                yield RunRecord(
                    id=held_by,
                    reported=ReportedRun(
                        run=Run(CLUSTER, held_by, start),
                        project=allocation.terms.project,
                        partition=PARTITION,
                        start=start,
                        until=_until(start),
                    ),
                    allocation=allocation.id,
                    owner=_owner(job),
                    state=RunState.CHARGED,
                    held=SuMinutes(0),
                    set_by=held_by + len(self._opened),
                    charged=CHARGED,
                    end=RunEnd(OUTCOME, ELAPSED_SECONDS, _ended(start)),
                )

    def _held_by(self, job: int, place: int) -> int:
        """Return the number of the entry that holds for a job."""
        return self._last_entry + 2 * job * len(self._opened) + place + 1

    def _hold(self, job: int, place: int) -> Entry:
        held_by, start, project = (
            self._held_by(job, place),
            self._past.started(job),
            self._opened[place].terms.project,
        )
        run = (
            f'"run":["{CLUSTER}",{held_by},{start},0],"project":{project},"partition":"{PARTITION}"'
        )
        details = f'{{{run},"start":{start},"until":{_until(start)}}}'
        return self._entry(
            job, place, held_by, 1, start, Kind.HOLD, (HELD, job * CHARGED, HELD), details
        )

    def _charge(self, job: int, place: int) -> Entry:
        number, ended = (
            self._held_by(job, place) + len(self._opened),
            _ended(self._past.started(job)),
        )
        details = (
            f'{{"outcome":"{OUTCOME}","elapsed_seconds":{ELAPSED_SECONDS},"ended":{ended},'
            '"written_off":0}'
        )
        return self._entry(
            job, place, number, 2, ended, Kind.CHARGE, (CHARGED, (job + 1) * CHARGED, 0), details
        )

    def _entry(
        self,
        job: int,
        place: int,
        number: int,
        step: int,
        at: Instant,
        kind: Kind,
        sums: tuple[int, int, int],
        details: str,
    ) -> Entry:
        """Return an entry with the link of its predecessor; `sums`: its amount, then charged and
        held after it.
        """
        of = self._opened[place]
        amount, charged, held = sums
        return Entry(
            id=number,
            allocation=of.id,
            seq=of.seq + 2 * job + step,
            at=at,
            kind=kind,
            amount=amount,
            run=self._held_by(job, place),
            owner=_owner(job),
            actor=ACTOR,
            acting_as=None,
            key=None,
            digest=None,
            deposited=of.deposited,
            charged=charged,
            held=held,
            credit_limit=of.terms.credit_limit,
            overrun=of.overrun,
            comment=None,
            details=details,
            link=self._links[place],
        )


def _owner(job: int) -> int:
    return FIRST_UID + job % USERS


def _ended(start: Instant) -> Instant:
    return Instant(start + ELAPSED_SECONDS)


def _until(start: Instant) -> Instant:
    return Instant(start + 90_000)


def _chunks(rows: Iterable[T]) -> Iterator[list[T]]:
    walk = iter(rows)
    while chunk := list(islice(walk, _ROWS_AT_ONCE)):
        yield chunk
