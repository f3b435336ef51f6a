"""Figures of a period: statements, opening balances, usage."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairbank.bank.query import (
    NO_QOS,
    PAGE_MAX,
    GroupPage,
    Page,
    RunQuery,
    Usage,
    UsageQuery,
    Visibility,
)
from fairbank.bank.requests import Deposit, Lapse, Refund, Undo
from fairbank.cluster.job import JobDetails, Run
from fairbank.core.ids import OVERFLOW_UID
from fairbank.core.time import DAY, Instant
from fairbank.core.time_zone import parse_zone, zone_offsets
from fairbank.core.units import SuMinutes
from fairbank.core.usage_groups import UsageBy
from fairbank.store.contract import Store
from fairbank.store.memory.store import MemoryStore
from tests.contracts.small_site import (
    ALICE,
    BOB,
    CAROL,
    START,
    SnapshotReader,
    allocation,
    charge,
    copy_ledger,
    granted,
    hold,
    job,
    late_charge,
    project,
    release,
)

NEW_YEAR = 1_767_225_600  # 2026-01-01T00:00:00Z
PAGE = Page()
MEASURED: dict[str, Any] = {
    "ended": NEW_YEAR,
    "elapsed_seconds": 0,
    "partition": "",
    "owner": OVERFLOW_UID,
}


def test_statement_has_an_opening_balance(store: Store) -> None:
    granted(store, project("physics", 100))
    granted(store, allocation(1, 100), at=START)
    for day in range(1, 6):
        granted(store, Deposit(allocation=1, amount=SuMinutes(day)), at=START + day * DAY)
    since, until = Instant(START + 2 * DAY), Instant(START + 4 * DAY)
    assert [entry.amount for entry in SnapshotReader(store).statement(1, since, until, PAGE)] == [
        2,
        3,
    ]
    assert SnapshotReader(store).entry_before(1, since).deposited == 101
    assert SnapshotReader(store).entry_before(1, Instant(START)) is None
    assert SnapshotReader(store).entry_before(77, since) is None
    assert SnapshotReader(store).statement(77, since, until, PAGE) == []
    assert [
        entry.amount for entry in SnapshotReader(store).statement(1, since, until, Page(1, after=4))
    ] == [3]
    assert [
        entry.amount
        for entry in SnapshotReader(store).statement(1, since, until, Page(1, newest_first=True))
    ] == [3]
    assert len(SnapshotReader(store).statement(1, Instant(0), Instant(2**40), PAGE)) == 7


def test_statement_adds_up_after_clock_change(store: Store) -> None:
    granted(store, project("physics", 100))
    granted(store, allocation(1, 100), at=START)
    for amount, at in ((1, 10), (2, 30), (4, 15), (8, 25), (16, 40)):
        granted(store, Deposit(allocation=1, amount=SuMinutes(amount)), at=START + at)
    for first in range(0, 50, 5):
        for last in range(first, 50, 5):
            since, until = Instant(START + first), Instant(START + last)
            opening = SnapshotReader(store).entry_before(1, since)
            closing = SnapshotReader(store).entry_before(1, until)
            moved = SnapshotReader(store).statement(1, since, until, PAGE)
            deposited = [balance.deposited if balance else 0 for balance in (opening, closing)]
            assert deposited[0] + sum(entry.amount for entry in moved) == max(deposited)


def test_usage_can_be_grouped(store: Store) -> None:
    granted(store, project("physics", 100), project("chemistry", 200))
    granted(
        store,
        allocation(1, end=2**40),
        allocation(2, end=2**40),
        allocation(2, resource="gpu", end=2**40),
    )
    runs = [
        (1, ALICE, 1, 10, NEW_YEAR - 1, "COMPLETED"),
        (2, ALICE, 1, 20, NEW_YEAR, "FAILED"),
        (3, BOB, 1, 30, NEW_YEAR + DAY, "COMPLETED"),
        (4, BOB, 2, 40, NEW_YEAR + DAY, "TIMEOUT"),
    ]
    for number, owner, of, amount, ended, outcome in runs:
        granted(
            store,
            late_charge(
                number,
                amount,
                owner=owner,
                project=of,
                ended=ended,
                outcome=outcome,
                elapsed_seconds=number,
            ),
        )
    granted(store, Refund(run=job(3), amount=SuMinutes(5)), hold(9, 100))

    def groups(by: UsageBy, **query: Any) -> list[tuple[str | int, int, int, int, int]]:
        result: list[Usage] = SnapshotReader(store).usage(UsageQuery(**query), by, GroupPage())
        assert {(row.resource, row.clusters) for row in result} <= {("cpu", "darwin")}
        return [
            (row.group, row.runs, row.failed, row.charged, row.elapsed_seconds) for row in result
        ]

    assert groups(UsageBy.USER) == [(ALICE, 2, 1, 30, 3), (BOB, 2, 1, 65, 7)]
    assert groups(UsageBy.DAY) == [
        ("2025-12-31", 1, 0, 10, 1),
        ("2026-01-01", 1, 1, 20, 2),
        ("2026-01-02", 2, 1, 65, 7),
    ]
    assert groups(UsageBy.MONTH) == [("2025-12", 1, 0, 10, 1), ("2026-01", 3, 2, 85, 9)]
    assert groups(UsageBy.WEEK) == [("2026-W01", 4, 2, 95, 10)]
    assert groups(UsageBy.PROJECT) == [(1, 3, 1, 55, 6), (2, 1, 1, 40, 4)]
    assert groups(UsageBy.RESOURCE) == [("cpu", 4, 2, 95, 10)]
    assert groups(UsageBy.CLUSTER) == [("darwin", 4, 2, 95, 10)]
    assert groups(UsageBy.CATEGORY) == [("startup", 4, 2, 95, 10)]
    east = zone_offsets(parse_zone("Europe/Rome"), 0, NEW_YEAR + 2 * DAY)
    assert groups(UsageBy.MONTH, offsets=east) == [("2026-01", 4, 2, 95, 10)]
    west = zone_offsets(parse_zone("America/New_York"), 0, NEW_YEAR + 2 * DAY)
    assert groups(UsageBy.DAY, offsets=west) == [
        ("2025-12-31", 2, 1, 30, 3),
        ("2026-01-01", 2, 1, 65, 7),
    ]
    assert groups(UsageBy.PARTITION) == [("standard", 4, 2, 95, 10)]
    assert groups(UsageBy.JOB) == [
        ("darwin/1", 1, 0, 10, 1),
        ("darwin/2", 1, 1, 20, 2),
        ("darwin/3", 1, 0, 25, 3),
        ("darwin/4", 1, 1, 40, 4),
    ]
    after = [
        row.group
        for row in SnapshotReader(store).usage(
            UsageQuery(), UsageBy.JOB, GroupPage(2, ("darwin/2", "cpu", "darwin"))
        )
    ]
    assert after == ["darwin/3", "darwin/4"]
    assert groups(UsageBy.ALLOCATION) == [(1, 3, 1, 55, 6), (2, 1, 1, 40, 4)]
    assert groups(UsageBy.USER, since=Instant(NEW_YEAR), until=Instant(NEW_YEAR + DAY)) == [
        (ALICE, 1, 1, 20, 2)
    ]
    assert groups(UsageBy.USER, projects=frozenset({2})) == [(BOB, 1, 1, 40, 4)]
    assert groups(UsageBy.ALLOCATION_USER, allocations=frozenset({1, 2})) == [
        (f"1/{ALICE}", 2, 1, 30, 3),
        (f"1/{BOB}", 1, 0, 25, 3),
        (f"2/{BOB}", 1, 1, 40, 4),
    ]
    assert groups(UsageBy.USER, allocations=frozenset({1}), owners=frozenset({BOB})) == [
        (BOB, 1, 0, 25, 3)
    ]
    assert groups(UsageBy.USER, resources=frozenset({"gpu"})) == []
    assert groups(UsageBy.USER, visibility=Visibility(uid=ALICE, projects=frozenset({2}))) == [
        (ALICE, 2, 1, 30, 3),
        (BOB, 1, 1, 40, 4),
    ]
    assert groups(UsageBy.USER, visibility=Visibility()) == []


def test_weeks_of_usage_are_iso_weeks_of_the_zone(store: Store) -> None:
    """2027-01-03 is a Sunday of 2026-W53. In Kiritimati, 14 h east, Monday begins 14 h earlier."""
    granted(store, project("physics", 100))
    granted(store, allocation(1, end=2**40))
    sunday = 1_798_934_400  # 2027-01-03T00:00:00Z
    for number, hour in ((1, 9), (2, 10), (3, 24)):
        granted(store, late_charge(number, number, ended=sunday + hour * 3_600))

    def weeks(**query: Any) -> list[tuple[str | int, int]]:
        rows = SnapshotReader(store).usage(UsageQuery(**query), UsageBy.WEEK, GroupPage())
        return [(row.group, row.charged) for row in rows]

    assert weeks() == [("2026-W53", 3), ("2027-W01", 3)]
    east = zone_offsets(parse_zone("Pacific/Kiritimati"), sunday - DAY, sunday + 2 * DAY)
    assert weeks(offsets=east) == [("2026-W53", 1), ("2027-W01", 5)]


def test_usage_of_any_period_is_the_same_with_sums_of_days(store: Store) -> None:
    """Runs end in the first, middle and last second of days; sums are folded in between."""
    granted(store, project("physics", 100), project("chemistry", 200))
    granted(store, *(allocation(number, 10**6, end=2**40) for number in (1, 2)))
    day = NEW_YEAR // DAY
    ends = [(day + number) * DAY + second for number in range(4) for second in (0, 7, DAY - 1)]
    details = JobDetails(cpus=8, cpu_seconds=1_000, exit_status=256, qos="high", tres="gres/gpu=2")
    for number, ended in enumerate(ends, start=1):
        run = late_charge(
            number,
            100 * number,
            project=1 + number % 2,
            ended=ended,
            elapsed_seconds=100 + number,
            outcome="FAILED" if number % 3 else "COMPLETED",
            job_details=details,
        )
        granted(store, run)
        if number in (4, 5, 9):
            while store.fold_usage():
                pass
    (back, _) = granted(store, Refund(run=job(2), amount=SuMinutes(30)), Refund(run=job(11)))
    assert (store.fold_usage() == 0) == isinstance(store, MemoryStore)
    granted(store, Undo(entry=back.entry, allocation=1, run=job(2)), Refund(run=job(3)))
    twin = MemoryStore()
    copy_ledger(store, twin)
    edges = [None, *(Instant((day + n) * DAY + s) for n in (-1, 0, 1, 3) for s in (0, 7))]
    for number, since in enumerate(edges):
        for until in [None, *edges[number:]]:
            query = UsageQuery(since=since, until=until)
            for by in (UsageBy.DAY, UsageBy.PROJECT, UsageBy.CATEGORY):
                expected = SnapshotReader(twin).usage(query, by, GroupPage(PAGE_MAX))
                actual = SnapshotReader(store).usage(query, by, GroupPage(PAGE_MAX))
                assert actual == expected, (since, until, by)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_calendar_of_any_zone_is_the_same_with_sums_of_days(store: Store, zone: str) -> None:
    """A month or week begins within a day of the sums: 5 h later in New York, 4 h in summer."""
    granted(store, project("physics", 100))
    granted(store, allocation(1, 10**6, end=2**40))
    starts = ((number * 7 * DAY // 2, number % 3 * 9_000) for number in range(60))
    ends = [NEW_YEAR + day - shift for day, shift in starts]
    granted(store, *(late_charge(n, n, ended=ended) for n, ended in enumerate(ends, start=1)))
    while store.fold_usage():
        pass
    granted(store, Refund(run=job(9), amount=SuMinutes(5)), late_charge(99, 7, ended=ends[30]))
    twin = MemoryStore()
    copy_ledger(store, twin)
    for since, until in ((ends[0], ends[-1]), (ends[5] + 7, ends[50]), (None, ends[-1])):
        offsets = zone_offsets(parse_zone(zone), since or 0, until)
        query = UsageQuery(
            since=None if since is None else Instant(since), until=Instant(until), offsets=offsets
        )
        for by in (UsageBy.DAY, UsageBy.WEEK, UsageBy.MONTH):
            expected = SnapshotReader(twin).usage(query, by, GroupPage(PAGE_MAX))
            assert SnapshotReader(store).usage(query, by, GroupPage(PAGE_MAX)) == expected, by


def test_replaced_ledger_has_its_own_usage(store: Store) -> None:
    """Sums of the ledger that a restore replaced do not stay."""
    granted(store, project("physics", 100))
    granted(store, allocation(1, end=2**40), late_charge(1, 10, ended=NEW_YEAR))
    backup = MemoryStore()
    copy_ledger(store, backup)
    granted(store, late_charge(2, 20, ended=NEW_YEAR))
    store.fold_usage()
    copy_ledger(backup, store)
    for _ in range(2):
        (total,) = SnapshotReader(store).usage(UsageQuery(), UsageBy.USER, GroupPage())
        assert (total.runs, total.charged) == (1, 10)
        store.fold_usage()


def test_usage_of_different_units_is_not_added(store: Store) -> None:
    """Units are resources, and clusters with different prices of a resource."""
    granted(store, project("physics", 100))
    granted(store, *(allocation(1, resource=resource, end=2**40) for resource in ("cpu", "gpu")))
    charges = [
        ("cpu", "anvil", 1),
        ("cpu", "bell", 2),
        ("cpu", "darwin", 4),
        ("gpu", "anvil", 8),
        ("gpu", "bell", 16),
        ("cpu", "old", 32),
    ]
    for number, (resource, cluster, amount) in enumerate(charges, start=1):
        run = late_charge(number, amount, run=Run(cluster, number, 900, 0), ended=NEW_YEAR)
        granted(store, msgspec.structs.replace(run, resource=resource))
    priced = UsageQuery(
        price_groups=(
            ("cpu", "anvil", "anvil+bell"),
            ("cpu", "bell", "anvil+bell"),
            ("cpu", "darwin", "darwin"),
            ("gpu", "anvil", "anvil"),
            ("gpu", "bell", "bell"),
        )
    )

    def rows(by: UsageBy, page: GroupPage) -> list[tuple[object, ...]]:
        usages = SnapshotReader(store).usage(priced, by, page)
        return [(*row.key, row.charged) for row in usages]

    of_alice = [
        (ALICE, "cpu", "anvil+bell", 3),
        (ALICE, "cpu", "darwin", 4),
        (ALICE, "cpu", "old", 32),
        (ALICE, "gpu", "anvil", 8),
        (ALICE, "gpu", "bell", 16),
    ]
    assert rows(UsageBy.USER, GroupPage()) == of_alice
    assert rows(UsageBy.USER, GroupPage(2, of_alice[1][:3])) == of_alice[2:4]
    months = [("2026-01", *row[1:]) for row in of_alice]
    assert rows(UsageBy.MONTH, GroupPage()) == months
    assert rows(UsageBy.MONTH, GroupPage(9, months[3][:3])) == months[4:]
    assert rows(UsageBy.CLUSTER, GroupPage())[:2] == [
        ("anvil", "cpu", "anvil+bell", 1),
        ("anvil", "gpu", "anvil", 8),
    ]
    largest = rows(UsageBy.JOB, GroupPage(1, largest=True))
    assert largest == [
        ("bell/2", "cpu", "anvil+bell", 2),
        *(
            (f"{name}/{number}", resource, name, amount)
            for resource, name, number, amount in (
                ("cpu", "darwin", 3, 4),
                ("cpu", "old", 6, 32),
                ("gpu", "anvil", 4, 8),
                ("gpu", "bell", 5, 16),
            )
        ),
    ]


def test_usage_counts_runs_without_charge(store: Store) -> None:
    """Runs of failed nodes and runs without cost count; open runs and lost runs do not."""
    granted(store, project("physics", 100))
    granted(store, allocation(1, 10_000, end=2**40), *(hold(number, 60) for number in range(1, 6)))
    ended: dict[str, Any] = {"ended": Instant(NEW_YEAR), "elapsed_seconds": 60}
    granted(store, charge(1, 30, **ended), charge(2, 0, **ended), release(3, **ended), at=NEW_YEAR)
    granted(store, Lapse(run=job(4)), at=NEW_YEAR)
    (used,) = SnapshotReader(store).usage(UsageQuery(), UsageBy.USER, GroupPage())
    assert (used.runs, used.failed, used.charged, used.elapsed_seconds) == (3, 1, 30, 180)


def test_run_cancelled_before_it_ran_is_no_failure(store: Store) -> None:
    """As `fairbank release` reports it. A run that crashed in its first second is a failure."""
    granted(store, project("physics", 100))
    granted(store, allocation(1, 10_000, end=2**40), *(hold(number, 60) for number in range(1, 4)))
    for number, outcome, elapsed in ((1, "CANCELLED", 0), (2, "FAILED", 0), (3, "CANCELLED", 9)):
        end: dict[str, Any] = {"ended": Instant(NEW_YEAR), "elapsed_seconds": elapsed}
        granted(store, release(number, outcome=outcome, **end), at=NEW_YEAR)
    (used,) = SnapshotReader(store).usage(UsageQuery(), UsageBy.USER, GroupPage())
    assert (used.runs, used.failed) == (3, 2)
    listed = SnapshotReader(store).runs(RunQuery(failed=True), PAGE)
    assert [run.reported.run.job_id for run in listed] == [2, 3]


def test_measured_use_is_no_run_even_if_it_is_written_off(store: Store) -> None:
    """It has neither partition nor user. Jobs reported by HADM's fields have no partition too."""
    granted(store, project("physics", 100), allocation(1, 100, end=2**40))
    granted(
        store,
        *(late_charge(number, 60, **MEASURED) for number in (1, 2, 3)),
        late_charge(4, 0, **MEASURED | {"owner": ALICE}),
        late_charge(5, 0, **MEASURED | {"partition": "standard"}),
    )
    for _ in ("before the sums are brought up to date", "after"):
        query = UsageQuery(price_groups=(("cpu", "darwin", "darwin"),))
        (used,) = SnapshotReader(store).usage(query, UsageBy.PROJECT, GroupPage())
        assert (used.runs, used.charged) == (2, 100)
        store.fold_usage()
    for measured, jobs in ((True, [1, 2, 3]), (False, [4, 5]), (None, [1, 2, 3, 4, 5])):
        runs = SnapshotReader(store).runs(RunQuery(measured=measured), PAGE)
        assert [run.reported.run.job_id for run in runs] == jobs


