"""The express is only a quicker way: whoever takes it gets the answer that the long way gives, and nothing is handed in twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairbank.rest.short_way.express import Express
from fairbank.rest.sign_in.peers import EXTENSION, Peer
from tests.rest.short_way.line import HUGE, ODD, Answer, Line, request, ride
from tests.rest.world import NOW, report

ENDED = {"do": "complete", "end": NOW, "elapsed": 60, "state": "COMPLETED"}


CASES: dict[str, tuple[bytes, bytes, int]] = {
    "a hold": (request(report(1)), request(report(2), ODD), 201),
    "an end without a hold": (request(report(1, **ENDED)), request(report(2, **ENDED), ODD), 201),
    "a last request": (
        request(report(1), "Connection: close\r\n"),
        request(report(2), ODD + "Connection: close\r\n"),
        201,
    ),
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
    "a key that stands twice": (
        {"body": b'{"do":"hold",' + json.dumps(report(1)).encode()[1:]},
        400,
        0,
    ),
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


def test_a_bank_that_cannot_be_asked_is_told_as_ever() -> None:
    async def story(line: Line) -> None:
        line.world.house.services.write_queue.close()
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
        await line.send(
            request(report(1))
            + request(report(1))
            + request(report(1, **HUGE), ODD)
            + request(report(2))
        )
        assert [(await line.answer())[0][9:12] for _ in range(4)] == ["201", "200", "409", "201"]
        assert line.long == 1

    ride(story)


def test_where_all_places_are_taken_the_front_says_so() -> None:
    async def story(line: Line) -> None:
        await line.send(request(report(1)))
        status, _, body = await line.answer()
        assert status == "HTTP/1.1 503 Service Unavailable"
        assert "too many requests are being worked on" in body

    ride(story, crowd_max=0)


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
            for name in (
                b"authorization",
                b"x-fairbank-as",
                b"idempotency-key",
                b"expect",
                b"transfer-encoding",
                b"host",
            )
        ),
    ],
)
def test_only_plain_reports_over_the_unix_socket_are_taken(
    otherwise: dict[str, Any], taken: bool
) -> None:
    assert Express.takes({**PLAIN, **otherwise}) is taken
