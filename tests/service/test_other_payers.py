"""Other payers for a refused job: further projects of its owner."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairbank.bank.project import Role
from fairbank.bank.refusals import Alternative, Detail, Reason
from fairbank.bank.requests import SetCap, SetMember
from fairbank.core.units import SuMinutes
from tests.service.reporting_agent import ALICE, GROUPS, ReportingSite, make_site


@pytest.fixture
def group_site() -> Iterator[ReportingSite]:
    """Make a site whose Unix groups make members."""
    yield from make_site(groups=GROUPS)


def test_two_richest_other_projects_are_named(site: ReportingSite) -> None:
    for number, (name, credit) in enumerate(
        {"chem": 500, "bio": 100, "geo": 300, "astro": 200, "poor": 9}.items(), start=1
    ):
        site.project(name, number, credit=credit)
        site.apply(SetMember(project=number, uid=ALICE, role=Role.MEMBER))
    assert site.other_payers(10) == [Alternative("geo", 300), Alternative("astro", 200)]
    assert site.other_payers(10, reason=Reason.HOLD_EXISTS) == []
    assert site.other_payers(10, detail=Detail.LIMIT_CHANGED) == []  # its job runs already


def test_project_with_an_exhausted_cap_is_not_named(site: ReportingSite) -> None:
    site.project("chem", 1)
    site.project("bio", 2, credit=100)
    site.apply(
        SetMember(project=2, uid=ALICE, role=Role.MEMBER),
        SetCap(allocation=2, uid=ALICE, cap=SuMinutes(40)),
    )
    assert site.other_payers(40) == [Alternative("bio", 40)]
    assert site.other_payers(41) == []


def test_project_with_shared_parent_credit_is_named(site: ReportingSite) -> None:
    site.project("chem", 1)
    site.project("faculty", 2, credit=100, shared=True)
    site.project("group", 3, credit=5, parent=2)
    site.apply(SetMember(project=3, uid=ALICE, role=Role.MEMBER))
    assert site.other_payers(10) == [Alternative("group", 100)]


def test_project_of_a_unix_group_is_named_if_groups_make_members(
    site: ReportingSite, group_site: ReportingSite
) -> None:
    for reporting_site in (site, group_site):
        for number, name in enumerate(("chem", "bio", "geo"), start=1):
            reporting_site.project(name, number, credit=100)
    assert group_site.other_payers(10) == [Alternative("geo", 100)]
    assert site.other_payers(10) == []
