"""Reports of clusters: unknown accounts and partitions, banks that only observe, and the price."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest

from fairbank.bank.refusals import Reason, Refusal, remedies
from fairbank.bank.requests import CreateProject
from fairbank.bank.rules import Done
from fairbank.cluster.partition import Cluster, Partition
from fairbank.cluster.run_report import RunReport
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.units import SuMinutes
from tests.service.reporting_agent import (
    ALICE,
    ReportingSite,
    limit_changed,
    run_ended,
    run_started,
)


@pytest.mark.parametrize("report", [run_started("chem"), limit_changed("chem", 3_600)])
def test_start_and_change_need_a_time_limit_from_any_reporter(
    site: ReportingSite, report: RunReport
) -> None:
    """Without a time limit a hold would lapse while its job runs."""
    for amount in (None, SuMinutes(60)):
        with pytest.raises(InvalidInput) as bad:
            site.report_run(msgspec.structs.replace(report, time_limit=0, amount=amount))
        assert (bad.value.field, bad.value.remedy) == (
            "time_limit",
            "send the limit in seconds, at least 1",
        )


# --- unknown accounts ---


def test_end_of_a_job_of_an_unknown_account_counts_once_its_project_exists(
    site: ReportingSite,
) -> None:
    refusal = site.report_run(run_ended("chem"))
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, refusal.account, refusal.project, refusal.requested, refusal.owner) == (
        Reason.UNKNOWN_PROJECT,
        "chem",
        None,
        10,
        ALICE,
    )
    assert site.stored_refusal(refusal.entry) == refusal
    site.project("chem", 1, credit=100)
    site.ticks.at += 1  # an unknown account is looked up once a second
    done = site.report_run(run_ended("chem"))
    assert isinstance(done, Done)
    assert (done.amount, done.remaining) == (10, 90)


def test_job_of_an_unknown_account_does_not_start(site: ReportingSite) -> None:
    refusal = site.report_run(run_started("chem"))
    assert isinstance(refusal, Refusal)
    assert (
        refusal.reason,
        refusal.account,
        refusal.project,
        refusal.requested,
        refusal.owner,
        refusal.observed,
    ) == (Reason.UNKNOWN_PROJECT, "chem", None, 60, ALICE, False)
    assert site.stored_refusal(refusal.entry) == refusal


def test_changed_limit_without_a_hold_is_recorded_by_an_observing_bank(
    observing: ReportingSite, site: ReportingSite
) -> None:
    observing.apply(CreateProject(gname="bio", gid=20, account="bio"))
    observing.report_run(run_started("bio"))
    longer = limit_changed("bio", 7_200)
    recorded = observing.observed_refusal(longer)
    assert (recorded.reason, recorded.project, recorded.requested, recorded.owner) == (
        Reason.NO_HOLD,
        1,
        120,
        ALICE,
    )
    refusal = site.report_run(longer)
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, refusal.account, site.stored_refusal(refusal.entry)) == (
        Reason.NO_HOLD,
        "bio",
        refusal,
    )


def test_observing_bank_stops_no_job_whose_account_or_allocation_is_missing(
    observing: ReportingSite,
) -> None:
    observing.apply(CreateProject(gname="bio", gid=20, account="bio"))
    unknown, unallocated = (
        observing.observed_refusal(run_started(account)) for account in ("chem", "bio")
    )
    assert (unknown.reason, unknown.account, unknown.observed) == (
        Reason.UNKNOWN_PROJECT,
        "chem",
        True,
    )
    assert (
        unallocated.reason,
        unallocated.project,
        unallocated.requested,
        unallocated.observed,
    ) == (Reason.NO_ALLOCATION, 1, 60, True)


# --- price ---


def test_reported_amount_is_charged_even_for_zero_elapsed_time(site: ReportingSite) -> None:
    site.project("chem", 1, credit=100)
    short = msgspec.structs.replace(run_ended("chem"), amount=40, elapsed=0)
    done = site.report_run(short)
    assert isinstance(done, Done)
    assert (done.amount, done.remaining) == (40, 60)
    for number, free in ((2, {"amount": 40, "state": "NODE_FAIL"}), (3, {"elapsed": 0})):
        charged = site.report_run(
            msgspec.structs.replace(run_ended("chem"), job_id=number, key=None, **free)
        )
        assert isinstance(charged, Done)
        assert (charged.amount, charged.remaining) == (0, 60)


def test_shorter_time_limit_is_advised_only_if_it_changes_the_price(site: ReportingSite) -> None:
    site.project("chem", 1, credit=30)
    priced = site.report_run(run_started("chem"))
    output = site.report_run(msgspec.structs.replace(run_started("chem"), amount=60))
    assert isinstance(priced, Refusal)
    assert isinstance(output, Refusal)
    assert any("a shorter time limit" in remedy for remedy in remedies(priced))
    assert not any("a shorter time limit" in remedy for remedy in remedies(output))


# --- partitions missing from the settings ---


COUNTED = {"billing": None, "tres": "cpu=1", "partition": "old"}


def test_run_in_a_renamed_partition_is_refused_until_it_is_known_again(site: ReportingSite) -> None:
    site.project("chem", 1, credit=100)
    held = site.report_run(msgspec.structs.replace(run_started("chem"), partition="old"))
    assert isinstance(held, Done)
    report = msgspec.structs.replace(run_ended("chem"), **COUNTED)
    site.clusters["darwin"] = Cluster("darwin", {"new": Partition("new", "cpu")})
    refusal = site.report_run(report)
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, refusal.facts, refusal.allocation, refusal.owner) == (
        Reason.UNPRICED,
        {"cause": "cluster darwin has no partition 'old'"},
        1,
        ALICE,
    )
    assert site.stored_refusal(refusal.entry) == refusal
    assert "settings" in remedies(refusal)[0]
    site.clusters["darwin"] = Cluster("darwin", {"old": Partition("old", "cpu")})
    done = site.report_run(report)
    assert isinstance(done, Done)
    assert (done.amount, done.remaining) == (10, 90)
    site.clusters.clear()  # a repeated report gets its first answer, priced or not
    again = site.report_run(report)
    assert isinstance(again, Done)
    assert again.again


FACTOR = {"partition": "old", "resource": None, "qos": "high"}
"""Fields of the agent's reports: their price needs the cluster."""
MISSING = (404, {"field": "cluster", "cause": "there is no cluster 'darwin'"}, None)
"""Status, facts and entry of an end whose cluster the settings lack."""


