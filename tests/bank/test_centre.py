"""Use of a whole centre."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from msgspec.structs import replace

from fairbank.bank.allocation import Allocation, AllocationState, AllocationTerms
from fairbank.bank.centre import (
    CentreUse,
    ClusterSize,
    JobSums,
    Occupied,
    centre_use,
    granted_in,
    with_nodes,
)
from fairbank.bank.query import Usage
from fairbank.core.time import DAY, Instant
from fairbank.core.units import SuMinutes

WEEK = Instant(7 * DAY)


def allocation(number: int, resource: str, credit: int, start: int, end: int) -> Allocation:
    return Allocation(
        id=number,
        terms=AllocationTerms(
            project=number,
            resource=resource,
            category="research",
            start=Instant(start * DAY),
            end=Instant(end * DAY),
        ),
        deposited=SuMinutes(credit),
    )


@pytest.mark.parametrize(
    ("start", "end", "granted"),
    [(0, 7, 700), (0, 14, 350), (-7, 7, 350), (5, 12, 200), (7, 14, 0), (-7, 0, 0), (2, 3, 700)],
)
def test_credit_is_spread_evenly_over_the_term(start: int, end: int, granted: int) -> None:
    terms = allocation(1, "cpu", 700, start, end).terms
    assert granted_in(700, terms, Instant(0), WEEK) == granted


def test_cancelled_and_removed_allocations_do_not_count() -> None:
    """A cancelled allocation keeps a term of one second, in which its whole credit would lie."""
    kept = allocation(1, "cpu", 700, 0, 7)
    planned = allocation(2, "cpu", 525_600, 3, 4)
    cancelled = replace(
        planned,
        terms=replace(planned.terms, end=Instant(3 * DAY + 1)),
        state=AllocationState.CANCELLED,
    )
    removed = replace(allocation(3, "cpu", 0, 0, 7), state=AllocationState.REMOVED)
    summary = use({}, allocations=[kept, cancelled, removed])
    assert [row.granted for row in summary.resources] == [700]
    assert (summary.projects, summary.allocations) == (1, 1)


def test_credit_that_an_early_end_left_unused_counts_as_not_granted() -> None:
    ended = replace(allocation(1, "cpu", 700, 0, 7), charged=SuMinutes(50), held=SuMinutes(20))
    full, early = (
        centre_use({}, {}, (), [ended], (), {}, Instant(0), WEEK, ended_early=numbers).resources[0]
        for numbers in ((), {1})
    )
    assert (full.granted, full.granted_at_end) == (700, 700)
    assert (early.granted, early.granted_at_end) == (70, 70)


def test_allocations_of_the_end_count_as_if_they_lasted_the_whole_period() -> None:
    """700 in 14 days are 350 a week, on any day of it; 70 in a week ended before its last day."""
    new = allocation(1, "cpu", 700, 6, 20)
    past = allocation(2, "cpu", 70, -1, 6)
    (row,) = use({}, allocations=[new, past]).resources
    assert (row.granted, row.granted_at_end) == (50 + 60, 350)


def use(units: dict[tuple[str, str], Fraction | None], *usage: Usage, **more: Any) -> CentreUse:
    sizes, allocations = more.pop("sizes", ()), more.pop("allocations", ())
    had = more.pop("occupied", {})
    members = {"anvil+bell": ["anvil", "bell"]}
    return centre_use(units, members, sizes, allocations, usage, had, Instant(0), WEEK)


def test_capacity_granted_and_used_of_each_resource() -> None:
    """10 units for 7 days are 10 x 10,080 = 100,800 SU-minutes."""
    cpu = Usage("cpu", "cpu", "darwin", 3, 1, 5_000, 60, core_seconds=240, gpu_seconds=0)
    summary = use(
        {("cpu", "darwin"): Fraction(10), ("gpu", "darwin"): None},
        cpu,
        allocations=[
            allocation(1, "cpu", 700, 0, 14),
            allocation(2, "cpu", 100, 0, 7),
            allocation(3, "storage", 50, 0, 7),
            allocation(4, "cpu", 999, 7, 14),
        ],
    )
    rows = [
        (row.resource, row.clusters, row.capacity, row.granted, row.used, row.runs)
        for row in summary.resources
    ]
    assert rows == [
        ("cpu", "darwin", 100_800, 450, 5_000, 3),
        ("gpu", "darwin", None, 0, 0, 0),
        ("storage", "", None, 50, 0, 0),
    ]
    assert (summary.projects, summary.allocations) == (3, 3)


def test_credit_of_clusters_with_different_prices_has_its_own_row() -> None:
    """An SU pays on each cluster at its price, so all that exists is what both can charge: 10,080
    and 20,160. What they have charged is not added.
    """
    units: dict[tuple[str, str], Fraction | None]
    units = {("cpu", "anvil"): Fraction(1), ("cpu", "bell"): Fraction(2)}
    bell = Usage("cpu", "cpu", "bell", 3, 1, 5_000, 60)
    summary = use(units, bell, allocations=[allocation(1, "cpu", 700, 0, 7)])
    assert [
        (row.clusters, row.billing_units, row.capacity, row.granted, row.used)
        for row in summary.resources
    ] == [
        ("", Fraction(3), 30_240, 700, None),
        ("anvil", Fraction(1), 10_080, None, 0),
        ("bell", 2, 20_160, None, 5_000),
    ]


def test_capacity_of_several_prices_is_known_if_each_is() -> None:
    """A cluster that the settings have no more had a capacity in this time too."""
    old = Usage("cpu", "cpu", "old", 3, 1, 5_000, 60)
    rows = use({("cpu", "anvil"): Fraction(1)}, old).resources
    assert [(row.clusters, row.capacity, row.granted) for row in rows] == [
        ("", None, 0),
        ("anvil", 10_080, None),
        ("old", None, None),
    ]


def test_credit_of_measured_use_and_of_jobs_is_in_the_row_of_measured_use() -> None:
    uses = [Usage("storage", "storage", name, 0, 0, 5_000, 0) for name in ("", "old")]
    whole, old = use({}, *uses, allocations=[allocation(1, "storage", 700, 0, 7)]).resources
    assert (whole.clusters, whole.granted, whole.used, whole.capacity) == ("", 700, 5_000, None)
    assert (old.clusters, old.granted, old.used) == ("old", None, 5_000)


def test_occupied_of_several_prices_is_in_the_rows_of_the_clusters() -> None:
    units: dict[tuple[str, str], Fraction | None]
    units = {("cpu", "anvil"): Fraction(1), ("cpu", "bell"): Fraction(2)}
    had = {("cpu", "bell"): Occupied(60), ("gpu", "bell"): Occupied(7, without_size=2)}
    rows = use(units, occupied=had).resources
    assert [(row.resource, row.clusters, row.occupied, row.without_size) for row in rows] == [
        ("cpu", "", None, 0),
        ("cpu", "anvil", 0, 0),
        ("cpu", "bell", 60, 0),
        ("gpu", "bell", None, 2),
    ]


def test_credit_of_measured_use_is_in_its_row() -> None:
    storage = Usage("storage", "storage", "", 0, 0, 5_000, 0)
    (row,) = use({}, storage, allocations=[allocation(1, "storage", 700, 0, 7)]).resources
    assert (row.clusters, row.granted, row.used) == ("", 700, 5_000)


def test_utilisation_is_the_part_of_the_time_that_all_processors_and_gpus_had() -> None:
    """Two clusters have 10 + 30 processors: 40 x 168 h = 6,720 CPU-hours, of which two resources
    used 1,680 + 336 = 2,016. They have 4 + 0 GPUs: 672 GPU-hours, of which 42 were used.
    """
    uses = (
        Usage("cpu", "cpu", "anvil", 3, 0, 0, 0, core_seconds=1_680 * 3_600),
        Usage("gpu", "gpu", "bell", 2, 0, 0, 0, core_seconds=336 * 3_600, gpu_seconds=42 * 3_600),
    )
    sums: dict[str, Any] = {"runs": 5, "core_seconds": 2_016 * 3_600, "gpu_seconds": 42 * 3_600}
    sizes = (ClusterSize("anvil", 10, 4), ClusterSize("bell", 30, 0))
    jobs = use({}, *uses, sizes=sizes).jobs
    sums["cpus"] = 40
    assert jobs == JobSums(**sums, gpus=4, cpu_used_permille=300, gpu_used_permille=63)  # 62.5
    sizes = (ClusterSize("anvil", 10, 4), ClusterSize("bell", 30, None))
    jobs = use({}, *uses, sizes=sizes).jobs
    assert jobs == JobSums(**sums, gpus=None, cpu_used_permille=300, gpu_used_permille=None)
    assert use({}, *uses).jobs.cpu_used_permille is None


def test_utilisation_leaves_out_jobs_on_clusters_that_the_settings_lack() -> None:
    """Anvil and bell have 10 + 30 processors, 6,720 CPU-hours in the week, and used 672 of them.
    The cluster `old` used 67,200 CPU-hours, of how many is not known.
    """
    uses = (
        Usage("cpu", "cpu", "anvil+bell", 3, 0, 0, 0, core_seconds=672 * 3_600),
        Usage("cpu", "cpu", "old", 2, 0, 0, 0, core_seconds=67_200 * 3_600, gpu_seconds=3_600),
    )
    sizes = (ClusterSize("anvil", 10, 4), ClusterSize("bell", 30, 0))
    jobs = use({("cpu", "anvil+bell"): Fraction(40)}, *uses, sizes=sizes).jobs
    assert (jobs.core_seconds, jobs.gpu_seconds) == (67_872 * 3_600, 3_600)
    assert (jobs.cpu_used_permille, jobs.gpu_used_permille) == (100, 0)


def test_gpus_that_no_cluster_has_have_no_utilisation() -> None:
    assert use({}, sizes=(ClusterSize("anvil", 10, 0),)).jobs.gpu_used_permille is None


def test_nodes_of_a_cluster_are_counted_where_its_settings_have_none() -> None:
    """Bell has 2 units, 8 processors and 1 GPU by its nodes: 20,160 SU-minutes in a week, and with
    those of anvil 30,240. Both have 10 processors, 1,680 CPU-hours, of which 420 were used; the
    settings say that bell has no GPU.
    """
    units: dict[tuple[str, str], Fraction | None]
    units = {("cpu", "anvil"): Fraction(1), ("cpu", "bell"): None, ("gpu", "anvil+bell"): None}
    bell = Usage("cpu", "cpu", "bell", 3, 1, 5_000, 60, core_seconds=420 * 3_600)
    sizes = (ClusterSize("anvil", 2, 4), ClusterSize("bell", None, 0))
    known = use(units, bell, sizes=sizes, allocations=[allocation(1, "cpu", 700, 0, 7)])
    nodes = {"cpu": Fraction(2), "gpu": Fraction(1)}
    whole = with_nodes(known, ClusterSize("bell", 8, 1), nodes, WEEK)
    assert [(row.clusters, row.capacity, row.granted, row.used) for row in whole.resources] == [
        ("", 30_240, 700, None),
        ("anvil", 10_080, None, 0),
        ("bell", 20_160, None, 5_000),
        ("anvil+bell", None, 0, 0),  # the nodes are a part of it
    ]
    assert whole.clusters[1] == ClusterSize("bell", 8, 0)
    assert (known.jobs.cpus, known.jobs.cpu_used_permille) == (None, None)
    assert (whole.jobs.cpus, whole.jobs.gpus, whole.jobs.cpu_used_permille) == (10, 4, 250)


def test_settings_have_priority_over_the_nodes_of_a_cluster() -> None:
    known = use({("cpu", "anvil"): Fraction(1)}, sizes=[ClusterSize("anvil", 2, 4)])
    assert with_nodes(known, ClusterSize("anvil", 9, 9), {"cpu": Fraction(9)}, WEEK) == known
