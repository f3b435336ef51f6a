"""Statements that the databases themselves refuse, for every user."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from sqlalchemy.exc import DBAPIError

from fairbank.bank.lock_set import LockSet, lock_set_of
from fairbank.bank.policy import Policy
from fairbank.bank.requests import Deposit, SubmittedRequest
from fairbank.bank.rules import Done, apply
from fairbank.core.errors import Corrupt
from fairbank.core.units import SuMinutes
from fairbank.service.ops.audit import Audit
from fairbank.store.contract import Contention
from fairbank.store.sqlite.store import writing_engine
from fairbank.store.urls import parse_url, path_of
from tests.contracts.conftest import IN_SQL, places
from tests.contracts.databases import Place
from tests.contracts.small_site import END, START, allocation, charge, contents, fill, granted, hold

ALLOCATION = """
INSERT INTO allocation VALUES
(:id, :project, :resource, 'startup', :start, :end, 'active', {no}, NULL, NULL,
 0, 0, 0, 0, 0, 1, {link})
"""


def fill_with_a_charge(place: Place) -> Place:
    store = place.open()
    fill(store)
    granted(store, hold(1, 100), hold(2, 50))
    granted(store, charge(1, 55))
    return place


@pytest.fixture
def filled(sql_place: Place) -> Place:
    """Return a ledger with a hold and a charge."""
    return fill_with_a_charge(sql_place)


@pytest.fixture(scope="module", params=IN_SQL)
def unchanged(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """Yield the same ledger for all tests whose statement is rejected."""
    for place in places(request.param, request, tmp_path_factory.mktemp("guards")):
        yield fill_with_a_charge(place)


def insert(
    place: Place, number: int, start: int, end: int, *, project: int = 1, resource: str = "cpu"
) -> None:
    no, link = ("false", "'\\x00'") if place.is_postgres else ("0", "x'00'")
    statement = ALLOCATION.format(no=no, link=link)
    place.run(statement, id=number, project=project, resource=resource, start=start, end=end)


@pytest.mark.parametrize(
    ("start", "end"),
    [(START, END), (START + 1, END - 1), (0, START + 1), (END - 1, END + 1), (0, 2 * END)],
)
def test_overlapping_periods_are_rejected(unchanged: Place, start: int, end: int) -> None:
    with pytest.raises(DBAPIError, match="allocation_periods_apart"):
        insert(unchanged, 9, start, end)


def test_adjacent_and_unrelated_periods_are_accepted(filled: Place) -> None:
    insert(filled, 7, 0, START)
    insert(filled, 8, END, END + 1)
    insert(filled, 9, START, END, resource="gpu")


@pytest.mark.parametrize(
    "change",
    ["start_at = 1001, end_at = 9000001", "end_at = 9000001", "project = 2", "resource = 'cpu'"],
)
def test_moving_a_period_into_another_is_rejected(filled: Place, change: str) -> None:
    insert(filled, 8, END, END + 10)
    insert(filled, 9, START, END, resource="gpu")
    change = change.replace("9000001", str(END + 1))
    number = {"project = 2": 1, "resource = 'cpu'": 9}.get(change, 1)
    with pytest.raises(DBAPIError, match="allocation_periods_apart"):
        filled.run(f"UPDATE allocation SET {change} WHERE id = {number}")


def test_period_can_be_shortened(filled: Place) -> None:
    filled.run("UPDATE allocation SET start_at = start_at + 1, end_at = end_at - 1")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE journal SET amount = amount + 1 WHERE kind = 'deposit'",
        "UPDATE journal SET comment = 'never happened'",
        "DELETE FROM journal WHERE kind = 'hold'",
        "DELETE FROM journal",
        "DELETE FROM run",
        "DELETE FROM run WHERE state = 'charged'",
        "DELETE FROM allocation WHERE id = 2",
    ],
)
def test_journal_cannot_be_updated_or_deleted(unchanged: Place, statement: str) -> None:
    before = contents(unchanged.open())
    with pytest.raises(DBAPIError, match="never changed or deleted"):
        unchanged.run(statement)
    assert contents(unchanged.open()) == before


def test_journal_cannot_be_replaced(file_place: Place) -> None:
    """SQLite counts REPLACE as a deletion only if the connection is set so."""
    store = file_place.open()
    fill(store)
    store.close()
    engine = writing_engine(path_of(parse_url(file_place.url)), "truncate")
    with (
        engine.connect() as connection,
        pytest.raises(DBAPIError, match="never changed or deleted"),
    ):
        connection.exec_driver_sql(
            "REPLACE INTO journal SELECT * FROM journal WHERE kind = 'deposit'"
        )
    engine.dispose()


def test_audit_finds_replaced_entry(file_place: Place) -> None:
    store = file_place.open()
    fill(store)
    names = file_place.names("SELECT * FROM journal")
    forged = ", ".join("amount + 1" if name == "amount" else name for name in names)
    file_place.run(
        f"REPLACE INTO journal SELECT {forged} FROM journal WHERE kind = 'deposit' OR (kind ="
        " 'open' AND amount > 0)"
    )
    findings = Audit(store).verify().findings
    assert (1, 4) in {(finding.journal, finding.entry) for finding in findings}
    assert findings[0].what.startswith("it is not what was written: its link does not follow")


def test_journal_cannot_be_truncated(postgres_place: Place) -> None:
    for table in ("journal", "run", "allocation"):
        with pytest.raises(DBAPIError, match="never changed or deleted"):
            postgres_place.run(f"TRUNCATE {table} CASCADE")


@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        ("UPDATE allocation SET held = held + 100000 WHERE id = 1", "allocation_not_overdrawn"),
        ("UPDATE allocation SET charged = -1 WHERE id = 1", "allocation_sums"),
        ("UPDATE allocation SET start_at = end_at WHERE id = 1", "allocation_period"),
        ("UPDATE user_sum SET held = -1", "user_sum_sums"),
        ("UPDATE run SET refunded = charged + 1", "run_sums"),
        ("UPDATE run SET ended_at = NULL WHERE state = 'charged'", "run_resolved_once"),
        ("UPDATE run SET state = 'held' WHERE state = 'charged'", "run_resolved_once"),
        ("UPDATE registry SET id = 1", "registry_is_one"),
    ],
)
def test_invalid_figures_are_rejected(unchanged: Place, statement: str, rule: str) -> None:
    with pytest.raises(DBAPIError, match=rule):
        unchanged.run(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE run SET job_id = 1",
        "UPDATE project SET gname = 'physics'",
        "UPDATE project SET gid = 100",
        "UPDATE project SET account = 'physics'",
    ],
)
def test_unique_values_are_enforced(unchanged: Place, statement: str) -> None:
    with pytest.raises(DBAPIError, match=r"(?i)unique"):
        unchanged.run(statement)


def test_constraint_violation_is_reported_as_a_bug(filled: Place) -> None:
    """If the ledger ever produced such figures, nothing is written and the rule is named."""
    store = filled.open()
    before = contents(store)
    request = SubmittedRequest(Deposit(allocation=1, amount=SuMinutes(5)), START, 0)
    with (
        pytest.raises(Corrupt, match="allocation_not_overdrawn"),
        store.transaction() as transaction,
    ):
        work = transaction.load(lock_set_of([request]))
        apply(work, request, Policy())
        work.allocations[1] = msgspec.structs.replace(work.allocations[1], held=SuMinutes(10**6))
        transaction.write(work)
    assert contents(store) == before
    granted(store, request.request)


def test_concurrent_insert_is_contention(filled: Place) -> None:
    store = filled.open()
    known, *_ = contents(store)[4]
    with pytest.raises(Contention), store.transaction() as transaction:
        work = transaction.load(LockSet(allocations={1}, entries=1))
        apply(
            work, SubmittedRequest(Deposit(allocation=1, amount=SuMinutes(5)), START, 0), Policy()
        )
        work.put_run(msgspec.structs.replace(known, id=10**9))
        transaction.write(work)


def test_concurrent_overlapping_period_is_contention(filled: Place) -> None:
    store = filled.open()
    request = SubmittedRequest(allocation(1, 5), START, 0)
    with pytest.raises(Contention), store.transaction() as transaction:
        needs = lock_set_of([request])
        needs.allocation_filters.clear()
        work = transaction.load(needs)
        assert isinstance(apply(work, request, Policy()), Done)
        transaction.write(work)