def test_unit_of_measured_use_is_that_of_the_run_beside_jobs_of_the_same_cluster(
    store: Store,
) -> None:
    """Jobs of a system that the settings lack, and measured use of it, share an allocation. At 3:00
    east of Greenwich, the days, the week and the month are other ones than in UTC.
    """
    granted(store, project("physics", 100), allocation(1, resource="storage", end=2**40))
    job: dict[str, Any] = {"elapsed_seconds": 60}
    uses = (
        (-7 * 3_600, 1, MEASURED),
        (-2 * 3_600, 2, job),  # in UTC the day before, in the zone New Year
        (-1 * 3_600, 4, MEASURED),
        (3_600, 8, MEASURED),
        (40 * DAY, 16, job),
        (41 * DAY, 32, MEASURED),
    )
    for number, (after, amount, more) in enumerate(uses, start=1):
        run = late_charge(
            number, amount, run=Run("old", number, 900, 0), **more | {"ended": NEW_YEAR + after}
        )
        granted(store, msgspec.structs.replace(run, resource="storage"))
    offsets = zone_offsets(parse_zone("Etc/GMT-3"), 0, NEW_YEAR + 99 * DAY)
    units = {
        UsageBy.PROJECT: [(1, "", 45), (1, "old", 18)],
        UsageBy.CLUSTER: [("old", "", 45), ("old", "old", 18)],
        UsageBy.ALLOCATION_USER: [("1", "", 45), (f"1/{ALICE}", "old", 18)],
        UsageBy.JOB: [("old", "", 45), ("old/2", "old", 2), ("old/5", "old", 16)],
        UsageBy.MONTH: [
            ("2025-12", "", 1),
            ("2026-01", "", 12),
            ("2026-01", "old", 2),
            ("2026-02", "", 32),
            ("2026-02", "old", 16),
        ],
        UsageBy.DAY: [
            ("2025-12-31", "", 1),
            ("2026-01-01", "", 12),
            ("2026-01-01", "old", 2),
            ("2026-02-10", "old", 16),
            ("2026-02-11", "", 32),
        ],
    }
    for _ in ("before the sums are brought up to date", "after"):
        for by, expected in units.items():
            query = UsageQuery(offsets=offsets if by.is_time else ())
            rows = SnapshotReader(store).usage(query, by, GroupPage())
            assert [(row.group, row.clusters, row.charged) for row in rows] == expected
        store.fold_usage()


