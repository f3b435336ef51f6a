"""Ends from `fairbank reconcile` that the bank refuses: the refusal names the field and the
reason.
"""

from __future__ import annotations

import pytest

from tests.slurm.commands.site import MY_UID, CommandSite

pytestmark = pytest.mark.slow

DETAIL = f"owner_uid is {MY_UID}, but its run belongs to user {MY_UID + 5}"


def test_end_of_another_user_names_the_field(site: CommandSite) -> None:
    job = site.job(1)
    site.report(job, owner_uid=MY_UID + 5)
    site.set_accounting(job)
    (row,) = site.reconcile("--fix", code=8)
    refusal = row["refusal"]
    assert isinstance(refusal, dict)
    assert (refusal["reason"], refusal["field"]) == ("REPORT_MISMATCH", "owner_uid")
    assert refusal["detail"] == f"the report contradicts the hold: {DETAIL}."
    assert str(refusal["remedy"]).startswith(
        "send the report with user, account and partition of the start"
    )
    assert DETAIL in str(row["done"])


def test_column_done_names_the_field(site: CommandSite) -> None:
    job = site.job(1)
    site.report(job, owner_uid=MY_UID + 5)
    site.set_accounting(job)
    for words in (("--fix",), ()):  # the second call still shows the refusal
        (_, line, *_) = site.output(
            "reconcile", *words, "-o", "JOBID,DONE%60", code=8
        ).splitlines()[-2:]
        assert line.split(None, 1) == ["1", DETAIL]


def test_run_without_hold_request_has_no_refusal(site: CommandSite) -> None:
    site.set_accounting(site.job(1))
    (row,) = site.reconcile(code=8)
    assert (row["done"], row["refusal"]) == ("no", None)
    (row,) = site.reconcile("--fix")
    assert (row["done"], row["refusal"]) == ("yes", None)


def test_retry_keeps_the_reason_while_no_allocation_could_pay(site: CommandSite) -> None:
    site.set_accounting(site.job(1, account="bio"))
    (first,) = site.reconcile("--fix", code=8)
    (row,) = site.reconcile("--fix", "--again", code=8)
    assert isinstance(first["refusal"], dict)
    assert isinstance(row["refusal"], dict)
    assert (row["kind"], row["done"]) == ("REFUSED", "no")
    for key in ("reason", "detail"):
        assert row["refusal"][key] == first["refusal"][key]


def test_unpayable_charge_keeps_its_reason_in_later_reconciliations(site: CommandSite) -> None:
    site.set_accounting(site.job(1, account="bio"))
    site.reconcile("--fix", code=8)
    (row,) = site.reconcile(code=8)
    assert isinstance(row["refusal"], dict)
    assert (row["kind"], row["done"], row["refusal"]["reason"]) == (
        "REFUSED",
        "no",
        "NO_ALLOCATION",
    )
