"""Job ids that are used again: each execution is matched to its run."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairbank.core.final_state import LOST
from fairbank.slurm.reconcile.compare import Category
from fairbank.slurm.reconcile.restarts import restart_count
from tests.slurm.reconcile.comparison import categories, compare_records, only_finding
from tests.slurm.reconcile.jobs import NOW, a_job, bank_run


def test_reused_job_id_is_another_run() -> None:
    old, new = a_job(1, submitted=NOW - 500_000), a_job(1, submitted=NOW - 50_000)
    assert (
        compare_records([old, new], [bank_run(old, number=1), bank_run(new, number=2)]).matched == 2
    )
    assert only_finding(compare_records([old, new], [bank_run(old)])).job == new


def test_requeued_job_is_another_run() -> None:
    first = a_job(1, state="REQUEUED")
    second = a_job(1, submitted=(first.end or 0) + 1)
    assert (
        compare_records(
            [first, second], [bank_run(first, number=1), bank_run(second, restart=1, number=2)]
        ).matched
        == 2
    )


def test_runs_that_start_in_one_second_are_matched_by_their_final_states() -> None:
    """The first had no time to cost anything. The second was held at once, and began later."""
    first, again = a_job(1, state="REQUEUED", elapsed=0), a_job(1)
    begun = again.submitted + 1
    second = msgspec.structs.replace(again, start=begun, end=begun + again.elapsed)
    runs = [bank_run(first, state="released", number=1), bank_run(again, restart=1, number=2)]
    for history in ([first, second], [second, first]):
        assert compare_records(history, runs).findings == ()


@pytest.mark.parametrize("later", [1, 60])
def test_refused_start_does_not_take_the_run_of_the_restart(later: int) -> None:
    """The bank refused the first start, so it has one run: that of a restart."""
    again = a_job(1)
    start = (again.start or 0) + later
    ran = msgspec.structs.replace(again, start=start, end=start + again.elapsed)
    refused = a_job(1, state="REQUEUED", elapsed=0)
    compared = compare_records([refused, ran], [bank_run(ran, restart=1)])
    assert (compared.findings, compared.matched, compared.free) == ((), 1, 1)


def test_submit_time_changed_by_a_crash_is_matched() -> None:
    """The same id, start and owner mean the same run, even if slurmctld changed the submit time."""
    job = a_job(1)
    assert compare_records([job], [bank_run(job, submitted=job.submitted - 30)]).matched == 1
    assert categories(
        compare_records([job], [bank_run(job, submitted=job.submitted - 30, owner=1)])
    ) == [Category.MISSING, Category.UNACCOUNTED]


OTHER_JOB: tuple[dict[str, Any], ...] = (
    {"owner": 60_602},
    {"account": "bio"},
    {"partition": "gpu"},
)


@pytest.mark.parametrize("other", OTHER_JOB)
def test_hold_of_another_job_under_the_same_number_is_not_its_run(other: dict[str, Any]) -> None:
    """After a crash slurmctld numbers the tasks of arrays again: a task may get the number of one
    of another array that was submitted in the same second.
    """
    job = a_job(1)
    held, lapsed = (bank_run(job, state=state, **other) for state in ("held", "lapsed"))
    lost = bank_run(job, state="released", **{**other, "outcome": LOST})
    assert categories(compare_records([job], [held])) == [Category.MISSING, Category.ORPHAN]
    for run in (lapsed, lost):
        assert categories(compare_records([job], [run])) == [Category.MISSING]
    own = bank_run(job, restart=1, number=2)
    assert categories(compare_records([job], [held, own])) == [Category.ORPHAN]
    for run in (lapsed, lost):
        assert compare_records([job], [run, own]).matched == 1
        assert categories(compare_records([job], [run, own])) == []


def test_charge_of_a_user_whose_uid_has_changed_is_matched() -> None:
    job = a_job(1, owner=70_601)
    assert compare_records([job], [bank_run(job, owner=60_601)]).matched == 1


def test_restarts_are_counted_from_accounting() -> None:
    first = a_job(1, state="NODE_FAIL", submitted=NOW - 90_000)
    second = a_job(1, state="REQUEUED", submitted=(first.end or 0) + 30)  # after the epilogs
    third = a_job(
        1, submitted=(second.end or 0) + 20_000
    )  # after REQUEUED, whatever the time between them
    stranger = a_job(1, submitted=(first.end or 0) + 5, owner=7)
    another = a_job(1, submitted=(third.end or 0) + 5)  # after a reset of slurmctld
    history = [third, first, second]
    assert [restart_count(job, history) for job in (first, second, third)] == [0, 1, 2]
    assert restart_count(another, [*history, another]) == 0
    assert restart_count(stranger, [first, stranger]) == 0
    assert restart_count(msgspec.structs.replace(first, restart=9), history) == 9


def test_stale_pending_record_is_no_restart() -> None:
    """24.11 leaves such a record if a job is requeued while its prolog runs; its next record is the
    job.
    """
    first = a_job(1, state="REQUEUED")
    end = first.end or 0
    pending = msgspec.structs.replace(
        a_job(1, state="PENDING", submitted=end), start=None, end=None, elapsed=0
    )
    again = a_job(1, submitted=end + 1)
    assert [restart_count(job, [first, pending, again]) for job in (first, pending, again)] == [
        0,
        1,
        1,
    ]
    assert (
        compare_records(
            [first, pending, again],
            [bank_run(first, number=1), bank_run(again, restart=1, number=2)],
        ).matched
        == 2
    )
