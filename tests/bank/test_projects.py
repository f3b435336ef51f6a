"""Projects: created once, with unique names and bounded project chains."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.bank.policy import Policy
from fairbank.bank.project import LINE_MAX, line_of
from fairbank.bank.refusals import Detail, Refusal
from fairbank.bank.requests import CreateProject, SubmittedRequest
from fairbank.bank.rules import apply
from fairbank.core.time import Instant
from tests.bank.stories import empty_data, play_story


def test_project_is_created_once() -> None:
    story = play_story("""
        project physics
        project physics                         -> again
        project optics under physics
        project optics                          -> EXISTS       # with another parent
        project chemistry under alchemy         -> UNKNOWN_PROJECT
        member physics alice pi
        member physics bob member
        member physics bob none
        member chemistry bob member             -> UNKNOWN_PROJECT
        """)
    assert [(member.uid, member.role.value) for member in story.work.members.values()] == [
        (1001, "pi")
    ]


@pytest.mark.parametrize(
    ("shared", "answer"),
    [
        ({}, "again"),
        ({"gname": "new", "gid": 9, "account": "new"}, "ok"),
        ({"gid": 9, "account": "new"}, "EXISTS"),
        ({"gname": "new", "account": "new"}, "EXISTS"),
        ({"gname": "new", "gid": 9}, "EXISTS"),
        ({"parent": 1}, "EXISTS"),
    ],
)
def test_no_two_projects_share_a_group_a_gid_or_an_account(
    shared: dict[str, object], answer: str
) -> None:
    work, physics = empty_data(), CreateProject(gname="physics", gid=5, account="phys")
    apply(work, SubmittedRequest(physics, Instant(0), 0), Policy())
    outcome = apply(
        work, SubmittedRequest(msgspec.structs.replace(physics, **shared), Instant(0), 0), Policy()
    )
    result = (
        outcome.reason.name if isinstance(outcome, Refusal) else "again" if outcome.again else "ok"
    )
    assert result == answer
    if isinstance(outcome, Refusal):  # which of them it was
        same = [
            f"{name} {value}"
            for name, value in (("gname", "physics"), ("gid", 5), ("account", "phys"))
            if name not in shared
        ]
        assert (outcome.project, outcome.detail, (outcome.facts or {})["names"]) == (
            1,
            Detail.OTHER_PARENT if "parent" in shared else Detail.SAME_NAMES,
            ", ".join(same),
        )


@given(st.dictionaries(st.integers(0, 9), st.none() | st.integers(0, 9)), st.integers(0, 9))
def test_project_chain_is_nearest_first_without_repetition(
    parents: dict[int, int | None], project: int
) -> None:
    line = line_of(project, parents)
    assert line[0] == project
    assert 1 <= len(line) == len(set(line)) <= LINE_MAX
    assert all(parents[child] == parent for child, parent in pairwise(line))


def test_project_chain_has_a_maximum_length() -> None:
    assert line_of(1, {1: 2, 2: 1}) == (1, 2)
    assert line_of(0, {number: number + 1 for number in range(20)}) == tuple(range(LINE_MAX))
