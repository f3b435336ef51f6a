"""Rules of all routes: the authenticated user, HEAD, health and metrics."""

from __future__ import annotations

import pytest

from fairbank.core.time import iso
from tests.rest.responses import data
from tests.rest.world import ADMIN, AGENT, COORDINATOR, MEMBER, NOW, PI, STRANGER, World, report


def test_whoami_shows_user_roles_and_scopes(shared_world: World) -> None:
    user = data(shared_world, "/whoami", COORDINATOR)
    assert (user["actor"], user["uid"], user["superuser"], user["admin"]) == (
        COORDINATOR,
        COORDINATOR,
        False,
        False,
    )
    assert user["roles"] == [{"project": shared_world.own["project"], "role": "coordinator"}]
    assert data(shared_world, "/whoami", AGENT)["clusters"] == ["alpha"]
    acting = shared_world.ask("GET", "/whoami", ADMIN, as_=PI).json()["data"]
    assert (acting["actor"], acting["uid"], acting["admin"]) == (ADMIN, PI, False)


def test_metrics_count_requests_and_outcomes(world: World) -> None:
    world.ask("POST", "/job", AGENT, json=report(50))
    world.ask("POST", "/job", AGENT, json=report(51, amount=10**12))
    world.ask("GET", "/alloc/1", STRANGER)
    world.ask("GET", "/no/such/../../place", STRANGER)
    text = world.ask("GET", "/metrics", ADMIN).text
    assert 'fairbank_requests_total{method="POST",route="/job",status="201"} 1.0' in text
    assert (
        'fairbank_requests_total{method="GET",route="/alloc/{allocation}",status="404"} 1.0' in text
    )
    assert 'route="unknown",status="404"' in text
    assert 'fairbank_ledger_outcomes_total{outcome="INSUFFICIENT_CREDIT"}' in text
    assert "fairbank_ledger_requests_queued 0.0" in text
    assert "fairbank_requests_in_progress 1.0" in text


@pytest.mark.parametrize(
    "path",
    [
        "/alloc",
        "/alloc/1",
        "/usage",
        "/health",
        "/docs",
        "/docs/start.js",
        "/openapi.json",
        "/nosuch",
        "/alloc/99",
    ],
)
def test_head_is_answered_like_get_without_the_body(shared_world: World, path: str) -> None:
    answer, headed = (shared_world.ask(method, path, PI) for method in ("GET", "HEAD"))
    assert headed.status_code == answer.status_code
    assert headed.headers == answer.headers
    assert headed.content == b""
    assert len(answer.content) == int(answer.headers["content-length"])


def test_head_requires_the_same_permissions(shared_world: World) -> None:
    assert shared_world.ask("HEAD", "/alloc").status_code == 401
    assert shared_world.ask("HEAD", "/audit", MEMBER).status_code == 403
    assert shared_world.ask("HEAD", "/job/bulk", AGENT).status_code == 405


def test_health_shows_no_data(shared_world: World) -> None:
    assert shared_world.ask("GET", "/health").text == (
        f'{{"status":"ok","bank":"fairbank","as_of":"{iso(NOW)}"}}\n'
    )
