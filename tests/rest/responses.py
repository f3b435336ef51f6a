"""Requests of tests, and checks of their responses."""

from __future__ import annotations

from typing import Any

from tests.rest.world import PI, World

WHY = {"comment": "x"}
JSON = {"content-type": "application/json"}


def data(world: World, path: str, uid: int = PI) -> Any:
    """Return the data of a list or an item."""
    response = world.ask("GET", path, uid)
    assert response.status_code == 200, response.text
    return without_texts(response.json()["data"])


def without_texts(value: Any) -> Any:
    """Return an answer without the texts of its amounts, which `World.ask` has checked."""
    if isinstance(value, dict):
        return {name: without_texts(item) for name, item in value.items() if name != "display"}
    return [without_texts(item) for item in value] if isinstance(value, list) else value


def ids_of(rows: list[dict[str, Any]]) -> list[int]:
    return [row["id"] for row in rows]


def all_pages(world: World, path: str, uid: int = PI, size: int = 2) -> list[Any]:
    """Return all rows of a list, read in pages of `size` rows."""
    rows: list[Any] = []
    after = ""
    while True:
        answer = world.ask(
            "GET", f"{path}{'&' if '?' in path else '?'}limit={size}{after}", uid
        ).json()
        assert len(answer["data"]) <= size
        rows += without_texts(answer["data"])
        if answer["next"] is None:
            return rows
        after = f"&after={answer['next']}"


def refused(
    world: World, uid: int, method: str, path: str, status: int, field: str | None, **more: Any
) -> dict[str, Any]:
    """Send a request that must fail without writing anything; return the problem."""
    before = world.entries()
    answer = world.ask(method, path, uid, **more)
    problem: dict[str, Any] = answer.json()
    assert (answer.status_code, problem.get("field")) == (status, field), problem
    assert answer.headers["content-type"] == "application/problem+json"
    assert (problem["status"], problem["bank"]) == (status, world.context.name)
    assert problem["detail"].strip() == problem["detail"] != ""
    assert "Traceback" not in answer.text
    assert world.entries() == before
    return problem
