"""Ends from `fairbank reconcile` that the bank refuses: the refusal names the field and the
reason.
"""

from __future__ import annotations

import pytest

from tests.slurm.commands.site import CommandSite

pytestmark = pytest.mark.slow

DETAIL = "no project has the account 'ghost'"


def test_end_of_an_unknown_account_names_the_field(site: CommandSite) -> None:
    site.set_accounting(site.job(1, account="ghost"))
    (row,) = site.reconcile("--fix", code=8)
    refusal = row["refusal"]
    assert isinstance(refusal, dict)
    assert (refusal["reason"], refusal["field"]) == ("UNKNOWN_PROJECT", "account")
    assert DETAIL in refusal["detail"]
    assert DETAIL in str(row["done"])


def test_column_done_names_the_field(site: CommandSite) -> None:
    site.set_accounting(site.job(1, account="ghost"))
    for words in (("--fix",), ()):  # the second call still shows the refusal
        shown = site.output("reconcile", *words, "-o", "JOBID,DONE%60", code=8)
        assert f"1 there is no such project: {DETAIL}" in " ".join(shown.split())


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
