"""Differences between accounting and the ledger."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.cluster.accounting_job import AccountingJob
from fairbank.cluster.job import JobDetails
from fairbank.slurm.parsers.values import QueuedJob
from fairbank.slurm.reconcile.compare import Category, ReconcileComparison
from fairbank.slurm.reconcile.prices import ClusterPrices
from fairbank.slurm.reconcile.repair import charge_report
from tests.slurm.reconcile.comparison import HOUR, categories, compare_records, only_finding
from tests.slurm.reconcile.jobs import CLUSTER, NOW, a_job, bank_run

# --- agreement ---


def test_charge_that_agrees_is_matched() -> None:
    job = a_job(1)  # 4 CPUs for 10 minutes
    assert ClusterPrices(CLUSTER).price(job, job.elapsed) == 40
    assert compare_records([job], [bank_run(job)]) == ReconcileComparison(
        matched=1, free=0, late=0, findings=()
    )


@pytest.mark.parametrize("charged", [39, 40, 41])
def test_rounding_of_a_minute_is_no_difference(charged: int) -> None:
    job = a_job(1)
    assert compare_records([job], [bank_run(job, charged=charged)]).matched == 1


def test_write_offs_and_refunds_are_matched() -> None:
    job = a_job(1)
    assert compare_records([job], [bank_run(job, charged=30, written_off=10)]).matched == 1
    assert compare_records([job], [bank_run(job, refunded=40)]).matched == 1


def test_free_node_failure_is_matched() -> None:
    job = a_job(1, state="NODE_FAIL")
    assert compare_records([job], [bank_run(job, state="released")]).matched == 1


def test_free_run_with_another_state_is_matched() -> None:
    """The agent reported a node failure, and accounting has a failed boot."""
    job = a_job(1, state="BOOT_FAIL")
    run = bank_run(job, state="released", outcome="NODE_FAIL")
    assert compare_records([job], [run]).matched == 1
    assert (
        only_finding(compare_records([msgspec.structs.replace(job, state="TIMEOUT")], [run])).amount
        == -40
    )


def test_charge_of_a_free_run_is_wrong_if_the_bank_knew_another_state() -> None:
    """A node failed, slurmctld requeued the job at once, and the agent reported REQUEUED."""
    job = a_job(1, state="NODE_FAIL")
    charged = bank_run(job, outcome="REQUEUED")
    assert only_finding(compare_records([job], [charged])).category is Category.AMOUNT
    assert compare_records([job], [bank_run(job, outcome="REQUEUED", refunded=40)]).matched == 1
    # The bank knew the state: it was not free by the policy of then.
    assert compare_records([job], [bank_run(job)]).matched == 1


def test_run_with_a_clock_set_back_is_matched() -> None:
    """slurmdbd and the plug-in both report an elapsed time of 0, so the agent releases the hold."""
    job = a_job(1, elapsed=0)
    assert job.start is not None
    back = msgspec.structs.replace(job, end=job.start - 1_800)
    assert compare_records([back], [bank_run(back, state="released")]).matched == 1


def test_run_with_a_clock_set_forward_is_matched() -> None:
    job = a_job(1, elapsed=11 * HOUR)
    assert compare_records([job], [bank_run(job, charged=11 * 4 * 60)]).matched == 1


def test_run_of_no_time_may_be_missing_in_the_ledger() -> None:
    assert compare_records([a_job(1, elapsed=0)]) == ReconcileComparison(
        matched=0, free=1, late=0, findings=()
    )


def test_jobs_that_never_ran_are_ignored() -> None:
    never = msgspec.structs.replace(a_job(1, state="CANCELLED"), start=None, elapsed=0)
    assert compare_records(
        [never, a_job(2, state="PENDING"), a_job(3, state="RUNNING")]
    ) == ReconcileComparison(matched=0, free=0, late=0, findings=())


@pytest.mark.parametrize("state", [None, "held", "charged"])
def test_final_state_without_an_end_is_no_end(state: str | None) -> None:
    """A job is cancelled while it is suspended. Until slurmdbd has its end, sacct counts on."""
    job = a_job(1, state="CANCELLED")
    early = msgspec.structs.replace(job, end=None, elapsed=50_000)
    runs = [] if state is None else [bank_run(job, state=state)]
    queue = [QueuedJob(1, job.submitted, "COMPLETING")]
    assert compare_records([early], runs, queue) == ReconcileComparison(
        matched=0, free=0, late=0, findings=()
    )


def test_repeated_row_counts_once() -> None:
    job = a_job(1)
    assert compare_records([job, job], [bank_run(job)]).matched == 1


# --- missing charges ---


def test_unknown_run_is_reported_to_the_bank() -> None:
    finding = only_finding(compare_records([a_job(1)]))
    assert only_finding(compare_records([a_job(1, state="NODE_FAIL")])).amount == 0
    assert (finding.category, finding.amount, finding.run) == (Category.MISSING, 40, None)


@pytest.mark.parametrize("state", ["held", "lapsed"])
def test_lost_end_is_reported(state: str) -> None:
    job = a_job(1)
    finding = only_finding(compare_records([job], [bank_run(job, state=state)]))
    assert (finding.category, finding.amount) == (Category.OPEN, 40)


def test_incomplete_row_waits_for_the_next_run() -> None:
    """The end of a short job can be in accounting before its start, then without partition and
    TRES.
    """
    young = a_job(1, submitted=NOW - 1_000)
    half = msgspec.structs.replace(young, partition="", tres="")
    assert compare_records([half]) == ReconcileComparison(matched=0, free=0, late=1, findings=())
    assert compare_records([half], [bank_run(young, state="held")]) == ReconcileComparison(
        matched=0, free=0, late=1, findings=()
    )


def test_recent_end_may_still_be_reported() -> None:
    """Reconciling must not race with the agent's report."""
    fresh = a_job(1, submitted=NOW - 630)
    for runs in ([], [bank_run(fresh, state="held")]):
        assert compare_records([fresh], runs) == ReconcileComparison(
            matched=0, free=0, late=1, findings=()
        )
        assert len(compare_records([fresh], runs, now=NOW + 60).findings) == 1
        assert len(compare_records([fresh], runs, grace_seconds=0).findings) == 1


