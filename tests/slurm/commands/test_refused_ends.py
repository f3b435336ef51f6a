"""Ends from `fairbank reconcile` that the bank refuses: the refusal names the field and the
reason.
"""

from __future__ import annotations

import pytest

from tests.slurm.commands.site import MY_UID, Centre

pytestmark = pytest.mark.slow

SAID = f"owner_uid is {MY_UID}, but its run belongs to user {MY_UID + 5}"


def test_end_of_another_user_names_the_field(opened: Centre) -> None:
    job = opened.job(1)
    opened.report(job, owner_uid=MY_UID + 5)
    opened.ran(job)
    (row,) = opened.reconciled("--fix", code=8)
    refusal = row["refusal"]
    assert isinstance(refusal, dict)
    assert (refusal["reason"], refusal["field"]) == ("REPORT_MISMATCH", "owner_uid")
    assert refusal["detail"] == f"the report contradicts the hold: {SAID}."
    assert str(refusal["remedy"]).startswith(
        "send the report with user, account and partition of the start"
    )
    assert SAID in str(row["done"])


def test_column_done_names_the_field(opened: Centre) -> None:
    job = opened.job(1)
    opened.report(job, owner_uid=MY_UID + 5)
    opened.ran(job)
    for words in (("--fix",), ()):  # what was refused in the first is still told in the second
        (_, line, *_) = opened.tell(
            "reconcile", *words, "-o", "JOBID,DONE%60", code=8
        ).splitlines()[-2:]
        assert line.split(None, 1) == ["1", SAID]


def test_run_without_hold_request_has_no_refusal(opened: Centre) -> None:
    opened.ran(opened.job(1))
    (row,) = opened.reconciled(code=8)
    assert (row["done"], row["refusal"]) == ("no", None)
    (row,) = opened.reconciled("--fix")
    assert (row["done"], row["refusal"]) == ("yes", None)


def test_retry_shows_the_new_reason(opened: Centre) -> None:
    opened.ran(opened.job(1, account="bio"))
    (row,) = opened.reconciled("--fix", code=8)
    assert isinstance(row["refusal"], dict)
    (row,) = opened.reconciled("--fix", "--again", code=8)
    assert (row["kind"], row["refusal"]) == ("REFUSED", None)
    assert str(row["done"]).startswith(
        "there was no allocation that could pay; fairbank alloc create"
    )
    (_, line, *_) = opened.tell(
        "reconcile", "--fix", "--again", "-o", "JOBID,DONE%60", code=8
    ).splitlines()[-2:]
    assert line.split(None, 1)[1].startswith("there was no allocation that could pay")


def test_unpayable_charge_keeps_its_reason_in_later_reconciliations(opened: Centre) -> None:
    opened.ran(opened.job(1, account="bio"))
    opened.reconciled("--fix", code=8)
    (row,) = opened.reconciled(code=8)
    assert isinstance(row["refusal"], dict)
    assert (row["kind"], row["done"], row["refusal"]["reason"]) == (
        "REFUSED",
        "no",
        "NO_ALLOCATION",
    )
