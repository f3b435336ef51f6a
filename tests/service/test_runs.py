"""Reports of clusters: unknown accounts and partitions, banks that only observe, and the price."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest

from fairbank.bank.refusals import Reason, Refusal, remedies
from fairbank.bank.requests import CreateProject
from fairbank.bank.rules import Done
from fairbank.cluster.job import Run
from fairbank.cluster.partition import Cluster, Partition
from fairbank.cluster.run_report import RunReport
from fairbank.core.errors import InvalidInput
from fairbank.core.units import SuMinutes
from tests.service.reporting_agent import ALICE, Centre, changed, ended, started


@pytest.mark.parametrize("report", [started("chem"), changed("chem", 3_600)])
def test_start_and_change_need_a_time_limit_from_any_reporter(
    centre: Centre, report: RunReport
) -> None:
    """Without a time limit a hold would lapse while its job runs."""
    for amount in (None, SuMinutes(60)):
        with pytest.raises(InvalidInput) as bad:
            centre.hear(msgspec.structs.replace(report, limit_seconds=0, amount=amount))
        assert (bad.value.field, bad.value.remedy) == (
            "time_limit",
            "send the limit in seconds, at least 1",
        )


# --- accounts that nobody knows ---


def test_end_of_a_job_of_an_unknown_account_counts_once_its_project_exists(centre: Centre) -> None:
    no = centre.hear(ended("chem"))
    assert isinstance(no, Refusal)
    assert (no.reason, no.account, no.project, no.asked, no.owner) == (
        Reason.UNKNOWN_PROJECT,
        "chem",
        None,
        10,
        ALICE,
    )
    assert centre.kept(no.entry) == no
    centre.project("chem", 1, credit=100)
    centre.ticks.at += 1  # an unknown account is looked up once a second
    yes = centre.hear(ended("chem"))
    assert isinstance(yes, Done)
    assert (yes.amount, yes.available) == (10, 90)


def test_a_job_of_an_unknown_account_does_not_start(centre: Centre) -> None:
    no = centre.hear(started("chem"))
    assert isinstance(no, Refusal)
    assert (no.reason, no.account, no.project, no.asked, no.owner, no.observed) == (
        Reason.UNKNOWN_PROJECT,
        "chem",
        None,
        60,
        ALICE,
        False,
    )
    assert centre.kept(no.entry) == no


def test_a_changed_limit_of_a_job_that_runs_without_a_hold_is_noted_and_stops_nothing(
    observing: Centre, centre: Centre
) -> None:
    observing.ask(CreateProject(gname="bio", gid=20, account="bio"))
    observing.hear(started("bio"))
    longer = changed("bio", 7_200)
    noted = observing.refused_but_let_through(longer)
    assert (noted.reason, noted.project, noted.asked, noted.owner) == (
        Reason.NO_HOLD,
        1,
        120,
        ALICE,
    )
    no = centre.hear(longer)
    assert isinstance(no, Refusal)
    assert (no.reason, no.account, centre.kept(no.entry)) == (Reason.NO_HOLD, "bio", no)


def test_an_observing_bank_stops_no_job_whose_account_or_allocation_is_missing(
    observing: Centre,
) -> None:
    observing.ask(CreateProject(gname="bio", gid=20, account="bio"))
    unknown, homeless = (
        observing.refused_but_let_through(started(account)) for account in ("chem", "bio")
    )
    assert (unknown.reason, unknown.account, unknown.observed) == (
        Reason.UNKNOWN_PROJECT,
        "chem",
        True,
    )
    assert (homeless.reason, homeless.project, homeless.asked, homeless.observed) == (
        Reason.NO_ALLOCATION,
        1,
        60,
        True,
    )


# --- what is told of the price ---


def test_an_amount_is_the_price_also_of_a_run_that_took_no_time(centre: Centre) -> None:
    centre.project("chem", 1, credit=100)
    short = msgspec.structs.replace(ended("chem"), amount=40, elapsed_seconds=0)
    yes = centre.hear(short)
    assert isinstance(yes, Done)
    assert (yes.amount, yes.available) == (40, 60)
    for number, free in ((2, {"amount": 40, "outcome": "NODE_FAIL"}), (3, {"elapsed_seconds": 0})):
        other = centre.hear(
            msgspec.structs.replace(ended("chem"), run=Run("darwin", number, 900), key=None, **free)
        )
        assert isinstance(other, Done)
        assert (other.amount, other.available) == (0, 60)


def test_no_shorter_time_limit_is_advised_where_it_would_not_change_the_price(
    centre: Centre,
) -> None:
    centre.project("chem", 1, credit=30)
    priced = centre.hear(started("chem"))
    output = centre.hear(msgspec.structs.replace(started("chem"), amount=60))
    assert isinstance(priced, Refusal)
    assert isinstance(output, Refusal)
    assert any("a shorter time limit" in each for each in remedies(priced))
    assert not any("a shorter time limit" in each for each in remedies(output))


# --- partitions that the settings know no more ---


COUNTED = {"billing": None, "counts": {"cpu": Fraction(1)}, "partition": "old"}


def test_a_run_in_a_partition_that_was_renamed_is_kept_as_refused_and_counts_once_it_is_known_again(
    centre: Centre,
) -> None:
    centre.project("chem", 1, credit=100)
    held = centre.hear(msgspec.structs.replace(started("chem"), partition="old"))
    assert isinstance(held, Done)
    report = msgspec.structs.replace(ended("chem"), **COUNTED)
    centre.clusters["darwin"] = Cluster("darwin", {"new": Partition("new", "cpu")})
    no = centre.hear(report)
    assert isinstance(no, Refusal)
    assert (no.reason, no.facts, no.allocation, no.owner) == (
        Reason.UNPRICED,
        {"cause": "cluster darwin has no partition 'old'"},
        1,
        ALICE,
    )
    assert centre.kept(no.entry) == no
    assert "settings" in remedies(no)[0]
    centre.clusters["darwin"] = Cluster("darwin", {"old": Partition("old", "cpu")})
    yes = centre.hear(report)
    assert isinstance(yes, Done)
    assert (yes.amount, yes.available) == (10, 90)
    centre.clusters.clear()  # what was settled is answered again, priced or not
    again = centre.hear(report)
    assert isinstance(again, Done)
    assert again.again


def test_a_run_of_an_unknown_cluster_that_never_had_a_hold_is_kept_too(centre: Centre) -> None:
    centre.project("chem", 1, credit=100)
    no = centre.hear(msgspec.structs.replace(ended("chem"), **COUNTED))
    assert isinstance(no, Refusal)
    assert (no.reason, no.allocation, no.project) == (Reason.UNPRICED, None, 1)
    assert centre.kept(no.entry) == no
    centre.clusters["darwin"] = Cluster("darwin", {"old": Partition("old", "cpu")})
    assert isinstance(centre.hear(msgspec.structs.replace(ended("chem"), **COUNTED)), Done)


def test_a_start_that_tells_its_amount_asks_no_partition_for_a_price(centre: Centre) -> None:
    centre.project("chem", 1, credit=100)
    yes = centre.hear(msgspec.structs.replace(started("chem"), amount=30, **COUNTED))
    assert isinstance(yes, Done)
    assert yes.amount == 30
