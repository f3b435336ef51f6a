"""Asking for what cannot be had, and seeing that nothing came of it."""

from __future__ import annotations

from typing import Any

from tests.rest.world import World

WHY = {"comment": "x"}
JSON = {"content-type": "application/json"}


def refused(
    world: World, uid: int, method: str, path: str, status: int, field: str | None, **more: Any
) -> dict[str, Any]:
    """The problem that the request gets; nothing is written."""
    before = world.entries()
    answer = world.ask(method, path, uid, **more)
    problem: dict[str, Any] = answer.json()
    assert (answer.status_code, problem.get("field")) == (status, field), problem
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["status"] == status
    assert problem["detail"]
    assert "Traceback" not in answer.text
    assert world.entries() == before
    return problem
