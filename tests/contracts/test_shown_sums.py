"""Figures that people read, for random ledgers: in SU-minutes rows add up exactly, in SU each one
is the nearest hundredth, and they equal the sums in SQL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from fairbank.bank.policy import Policy
from fairbank.bank.query import PAGE_MAX, AllocationQuery, GroupPage, Page, UsageQuery
from fairbank.bank.requests import SubmittedRequest
from fairbank.cli.commands.bank import balance, statement
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.time import LAST_INSTANT, Instant
from fairbank.core.usage_groups import UsageBy
from fairbank.report.columns import DisplayFormat
from fairbank.rest.schemas.alloc import allocation_row
from fairbank.rest.schemas.statement import sums
from fairbank.service.access.identity import Identity, Staff
from fairbank.service.services import Services, services
from fairbank.store.contract import Store
from tests.contracts import test_memory_twin as twin
from tests.contracts.conftest import IN_SQL, places
from tests.contracts.databases import Place
from tests.contracts.test_memory_twin import batches, emptied, play
from tests.support.clock import ManualClock

CREDIT = """
SELECT allocation,
  sum(CASE WHEN kind IN ('deposit', 'transfer-in') THEN amount
           WHEN kind IN ('withdraw', 'transfer-out') THEN -amount ELSE 0 END),
  sum(CASE WHEN kind IN ('charge', 'recharge') THEN amount
           WHEN kind = 'refund' THEN -amount ELSE 0 END)
FROM journal WHERE allocation > 0 GROUP BY allocation
"""
RUNS = """
SELECT allocation, owner, sum(charged - refunded), sum(held) FROM run GROUP BY allocation, owner
"""
CLOSED = """
SELECT resource, cluster, sum(run.charged - refunded)
FROM run JOIN allocation ON allocation.id = run.allocation
WHERE run.state IN ('charged', 'released') GROUP BY resource, cluster
"""
GRANTED = """
SELECT resource, start_at, end_at,
  coalesce(sum(CASE WHEN kind IN ('deposit', 'transfer-in') THEN amount
                    WHEN kind IN ('withdraw', 'transfer-out') THEN -amount ELSE 0 END), 0)
