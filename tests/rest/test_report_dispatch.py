"""Dispatch of reports: the same responses as through the framework, which has `/job/` only."""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.service.reports import RunReports
from tests.rest.responses import JSON
from tests.rest.world import AGENT, MEMBER, World, report

REQUESTS: dict[str, dict[str, Any]] = {
    "granted before": {"uid": AGENT, "json": report(1)},
    "no credit": {"uid": AGENT, "json": report(2, amount=10**15)},
    "invalid field": {"uid": AGENT, "json": report(3, cluster="al pha")},
    "unknown field": {"uid": AGENT, "json": report(3, colour="red")},
    "a list": {"uid": AGENT, "json": [report(3)]},
    "no JSON": {"uid": AGENT, "content": b"{", "headers": JSON},
    "no body": {"uid": AGENT},
    "no content type": {"uid": AGENT, "content": b"{}"},
    "key in a header": {"uid": AGENT, "json": report(3), "headers": {"Idempotency-Key": "key"}},
    "a query": {"uid": AGENT, "json": report(3), "params": {"colour": "red"}},
    "invalid host": {"uid": AGENT, "json": report(3), "headers": {"Host": "a b"}},
    "too large": {"uid": AGENT, "content": b" " * (4 * 1024 * 1024 + 1), "headers": JSON},
    "not allowed": {"uid": MEMBER, "json": report(3)},
    "not authenticated": {"json": report(3)},
    "as another user": {"uid": AGENT, "as_": MEMBER, "json": report(3)},
}


@pytest.mark.parametrize("path", ["/job", "/job/bulk"])
@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_response_is_that_of_the_framework(
    world: World, request_: dict[str, Any], path: str
) -> None:
    world.ask("POST", "/job", AGENT, json=report(1))
    options = dict(request_)
    if path == "/job/bulk" and "json" in options:
        options["json"] = {"reports": [options["json"]]}
    direct, framework = (world.ask("POST", sent, **options) for sent in (path, f"{path}/"))
    assert direct.status_code == framework.status_code
    assert direct.headers == framework.headers
    assert _stable(direct.json()) == _stable(framework.json())


def test_failure_of_a_handler_is_a_500_without_internals(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunReports, "can_prepare_now", lambda *_: 1 / 0)
    answer = world.ask("POST", "/job", AGENT, json=report(1))
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert "ZeroDivision" not in answer.text


def _stable(answer: Any) -> Any:
    """Remove the entry number of a refusal: each refused request has another one."""
    if isinstance(answer, dict):
        return {name: _stable(value) for name, value in answer.items() if name != "entry"}
    return [_stable(value) for value in answer] if isinstance(answer, list) else answer