def test_usage_by_qos(store: Store) -> None:
    granted(store, project("physics", 100))
    granted(store, allocation(1, 10_000, end=2**40))
    qualities = (None, "normal", "high", "Long", "_night", "normal")
    for number, qos in enumerate(qualities, start=1):
        output = None if qos is None else JobDetails(qos=qos)
        granted(
            store,
            late_charge(number, number, job_details=output, ended=NEW_YEAR, elapsed_seconds=number),
        )
    granted(
        store,
        late_charge(7, 7, job_details=JobDetails(name="relax"), ended=NEW_YEAR, elapsed_seconds=7),
    )
    result: list[Usage] = SnapshotReader(store).usage(UsageQuery(), UsageBy.QOS, GroupPage())
    assert [(row.group, row.runs, row.charged) for row in result] == [
        (NO_QOS, 2, 8),
        ("Long", 1, 4),
        ("_night", 1, 5),
        ("high", 1, 3),
        ("normal", 2, 8),
    ]
    pages = [
        SnapshotReader(store).usage(
            UsageQuery(), UsageBy.QOS, GroupPage(2, (after, "cpu", "darwin"))
        )
        for after in (NO_QOS, "_night")
    ]
    assert [[row.group for row in page] for page in pages] == [
        ["Long", "_night"],
        ["high", "normal"],
    ]


