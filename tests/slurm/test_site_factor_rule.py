"""The rule of decision 0016: credit left times closeness of the end, of the allocation that pays next."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.cluster.partition import Cluster, Partition
from fairbank.slurm.site_factor import credit_factor, expiry_factor, linear, table_of
from tests.slurm.beside.jobs import NOW, a_project, an_allocation

DAY = 86_400
CLUSTER = Cluster("lab", {"cpu": Partition("cpu", "cpu"), "fat": Partition("fat", "cpu"), "gpu": Partition("gpu", "gpu")})
parts = st.fractions(0, 1)


@pytest.mark.parametrize(
    ("deposited", "used", "factor"), [(100, 5, "19/20"), (100, 95, "1/20"), (100, 100, "0"), (100, 130, "0"), (0, 0, "0")]
)
def test_how_much_credit_is_left(deposited: int, used: int, factor: str) -> None:
    assert credit_factor(deposited, used) == Fraction(factor)


@pytest.mark.parametrize(("left", "longest", "factor"), [(10, 100, "9/10"), (100, 100, "0"), (0, 100, "1"), (0, 0, "0")])
def test_how_close_the_end_is(left: int, longest: int, factor: str) -> None:
    assert expiry_factor(left, longest) == Fraction(factor)


@given(credit=parts, expiry=parts, more=parts, weight=st.integers(0, 10**9))
def test_more_credit_and_a_closer_end_never_lower_the_value(credit: Fraction, expiry: Fraction, more: Fraction, weight: int) -> None:
    value = linear(credit, expiry, weight)
    assert 0 <= value <= weight
    assert linear(max(credit, more), expiry, weight) >= value
    assert linear(credit, max(expiry, more), weight) >= value


def of(*allocations: object, projects: object = None, weight: int = 1000) -> dict[tuple[str, str], int]:
    found = projects or [a_project(1, "chem"), a_project(2, "bio")]
    return dict(table_of(CLUSTER, found, allocations, now=NOW, weight=weight, stale_seconds=60).values)  # type: ignore[arg-type]


def granted(number: int, project: int, charged: int, days: int, **more: object) -> object:
    """Of 100 SU-minutes, so many are charged; it ends in so many days."""
    left = 100 - charged - int(str(more.get("held", 0)))
    return an_allocation(number, project, left, deposited=100, charged=charged, end=NOW + days * DAY, **more)


def test_the_value_is_the_product_of_both_factors() -> None:
    found = of(granted(1, 1, 5, 30), granted(2, 2, 50, 100), granted(3, 2, 0, 50, resource="gpu"))
    assert found == {("chem", "cpu"): 665, ("bio", "cpu"): 0, ("bio", "gpu"): 500}  # 0.95 x 0.70, the furthest end, 1 x 0.5


def test_what_is_held_is_not_left() -> None:
    assert of(granted(1, 1, 20, 50, held=30), granted(2, 2, 0, 100))["chem", "cpu"] == 250


def test_the_allocation_that_pays_next_counts() -> None:
    early = granted(1, 1, 100, 10, start=NOW - 2 * DAY)
    late = granted(2, 1, 50, 50, start=NOW - DAY)
    assert of(early, late, granted(3, 2, 0, 100))["chem", "cpu"] == 250
    assert of(early, granted(3, 2, 0, 100))["chem", "cpu"] == 0


def test_a_parent_shares_its_value_with_its_credit() -> None:
    projects = [a_project(1, "chem"), a_project(2, "bio", parent=1)]
    far = granted(9, 3, 0, 100)
    assert of(granted(1, 1, 0, 50, shared=True), far, projects=projects) == {("chem", "cpu"): 500, ("bio", "cpu"): 500}
    assert of(granted(1, 1, 0, 50), far, projects=projects) == {("chem", "cpu"): 500}


def test_only_what_is_active_counts() -> None:
    closed = [
        granted(1, 1, 0, 50, state="frozen"),
        granted(2, 1, 0, 500, start=NOW + DAY, state="planned"),
        granted(3, 1, 0, -1, state="ended"),
    ]
    assert of(*closed, granted(4, 2, 0, 40), granted(5, 2, 0, 80, resource="gpu")) == {("bio", "cpu"): 500, ("bio", "gpu"): 0}


def test_a_bank_without_allocations_is_neutral() -> None:
    assert of() == {}
