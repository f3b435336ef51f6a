"""Views under HADM's names: the columns of its schemas 1 to 6, and figures that agree with the
ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest

from fairbank.bank.requests import Lapse, Refund, Transfer, Withdraw
from fairbank.core.units import SuMinutes
from fairbank.store.contract import Store
from tests.contracts.conftest import IN_SQL, places
from tests.contracts.databases import Place
from tests.contracts.small_site import (
    ALICE,
    BOB,
    START,
    allocation,
    ask,
    charge,
    contents,
    fill,
    granted,
    hold,
    job,
    late_charge,
    release,
)

COLUMNS = {
    "projects": ["project_id", "gname", "gid", "account"],
    "allocations": [
        "allocation_id",
        "project_id",
        "category",
        "resource",
        "start_date",
        "end_date",
    ],
    "activity": ["activity_id", "allocation_id", "amount", "comments"],
    "credits": ["activity_id", "allocation_id", "amount", "comments"],
    "predebits": [
        "activity_id",
        "allocation_id",
        "amount",
        "comments",
        "job_id",
        "status",
        "owner_uid",
    ],
    "debits": ["activity_id", "allocation_id", "amount", "comments", "owner_uid"],
    "failures": ["activity_id", "allocation_id", "amount", "comments", "job_id", "owner_uid"],
    "balances": ["allocation_id", "credit", "predebit", "debit", "balance"],
}


@pytest.fixture(scope="module", params=IN_SQL)
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """Yield credits of all kinds; an open hold, charges of two users, a refund, a release, a lapse,
    refusals. For reading only.
    """
    for place in places(request.param, request, tmp_path_factory.mktemp("views")):
        _fill(place.open())
        yield place


def _fill(store: Store) -> None:
    fill(store)
    granted(
        store,
        Transfer(source=1, target=2, amount=SuMinutes(100)),
        Withdraw(allocation=2, amount=SuMinutes(50), comment="too much"),
    )
    granted(
        store,
        hold(1, 100),
        hold(2, 60, owner=BOB, comment="urgent"),
        hold(3, 10),
        hold(4, 10, until=START + 1),
    )
    granted(store, charge(1, 40), late_charge(5, 30, owner=BOB), late_charge(6, 5), release(3))
    granted(store, Lapse(run=job(4)), at=START + 1)
    granted(store, Refund(run=job(5), amount=SuMinutes(10)))
    ask(
        store,
        hold(7, 5_000),
        hold(8, 1, project=2, resource="gpu"),
        hold(9, 7_000, comment="please"),
    )
    granted(store, allocation(2, 0, resource="gpu", credit_limit=SuMinutes(70)))


@pytest.mark.parametrize("view", COLUMNS)
def test_view_has_the_columns_of_hadm(filled: Place, view: str) -> None:
    assert filled.names(f"SELECT * FROM {view}") == COLUMNS[view]


def test_projects_and_allocations(filled: Place) -> None:
    assert filled.run("SELECT * FROM projects ORDER BY project_id") == [
        (1, "physics", 100, "physics"),
        (2, "chemistry", 200, "chemistry"),
    ]
    *facts, start, end = filled.run("SELECT * FROM allocations WHERE allocation_id = 1")[0]
    assert facts == [1, 1, "startup", "cpu"]
    assert [_moment(start), _moment(end)] == [
        datetime(1970, 1, 1, 0, 16, 40),  # noqa: DTZ001 (a timestamp without zone)
        datetime(1970, 4, 15, 4),  # noqa: DTZ001
    ]


def _moment(shown: str | datetime) -> datetime:
    return datetime.fromisoformat(shown) if isinstance(shown, str) else shown


def test_dates_do_not_depend_on_session_time_zone(postgres_place: Place) -> None:
    fill(postgres_place.open())
    postgres_place.run("SELECT set_config('TimeZone', 'Asia/Tokyo', false)")
    assert postgres_place.run(
        "SELECT current_setting('TimeZone'), start_date::text FROM allocations WHERE"
        " allocation_id = 1"
    ) == [("Asia/Tokyo", "1970-01-01 00:16:40")]


def test_credits_are_all_movements_of_granted_credit(filled: Place) -> None:
    result = filled.run("SELECT allocation_id, amount, comments FROM credits ORDER BY activity_id")
    assert result == [
        (1, 1_000, None),
        (2, 500, None),
        (1, -100, None),
        (2, 100, None),
        (2, -50, "too much"),
    ]


def test_predebits_of_ended_runs_are_completed_and_hold_nothing(filled: Place) -> None:
    result = filled.run(
        "SELECT allocation_id, amount, comments, job_id, status, owner_uid FROM predebits"
        " ORDER BY job_id"
    )
    assert result == [
        (1, 0, None, 1, "completed", ALICE),
        (1, 60, "urgent", 2, "executing", BOB),
        (1, 0, None, 3, "completed", ALICE),
        (1, 0, None, 4, "completed", ALICE),
        (1, 0, None, 5, "completed", BOB),
        (1, 0, None, 6, "completed", ALICE),
    ]


def test_debits_by_user(filled: Place) -> None:
    result = filled.run(
        "SELECT allocation_id, owner_uid, amount, comments FROM debits ORDER BY owner_uid"
    )
    assert result == [(1, ALICE, 45, None), (1, BOB, 20, None)]
    charged = {run.id: run.owner for run in contents(filled.open())[4] if run.charged}
    assert [
        charged[number]
        for (number,) in filled.run("SELECT activity_id FROM debits ORDER BY owner_uid")
    ] == [ALICE, BOB]


def test_failures_are_refused_jobs(filled: Place) -> None:
    result = filled.run(
        "SELECT allocation_id, amount, comments, job_id, owner_uid FROM failures ORDER BY"
        " activity_id"
    )
    assert result == [
        (1, 5_000, "INSUFFICIENT_CREDIT", 7, ALICE),
        (None, 1, "NO_ALLOCATION", 8, ALICE),
        (1, 7_000, "please", 9, ALICE),
    ]


def test_activity_has_each_row_once(filled: Place) -> None:
    result = filled.run("SELECT activity_id, allocation_id, amount, comments FROM activity")
    parts = [
        row
        for part in ("credits", "predebits", "debits", "failures")
        for row in filled.run(f"SELECT activity_id, allocation_id, amount, comments FROM {part}")
        if part != "predebits" or row[2]
    ]
    assert sorted(result, key=repr) == sorted(parts, key=repr)
    assert len({number for number, *_ in result}) == len(result) == 11


def test_balances_equal_ledger_and_sum_of_activity(filled: Place) -> None:
    balances = filled.run("SELECT * FROM balances ORDER BY allocation_id")
    assert balances == [(1, 900, 60, 65, 775), (2, 550, 0, 0, 550), (3, 0, 0, 0, 0)]
    assert balances == [
        (content.id, content.deposited, content.held, content.charged, content.withdrawable)
        for content in contents(filled.open())[2]
    ]
    for number, credit, predebit, debit, _ in balances:
        sum_of = "SELECT coalesce(sum(amount), 0) FROM {} WHERE allocation_id = :number"
        sums = [
            filled.run(sum_of.format(part), number=number)[0][0]
            for part in ("credits", "predebits", "debits")
        ]
        assert sums == [credit, predebit, debit]


def test_hadm_report_query_works(filled: Place) -> None:
    report = """
        SELECT projects.account, allocations.resource, balances.balance
        FROM projects JOIN allocations USING (project_id) JOIN balances USING (allocation_id)
        ORDER BY projects.account, allocations.resource
    """
    assert filled.run(report) == [
        ("chemistry", "cpu", 550),
        ("chemistry", "gpu", 0),
        ("physics", "cpu", 775),
    ]