def test_run_keeps_qos_of_its_hold(store: Store) -> None:
    granted(store, project("physics", 100))
    granted(store, allocation(1, 10_000, end=2**40))
    granted(store, hold(1, 60, job_details=JobDetails(qos="high", cpus=8)))
    granted(store, charge(1, 30, ended=NEW_YEAR, elapsed_seconds=60))
    (run,) = SnapshotReader(store).runs(RunQuery(), PAGE)
    assert run.reported.job_details == JobDetails(qos="high", cpus=8)
    assert [
        row.group for row in SnapshotReader(store).usage(UsageQuery(), UsageBy.QOS, GroupPage())
    ] == ["high"]


def test_usage_reports_wasted_cost(store: Store) -> None:
    """The idle part of each run's price, by run: a small busy run does not compensate an expensive
    idle one.
    """
    granted(store, project("physics", 100))
    granted(store, allocation(1, 10_000, end=2**40))
    output = {"ended": NEW_YEAR + 600, "elapsed_seconds": 600}
    of_eight = JobDetails(cpus=8, cpu_seconds=1_200)
    granted(
        store,
        late_charge(1, 1_000, job_details=of_eight, **output),  # a quarter of 4,800
        late_charge(
            2, 10, job_details=JobDetails(cpus=1_000, cpu_seconds=700_000), **output
        ),  # more than there was
        late_charge(3, 500, job_details=JobDetails(cpus=8), **output),  # nobody told
        late_charge(4, 70, job_details=JobDetails(cpu_seconds=7), **output),
        late_charge(5, 60, job_details=of_eight, ended=NEW_YEAR + DAY, elapsed_seconds=0),
        late_charge(6, 9, owner=BOB, job_details=JobDetails(cpus=1, cpu_seconds=0), **output),
        Refund(run=job(1), amount=SuMinutes(400)),
    )
    used: list[Usage] = SnapshotReader(store).usage(UsageQuery(), UsageBy.USER, GroupPage())
    assert [(row.cpu_seconds, row.given_seconds, row.wasted) for row in used] == [
        (601_200, 604_800, 450),
        (0, 600, 9),
    ]
    assert [row.waited_seconds for row in used] == [5 * (START - 900), START - 900]
    (month,) = SnapshotReader(store).usage(UsageQuery(), UsageBy.MONTH, GroupPage())
    assert (month.runs, month.cpu_seconds, month.given_seconds, month.wasted) == (
        6,
        601_200,
        605_400,
        459,
    )
    first, second, third, *_ = SnapshotReader(store).usage(UsageQuery(), UsageBy.JOB, GroupPage())
    assert [(row.group, row.given_seconds, row.wasted) for row in (first, second, third)] == [
        ("darwin/1", 4_800, 450),
        ("darwin/2", 600_000, 0),
        ("darwin/3", 0, 0),
    ]


