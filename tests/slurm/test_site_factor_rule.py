"""Rule of decision 0016: credit left times closeness of the end, of the allocation that pays
next.
"""

from __future__ import annotations

from fairbank.bank.allocation import AllocationState
from fairbank.cluster.partition import Cluster, Partition
from fairbank.priority.site_factor import LINEAR, CurveRule, Power, Sigmoid
from fairbank.slurm.site_factor import build_table
from tests.slurm.reconcile.jobs import NOW, a_project, an_allocation

DAY = 86_400
CLUSTER = Cluster(
    "lab",
    {
        "cpu": Partition("cpu", "cpu"),
        "fat": Partition("fat", "cpu"),
        "gpu": Partition("gpu", "gpu"),
    },
)


def values_of(
    *allocations: object, projects: object = None, weight: int = 1000, rule: CurveRule = LINEAR
) -> dict[tuple[str, str], int]:
    known = projects or [a_project(1, "chem"), a_project(2, "bio")]
    return dict(
        build_table(
            CLUSTER,
            known,  # type: ignore[arg-type]
            allocations,  # type: ignore[arg-type]
            now=NOW,
            weight=weight,
            stale_seconds=60,
            rule=rule,
        ).values
    )


def dated_allocation(number: int, project: int, charged: int, days: int, **more: object) -> object:
    """Return an allocation of 100 SU-minutes, of which `charged` are used, and which ends in `days`
    days.
    """
    left = 100 - charged - int(str(more.get("held", 0)))
    return an_allocation(
        number, project, left, deposited=100, charged=charged, end=NOW + days * DAY, **more
    )


def test_value_is_the_product_of_both_factors() -> None:
    values = values_of(
        dated_allocation(1, 1, 5, 30),
        dated_allocation(2, 2, 50, 100),
        dated_allocation(3, 2, 0, 50, resource="gpu"),
        dated_allocation(4, 1, 0, 100, resource="gpu"),
    )
    assert values == {
        ("chem", "cpu"): 665,
        ("bio", "cpu"): 0,
        ("bio", "gpu"): 500,
        ("chem", "gpu"): 0,
    }  # 0.95 x 0.70, the furthest end, 1 x 0.5, the furthest end of its resource


def test_longest_time_left_is_that_of_the_same_resource() -> None:
    jobs = dated_allocation(1, 1, 0, 50), dated_allocation(2, 2, 0, 100)
    storage = dated_allocation(3, 1, 0, 20 * 365, resource="storage")
    assert (
        values_of(*jobs, storage) == values_of(*jobs) == {("chem", "cpu"): 500, ("bio", "cpu"): 0}
    )


def test_rule_changes_the_value() -> None:
    allocations = (
        dated_allocation(1, 1, 75, 50),
        dated_allocation(2, 2, 0, 100),
    )  # a quarter left, half way to the furthest end
    assert values_of(*allocations)["chem", "cpu"] == 125
    assert (
        values_of(*allocations, rule=CurveRule(Power(0.5), Power(2)))["chem", "cpu"] == 125
    )  # 1/2 x 1/4
    assert values_of(*allocations, rule=CurveRule(Power(2), Power(2)))["chem", "cpu"] == 15
    assert (
        values_of(*allocations, rule=CurveRule(Sigmoid(5, 0.25), Sigmoid(50, 0.75)))["chem", "cpu"]
        == 0
    )  # not near its end
    near = (dated_allocation(1, 1, 75, 10), dated_allocation(2, 2, 0, 100))
    assert (
        values_of(*near, rule=CurveRule(Sigmoid(5, 0.25), Sigmoid(50, 0.75)))["chem", "cpu"] == 367
    )  # 0.3676 x 0.9994


def test_held_credit_is_not_left() -> None:
    assert (
        values_of(dated_allocation(1, 1, 20, 50, held=30), dated_allocation(2, 2, 0, 100))[
            "chem", "cpu"
        ]
        == 250
    )


def test_next_paying_allocation_counts() -> None:
    early = dated_allocation(1, 1, 100, 10, start=NOW - 2 * DAY)
    late = dated_allocation(2, 1, 50, 50, start=NOW - DAY)
    assert values_of(early, late, dated_allocation(3, 2, 0, 100))["chem", "cpu"] == 250
    assert values_of(early, dated_allocation(3, 2, 0, 100))["chem", "cpu"] == 0


def test_shared_parent_credit_shares_its_value() -> None:
    projects = [a_project(1, "chem"), a_project(2, "bio", parent=1)]
    far = dated_allocation(9, 3, 0, 100)
    assert values_of(dated_allocation(1, 1, 0, 50, shared=True), far, projects=projects) == {
        ("chem", "cpu"): 500,
        ("bio", "cpu"): 500,
    }
    assert values_of(dated_allocation(1, 1, 0, 50), far, projects=projects) == {
        ("chem", "cpu"): 500
    }


def test_only_active_allocations_count() -> None:
    closed = [
        dated_allocation(1, 1, 0, 50, state=AllocationState.FROZEN),
        dated_allocation(2, 1, 0, 500, start=NOW + DAY),
        dated_allocation(3, 1, 0, -1, state=AllocationState.ENDED),
    ]
    assert values_of(
        *closed,
        dated_allocation(4, 2, 0, 40),
        dated_allocation(5, 2, 0, 80, resource="gpu"),
        dated_allocation(6, 3, 0, 80),
    ) == {("bio", "cpu"): 500, ("bio", "gpu"): 0}


def test_bank_without_allocations_has_no_values() -> None:
    assert values_of() == {}
