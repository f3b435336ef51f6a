"""Tests of the bank of a cluster, in a file."""

from __future__ import annotations

import os
from pathlib import Path

from fairbank.bank.allocation import AllocationEvent
from fairbank.bank.project import Role
from fairbank.bank.query import Page, ProjectQuery
from fairbank.bank.requests import Amend, SubmittedRequest
from fairbank.bank.rules import Done
from fairbank.core.time import DAY
from fairbank.service.ledger import Ledger
from fairbank.setup.bank_settings import SystemClock, opened_store, settings_of
from fairbank.setup.cluster_bank import PROJECT, create_bank, find_year, grant_year
from tests.support.conditions import wait_until


def test_bank_has_the_users_project_with_a_year_of_all_cpus(tmp_path: Path) -> None:
    settings = create_bank(tmp_path, "ws17", ["main"], again=False)
    assert find_year(settings) is None
    year = grant_year(settings, 16)
    assert (year.terms.resource, year.available) == ("cpu", 16 * 8_760 * 60)
    assert year.terms.end - year.terms.start in (365 * DAY, 366 * DAY)
    with opened_store(str(settings)) as store, store.reading() as reader:
        (project,) = reader.projects(ProjectQuery(), Page(9))
        members = [(row.uid, row.role) for row in reader.members(project.id, Page(9))]
    assert (project.account, members) == (PROJECT, [(os.getuid(), Role.MEMBER)])


def test_credit_is_renewed_only_when_it_has_ended(tmp_path: Path) -> None:
    settings = create_bank(tmp_path, "ws17", ["main"], again=False)
    first = grant_year(settings, 2)
    assert grant_year(settings, 2) == find_year(settings) == first
    end = Amend(
        allocation=first.id, project=first.terms.project, resource="cpu", event=AllocationEvent.END
    )
    now = SystemClock().now()
    with opened_store(str(settings)) as store:
        ledger = Ledger(store, settings_of(str(settings)).policy)
        (outcome,) = ledger.apply([SubmittedRequest(end, now, os.getuid())])
    assert isinstance(outcome, Done)
    wait_until(lambda: SystemClock().now() > now, "the end of the allocation")
    second = grant_year(settings, 2)
    assert second.id != first.id
    assert second.available == 2 * 8_760 * 60


def test_settings_follow_the_cluster_and_keep_the_ledger(tmp_path: Path) -> None:
    year = grant_year(create_bank(tmp_path, "ws17", ["main"], again=False), 1)
    create_bank(tmp_path, "other", ["main"], again=False)
    assert set(settings_of(str(tmp_path / "fairbank.toml")).clusters) == {"ws17"}
    settings = create_bank(tmp_path, "big-1", ["main", "long.q"], again=True)
    (cluster,) = settings_of(str(settings)).clusters.items()
    assert (cluster[0], set(cluster[1].partitions)) == ("big-1", {"main", "long.q"})
    assert find_year(settings) == year