def test_row_that_stays_incomplete_is_reported() -> None:
    half = incomplete(a_job(1))
    assert categories(compare_records([half])) == [Category.INCOMPLETE]
    assert categories(compare_records([half], [bank_run(a_job(1), state="held")])) == [
        Category.INCOMPLETE
    ]


def test_incomplete_record_with_reported_end_is_matched() -> None:
    for state in ("charged", "released"):
        assert compare_records(
            [incomplete(a_job(1))], [bank_run(a_job(1), state=state)]
        ) == ReconcileComparison(matched=0, free=0, late=0, findings=(), bank_only=1)


def test_incomplete_record_is_completed_from_the_reported_start() -> None:
    job = a_job(1)
    details = JobDetails(tres=job.tres, qos="normal", limit_seconds=3_600)
    run = bank_run(job, state="held", job_details=details)
    finding = only_finding(compare_records([incomplete(job)], [run]))
    assert (finding.category, finding.amount, finding.job) == (Category.OPEN, 40, job)
    assert finding.job is not None
    report = charge_report(finding.job, run, 0, CLUSTER)
    assert (report.partition, report.tres, report.elapsed, report.time_limit) == (
        "cpu",
        job.tres,
        600,
        3_600,
    )
    young = a_job(1, submitted=NOW - 1_000)
    assert (
        compare_records([incomplete(young)], [bank_run(young, state="held", job_details=details)])
    ).late == 1, "the other half may still come"


def test_incomplete_record_of_a_refused_start_is_free() -> None:
    job = a_job(1, elapsed=1, state="REQUEUED")
    assert compare_records([incomplete(job)], refused={(1, job.submitted): job.submitted}).free == 1
    assert compare_records([incomplete(a_job(1, elapsed=0))]).free == 1


def incomplete(job: AccountingJob) -> AccountingJob:
    """Return the job without the fields that only its start reports."""
    return msgspec.structs.replace(job, partition="", tres="", qos=None, limit_seconds=None)


def test_charge_refused_after_the_end_is_not_retried() -> None:
    job = a_job(1)
    end = job.end or 0
    assert categories(compare_records([job], refused={(1, job.submitted): end + 5})) == [
        Category.REFUSED
    ]


@pytest.mark.parametrize("state", ["REQUEUED", "CANCELLED"])
def test_refused_job_is_never_charged(state: str) -> None:
    job = a_job(1, elapsed=1, state=state)
    for refused in (job.submitted, job.submitted + 1):
        assert compare_records([job], refused={(1, job.submitted): refused}) == ReconcileComparison(
            matched=0, free=1, late=0, findings=()
        )


@pytest.mark.parametrize("waited", [1, 16, 60, 3_600])
def test_job_that_waited_for_its_refusal_is_free(waited: int) -> None:
    """Slurm counts the time in which the job waited for an agent that was away."""
    job = a_job(1, elapsed=waited, state="REQUEUED")
    refused = {(1, job.submitted): (job.end or 0) - 1}
    assert compare_records([job], refused=refused).free == 1


def test_run_after_a_refusal_is_missing() -> None:
    for ran, refused in (
        (a_job(1, elapsed=1, state="COMPLETED"), 0),
        (a_job(1, elapsed=600, state="REQUEUED"), 0),
        (a_job(1, elapsed=1, state="REQUEUED"), -3_600),
    ):
        assert categories(
            compare_records([ran], refused={(1, ran.submitted): ran.submitted + refused})
        ) == [Category.MISSING]


def test_refused_hold_does_not_exclude_a_charge() -> None:
    """The agent may let the job run nevertheless."""
    job = a_job(1)
    assert categories(compare_records([job], refused={(1, job.submitted): job.submitted})) == [
        Category.MISSING
    ]