@pytest.mark.parametrize(
    ("charged", "cpus", "seconds", "used", "wasted"),
    [
        (13_444, 16, 50_414, 626_944, 2_995),  # 13,444 x 179,680 / 806,624 = 2,994.7
        (3, 1, 2, 1, 2),  # 1.5
        (1_000_000_000_000, 1_000, 1_000, 333_333, 666_667_000_000),
    ],
)
def test_wasted_cost_is_right_to_a_minute(
    store: Store, charged: int, cpus: int, seconds: int, used: int, wasted: int
) -> None:
    granted(store, project("physics", 100))
    granted(store, allocation(1, 2 * 10**12, end=2**40))
    details = JobDetails(cpus=cpus, cpu_seconds=used)
    end = {"ended": NEW_YEAR + seconds, "elapsed_seconds": seconds}
    granted(store, late_charge(1, charged, job_details=details, **end))
    for by in (UsageBy.USER, UsageBy.JOB):
        (row,) = SnapshotReader(store).usage(UsageQuery(), by, GroupPage())
        assert (row.charged, row.wasted) == (charged, wasted)


def test_usage_counts_the_hours_of_processors_and_gpus(store: Store) -> None:
    """Slurm writes all GPUs as gres/gpu; a cluster that counts only types has no such sum."""
    granted(store, project("physics", 100))
    granted(store, allocation(1, 10_000, end=2**40))
    texts = [
        ("cpu=8,mem=4G,node=1,billing=8,gres/gpu=4,gres/gpu:v100=4", 4),
        ("cpu=8,gres/gpu:v100=3", 3),
        ("cpu=8,gres/gpu:v100=1,gres/gpu=2", 2),
        ("cpu=8,gres/gpu:a100=2,gres/gpu:v100=1", 3),
        ("CPU=8,GPU=2", 2),
        ("cpu=8,gpu:a100=1,gres/gpu:v100=.5", 1),
        ("cpu=8,gres/shard=7,gres/mygres/gpu=9,gres/gpus=9", 0),
        (None, 0),
    ]
    for number, (tres, _) in enumerate(texts, start=1):
        details = JobDetails(cpus=8, tres=tres)
        granted(
            store, late_charge(number, 1, job_details=details, ended=NEW_YEAR, elapsed_seconds=100)
        )
    granted(store, late_charge(len(texts) + 1, 1, ended=NEW_YEAR, elapsed_seconds=100))
    jobs: list[Usage] = SnapshotReader(store).usage(UsageQuery(), UsageBy.JOB, GroupPage())
    assert [row.gpu_seconds for row in jobs] == [*(100 * gpus for _, gpus in texts), 0]
    assert [row.core_seconds for row in jobs] == [*(800 for _ in texts), 0]
    (total,) = SnapshotReader(store).usage(UsageQuery(), UsageBy.RESOURCE, GroupPage())
    assert (total.core_seconds, total.gpu_seconds) == (6_400, 1_500)


