"""Figures of a period: statements, opening balances, usage."""

from __future__ import annotations

from typing import Any

import msgspec

from fairbank.bank.query import (
    NO_QOS,
    PAGE_MAX,
    GroupPage,
    Page,
    RunQuery,
    Usage,
    UsageBy,
    UsageQuery,
    Visibility,
)
from fairbank.bank.requests import Charge, Deposit, Lapse, Refund, Release
from fairbank.cluster.job import JobDetails
from fairbank.core.time import DAY, Instant
from fairbank.core.units import SuMinutes
from fairbank.store.contract import Store
from tests.contracts.site import (
    ALICE,
    BOB,
    CAROL,
    START,
    Look,
    allocation,
    charge,
    granted,
    hold,
    job,
    late_charge,
    project,
)

NEW_YEAR = 1_767_225_600  # 2026-01-01T00:00:00Z
PAGE = Page()


def test_a_statement_and_its_opening_balance(store: Store) -> None:
    granted(store, project("physics", 100))
    granted(store, allocation(1, 100), at=START)
    for day in range(1, 6):
        granted(store, Deposit(allocation=1, amount=SuMinutes(day)), at=START + day * DAY)
    since, until = Instant(START + 2 * DAY), Instant(START + 4 * DAY)
    assert [each.amount for each in Look(store).statement(1, since, until, PAGE)] == [2, 3]
    assert Look(store).entry_before(1, since).deposited == 101
    assert Look(store).entry_before(1, Instant(START)) is None
    assert Look(store).entry_before(77, since) is None
    assert Look(store).statement(77, since, until, PAGE) == []
    assert [each.amount for each in Look(store).statement(1, since, until, Page(1, after=4))] == [3]
    assert [
        each.amount for each in Look(store).statement(1, since, until, Page(1, newest_first=True))
    ] == [3]
    assert len(Look(store).statement(1, Instant(0), Instant(2**40), PAGE)) == 7


def test_a_statement_adds_up_where_a_clock_was_put_back(store: Store) -> None:
    granted(store, project("physics", 100))
    granted(store, allocation(1, 100), at=START)
    for amount, at in ((1, 10), (2, 30), (4, 15), (8, 25), (16, 40)):
        granted(store, Deposit(allocation=1, amount=SuMinutes(amount)), at=START + at)
    for first in range(0, 50, 5):
        for last in range(first, 50, 5):
            since, until = Instant(START + first), Instant(START + last)
            opening = Look(store).entry_before(1, since)
            closing = Look(store).entry_before(1, until)
            moved = Look(store).statement(1, since, until, PAGE)
            deposited = [each.deposited if each else 0 for each in (opening, closing)]
            assert deposited[0] + sum(each.amount for each in moved) == max(deposited)


def test_usage_in_groups(store: Store) -> None:
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
        found: list[Usage] = Look(store).usage(UsageQuery(**query), by, GroupPage())
        return [
            (each.group, each.runs, each.failed, each.charged, each.elapsed_seconds)
            for each in found
        ]

    assert groups(UsageBy.USER) == [(ALICE, 2, 1, 30, 3), (BOB, 2, 1, 65, 7)]
    assert groups(UsageBy.DAY) == [
        ("2025-12-31", 1, 0, 10, 1),
        ("2026-01-01", 1, 1, 20, 2),
        ("2026-01-02", 2, 1, 65, 7),
    ]
    assert groups(UsageBy.MONTH) == [("2025-12", 1, 0, 10, 1), ("2026-01", 3, 2, 85, 9)]
    assert groups(UsageBy.PARTITION) == [("standard", 4, 2, 95, 10)]
    assert groups(UsageBy.JOB) == [
        ("darwin/1", 1, 0, 10, 1),
        ("darwin/2", 1, 1, 20, 2),
        ("darwin/3", 1, 0, 25, 3),
        ("darwin/4", 1, 1, 40, 4),
    ]
    after = [
        each.group
        for each in Look(store).usage(UsageQuery(), UsageBy.JOB, GroupPage(2, "darwin/2"))
    ]
    assert after == ["darwin/3", "darwin/4"]
    assert groups(UsageBy.ALLOCATION) == [(1, 3, 1, 55, 6), (2, 1, 1, 40, 4)]
    assert groups(UsageBy.USER, since=Instant(NEW_YEAR), until=Instant(NEW_YEAR + DAY)) == [
        (ALICE, 1, 1, 20, 2)
    ]
    assert groups(UsageBy.USER, projects=frozenset({2})) == [(BOB, 1, 1, 40, 4)]
    assert groups(UsageBy.USER, allocation=1, owner=BOB) == [(BOB, 1, 0, 25, 3)]
    assert groups(UsageBy.USER, resource="gpu") == []
    assert groups(UsageBy.USER, visibility=Visibility(uid=ALICE, projects=frozenset({2}))) == [
        (ALICE, 2, 1, 30, 3),
        (BOB, 1, 1, 40, 4),
    ]
    assert groups(UsageBy.USER, visibility=Visibility()) == []