@pytest.mark.parametrize("fields", [FACTOR, {**FACTOR, "resource": "cpu"}])
def test_price_that_needs_a_missing_cluster_is_refused_as_the_start_of_its_run(
    site: ReportingSite, fields: dict[str, object]
) -> None:
    def change(report: RunReport, **more: object) -> RunReport:
        return msgspec.structs.replace(report, **fields, **more)

    cluster = Cluster("darwin", {"old": Partition("old", "cpu")}, {"high": Fraction(9)})
    site.clusters["darwin"] = cluster
    site.project("chem", 1, credit=1_000)
    held = site.report_run(change(run_started("chem")))
    assert isinstance(held, Done)
    assert held.amount == 9 * 60
    del site.clusters["darwin"]
    for report in (change(run_started("chem"), job_id=2), change(limit_changed("chem", 1_800))):
        with pytest.raises(NotFound) as missing:
            site.report_run(report)
        assert missing.value.field == "cluster"
    end = change(run_ended("chem"))
    for report in (end, change(run_ended("chem"), state="NODE_FAIL")):
        refusal = site.report_run(report)
        assert isinstance(refusal, Refusal)
        assert (refusal.kind.status, refusal.facts, refusal.entry) == MISSING
    site.clusters["darwin"] = cluster
    done = site.report_run(end)
    assert isinstance(done, Done)
    assert (done.amount, done.remaining) == (9 * 10, 1_000 - 9 * 10)


def test_run_with_an_amount_is_charged_without_its_cluster(site: ReportingSite) -> None:
    site.project("chem", 1, credit=100)
    fields = {"amount": 30, "qos": "high"}
    assert isinstance(site.report_run(msgspec.structs.replace(run_started("chem"), **fields)), Done)
    done = site.report_run(msgspec.structs.replace(run_ended("chem"), **fields))
    assert isinstance(done, Done)
    assert (done.amount, done.remaining) == (30, 70)


def test_counted_run_of_an_unknown_cluster_is_charged_once_it_is_known(site: ReportingSite) -> None:
    site.project("chem", 1, credit=100)
    refusal = site.report_run(msgspec.structs.replace(run_ended("chem"), **COUNTED))
    assert isinstance(refusal, Refusal)
    assert (refusal.kind.status, refusal.facts, refusal.entry) == MISSING
    site.clusters["darwin"] = Cluster("darwin", {"old": Partition("old", "cpu")})
    assert isinstance(site.report_run(msgspec.structs.replace(run_ended("chem"), **COUNTED)), Done)


def test_start_with_an_amount_needs_no_partition_price(site: ReportingSite) -> None:
    site.project("chem", 1, credit=100)
    done = site.report_run(msgspec.structs.replace(run_started("chem"), amount=30, **COUNTED))
    assert isinstance(done, Done)
    assert done.amount == 30