def test_usage_counts_early_failures(store: Store) -> None:
    granted(store, project("physics", 100))
    granted(store, allocation(1, end=2**40))
    not_found, killed = JobDetails(exit_status=127 * 256), JobDetails(exit_status=9)
    failing = [
        *((number, ALICE, 120, "FAILED", not_found) for number in (1, 2)),
        (3, ALICE, 121, "FAILED", killed),
        (4, ALICE, 60, "CANCELLED", killed),
        (5, BOB, 60, "FAILED", not_found),
        (6, BOB, 60, "OUT_OF_MEMORY", killed),
        (7, CAROL, 60, "FAILED", None),
    ]
    for number, owner, seconds, outcome, details in failing:
        ended = NEW_YEAR + number * DAY
        run = late_charge(
            number,
            1,
            owner=owner,
            ended=ended,
            outcome=outcome,
            elapsed_seconds=seconds,
            job_details=details,
        )
        granted(store, run)
    by_user: list[Usage] = SnapshotReader(store).usage(UsageQuery(), UsageBy.USER, GroupPage())
    assert [(row.group, row.early, row.early_exit) for row in by_user] == [
        (ALICE, 2, 127 * 256),
        (BOB, 2, None),
        (CAROL, 1, None),
    ]
    (month,) = SnapshotReader(store).usage(
        UsageQuery(owners=frozenset({ALICE})), UsageBy.MONTH, GroupPage()
    )
    assert (month.early, month.early_exit) == (2, 127 * 256)


