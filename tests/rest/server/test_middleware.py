"""Middleware: limits of requests and bodies, and responses when the application fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from litestar.testing import TestClient

from fairbank.core.errors import Unavailable
from fairbank.rest.auth.peers import EXTENSION, Peer
from fairbank.rest.metrics import ServerMetrics
from fairbank.rest.server.limits import network_of
from fairbank.rest.server.middleware import Middleware
from tests.rest.server.log_lines import logged
from tests.rest.world import AGENT


async def _never_answers(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.get_running_loop().create_future()


async def _fails(scope: Any, receive: Any, send: Any) -> None:
    raise ZeroDivisionError


def _middleware(app: Any, **more: Any) -> Any:
    return Middleware(_with_lifespan(app), ServerMetrics(), **more)


def _with_lifespan(app: Any) -> Any:
    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await app(scope, receive, send)
            return
        for event in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{event}.complete"})

    return asgi


def test_timed_out_request_gets_503() -> None:
    with TestClient(_middleware(_never_answers, timeout_seconds=0.01)) as client:
        answer = client.post("/job")
    assert answer.status_code == 503
    assert (
        answer.json()["remedy"]
        == "send it again with the same key: what was carried out is not repeated"
    )


def test_failure_of_the_application_is_a_500_without_internals() -> None:
    with TestClient(_middleware(_fails), raise_server_exceptions=False) as client:
        answer = client.get("/")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert "ZeroDivision" not in answer.text


@pytest.mark.parametrize(
    ("fault", "status", "title"),
    [
        (ZeroDivisionError("secret"), 500, "failure"),
        (Unavailable("the database is away"), 503, "unavailable"),
    ],
)
def test_failure_before_the_body_is_logged_and_counted(
    fault: Exception, status: int, title: str
) -> None:
    async def refuse_head(scope: Any) -> None:
        raise fault

    metrics = ServerMetrics()
    middleware: Any = Middleware(
        _with_lifespan(_never_answers), metrics, authenticate_head=refuse_head
    )
    with logged() as lines, TestClient(middleware, raise_server_exceptions=False) as client:
        answer = client.post("/job", json={})
    assert (answer.status_code, answer.headers["content-type"], answer.json()["title"]) == (
        status,
        "application/problem+json",
        title,
    )
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "secret" not in answer.text
    assert [
        line["status"] for line in lines if line["from"] == "fairbank.request" and "status" in line
    ] == [status]
    statuses = {"method": "POST", "route": "unknown", "status": str(status)}
    assert metrics.registry.get_sample_value("fairbank_requests_total", statuses) == 1
    assert metrics.registry.get_sample_value("fairbank_requests_in_progress") == 0


def test_requests_in_progress_are_limited() -> None:
    middleware = _middleware(_never_answers, requests_max=1, timeout_seconds=30)

    async def scenario() -> list[int]:
        statuses: list[int] = []

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                assert (b"retry-after", b"1") in message["headers"]

        scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
        first = asyncio.create_task(middleware(dict(scope), None, send))
        await asyncio.sleep(0)
        await middleware(dict(scope), None, send)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return statuses

    assert asyncio.run(scenario()) == [503]


def test_slow_bodies_do_not_count_as_requests_in_progress() -> None:
    """Two users have 512 connections each, the maximum: more requests than the server processes at
    a time.
    """
    middleware = Middleware(_reads_its_body, ServerMetrics())

    async def scenario() -> list[int]:
        begun = {"type": "http.request", "body": b"{", "more_body": True}
        slow = [
            asyncio.create_task(_ask(middleware, uid, _parts_without_end(begun)))
            for uid in (2003, 2004)
            for _ in range(512)
        ]
        await _run_pending_tasks()
        answers = [
            await _ask(middleware, AGENT, _body),
            await _ask(middleware, AGENT, _body, path="/health"),
            await _ask(middleware, 2003, _body),
        ]
        await _cancel(*slow)
        return answers

    assert asyncio.run(scenario()) == [200, 200, 200]


def test_user_cannot_take_all_requests_in_progress() -> None:
    middleware = Middleware(_never_answers, ServerMetrics(), requests_max=100, timeout_seconds=30)

    async def scenario() -> tuple[int, bool]:
        tasks = [
            asyncio.create_task(_ask(middleware, uid, _body))
            for uid in (2003, 2004, 2009)
            for _ in range(100)
        ]
        await _run_pending_tasks()
        refused = sum(task.done() for task in tasks)
        agent = asyncio.create_task(_ask(middleware, AGENT, _body))
        await _run_pending_tasks()
        accepted = not agent.done()
        await _cancel(agent, *tasks)
        return refused, accepted

    refused, agent_accepted = asyncio.run(scenario())
    assert refused > 200
    assert agent_accepted


def test_health_is_answered_when_the_request_limit_is_reached() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await (_reads_its_body if scope["path"] == "/health" else _never_answers)(
            scope, receive, send
        )

    middleware = Middleware(app, ServerMetrics(), requests_max=1)

    async def scenario() -> list[int]:
        first = asyncio.create_task(_ask(middleware, 2003, _body))
        await _run_pending_tasks()
        answers = [
            await _ask(middleware, 2003, _body),
            await _ask(middleware, 2003, _body, path="/health"),
        ]
        await _cancel(first)
        return answers

    assert asyncio.run(scenario()) == [503, 200]


def test_memory_of_bodies_is_limited() -> None:
    middleware = Middleware(_reads_its_body, ServerMetrics())
    part = {"type": "http.request", "body": b"x" * 4_000_000, "more_body": True}

    async def scenario() -> tuple[list[int], int]:
        tasks = [
            asyncio.create_task(_ask(middleware, 2003, _parts_without_end(part))) for _ in range(40)
        ]
        await _run_pending_tasks()
        refused = [task.result() for task in tasks if task.done()]
        agent = await _ask(middleware, AGENT, _body)
        await _cancel(*tasks)
        return refused, agent

    refused, agent = asyncio.run(scenario())
    assert refused == [503] * 6, "each user may have half of 256 MiB"
    assert agent == 200


def test_body_in_parts_reaches_the_application_complete() -> None:
    parts = [
        {"type": "http.request", "body": part, "more_body": bool(part)}
        for part in (b"a", b"b", b"")
    ]
    assert (
        asyncio.run(
            _ask(Middleware(_reads_its_body, ServerMetrics()), AGENT, _parts_without_end(*parts))
        )
        == 200
    )


def test_disconnect_within_a_body_reaches_the_application() -> None:
    parts = ({"type": "http.request", "body": b"a", "more_body": True}, {"type": "http.disconnect"})
    assert (
        asyncio.run(
            _ask(Middleware(_reads_its_body, ServerMetrics()), AGENT, _parts_without_end(*parts))
        )
        == 400
    )


def test_ipv6_network_counts_as_one_client() -> None:
    assert network_of("192.0.2.1") == network_of("::ffff:192.0.2.1") != network_of("192.0.2.2")
    assert (
        network_of("2001:db8::1") == network_of("2001:db8::ffff:1") != network_of("2001:db8:1::1")
    )


async def _reads_its_body(scope: Any, receive: Any, send: Any) -> None:
    more = True
    while more:
        event = await receive()
        more = event.get("more_body", False)
    status = 200 if event["type"] == "http.request" else 400
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def _ask(middleware: Middleware, uid: int, receive: Any, *, path: str = "/job") -> int:
    """Send a POST of `uid` over the Unix socket; return the status."""
    statuses: list[int] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    headers = [(b"content-length", b"100")]
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "headers": headers,
        "extensions": {EXTENSION: Peer(1, uid, uid)},
    }
    await middleware(scope, receive, send)
    return statuses[0]


async def _body() -> Any:
    return {"type": "http.request", "body": b"{}", "more_body": False}


def _parts_without_end(*parts: Any) -> Any:
    remaining = list(parts)

    async def receive() -> Any:
        return remaining.pop(0) if remaining else await asyncio.get_running_loop().create_future()

    return receive


async def _run_pending_tasks() -> None:
    """Run the event loop until all tasks wait."""
    for _ in range(5):
        await asyncio.sleep(0)


async def _cancel(*tasks: asyncio.Task[int]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
