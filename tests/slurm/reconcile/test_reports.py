"""Reports to the bank about runs that it does not know."""

from __future__ import annotations

import msgspec
import pytest

from fairbank.core.errors import InvalidInput
from fairbank.slurm.reconcile.repair import charge_report
from tests.slurm.reconcile.jobs import CLUSTER, a_job, booked


def test_the_report_of_a_missing_run() -> None:
    job = a_job(7)
    assert charge_report(job, None, 2, CLUSTER) == {
        "do": "complete", "cluster": "lab", "job_id": 7, "submitted": job.submitted, "restart": 2,
        "owner_uid": 60_601, "account": "chem",
        "partition": "cpu", "qos": "normal", "start": job.start, "time_limit": 3_600,
        "end": job.end, "elapsed": 600,
        "state": "COMPLETED", "tres": "cpu=4,mem=4000M,node=1",
        "comment": "reconciled with accounting",
    }  # fmt: skip


def test_a_run_is_closed_under_the_name_that_the_bank_knows() -> None:
    job = a_job(7)
    told = charge_report(
        job, booked(job, state="held", restart=3, submitted=job.submitted - 30), 0, CLUSTER
    )
    assert (told["submitted"], told["restart"]) == (job.submitted - 30, 3)


def test_unknown_user_is_reported_not_guessed() -> None:
    job = a_job(7, owner=None)
    with pytest.raises(InvalidInput, match="this host has no user 'alice'"):
        charge_report(job, None, 0, CLUSTER)
    assert charge_report(job, booked(a_job(7), state="held"), 0, CLUSTER)["owner_uid"] == 60_601


def test_a_run_that_ended_before_it_began_began_when_it_ended() -> None:
    """A clock was set back while it ran. The bank takes no end that comes before its start."""
    job = a_job(7, elapsed=0)
    assert job.start is not None
    back = msgspec.structs.replace(job, end=job.start - 1_800)
    told = charge_report(back, booked(job, state="held"), 0, CLUSTER)
    assert (told["start"], told["end"], told["elapsed"]) == (back.end, back.end, 0)