def test_usage_pages_add_up(store: Store) -> None:
    granted(
        store, project("physics", 100), *(project(f"p{number}", number) for number in (1, 2, 3))
    )
    granted(store, *(allocation(number, end=2**40) for number in (1, 2, 3, 4)))
    partitions = ["B", "a", "\u00e9", "b-1", "_"]
    for number in range(1, 21):
        run = late_charge(
            number,
            number,
            owner=1_000 + number % 7,
            project=1 + number % 4,
            ended=NEW_YEAR + number * 9 * DAY,
            partition=partitions[number % 5],
        )
        granted(store, run)
    for by in UsageBy:
        all_rows = SnapshotReader(store).usage(UsageQuery(), by, GroupPage(PAGE_MAX))
        assert sum(row.runs for row in all_rows) == 20
        for limit in (1, 3):
            result: list[Usage] = []
            while page := SnapshotReader(store).usage(
                UsageQuery(), by, GroupPage(limit, result[-1].key if result else None)
            ):
                assert len(page) <= limit
                result += page
            assert result == all_rows, by
        assert SnapshotReader(store).usage(UsageQuery(), by, GroupPage(0)) == []


def test_long_statement_is_cut_by_time(store: Store) -> None:
    granted(store, project("physics", 100))
    granted(store, allocation(1, 100), at=START)
    for number in range(1, 71):
        granted(store, Deposit(allocation=1, amount=SuMinutes(1)), at=START + number // 3 * 10)
    journal = SnapshotReader(store).statement(1, Instant(0), Instant(2**40), Page(PAGE_MAX))
    for at in range(START - 5, START + 300, 5):
        earlier = [entry for entry in journal if entry.at < at]
        assert SnapshotReader(store).entry_before(1, Instant(at)) == (
            earlier[-1] if earlier else None
        )
        assert (
            SnapshotReader(store).statement(1, Instant(0), Instant(at), Page(PAGE_MAX)) == earlier
        )


def test_cut_is_stable_when_entries_are_added(store: Store) -> None:
    """This also holds where a clock was set back. Otherwise the closing balance of a month would
    change afterwards.
    """
    granted(store, project("physics", 100))
    granted(store, allocation(1, 100), at=START)
    for amount, at in enumerate((10, 30, 15, 25, 40, 20, 50), start=1):
        granted(store, Deposit(allocation=1, amount=SuMinutes(amount)), at=START + at)
    cuts = [
        SnapshotReader(store).entry_before(1, Instant(START + number)) for number in range(5, 51)
    ]
    seqs = [cut.seq if cut else 0 for cut in cuts]
    assert seqs == sorted(seqs), "a later instant cuts no earlier"
    for _ in range(20):
        granted(store, Deposit(allocation=1, amount=SuMinutes(1)), at=START + 51)
    assert [
        SnapshotReader(store).entry_before(1, Instant(START + number)) for number in range(5, 51)
    ] == cuts


def test_measured_use_is_one_unit_unless_clusters_bill_its_resource(store: Store) -> None:
    """A TiB-day is 1 SU on each system. Jobs of a cluster that the settings lack stay apart."""
    granted(store, project("physics", 100))
    resources = ("cpu", "storage")
    granted(store, *(allocation(1, resource=resource, end=2**40) for resource in resources))
    job: dict[str, Any] = {"ended": NEW_YEAR, "elapsed_seconds": 60}
    uses = (
        ("storage", "home", 1, MEASURED),
        ("storage", "scratch", 2, MEASURED),
        ("storage", "old", 4, job),
        ("cpu", "scratch", 8, MEASURED),
    )
    for number, (resource, system, amount, more) in enumerate(uses, start=1):
        run = late_charge(number, amount, run=Run(system, number, 900, 0), **more)
        granted(store, msgspec.structs.replace(run, resource=resource))
    query = UsageQuery(price_groups=(("cpu", "darwin", "darwin"),))
    for _ in ("before the sums are brought up to date", "after"):
        for by in (UsageBy.PROJECT, UsageBy.QOS, UsageBy.MONTH):
            usages = SnapshotReader(store).usage(query, by, GroupPage())
            assert [(*row.key[1:], row.charged) for row in usages] == [
                ("cpu", "scratch", 8),
                ("storage", "", 3),
                ("storage", "old", 4),
            ]
        usages = SnapshotReader(store).usage(query, UsageBy.CLUSTER, GroupPage(9, largest=True))
        assert {row.key for row in usages if row.resource == "storage"} == {
            ("home", "storage", ""),
            ("scratch", "storage", ""),
            ("old", "storage", "old"),
        }
        store.fold_usage()


def test_open_holds_are_those_that_hold_credit(store: Store) -> None:
    """Jobs that cost nothing, such as those of a free QOS, hold none."""
    granted(store, project("physics", 100))
    granted(store, allocation(1, 100))
    granted(store, hold(1, 20, owner=ALICE))
    before = SnapshotReader(store).open_holds(frozenset({1}))
    assert [(key, held.held, held.runs) for key, held in before.items()] == [((1, ALICE), 20, 1)]
    granted(store, hold(2, 0, owner=ALICE))
    granted(store, hold(3, 0, owner=BOB))
    assert SnapshotReader(store).open_holds(frozenset({1})) == before
    granted(store, hold(4, 5, owner=ALICE))
    (after,) = SnapshotReader(store).open_holds(frozenset({1})).values()
    assert (after.held, after.runs) == (25, 2)
    assert after.set_by > before[1, ALICE].set_by
