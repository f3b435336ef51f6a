"""Measured storage: each day is charged once, however often and in whatever order it is imported.

A TiB-day costs 60 SU-minutes; each measurement is rounded up by itself. chem has more credit than
the measurements cost, bio has 100 SU-minutes: what exceeds them is written off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import count
from math import ceil
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairbank.bank.allocation import AllocationTerms
from fairbank.bank.requests import Open
from fairbank.core.time import DAY, Instant
from fairbank.core.units import SuMinutes
from fairbank.csv_import.storage import StorageResult, StorageUse, import_storage
from fairbank.rest.client.bank_client import BankClient
from fairbank.rest.client.client import target_of
from tests.rest.world import NOW, SUPERUSER, World, create_world

TODAY = NOW // DAY * DAY
SYSTEMS = (f"fs{number}" for number in count())
"""Names of storages: each example needs one of its own, as all share a ledger."""


class ClientInProcess:
    """Requests of a superuser to the bank of a world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def get(self, path: str, query: Mapping[str, object] | None = None) -> Any:
        return self._world.ask("GET", target_of(path, query), SUPERUSER).json()

    def post(self, path: str, body: bytes) -> Any:
        headers = {"Content-Type": "application/json"}
        return self._world.ask("POST", path, SUPERUSER, content=body, headers=headers).json()


@pytest.fixture(scope="module")
def bank() -> Iterator[BankClient]:
    """Provide a bank with storage allocations of chem and bio."""
    with create_world() as world:
        for number, credit in ((1, 10**9), (2, 100)):
            for resource in ("storage", "archive"):
                opening = Open(
                    terms=AllocationTerms(
                        project=number,
                        resource=resource,
                        category="research",
                        start=Instant(TODAY - 60 * DAY),
                        end=Instant(TODAY + DAY),
                    ),
                    deposit=SuMinutes(credit),
                )
                world.request(opening)
        yield BankClient(ClientInProcess(world))  # type: ignore[arg-type]


def use(account: str, days_ago: int, thousandths: int) -> StorageUse:
    return StorageUse(account, TODAY - days_ago * DAY, Fraction(thousandths, 1_000))


def imported(
    bank: BankClient, uses: list[StorageUse], system: str, resource: str = "storage"
) -> StorageResult:
    return import_storage(bank, uses, system=system, resource=resource, dry_run=False)


def costs(bank: BankClient, system: str) -> dict[tuple[str, int], int]:
    """Return what each measurement cost, by account and day."""
    return {
        (run.account, run.submitted): run.charged + run.written_off
        for run in bank.runs(system, TODAY - 60 * DAY, NOW, measured=True)
    }


def charged(bank: BankClient, project: int) -> int:
    return sum(
        allocation.charged
        for allocation in bank.allocations()
        if allocation.terms.resource == "storage" and allocation.terms.project == project
    )


DAYS = st.dictionaries(
    st.tuples(st.sampled_from(["chem", "bio"]), st.integers(1, 40)),
    st.integers(0, 5_000),
    min_size=1,
    max_size=8,
)


@settings(
    max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(measured=DAYS, data=st.data())
def test_measurements_are_charged_once_in_any_order_and_add_up(
    bank: BankClient, measured: dict[tuple[str, int], int], data: st.DataObject
) -> None:
    system = next(SYSTEMS)
    uses = [use(*place, number) for place, number in measured.items()]
    due = {
        (usage.account, usage.day): ceil(usage.tib_days * 60) for usage in uses if usage.tib_days
    }
    before = charged(bank, 1)
    first = data.draw(st.permutations(uses))[: data.draw(st.integers(0, len(uses)))]
    for part in (first, data.draw(st.permutations(uses))):
        assert not imported(bank, part, system).left
    assert costs(bank, system) == due
    of_chem = sum(amount for (account, _), amount in due.items() if account == "chem")
    assert charged(bank, 1) - before == of_chem
    assert charged(bank, 2) <= 100
    again = imported(bank, data.draw(st.permutations(uses)), system)
    assert (list(again.charged), again.known, list(again.left)) == ([], len(due), [])


@settings(
    max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(measured=DAYS, data=st.data())
def test_changed_measurement_is_named_and_charges_nothing(
    bank: BankClient, measured: dict[tuple[str, int], int], data: st.DataObject
) -> None:
    system = next(SYSTEMS)
    uses = [use(*place, number) for place, number in measured.items()]
    imported(bank, uses, system)
    before = costs(bank, system)
    numbers = st.sampled_from([0, 1_000, 2_000])
    changed = [use(*place, data.draw(numbers)) for place in measured]
    result = imported(bank, changed, system)
    assert {(usage.account, usage.day) for usage, _ in result.left} == {
        place
        for usage in changed
        if (place := (usage.account, usage.day)) in before and before[place] != usage.amount
    }
    after = costs(bank, system)
    assert {place: after[place] for place in before} == before


def test_day_of_one_storage_is_not_known_on_another_resource(bank: BankClient) -> None:
    """The name of the storage identifies a measurement, so it has one resource."""
    system, uses = next(SYSTEMS), [use("chem", 3, 1_000)]
    imported(bank, uses, system)
    result = imported(bank, uses, system, "archive")
    assert (list(result.charged), result.known) == ([], 0)
    assert [why for _, why in result.left] == [
        "this day was charged on storage; name another storage with --system"
    ]
