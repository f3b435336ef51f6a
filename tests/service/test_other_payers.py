"""Other payers for a refused job: further projects of its owner."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairbank.bank.project import Role
from fairbank.bank.refusals import Alternative, Reason
from fairbank.bank.requests import SetCap, SetMember
from fairbank.core.units import SuMinutes
from tests.service.reporting_agent import ALICE, GROUPS, Centre, made


@pytest.fixture
def of_groups() -> Iterator[Centre]:
    """Make a site whose Unix groups make members."""
    yield from made(groups=GROUPS)


def test_the_two_richest_of_ones_other_projects_are_named(centre: Centre) -> None:
    for number, (name, credit) in enumerate(
        {"chem": 500, "bio": 100, "geo": 300, "astro": 200, "poor": 9}.items(), start=1
    ):
        centre.project(name, number, credit=credit)
        centre.ask(SetMember(project=number, uid=ALICE, role=Role.MEMBER))
    assert centre.others(10) == [Alternative("geo", 300), Alternative("astro", 200)]
    assert centre.others(10, reason=Reason.HOLD_EXISTS) == []


def test_a_project_whose_cap_a_user_has_reached_is_not_named(centre: Centre) -> None:
    centre.project("chem", 1)
    centre.project("bio", 2, credit=100)
    centre.ask(
        SetMember(project=2, uid=ALICE, role=Role.MEMBER),
        SetCap(allocation=2, uid=ALICE, cap=SuMinutes(40)),
    )
    assert centre.others(40) == [Alternative("bio", 40)]
    assert centre.others(41) == []


def test_a_project_that_draws_on_its_parents_credit_is_named(centre: Centre) -> None:
    centre.project("chem", 1)
    centre.project("faculty", 2, credit=100, shared=True)
    centre.project("group", 3, credit=5, parent=2)
    centre.ask(SetMember(project=3, uid=ALICE, role=Role.MEMBER))
    assert centre.others(10) == [Alternative("group", 100)]


def test_a_project_one_belongs_to_only_by_a_unix_group_is_named_where_groups_count(
    centre: Centre, of_groups: Centre
) -> None:
    for each in (centre, of_groups):
        for number, name in enumerate(("chem", "bio", "geo"), start=1):
            each.project(name, number, credit=100)
    assert of_groups.others(10) == [Alternative("geo", 100)]
    assert centre.others(10) == []