def test_usage_counts_what_ended_without_a_charge_too(store: Store) -> None:
    """Runs of failed nodes and runs without cost count; open runs and lost runs do not."""
    granted(store, project("physics", 100))
    granted(store, allocation(1, 10_000, end=2**40), *(hold(number, 60) for number in range(1, 6)))
    ended: dict[str, Any] = {"ended": Instant(NEW_YEAR), "elapsed_seconds": 60}
    granted(
        store,
        charge(1, 30, **ended),
        charge(2, 0, **ended),
        Release(run=job(3), outcome="NODE_FAIL", **ended),
        at=NEW_YEAR,
    )
    granted(store, Lapse(run=job(4)), at=NEW_YEAR)
    (used,) = Look(store).usage(UsageQuery(), UsageBy.USER, GroupPage())
    assert (used.runs, used.failed, used.charged, used.elapsed_seconds) == (3, 1, 30, 180)


def test_usage_by_qos(store: Store) -> None:
    granted(store, project("physics", 100))
    granted(store, allocation(1, 10_000, end=2**40))
    qualities = (None, "normal", "high", "Long", "_night", "normal")
    for number, qos in enumerate(qualities, start=1):
        told = None if qos is None else JobDetails(qos=qos)
        granted(
            store,
            late_charge(number, number, job_details=told, ended=NEW_YEAR, elapsed_seconds=number),
        )
    granted(
        store,
        late_charge(7, 7, job_details=JobDetails(name="relax"), ended=NEW_YEAR, elapsed_seconds=7),
    )
    found: list[Usage] = Look(store).usage(UsageQuery(), UsageBy.QOS, GroupPage())
    assert [(each.group, each.runs, each.charged) for each in found] == [
        (NO_QOS, 2, 8),
        ("Long", 1, 4),
        ("_night", 1, 5),
        ("high", 1, 3),
        ("normal", 2, 8),
    ]
    pages = [
        Look(store).usage(UsageQuery(), UsageBy.QOS, GroupPage(2, after))
        for after in (NO_QOS, "_night")
    ]
    assert [[each.group for each in page] for page in pages] == [
        ["Long", "_night"],
        ["high", "normal"],
    ]


def test_a_run_keeps_the_qos_that_its_hold_told(store: Store) -> None:
    granted(store, project("physics", 100))
    granted(store, allocation(1, 10_000, end=2**40))
    granted(store, hold(1, 60, job_details=JobDetails(qos="high", cpus=8)))
    granted(
        store,
        Charge(
            run=job(1),
            amount=SuMinutes(30),
            ended=Instant(NEW_YEAR),
            outcome="COMPLETED",
            elapsed_seconds=60,
        ),
    )
    (run,) = Look(store).runs(RunQuery(), PAGE)
    assert run.job_details == JobDetails(qos="high", cpus=8)
    assert [each.group for each in Look(store).usage(UsageQuery(), UsageBy.QOS, GroupPage())] == [
        "high"
    ]


def test_usage_tells_how_well_it_was_used(store: Store) -> None:
    """The idle part of each run's price, by run: a small busy run does not compensate an expensive
    idle one.
    """
    granted(store, project("physics", 100))
    granted(store, allocation(1, 10_000, end=2**40))
    told = {"ended": NEW_YEAR + 600, "elapsed_seconds": 600}
    of_eight = JobDetails(cpus=8, cpu_seconds=1_200)
    granted(
        store,
        late_charge(1, 1_000, job_details=of_eight, **told),  # a quarter of 4,800
        late_charge(
            2, 10, job_details=JobDetails(cpus=1_000, cpu_seconds=700_000), **told
        ),  # more than there was
        late_charge(3, 500, job_details=JobDetails(cpus=8), **told),  # nobody told
        late_charge(4, 70, job_details=JobDetails(cpu_seconds=7), **told),
        late_charge(5, 60, job_details=of_eight, ended=NEW_YEAR + DAY, elapsed_seconds=0),
        late_charge(6, 9, owner=BOB, job_details=JobDetails(cpus=1, cpu_seconds=0), **told),
        Refund(run=job(1), amount=SuMinutes(400)),
    )
    used: list[Usage] = Look(store).usage(UsageQuery(), UsageBy.USER, GroupPage())
    assert [(each.cpu_seconds, each.given_seconds, each.wasted) for each in used] == [
        (601_200, 604_800, 450),
        (0, 600, 9),
    ]
    assert [each.waited_seconds for each in used] == [5 * (START - 900), START - 900]
    (month,) = Look(store).usage(UsageQuery(), UsageBy.MONTH, GroupPage())
    assert (month.runs, month.cpu_seconds, month.given_seconds, month.wasted) == (
        6,
        601_200,
        605_400,
        459,
    )
    first, second, third, *_ = Look(store).usage(UsageQuery(), UsageBy.JOB, GroupPage())
    assert [(each.group, each.given_seconds, each.wasted) for each in (first, second, third)] == [
        ("darwin/1", 4_800, 450),
        ("darwin/2", 600_000, 0),
        ("darwin/3", 0, 0),
    ]


