"""Reports to the bank about runs that are missing in the ledger."""

from __future__ import annotations

import msgspec

from fairbank.core.ids import OVERFLOW_UID
from fairbank.slurm.reconcile.repair import charge_report
from tests.slurm.reconcile.jobs import CLUSTER, a_job, bank_run


def test_report_of_a_missing_run() -> None:
    job = a_job(7)
    assert msgspec.to_builtins(charge_report(job, None, 2, CLUSTER)) == {
        "do": "complete", "cluster": "lab", "job_id": 7, "submitted": job.submitted, "restart": 2,
        "owner_uid": 60_601, "account": "chem",
        "partition": "cpu", "qos": "normal", "start": job.start, "time_limit": 3_600,
        "end": job.end, "elapsed": 600,
        "state": "COMPLETED", "tres": "cpu=4,mem=4000M,node=1",
        "comment": "reconciled with accounting",
    }  # fmt: skip


def test_run_is_closed_with_the_identity_of_the_bank() -> None:
    job = a_job(7)
    report = charge_report(
        job, bank_run(job, state="held", restart=3, submitted=job.submitted - 30), 0, CLUSTER
    )
    assert (report.submitted, report.restart) == (job.submitted - 30, 3)


def test_run_of_an_owner_without_uid_gets_the_overflow_uid() -> None:
    job = a_job(7, owner=None)
    report = charge_report(job, None, 0, CLUSTER)
    assert (report.owner_uid, report.account) == (OVERFLOW_UID, "chem")
    assert report.comment == "reconciled with accounting; user 'alice' has no uid here"
    assert charge_report(job, bank_run(a_job(7), state="held"), 0, CLUSTER).owner_uid == 60_601


def test_start_after_the_end_is_set_to_the_end() -> None:
    """A clock was set back while the job ran. The bank accepts no end before the start."""
    job = a_job(7, elapsed=0)
    assert job.start is not None
    set_back = msgspec.structs.replace(job, end=job.start - 1_800)
    report = charge_report(set_back, bank_run(job, state="held"), 0, CLUSTER)
    assert (report.start, report.end, report.elapsed) == (set_back.end, set_back.end, 0)
