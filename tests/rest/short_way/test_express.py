"""The express is only a quicker way: whoever takes it gets the answer that the long way gives, and nothing is handed in twice."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from uvicorn.server import ServerState

from fairbank.rest.app import create_app
from fairbank.rest.asking import Asking
from fairbank.rest.server.front import Front
from fairbank.rest.server.protocol import PeerProtocol, serving
from fairbank.rest.short_way import express as express_module
from fairbank.rest.short_way.express import Express
from fairbank.rest.sign_in.doorkeeper import Doorkeeper
from fairbank.rest.sign_in.peers import EXTENSION, Peer
from fairbank.service.askers import Staff
from fairbank.store.memory import MemoryStore
from fairbank.values.trouble import Unauthenticated
from tests.rest.sluggish import Sluggish, closed
from tests.rest.world import NOW, World, a_world, report

US = Staff(frozenset({os.getuid()}), frozenset(), {})
ODD = "X-Odd: 1\r\n"  # a header that the express does not know
HUGE = {"time_limit": 10 * 366 * 86_400, "billing": 10**6}
ENDED = {"do": "complete", "end": NOW, "elapsed": 60, "state": "COMPLETED"}


Answer = tuple[str, list[str], str]
"""Status, headers and body, without what differs from one answer to the next."""


def request(body: object, more: str = "", *, path: str = "/job", kind: str = "application/json") -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: bank\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n{more}\r\n"
    return head.encode() + content


class Line:
    """One connection over a Unix socket to a server in the same loop; `long` is how many requests took the long way."""

    def __init__(self, world: World, protocol: PeerProtocol, ours: socket.socket) -> None:
        self.world, self.protocol, self._ours = world, protocol, ours
        self.long = 0

    async def send(self, said: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._ours, said)

    async def answer(self) -> Answer:
        """The next one."""
        said = b""
        while b"\r\n\r\n" not in said:
            said += await self._more()
        head, _, body = said.partition(b"\r\n\r\n")
        length = int(re.findall(rb"content-length: (\d+)", head)[0])
        while len(body) < length:
            body += await self._more()
        assert len(body) == length
        status, *headers = head.decode().split("\r\n")
        return status, sorted(re.sub(r"\d+", "N", each) for each in headers), re.sub(r"\d+", "N", body.decode())

    async def _more(self) -> bytes:
        """A byte at a time: nothing of the next answer."""
        more = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(self._ours, 1), 30)
        assert more, "the server hung up"
        return more

    async def hung_up(self) -> bool:
        return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(self._ours, 1), 30) == b""

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                await asyncio.sleep(0)

    @property
    def places_taken(self) -> float | None:
        return self.world.house.metrics.registry.get_sample_value("fairbank_requests_in_progress")

    @property
    def seconds(self) -> float | None:
        """How long all reports together took that were answered."""
        return self.world.house.metrics.registry.get_sample_value("fairbank_request_seconds_sum", {"route": "/job"})

    def answered(self, status: int) -> float | None:
        told = {"method": "POST", "route": "/job", "status": str(status)}
        return self.world.house.metrics.registry.get_sample_value("fairbank_requests_total", told)


def ride(story: Callable[[Line], Awaitable[None]], store: MemoryStore | None = None, *, crowd_max: int = 10) -> None:
    """Let a story happen on a line."""

    async def run(world: World) -> None:
        app = create_app(world.house)
        front = Front(app, world.house.metrics, greet=app.doorkeeper.greet, crowd_max=crowd_max)

        async def long_way(scope: Any, receive: Any, send: Any) -> None:
            line.long += 1
            await front(scope, receive, send)

        express = Express(world.house, front, app.doorkeeper.local, lambda: app.state.teller)
        config = serving(long_way, express=express)
        config.load()
        theirs, ours = socket.socketpair()
        ours.setblocking(False)
        with ours:
            async with app.lifespan():
                protocol = PeerProtocol(config, ServerState(), {})
                line = Line(world, protocol, ours)
                await asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, theirs)
                await story(line)

    with a_world(store, staff=US) as world:
        asyncio.run(run(world))


CASES: dict[str, tuple[bytes, bytes, int]] = {
    "a hold": (request(report(1)), request(report(2), ODD), 201),
    "an end without a hold": (request(report(1, **ENDED)), request(report(2, **ENDED), ODD), 201),
    "a last request": (request(report(1), "Connection: close\r\n"), request(report(2), ODD + "Connection: close\r\n"), 201),
}


@pytest.mark.parametrize("case", CASES)
def test_both_ways_give_one_answer(case: str) -> None:
    quick, slow, status = CASES[case]
    answers: list[Answer] = []

    async def story(line: Line) -> None:
        await line.send(quick if not answers else slow)
        answers.append(await line.answer())
        assert line.long == len(answers) - 1
        assert line.answered(status) == 1
        assert line.places_taken == 0

    ride(story)
    ride(story)
    assert answers[0] == answers[1]
    assert answers[0][0].startswith(f"HTTP/1.1 {status} ")


def test_what_comes_again_is_told_so() -> None:
    async def story(line: Line) -> None:
        for more in ("", "", ODD):
            await line.send(request(report(1), more))
        first, again, long = [await line.answer() for _ in range(3)]
        assert (first[0], again[0]) == ("HTTP/1.1 201 Created", "HTTP/1.1 200 OK")
        assert again == long
        assert line.long == 1

    ride(story)


WORDS: dict[str, tuple[dict[str, Any], int, int]] = {
    "a refusal": ({"body": report(1, **HUGE)}, 402, 1),
    "an unknown account": ({"body": report(1, account="nobody")}, 404, 1),
    "an unknown field": ({"body": report(1, colour="red")}, 400, 0),
    "a key that stands twice": ({"body": b'{"do":"hold",' + json.dumps(report(1)).encode()[1:]}, 400, 0),
    "no JSON": ({"body": b"{"}, 400, 0),
    "no body": ({"body": b""}, 400, 0),
    "text": ({"body": report(1), "kind": "text/plain"}, 415, 0),
    "a query": ({"body": report(1), "path": "/job?a=1"}, 400, 0),
}


@pytest.mark.parametrize("case", WORDS)
def test_what_wants_a_word_takes_the_long_way_and_is_judged_once(case: str) -> None:
    about, status, kept = WORDS[case]
    answers: list[Answer] = []

    async def story(line: Line) -> None:
        entries = line.world.entries()
        await line.send(request(**about) if not answers else request(**about, more=ODD))
        answers.append(await line.answer())
        assert line.long == 1
        assert line.world.entries() == entries + kept
        assert line.places_taken == 0

    ride(story)
    ride(story)
    assert answers[0] == answers[1]
    assert answers[0][0].startswith(f"HTTP/1.1 {status} ")


def test_who_waits_long_waits_on_the_long_way_and_is_handed_in_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(express_module, "LONG_SECONDS", 0.01)
    store = Sluggish()

    async def story(line: Line) -> None:
        entries = line.world.entries()
        with closed(store):
            await line.send(request(report(1)))
            await line.until(lambda: line.long == 1)
        assert (await line.answer())[0] == "HTTP/1.1 201 Created"
        assert line.world.entries() == entries + 1

    ride(story, store)


@pytest.mark.parametrize(("asked", "status"), [({}, "201"), (HUGE, "402")])
def test_who_goes_on_by_the_long_way_signed_in_already(asked: dict[str, int], status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nobody(doorkeeper: Doorkeeper, request: Asking) -> None:
        raise Unauthenticated("whoever asks here was asked before")

    monkeypatch.setattr(express_module, "LONG_SECONDS", 0.01)
    monkeypatch.setattr(Doorkeeper, "_signed_in", nobody)
    store = Sluggish()

    async def story(line: Line) -> None:
        with closed(store):
            await line.send(request(report(1, **asked)))
            await line.until(lambda: line.long == 1)
        assert (await line.answer())[0][9:12] == status

    ride(story, store)


def test_who_waits_on_the_long_way_keeps_the_place_and_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(express_module, "LONG_SECONDS", 0.1)
    store = Sluggish()

    async def story(line: Line) -> None:
        with closed(store):
            await line.send(request(report(1)))
            await line.until(lambda: line.long == 1)
            assert line.places_taken == 1
        await line.answer()
        assert line.places_taken == 0
        assert line.seconds is not None
        assert line.seconds >= 0.1

    ride(story, store)


def test_who_is_refused_took_as_long_as_the_counter_took() -> None:
    store = Sluggish()

    async def story(line: Line) -> None:
        with closed(store):
            await line.send(request(report(1, **HUGE)))
            await line.until(lambda: store.waiting)
            since = time.perf_counter()
            await line.until(lambda: time.perf_counter() - since >= 0.1)
        await line.answer()
        assert line.answered(402) == 1
        assert line.seconds is not None
        assert line.seconds >= 0.1

    ride(story, store)


def test_who_comes_after_another_waits_no_longer_before_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(express_module, "LONG_SECONDS", 0.2)
    store = Sluggish()
    long_by_then: list[int] = []

    async def story(line: Line) -> None:
        await line.send(request(report(1)))
        await line.answer()
        loop = asyncio.get_running_loop()
        with closed(store):
            await line.send(request(report(2)))
            await line.until(lambda: store.waiting)
            loop.call_later(0.3, loop.call_soon, lambda: long_by_then.append(line.long))
            await line.until(lambda: bool(long_by_then))
        assert long_by_then == [1]
        assert (await line.answer())[0] == "HTTP/1.1 201 Created"

    ride(story, store)


@pytest.mark.parametrize(("asked", "status"), [({}, 201), (HUGE, 402)])
def test_who_leaves_before_the_long_way_is_counted_as_what_the_counter_said(
    asked: dict[str, int], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(express_module, "LONG_SECONDS", 0.2)
    store = Sluggish()

    async def story(line: Line) -> None:
        entries = line.world.entries()
        with closed(store):
            await line.send(request(report(1, **asked)))
            await line.until(lambda: store.waiting)
            line.protocol.transport.abort()
            await line.until(lambda: line.long == 1)
        await line.until(lambda: line.places_taken == 0)
        assert line.world.entries() == entries + 1
        assert line.answered(status) == 1
        assert line.answered(400) is None

    ride(story, store)


def test_a_bank_that_cannot_be_asked_is_told_as_ever() -> None:
    async def story(line: Line) -> None:
        line.world.house.counter.close()
        await line.send(request(report(1)))
        status, _, body = await line.answer()
        assert status == "HTTP/1.1 503 Service Unavailable"
        assert "the server is stopping" in body

    ride(story)


def test_a_body_that_comes_later_takes_the_long_way() -> None:
    async def story(line: Line) -> None:
        said = request(report(1))
        await line.send(said[:-5])
        await line.until(lambda: line.long == 1)
        await line.send(said[-5:])
        assert (await line.answer())[0] == "HTTP/1.1 201 Created"

    ride(story)


def test_reports_that_come_together_are_answered_in_their_order() -> None:
    async def story(line: Line) -> None:
        await line.send(request(report(1)) + request(report(1)) + request(report(1, **HUGE), ODD) + request(report(2)))
        assert [(await line.answer())[0][9:12] for _ in range(4)] == ["201", "200", "409", "201"]
        assert line.long == 1

    ride(story)


def test_a_server_that_stops_answers_first() -> None:
    store = Sluggish()

    async def story(line: Line) -> None:
        with closed(store):
            await line.send(request(report(1)))
            await line.until(lambda: store.waiting)
            line.protocol.shutdown()
        status, headers, _ = await line.answer()
        assert (status, "connection: close" in headers) == ("HTTP/1.1 201 Created", True)
        assert await line.hung_up()

    ride(story, store)


def test_who_leaves_leaves_no_place_taken_and_is_carried_out() -> None:
    store = Sluggish()

    async def story(line: Line) -> None:
        entries = line.world.entries()
        with closed(store):
            await line.send(request(report(1)))
            await line.until(lambda: store.waiting)
            line.protocol.transport.abort()
        await line.until(lambda: line.places_taken == 0)
        assert line.world.entries() == entries + 1
        assert line.answered(201) == 1

    ride(story, store)


def test_where_all_places_are_taken_the_front_says_so() -> None:
    async def story(line: Line) -> None:
        await line.send(request(report(1)))
        status, _, body = await line.answer()
        assert status == "HTTP/1.1 503 Service Unavailable"
        assert "too many requests are being worked on" in body

    ride(story, crowd_max=0)


def test_who_does_not_read_the_answers_waits_on_the_long_way() -> None:
    async def story(line: Line) -> None:
        line.protocol.pause_writing()
        await line.send(request(report(1)))
        await line.until(lambda: line.long == 1)
        line.protocol.resume_writing()
        assert (await line.answer())[0] == "HTTP/1.1 201 Created"

    ride(story)


HEADERS = ((b"host", b"bank"), (b"content-type", b"application/json"), (b"content-length", b"2"))
PLAIN: dict[str, Any] = {
    "method": "POST",
    "path": "/job",
    "query_string": b"",
    "headers": HEADERS,
    "extensions": {EXTENSION: Peer(1, 2, 3)},
}


@pytest.mark.parametrize(
    ("otherwise", "taken"),
    [
        ({}, True),
        ({"headers": (*HEADERS, (b"user-agent", b"agent"), (b"accept", b"*/*"))}, True),
        ({"extensions": {}}, False),
        ({"method": "PUT"}, False),
        ({"path": "/job/bulk"}, False),
        ({"query_string": b"a=1"}, False),
        *(
            ({"headers": (*HEADERS, (name, b"1"))}, False)
            for name in (b"authorization", b"x-fairbank-as", b"idempotency-key", b"expect", b"transfer-encoding", b"host")
        ),
    ],
)
def test_only_plain_reports_over_the_unix_socket_are_taken(otherwise: dict[str, Any], taken: bool) -> None:
    assert Express.takes({**PLAIN, **otherwise}) is taken