def test_usage_tells_what_failed_early(store: Store) -> None:
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
    for number, owner, seconds, outcome, told in failing:
        ended = NEW_YEAR + number * DAY
        run = late_charge(
            number,
            1,
            owner=owner,
            ended=ended,
            outcome=outcome,
            elapsed_seconds=seconds,
            job_details=told,
        )
        granted(store, run)
    by_user: list[Usage] = Look(store).usage(UsageQuery(), UsageBy.USER, GroupPage())
    assert [(each.group, each.early, each.early_exit) for each in by_user] == [
        (ALICE, 2, 127 * 256),
        (BOB, 2, None),
        (CAROL, 1, None),
    ]
    (month,) = Look(store).usage(UsageQuery(owner=ALICE), UsageBy.MONTH, GroupPage())
    assert (month.early, month.early_exit) == (2, 127 * 256)


def test_usage_comes_in_pages_that_join(store: Store) -> None:
    granted(
        store, project("physics", 100), *(project(f"p{number}", number) for number in (1, 2, 3))
    )
    granted(store, *(allocation(number, end=2**40) for number in (1, 2, 3, 4)))
    partitions = ["B", "a", "\u00e9", "b-1", "_"]
    for number in range(1, 41):
        run = late_charge(
            number,
            number,
            owner=1_000 + number % 7,
            project=1 + number % 4,
            ended=NEW_YEAR + number * 9 * DAY,
        )
        granted(store, msgspec.structs.replace(run, partition=partitions[number % 5]))
    for by in UsageBy:
        whole = Look(store).usage(UsageQuery(), by, GroupPage(PAGE_MAX))
        assert sum(each.runs for each in whole) == 40
        for limit in (1, 2, 3):
            found: list[Usage] = []
            while page := Look(store).usage(
                UsageQuery(), by, GroupPage(limit, found[-1].group if found else None)
            ):
                assert len(page) <= limit
                found += page
            assert found == whole, by
        assert Look(store).usage(UsageQuery(), by, GroupPage(0)) == []


def test_a_statement_of_a_long_book_is_cut_where_its_times_say(store: Store) -> None:
    granted(store, project("physics", 100))
    granted(store, allocation(1, 100), at=START)
    for number in range(1, 71):
        granted(store, Deposit(allocation=1, amount=SuMinutes(1)), at=START + number // 3 * 10)
    book = Look(store).statement(1, Instant(0), Instant(2**40), Page(PAGE_MAX))
    for at in range(START - 5, START + 300, 5):
        earlier = [each for each in book if each.at < at]
        assert Look(store).entry_before(1, Instant(at)) == (earlier[-1] if earlier else None)
        assert Look(store).statement(1, Instant(0), Instant(at), Page(PAGE_MAX)) == earlier


def test_a_cut_stays_where_it_is_when_the_book_grows(store: Store) -> None:
    """This also holds where a clock was set back. Otherwise the closing balance of a month would
    change afterwards.
    """
    granted(store, project("physics", 100))
    granted(store, allocation(1, 100), at=START)
    for amount, at in enumerate((10, 30, 15, 25, 40, 20, 50), start=1):
        granted(store, Deposit(allocation=1, amount=SuMinutes(amount)), at=START + at)
    cuts = [Look(store).entry_before(1, Instant(START + each)) for each in range(5, 51)]
    seqs = [each.seq if each else 0 for each in cuts]
    assert seqs == sorted(seqs), "a later instant cuts no earlier"
    for _ in range(20):
        granted(store, Deposit(allocation=1, amount=SuMinutes(1)), at=START + 51)
    assert [Look(store).entry_before(1, Instant(START + each)) for each in range(5, 51)] == cuts