def test_partition_without_price_has_no_amount() -> None:
    job = a_job(1, partition="unknown")
    assert only_finding(compare_records([job])).amount is None
    assert compare_records([job], [bank_run(job, charged=7)]).matched == 1


# --- lost holds ---


def test_hold_without_job_is_an_orphan() -> None:
    finding = only_finding(compare_records(runs=[bank_run(a_job(1), state="held")]))
    assert (finding.category, finding.amount) == (Category.ORPHAN, 240)


def test_hold_of_a_queued_job_is_kept() -> None:
    job = a_job(1, state="RUNNING")
    run = bank_run(job, state="held")
    for state in ("RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "PENDING"):
        assert compare_records([job], [run], [QueuedJob(1, job.submitted, state)]).findings == ()


def test_recent_hold_is_not_an_orphan() -> None:
    job = a_job(1, submitted=NOW - HOUR + 1)
    assert compare_records(runs=[bank_run(job, state="held")]) == ReconcileComparison(
        matched=0, free=0, late=1, findings=()
    )


def test_runaway_job_is_reported() -> None:
    job = a_job(1, state="RUNNING")
    assert categories(compare_records([job], [bank_run(job, state="held")])) == [Category.RUNAWAY]


def test_later_execution_does_not_keep_an_earlier_hold() -> None:
    first, second = (
        a_job(1, submitted=NOW - 90_000),
        a_job(1, submitted=NOW - 80_000, state="RUNNING"),
    )
    comparison = compare_records(
        [second], [bank_run(first, state="held")], [QueuedJob(1, second.submitted, "RUNNING")]
    )
    assert categories(comparison) == [Category.ORPHAN]


# --- differences for an administrator ---


@pytest.mark.parametrize(("charged", "more"), [(10, -30), (400, 360)])
def test_wrong_amount_is_reported(charged: int, more: int) -> None:
    job = a_job(1)
    finding = only_finding(compare_records([job], [bank_run(job, charged=charged)]))
    assert (finding.category, finding.amount) == (Category.AMOUNT, more)


@pytest.mark.parametrize(
    ("state", "refunded", "more"),
    [("COMPLETED", 360, None), ("COMPLETED", 100, 260), ("NODE_FAIL", 400, None)],
)
def test_wrong_amount_is_fixed_by_a_refund(state: str, refunded: int, more: int | None) -> None:
    comparison = compare_records(
        [a_job(1, state=state)], [bank_run(a_job(1), charged=400, refunded=refunded)]
    )
    assert [finding.amount for finding in comparison.findings] == ([] if more is None else [more])
    assert comparison.matched == (more is None)


def test_released_run_that_ran_is_reported() -> None:
    job = a_job(1)
    assert categories(
        compare_records([job], [bank_run(job, state="released", outcome="LOST", elapsed_seconds=0)])
    ) == [Category.AMOUNT]


def test_double_charge_is_reported() -> None:
    job = a_job(1)
    finding = only_finding(
        compare_records([job], [bank_run(job), bank_run(job, restart=1, number=2)])
    )
    assert (finding.category, finding.amount) == (Category.DUPLICATE, 40)
    assert (
        compare_records(
            [job], [bank_run(job), bank_run(job, restart=1, number=2, refunded=40)]
        ).findings
        == ()
    )


def test_charge_without_accounting_is_reported() -> None:
    job = a_job(1)
    assert categories(compare_records(runs=[bank_run(job)])) == [Category.UNACCOUNTED]
    assert (
        compare_records(runs=[bank_run(a_job(1, submitted=NOW - 700))]).findings == ()
    )  # accounting lags
    assert (
        compare_records(runs=[bank_run(job)], since=job.submitted + 1).findings == ()
    )  # outside the period


# --- properties ---


STATES = st.sampled_from(["COMPLETED", "REQUEUED", "RUNNING", "NODE_FAIL"])
WORLDS = st.dictionaries(
    st.tuples(st.integers(1, 4), st.integers(0, 3)), st.tuples(STATES, st.booleans()), max_size=8
)


@given(WORLDS)
def test_each_difference_is_reported_once(world: dict[tuple[int, int], tuple[str, bool]]) -> None:
    known_jobs = [
        (a_job(n, submitted=NOW - 200_000 + 1_000 * slot, state=state), known)
        for (n, slot), (state, known) in world.items()
    ]
    jobs, recorded = [job for job, _ in known_jobs], [job for job, known in known_jobs if known]
    runs = [
        bank_run(job, number=place, state="held" if job.end is None else "charged")
        for place, job in enumerate(recorded, 1)
    ]
    queue = [QueuedJob(job.job_id, job.submitted, "RUNNING") for job in jobs if job.end is None]
    comparison = compare_records(jobs, runs, queue)
    ended = [job for job in jobs if job.has_ended]
    assert comparison.matched + comparison.free + comparison.late + len(comparison.findings) == len(
        ended
    )
    assert {finding.category for finding in comparison.findings} <= {Category.MISSING}
    assert len(comparison.findings) == len(ended) - sum(1 for run in runs if not run.is_open)
