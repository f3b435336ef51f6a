"""Runs paid by a parent's credit: they belong to their own project, are charged to the parent's
allocation, and are visible to members of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fairbank.bank.entry import Kind
from fairbank.bank.query import EntryQuery, GroupPage, Page, RunQuery, UsageQuery, Visibility
from fairbank.bank.requests import Charge, Deposit
from fairbank.core.units import SuMinutes
from fairbank.core.usage_groups import UsageBy
from fairbank.service.ops.audit import Audit
from fairbank.store.contract import Store
from tests.contracts.conftest import EVERYWHERE, places
from tests.contracts.databases import Place
from tests.contracts.small_site import (
    ALICE,
    BOB,
    CAROL,
    END,
    SnapshotReader,
    adjust,
    allocation,
    contents,
    granted,
    hold,
    late_charge,
    project,
)

PAGE = Page()
PHYSICS, OPTICS, LASERS, CHEMISTRY = 1, 2, 3, 4
RUNS = frozenset({Kind.HOLD, Kind.ADJUST, Kind.CHARGE})


@pytest.fixture(scope="module", params=EVERYWHERE)
def lent(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """Yield physics (1), which shares its allocation with optics (2), which has one too, and lasers
    (3) below it, which has none. For reading only.
    """
    for place in places(request.param, request, tmp_path_factory.mktemp("lending")):
        yield _lent(place.open())


def _lent(store: Store) -> Store:
    granted(
        store,
        project("physics", 100),
        project("optics", 200, parent=1),
        project("lasers", 300, parent=2),
        project("chemistry", 400),
    )
    granted(
        store,
        allocation(PHYSICS, 1_000, shared=True),
        allocation(OPTICS, 100),
        Deposit(allocation=1, amount=SuMinutes(5)),
    )
    granted(
        store,
        hold(1, 10),
        hold(2, 20, chain=(OPTICS, PHYSICS), owner=BOB),
        hold(3, 300, chain=(OPTICS, PHYSICS), owner=BOB),
    )
    granted(
        store,
        hold(4, 40, chain=(LASERS, OPTICS, PHYSICS), owner=CAROL),
        adjust(4, 50, END, project=LASERS, owner=CAROL),
    )
    granted(store, late_charge(5, 5), _late_for_optics())
    return store


def _late_for_optics() -> Charge:
    return late_charge(6, 600, chain=(OPTICS, PHYSICS))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"projects": frozenset({PHYSICS})}, [1, 5]),
        ({"projects": frozenset({OPTICS})}, [2, 3, 6]),
        ({"projects": frozenset({LASERS, CHEMISTRY})}, [4]),
        ({"projects": frozenset({CHEMISTRY})}, []),
        ({"allocation": 1}, [1, 3, 4, 5, 6]),
        ({"allocation": 1, "projects": frozenset({OPTICS})}, [3, 6]),
        ({"visibility": Visibility(projects=frozenset({PHYSICS}))}, [1, 3, 4, 5, 6]),
        ({"visibility": Visibility(projects=frozenset({OPTICS}))}, [2, 3, 6]),
        ({"visibility": Visibility(projects=frozenset({LASERS}))}, [4]),
        ({"visibility": Visibility(uid=BOB, projects=frozenset({LASERS}))}, [2, 3, 4]),
        ({"visibility": Visibility(uid=ALICE, projects=frozenset({CHEMISTRY}))}, [1, 5, 6]),
        (
            {
                "visibility": Visibility(projects=frozenset({PHYSICS})),
                "projects": frozenset({OPTICS}),
            },
            [3, 6],
        ),
        ({"visibility": Visibility(projects=frozenset({LASERS})), "allocation": 1}, [4]),
    ],
)
def test_run_belongs_to_its_project_whichever_pays(
    lent: Store, query: dict[str, Any], expected: list[int]
) -> None:
    assert [
        run.reported.run.job_id for run in SnapshotReader(lent).runs(RunQuery(**query), PAGE)
    ] == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"projects": frozenset({PHYSICS})}, ["deposit 5", "hold 10", "charge 5"]),
        ({"projects": frozenset({OPTICS})}, ["hold 20", "hold 300", "charge 600"]),
        ({"projects": frozenset({LASERS})}, ["hold 40", "adjust 10"]),
        ({"projects": frozenset()}, []),
        (
            {"allocation": 1},
            ["deposit 5", "hold 10", "hold 300", "hold 40", "adjust 10", "charge 5", "charge 600"],
        ),
        ({"allocation": 1, "projects": frozenset({LASERS})}, ["hold 40", "adjust 10"]),
        ({"visibility": Visibility(projects=frozenset({LASERS}))}, ["hold 40", "adjust 10"]),
        (
            {"visibility": Visibility(projects=frozenset({OPTICS})), "allocation": 1},
            ["hold 300", "charge 600"],
        ),
        (
            {
                "visibility": Visibility(projects=frozenset({PHYSICS})),
                "projects": frozenset({LASERS}),
            },
            ["hold 40", "adjust 10"],
        ),
        ({"visibility": Visibility(uid=CAROL)}, []),
    ],
)
def test_entries_of_a_child_project_are_found_in_any_journal(
    lent: Store, query: dict[str, Any], expected: list[str]
) -> None:
    result = SnapshotReader(lent).entries(EntryQuery(kinds=RUNS | {Kind.DEPOSIT}, **query), PAGE)
    assert [
        f"{row.kind.value} {row.amount}" for row in result if row.amount not in (1_000, 100)
    ] == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"projects": frozenset({PHYSICS})}, 5),
        ({"projects": frozenset({OPTICS})}, 600),
        ({"projects": frozenset({PHYSICS, OPTICS, LASERS})}, 605),
        ({"allocations": frozenset({1})}, 605),
        (
            {"allocations": frozenset({1}), "visibility": Visibility(projects=frozenset({OPTICS}))},
            600,
        ),
        ({"visibility": Visibility(projects=frozenset({PHYSICS}))}, 605),
    ],
)
def test_usage_of_child_project_is_found(lent: Store, query: dict[str, Any], expected: int) -> None:
    result = SnapshotReader(lent).usage(UsageQuery(**query), UsageBy.PARTITION, GroupPage())
    assert [row.charged for row in result] == [expected]


def test_audit_reads_project_of_run_from_the_journal(sql_place: Place) -> None:
    store = _lent(sql_place.open())
    assert {row.reported.run.job_id: row.reported.project for row in contents(store)[4]} == {
        1: 1,
        2: 2,
        3: 2,
        4: 3,
        5: 1,
        6: 2,
    }
    assert Audit(store).verify().findings == ()
    sql_place.run("UPDATE run SET project = 4 WHERE job_id = 4")
    assert ["project is 4" in finding.what for finding in Audit(store).verify().findings] == [True]