FROM allocation LEFT JOIN journal ON journal.allocation = allocation.id
WHERE state NOT IN ('cancelled', 'removed')
GROUP BY allocation.id, resource, start_at, end_at
"""
NOW, LATER = Instant(45), Instant(1_000)
Site = dict[str, dict[str, tuple[int | None, Fraction | None]]]
"""Price and capacity of each resource on each cluster of the settings, if they have them."""

RESOURCES = ("cpu", "gpu")
_terms = st.tuples(
    st.sampled_from([None, 1, 1, 2]), st.sampled_from([None, Fraction(3), Fraction(10, 3)])
)
SITES = st.dictionaries(
    st.sampled_from(["alpha", "beta", "gamma"]),
    st.fixed_dictionaries(dict.fromkeys(RESOURCES, _terms)),
)
FORMS = st.builds(
    DisplayFormat, units=st.sampled_from(["h", "m"]), decimals=st.sampled_from([None, 2])
)


@pytest.fixture(scope="module", params=IN_SQL)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    yield from places(request.param, request, tmp_path_factory.mktemp("books"))


@pytest.fixture(scope="module")
def store(place: Place) -> Store:
    return place.open()


def bank_of(store: Store, site: Site) -> Services:
    clusters = {
        name: Cluster(
            name,
            {
                resource: Partition(resource, resource, {"cpu": Fraction(price)})
                for resource, (price, _) in resources.items()
                if price is not None
            },
            capacity={
                resource: units for resource, (_, units) in resources.items() if units is not None
            },
        )
        for name, resources in site.items()
    }
    clock = ManualClock(NOW)
    return services(
        store, clock=clock, staff=Staff(), clusters=clusters, policy=Policy(), key=b"k" * 32
    )


def groups_of(site: Site) -> dict[tuple[str, str], str]:
    """Return the clusters at the price of each resource on each cluster that bills it."""
    prices = {
        (resource, name): site[name][resource][0]
        for resource in RESOURCES
        for name in site
        if site[name][resource][0] is not None
    }
    return {
        (resource, name): "+".join(
            sorted(other for of, other in prices if of == resource and prices[of, other] == price)
        )
        for (resource, name), price in prices.items()
    }


def on_clusters(story: list[list[SubmittedRequest]]) -> list[list[SubmittedRequest]]:
    """Return a story whose four jobs are on three clusters."""
    return [
        [structs.replace(sent, request=_on_cluster(sent.request)) for sent in batch]
        for batch in story
    ]


def _on_cluster(request: Any) -> Any:
    if (reported := getattr(request, "reported", None)) is not None:
        return structs.replace(request, reported=_on_cluster(reported))
    if (run := getattr(request, "run", None)) is None:
        return request
    name = ("alpha", "beta", "gamma", "alpha")[run.job_id - 1]
    return structs.replace(request, run=run._replace(cluster=name))


def cells(columns: Any, row: dict[str, Any], form: DisplayFormat) -> dict[str, Fraction]:
    """Return the figures of a row as shown; 0 for an empty cell and for -."""
    shown = {column.head: column.cell(row, form) for column in columns}
    return {head: Fraction(0 if text in ("", "-") else text) for head, text in shown.items()}


def lost(form: DisplayFormat) -> Fraction:
    """Return by how much the figures of a row may miss their sum as shown."""
    return Fraction(0 if form.units == "m" else 1, 100)


def balances(bank: Services, uid: int) -> dict[int, dict[str, Any]]:
    positions = bank.allocations.balances(
        Identity(actor=uid, uid=uid, admin=True), AllocationQuery(), Page(1_000)
    )
    project = bank.project_cache.by_id
    return {
        position.allocation.id: structs.asdict(
            allocation_row(position, project(position.allocation.terms.project), NOW)
        )
        for position in positions
    }


def check_statement(bank: Services, row: dict[str, Any], form: DisplayFormat, limit: int) -> None:
    """Check that IN and OUT lead from one REMAINING to the next, over all pages."""
    staff, after, pages = Identity(actor=0, uid=0, admin=True), None, []
    while True:
        page = Page(limit, after=after, newest_first=True)
        part = bank.allocations.statement(staff, row["id"], (Instant(0), LAST_INSTANT), page)
        pages.append(part)
        after = part.next
        if after is None:
            break
        assert len(part.entries) == limit
    assert pages[-1].opening is None or pages[-1].opening.remaining == 0
    before = {"deposited": 0, "charged": 0, "held": 0, "remaining": 0}
    remaining = Fraction(0)
    for entry in (entry for page in reversed(pages) for entry in page.entries):
        after_it = structs.asdict(sums(entry))
        change = after_it["remaining"] - before["remaining"]
        moved = {"credit_in": max(0, change), "credit_out": max(0, -change)}
        shown = cells(MOVED, after_it | moved, form)
        assert abs(remaining + shown["IN"] - shown["OUT"] - shown["REMAINING"]) <= lost(form)
        assert shown["IN"] * shown["OUT"] == 0
        before, remaining = after_it, shown["REMAINING"]
    assert before["remaining"] == row["remaining"]


ADDING_UP = ("GRANTED", "LIMIT", "USED", "HELD", "REMAINING")
SUMMANDS = [column for column in balance.COLUMNS if column.head in ADDING_UP]
MOVED = [column for column in statement.COLUMNS if column.head in ("IN", "OUT", "REMAINING")]
FEW = settings(twin.FEW, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FEW
@given(story=batches, form=FORMS, page=st.integers(1, 5))
def test_rows_of_balance_and_statement_add_up_and_equal_the_sums_in_sql(
    store: Store, place: Place, story: list[list[SubmittedRequest]], form: DisplayFormat, page: int
) -> None:
    play(emptied(store), story)
    bank = bank_of(store, {})
    runs = place.run(RUNS)
    rows = {uid: balances(bank, uid) for uid in (1, 2)}
    for number, granted, used in place.run(CREDIT):
        row = rows[1][number]
        held = sum(run[3] for run in runs if run[0] == number)
        assert (row["deposited"], row["charged"], row["held"]) == (granted, used, held)
        assert row["remaining"] == granted + row["credit_limit"] - used - held
        check_statement(bank, row, form, page)
    for number, owner, used, held in runs:
        row = rows[owner][number]
        assert (row["my_charged"], row["my_held"]) == (used, held)
        if row["state"] == "active":
            left = row["remaining"] if row["my_cap"] is None else row["my_cap"] - used - held
            assert row["available"] == min(row["remaining"], max(0, left))
        else:
            assert row["available"] == 0
    for row in (*rows[1].values(), *rows[2].values()):
        shown = cells(SUMMANDS, row, form)
        rest = shown["USED"] + shown["HELD"] + shown["REMAINING"]
        assert abs(shown["GRANTED"] + shown["LIMIT"] - rest) <= lost(form)


@FEW
@given(story=batches.map(on_clusters), form=FORMS, site=SITES)
def test_rows_of_usage_and_of_the_centre_add_up_and_equal_the_sums_in_sql(
    store: Store, place: Place, story: list[list[SubmittedRequest]], form: DisplayFormat, site: Site
) -> None:
    play(emptied(store), story)
    bank, groups = bank_of(store, site), groups_of(site)
    sums = Counter[tuple[str, str]]()
    for resource, cluster, used in place.run(CLOSED):
        sums[resource, groups.get((resource, cluster), cluster)] += used
    day = ((LAST_INSTANT, 0),)
    of_allocation = Counter[int]()
    for by in UsageBy:
        query = UsageQuery(offsets=day if by.is_time else ())
        rows = bank.runs.usage(query, by, GroupPage(PAGE_MAX))
        for unit, used in sums.items():
            assert sum(row.charged for row in rows if row.key[1:] == unit) == used
        assert {row.key[1:] for row in rows} == sums.keys()
        if by is UsageBy.ALLOCATION:
            for row in rows:
                of_allocation[int(row.group)] += row.charged
    centre = bank.centre.use(Identity(actor=0, uid=0, admin=True), Instant(0), LAST_INSTANT)
    with_jobs = [use for use in centre.resources if use.runs]
    assert {(use.resource, use.clusters): use.used for use in with_jobs} == sums
    # An amount has the same text in `usage` as in the row of `balance`.
    for number, position in balances(bank, 1).items():
        charged = of_allocation[number]
        assert position["charged"] == charged
        (used,) = (column for column in balance.COLUMNS if column.head == "USED")
        assert used.cell(position, form) == form.su(charged)


@FEW
@given(story=batches.map(on_clusters), site=SITES)
def test_credit_and_capacity_of_the_centre_equal_the_sums_in_sql(
    store: Store, place: Place, story: list[list[SubmittedRequest]], site: Site
) -> None:
    """In the time after NOW, before which terms may have been cut."""
    play(emptied(store), story)
    granted = Counter[str]()
    for resource, start, end, deposited in place.run(GRANTED):
        granted[resource] += int(deposited) * max(0, end - max(start, NOW)) // (end - start)
    identity, groups = Identity(actor=0, uid=0, admin=True), groups_of(site)
    rows = bank_of(store, site).centre.use(identity, NOW, LATER).resources
    shown = {row.resource: row.granted for row in rows if row.granted is not None}
    assert shown == {resource: granted[resource] for resource in shown}
    assert granted.total() == sum(shown.values())
    capacities: dict[tuple[str, str], list[Fraction | None]] = {}
    for (resource, name), joined in groups.items():
        capacities.setdefault((resource, joined), []).append(site[name][resource][1])
    for row in rows:
        if row.several_prices:
            assert row.capacity == total(
                part.capacity
                for part in rows
                if part.resource == row.resource and not part.several_prices
            )
        else:
            units = total(capacities.get((row.resource, row.clusters), [None]))
            assert row.capacity == (None if units is None else int(units * (LATER - NOW) / 60))


def total(parts: Iterable[Fraction | int | None]) -> Fraction | None:
    """Return the sum; None if a part is not known."""
    known = list(parts)
    return None if None in known else sum((Fraction(part or 0) for part in known), Fraction(0))
