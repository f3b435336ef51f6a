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


async def _never(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.get_running_loop().create_future()


async def _breaks(scope: Any, receive: Any, send: Any) -> None:
    raise ZeroDivisionError


def _front(app: Any, **more: Any) -> Any:
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
    with TestClient(_front(_never, timeout_seconds=0.01)) as client:
        answer = client.post("/job")
    assert answer.status_code == 503
    assert (
        answer.json()["remedy"]
        == "send it again with the same key: what was carried out is not repeated"
    )


def test_failure_of_the_application_is_a_500_without_internals() -> None:
    with TestClient(_front(_breaks), raise_server_exceptions=False) as client:
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
    async def greet(scope: Any) -> None:
        raise fault

    metrics = ServerMetrics()
    front: Any = Middleware(_with_lifespan(_never), metrics, authenticate_head=greet)
    with logged() as lines, TestClient(front, raise_server_exceptions=False) as client:
        answer = client.post("/job", json={})
    assert (answer.status_code, answer.headers["content-type"], answer.json()["title"]) == (
        status,
        "application/problem+json",
        title,
    )
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "secret" not in answer.text
    assert [
        each["status"] for each in lines if each["from"] == "fairbank.request" and "status" in each
    ] == [status]
    told = {"method": "POST", "route": "unknown", "status": str(status)}
    assert metrics.registry.get_sample_value("fairbank_requests_total", told) == 1
    assert metrics.registry.get_sample_value("fairbank_requests_in_progress") == 0


def test_requests_in_work_are_limited() -> None:
    front = _front(_never, requests_max=1, timeout_seconds=30)

    async def two() -> list[int]:
        said: list[int] = []

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                said.append(message["status"])
                assert (b"retry-after", b"1") in message["headers"]

        scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
        first = asyncio.create_task(front(dict(scope), None, send))
        await asyncio.sleep(0)
        await front(dict(scope), None, send)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return said

    assert asyncio.run(two()) == [503]


def test_slow_bodies_take_no_places() -> None:
    """Two users have 512 connections each, the maximum: more incoming requests than the server has
    places.
    """
    front = Middleware(_reads_its_body, ServerMetrics())

    async def besieged() -> list[int]:
        begun = {"type": "http.request", "body": b"{", "more_body": True}
        slow = [
            asyncio.create_task(_ask(front, uid, _then_silence(begun)))
            for uid in (2003, 2004)
            for _ in range(512)
        ]
        await _settled()
        answers = [
            await _ask(front, AGENT, _body),
            await _ask(front, AGENT, _body, path="/health"),
            await _ask(front, 2003, _body),
        ]
        await _left(*slow)
        return answers

    assert asyncio.run(besieged()) == [200, 200, 200]


def test_user_cannot_take_all_places() -> None:
    front = Middleware(_never, ServerMetrics(), requests_max=100, timeout_seconds=30)

    async def greedy() -> tuple[int, bool]:
        tasks = [
            asyncio.create_task(_ask(front, uid, _body))
            for uid in (2003, 2004, 2009)
            for _ in range(100)
        ]
        await _settled()
        refused = sum(each.done() for each in tasks)
        agent = asyncio.create_task(_ask(front, AGENT, _body))
        await _settled()
        let_in = not agent.done()
        await _left(agent, *tasks)
        return refused, let_in

    refused, agent_let_in = asyncio.run(greedy())
    assert refused > 200
    assert agent_let_in


def test_health_is_answered_when_all_places_are_taken() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await (_reads_its_body if scope["path"] == "/health" else _never)(scope, receive, send)

    front = Middleware(app, ServerMetrics(), requests_max=1)

    async def full() -> list[int]:
        first = asyncio.create_task(_ask(front, 2003, _body))
        await _settled()
        answers = [await _ask(front, 2003, _body), await _ask(front, 2003, _body, path="/health")]
        await _left(first)
        return answers

    assert asyncio.run(full()) == [503, 200]


def test_memory_of_bodies_is_limited() -> None:
    front = Middleware(_reads_its_body, ServerMetrics())
    part = {"type": "http.request", "body": b"x" * 4_000_000, "more_body": True}

    async def heavy() -> tuple[list[int], int]:
        tasks = [asyncio.create_task(_ask(front, 2003, _then_silence(part))) for _ in range(40)]
        await _settled()
        refused = [each.result() for each in tasks if each.done()]
        agent = await _ask(front, AGENT, _body)
        await _left(*tasks)
        return refused, agent

    refused, agent = asyncio.run(heavy())
    assert refused == [503] * 6, "half of 256 MiB, and one more"
    assert agent == 200


def test_body_in_parts_reaches_the_application_complete() -> None:
    parts = [
        {"type": "http.request", "body": each, "more_body": bool(each)}
        for each in (b"a", b"b", b"")
    ]
    assert (
        asyncio.run(
            _ask(Middleware(_reads_its_body, ServerMetrics()), AGENT, _then_silence(*parts))
        )
        == 200
    )


def test_disconnect_within_a_body_reaches_the_application() -> None:
    parts = ({"type": "http.request", "body": b"a", "more_body": True}, {"type": "http.disconnect"})
    assert (
        asyncio.run(
            _ask(Middleware(_reads_its_body, ServerMetrics()), AGENT, _then_silence(*parts))
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


async def _ask(front: Middleware, uid: int, receive: Any, *, path: str = "/job") -> int:
    """A POST of `uid` over the Unix socket; the status."""
    said: list[int] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            said.append(message["status"])

    headers = [(b"content-length", b"100")]
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "headers": headers,
        "extensions": {EXTENSION: Peer(1, uid, uid)},
    }
    await front(scope, receive, send)
    return said[0]


async def _body() -> Any:
    return {"type": "http.request", "body": b"{}", "more_body": False}


def _then_silence(*parts: Any) -> Any:
    coming = list(parts)

    async def receive() -> Any:
        return coming.pop(0) if coming else await asyncio.get_running_loop().create_future()

    return receive


async def _settled() -> None:
    """Everybody has come as far as they come by themselves."""
    for _ in range(5):
        await asyncio.sleep(0)


async def _left(*tasks: asyncio.Task[int]) -> None:
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
