"""Who waits on the express, and who leaves: the place, the time and the count are those of the long way."""

from __future__ import annotations

import asyncio
import time

import pytest

from fairbank.core.errors import Unauthenticated
from fairbank.rest.asking import Asking
from fairbank.rest.short_way import express as express_module
from fairbank.rest.sign_in.doorkeeper import Doorkeeper
from tests.rest.short_way.line import HUGE, ODD, Line, request, ride
from tests.rest.sluggish import Sluggish, closed
from tests.rest.world import report


def test_who_waits_long_waits_on_the_long_way_and_is_handed_in_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
def test_who_goes_on_by_the_long_way_signed_in_already(
    asked: dict[str, int], status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_who_waits_on_the_long_way_keeps_the_place_and_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


def test_who_comes_after_another_waits_no_longer_before_the_long_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


@pytest.mark.parametrize("more", ["", ODD], ids=["express", "lane"])
def test_who_sends_no_more_is_answered_first(more: str) -> None:
    store = Sluggish()

    async def story(line: Line) -> None:
        with closed(store):
            await line.send(request(report(1), more) + request(report(2), more))
            line.end()
            await line.until(lambda: store.waiting)
        assert [(await line.answer())[0] for _ in range(2)] == ["HTTP/1.1 201 Created"] * 2
        assert await line.hung_up()
        assert line.places_taken == 0

    ride(story, store)


def test_bytes_after_a_report_are_told_after_its_answer() -> None:
    async def story(line: Line) -> None:
        await line.send(request(report(1)) + b"{}")
        assert (await line.answer())[0] == "HTTP/1.1 201 Created"
        status, _, body = await line.answer()
        assert (status, "its body is longer than it said" in body) == (
            "HTTP/1.1 400 Bad Request",
            True,
        )
        assert await line.hung_up()

    ride(story)


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


def test_who_does_not_read_the_answers_waits_on_the_long_way() -> None:
    async def story(line: Line) -> None:
        line.protocol.pause_writing()
        await line.send(request(report(1)))
        await line.until(lambda: line.long == 1)
        line.protocol.resume_writing()
        assert (await line.answer())[0] == "HTTP/1.1 201 Created"

    ride(story)
