"""Charges and refusals that a bank would have made in a past period."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.records import BankCluster, BankRun
from fairbank.cluster.accounting_job import AccountingJob
from fairbank.cluster.allocated_tres import NodeSize
from fairbank.cluster.partition import Partition
from fairbank.core.tres import parse_weights
from fairbank.slurm.parsers.machine import read_partitions
from fairbank.slurm.parsers.values import ParsedRows, SlurmPartition
from fairbank.slurm.reconcile.shadow import (
    ShadowAccount,
    ShadowInput,
    ShadowReason,
    ShadowResult,
    simulate,
    with_partition_limits,
)
from tests.slurm.reconcile.jobs import (
    CLUSTER,
    LENIENT,
    NOW,
    a_job,
    a_project,
    an_allocation,
    bank_run,
)

PROJECTS = (a_project(1, "all"), a_project(2, "chem", parent=1))


def shadow_of(
    jobs: Sequence[AccountingJob], *allocations: Allocation, runs: Sequence[BankRun] = ()
) -> ShadowResult:
    return simulate(
        jobs,
        ShadowInput(
            cluster=CLUSTER, projects=PROJECTS, allocations=allocations, now=NOW, runs=runs
        ),
    )


def reasons(shadow: ShadowResult) -> list[ShadowReason]:
    return [refusal.reason for refusal in shadow.refused]


def test_run_holds_its_limit_and_costs_its_time() -> None:
    (row,) = shadow_of([a_job(1)], an_allocation(1, 2, 1_000)).rows
    assert row == ShadowAccount(account="chem", resource="cpu", jobs=1, charged=40, left=960)


@pytest.mark.parametrize("state", [AllocationState.CANCELLED, AllocationState.REMOVED])
def test_cancelled_and_removed_allocations_pay_nothing(state: AllocationState) -> None:
    result = shadow_of([a_job(1)], an_allocation(1, 2, 1_000, state=state))
    assert reasons(result) == [ShadowReason.NO_ALLOCATION]


def test_credit_of_a_frozen_allocation_is_not_left() -> None:
    frozen = an_allocation(1, 2, 1_000, state=AllocationState.FROZEN)
    result = shadow_of([a_job(1)], frozen)
    assert (reasons(result), result.rows[0].left) == ([ShadowReason.FROZEN], 0)


def test_first_allocation_gives_the_reason_as_in_the_ledger() -> None:
    shared = an_allocation(1, 1, 100, shared=True)
    frozen = an_allocation(2, 2, 1_000, state=AllocationState.FROZEN)
    (refusal,) = shadow_of([a_job(1)], frozen, shared).refused
    assert (refusal.reason, refusal.available) == (ShadowReason.FROZEN, 100)
    frozen = an_allocation(1, 1, 1_000, state=AllocationState.FROZEN, shared=True)
    (refusal,) = shadow_of([a_job(1)], an_allocation(2, 2, 100), frozen).refused
    assert refusal.reason is ShadowReason.INSUFFICIENT_CREDIT


@pytest.mark.parametrize(
    ("cluster", "state", "charged"),
    [
        (CLUSTER, "TIMEOUT", 40),
        (CLUSTER, "NODE_FAIL", 0),
        (LENIENT, "TIMEOUT", 0),
        (LENIENT, "NODE_FAIL", 40),
    ],
)
def test_free_states_of_the_bank_are_free(cluster: BankCluster, state: str, charged: int) -> None:
    shadow_input = ShadowInput(
        cluster=cluster, projects=PROJECTS, allocations=[an_allocation(1, 2, 1_000)], now=NOW
    )
    (row,) = simulate([a_job(1, state=state)], shadow_input).rows
    assert (row.charged, row.left) == (charged, 1_000 - charged)


def test_running_job_still_holds() -> None:
    (row,) = shadow_of([a_job(1, state="RUNNING")], an_allocation(1, 2, 1_000)).rows
    assert (row.held, row.charged, row.left) == (240, 0, 760)


def test_second_job_beyond_the_credit_is_refused() -> None:
    """Two jobs hold 240 each at the same time, and 300 are available: the second is refused."""
    result = shadow_of([a_job(1), a_job(2)], an_allocation(1, 2, 300))
    assert reasons(result) == [ShadowReason.INSUFFICIENT_CREDIT]
    assert (
        result.refused[0].job.job_id,
        result.refused[0].requested,
        result.refused[0].available,
    ) == (2, 240, 60)
    (row,) = result.rows
    assert (row.jobs, row.refused, row.refused_requested, row.charged, row.left) == (
        2,
        1,
        240,
        40,
        260,
    )


def test_released_credit_pays_for_the_next_job() -> None:
    first = a_job(1)
    result = shadow_of([first, a_job(2, submitted=first.end or 0)], an_allocation(1, 2, 300))
    assert (reasons(result), result.rows[0].charged) == ([], 80)


@pytest.mark.parametrize(
    ("state", "facts"),
    [
        ("charged", {"charged": 40}),
        ("charged", {"charged": 60, "refunded": 20}),
        ("held", {"held": 240}),
    ],
)
def test_what_the_bank_has_charged_or_holds_is_used_once(state: str, facts: dict[str, int]) -> None:
    """A run of a job that is not simulated stays charged."""
    used = facts.get("charged", 0) - facts.get("refunded", 0)
    allocation = an_allocation(
        1, 2, 1_000 - 40 - used - facts.get("held", 0), charged=used + 40, held=facts.get("held", 0)
    )
    runs = [bank_run(a_job(1), state=state, **facts), bank_run(a_job(9))]
    (row,) = shadow_of([a_job(1)], allocation, runs=runs).rows
    assert (row.charged, row.left) == (40, 1_000 - 40 - 40)


@pytest.mark.parametrize(
    ("partition", "seconds"),
    [
        ("default", 1_800),
        ("max", 7_200),
        ("default,max", 7_200),
        ("none", None),
        ("max,none", None),
    ],
)
def test_job_without_a_limit_has_that_of_its_partitions(
    partition: str, seconds: int | None
) -> None:
    partitions = ParsedRows(
        (
            SlurmPartition("default", default_minutes=30, max_minutes=600),
            SlurmPartition("max", max_minutes=120),
            SlurmPartition("none"),
        )
    )
    job = msgspec.structs.replace(
        a_job(1, state="PENDING", partition=partition, limit_seconds=None), has_own_limit=False
    )
    unlimited = a_job(2, limit_seconds=None)
    limited, unchanged = with_partition_limits([job, unlimited], partitions)
    assert (limited.limit_seconds, unchanged) == (seconds, unlimited)


@pytest.mark.parametrize(
    ("partition", "gaps"),
    [
        ("gpu", ["scontrol show partition, line 2, MaxTime"]),
        ("cpu,gpu", ["scontrol show partition, line 2, MaxTime"]),
        ("gpu,fat", ["scontrol show partition, line 2, MaxTime"]),
        ("gpu,endless", []),
        ("cpu", []),
        ("nopart", []),
        ("gpu,nopart", []),
        ("", []),
    ],
)
def test_only_a_partition_that_was_not_read_hides_the_limit(
    partition: str, gaps: list[str]
) -> None:
    """Line 1 has no name; a partition that Slurm does not have gives no limit."""
    lines = ("MaxTime=?", "PartitionName=gpu MaxTime=?", "PartitionName=cpu MaxTime=01:00:00",
             "PartitionName=fat MaxTime=00:30:00", "PartitionName=endless")  # fmt: skip
    job = a_job(1, state="PENDING", partition=partition, limit_seconds=None)
    job = msgspec.structs.replace(job, has_own_limit=False)
    (limited,) = with_partition_limits([job], read_partitions("\n".join(lines)))
    assert [str(gap).partition(": ")[0] for gap in limited.gaps] == gaps
    assert all("the limit of partition gpu, which" in gap.why for gap in limited.gaps)
    assert (limited.limit_seconds is None) is (partition != "cpu")


@pytest.mark.parametrize(("state", "is_refused"), [("PENDING", True), ("RUNNING", False)])
def test_gpus_without_a_type_have_that_of_their_partition_once_allocated(
    state: str, is_refused: bool
) -> None:
    """Of a running job accounting has the types that Slurm counts."""
    size = NodeSize(8, 1, {"gres/gpu": 4, "gres/gpu:a100": 4})
    gpu = Partition("gpu", "gpu", parse_weights("CPU=1,GRES/gpu:a100=12"), size=size)
    world = ShadowInput(
        cluster=msgspec.structs.replace(CLUSTER, partitions={"gpu": gpu}),
        projects=PROJECTS,
        allocations=[an_allocation(1, 2, 100, resource="gpu")],
        now=NOW,
    )
    job = a_job(1, state=state, partition="gpu", tres="cpu=1,gres/gpu=1")
    assert bool(simulate([job], world).refused) is is_refused


def test_shared_parent_credit_pays_next() -> None:
    shared, own = an_allocation(1, 1, 1_000, shared=True), an_allocation(2, 2, 100)
    assert reasons(shadow_of([a_job(1)], own, shared)) == []
    assert reasons(shadow_of([a_job(1)], own, an_allocation(1, 1, 1_000))) == [
        ShadowReason.INSUFFICIENT_CREDIT
    ]


def test_every_refusal_reason_occurs() -> None:
    jobs = [
        a_job(1, account="nobody"),
        a_job(2, partition="unknown"),
        a_job(3, limit_seconds=None),
        a_job(4, partition="gpu"),
        a_job(5, state="PENDING", limit_seconds=10**8),
        a_job(6, account="all"),
    ]
    frozen = an_allocation(2, 1, 1_000, state=AllocationState.FROZEN)
    result = shadow_of(jobs, an_allocation(1, 2, 1_000), frozen)
    assert sorted(refusal.reason.name for refusal in result.refused) == sorted(
        why.name for why in ShadowReason
    )


def test_node_failures_cost_nothing() -> None:
    (row,) = shadow_of([a_job(1, state="NODE_FAIL")], an_allocation(1, 2, 1_000)).rows
    assert (row.charged, row.left) == (0, 1_000)


def test_cancelled_pending_jobs_are_left_out() -> None:
    assert (
        shadow_of([a_job(1, state="PENDING", limit_seconds=60)], an_allocation(1, 2, 1_000))
        .rows[0]
        .jobs
        == 1
    )
    assert shadow_of([], an_allocation(1, 2, 1_000)).rows == ()


@given(
    st.lists(
        st.builds(
            a_job,
            st.integers(1, 50),
            submitted=st.integers(NOW - 5_000, NOW - 1),
            elapsed=st.integers(0, 3_600),
            state=st.sampled_from(["COMPLETED", "RUNNING", "PENDING", "NODE_FAIL"]),
        ),
        max_size=12,
    ),
    st.integers(0, 1_500),
)
def test_no_overdraft_by_two_servers(jobs: list[AccountingJob], credit: int) -> None:
    result = shadow_of(jobs, an_allocation(1, 2, credit))
    drawn = sum(row.charged + row.held for row in result.rows)
    assert 0 <= drawn <= credit
    if result.rows:
        assert result.rows[0].left == credit - drawn
