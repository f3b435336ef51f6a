"""What the stories of the routes read from answers."""

from __future__ import annotations

from typing import Any

from tests.rest.world import PI, World


def data(world: World, path: str, uid: int = PI) -> Any:
    answer = world.ask("GET", path, uid)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def ids_of(rows: list[dict[str, Any]]) -> list[int]:
    return [each["id"] for each in rows]


def all_pages(world: World, path: str, uid: int = PI, size: int = 2) -> list[Any]:
    """Every row of a list, so many at a time."""
    found: list[Any] = []
    after = ""
    while True:
        answer = world.ask(
            "GET", f"{path}{'&' if '?' in path else '?'}limit={size}{after}", uid
        ).json()
        assert len(answer["data"]) <= size
        found += answer["data"]
        if answer["next"] is None:
            return found
        after = f"&after={answer['next']}"
