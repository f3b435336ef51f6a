"""Permissions of roles over the roles, caps and credit of other users."""

from __future__ import annotations

import pytest

from tests.rest.world import COORDINATOR, MEMBER, PI, STRANGER, SUPERUSER, World


def test_pi_cannot_transfer_credit_to_another_project(shared_world: World) -> None:
    body = {"to": shared_world.foreign["allocation"], "amount": 1, "comment": "x"}
    assert (
        shared_world.ask(
            "POST", f"/alloc/{shared_world.own['allocation']}/transfer", PI, json=body
        ).status_code
        == 404
    )


@pytest.mark.parametrize(("role", "status"), [("pi", 403), ("coordinator", 403), ("member", 200)])
def test_coordinator_may_only_add_members(shared_world: World, role: str, status: int) -> None:
    path = f"/project/{shared_world.own['project']}/member/8888"
    assert shared_world.ask("PUT", path, COORDINATOR, json={"role": role}).status_code == status


def test_coordinator_cannot_remove_the_pi(shared_world: World) -> None:
    path = f"/project/{shared_world.own['project']}/member/{PI}"
    for answer in (
        shared_world.ask("DELETE", path, COORDINATOR),
        shared_world.ask("PUT", path, COORDINATOR, json={"role": "member"}),
    ):
        problem = answer.json()
        assert (answer.status_code, problem["detail"]) == (
            403,
            "users manage only roles below their own, and cap only users with such roles.",
        )
        assert (problem["refusal"]["reason"], problem["remedy"]) == (
            "ROLE_ABOVE",
            "ask a superuser",
        )


@pytest.mark.parametrize(
    ("by", "capped", "status"),
    [
        (COORDINATOR, PI, 403),
        (COORDINATOR, COORDINATOR, 403),
        (COORDINATOR, MEMBER, 200),
        (COORDINATOR, STRANGER, 200),
        (PI, PI, 403),
        (PI, COORDINATOR, 200),
        (PI, MEMBER, 200),
        (SUPERUSER, PI, 200),
        (SUPERUSER, COORDINATOR, 200),
    ],
)
@pytest.mark.parametrize("cap", [0, None])
def test_caps_require_a_higher_role_than_the_user(
    shared_world: World, by: int, capped: int, status: int, cap: int | None
) -> None:
    answer = shared_world.ask(
        "PUT", f"/alloc/{shared_world.own['allocation']}/cap/{capped}", by, json={"cap": cap}
    )
    assert answer.status_code == status
    if status == 403:
        assert (answer.json()["refusal"]["reason"], answer.json()["remedy"]) == (
            "ROLE_ABOVE",
            "ask a superuser",
        )
