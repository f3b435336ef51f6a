"""A head that went by express before is known by its bytes; whatever differs from it is parsed, and all is answered as ever."""

from __future__ import annotations

import asyncio
import json

from tests.rest.short_way.line import HUGE, Line, request, ride
from tests.rest.sluggish import Sluggish, closed
from tests.rest.world import report


async def answers_of(line: Line, *bodies: object, more: str = "") -> list[str]:
    """What each is answered, one after the other: the status. The bodies are as long as one another: with 1 as with 2 for a job."""
    said: list[str] = []
    for each in bodies:
        await line.send(request(each, more))
        said.append((await line.answer())[0][9:12])
    return said


def test_a_head_that_went_by_express_is_not_parsed_again() -> None:
    async def story(line: Line) -> None:
        assert await answers_of(line, report(1), report(2), report(1), report(3)) == [
            "201",
            "201",
            "200",
            "201",
        ]
        assert line.protocol.parsed == 1
        assert await answers_of(line, report(4), more="User-Agent: other\r\n") == ["201"]
        assert line.protocol.parsed == 2
        assert await answers_of(line, report(10**6)) == ["201"]  # longer by its number
        assert line.protocol.parsed == 3
        assert (line.long, line.places_taken) == (0, 0)

    ride(story)


def test_after_a_known_head_all_else_is_as_ever() -> None:
    """A refusal, no JSON, a body in pieces, two at once, one after another that is not answered yet, and again a known head."""

    async def story(line: Line) -> None:
        first, no_json = request(report(1)), b"x" * len(json.dumps(report(1)))
        huge = request(report(1, **HUGE))
        assert await answers_of(line, report(1), no_json, report(1)) == ["201", "400", "200"]
        assert (line.protocol.parsed, line.long) == (1, 1)
        for _ in range(2):
            await line.send(huge)
            assert (await line.answer())[0][9:12] == "409"
        assert (line.protocol.parsed, line.long) == (2, 3)
        await line.send(first[:-5])
        await line.until(lambda: line.long == 4)
        await line.send(first[-5:])
        assert (await line.answer())[0][9:12] == "200"
        await line.send(first + first)
        assert [(await line.answer())[0][9:12] for _ in range(2)] == ["200", "200"]
        assert line.protocol.parsed == 5
        assert await answers_of(line, report(2)) == ["201"]
        assert line.protocol.parsed == 5

    ride(story)


def test_who_sends_a_known_head_before_an_answer_waits_for_it() -> None:
    store = Sluggish()

    async def story(line: Line) -> None:
        assert await answers_of(line, report(1)) == ["201"]
        with closed(store):
            await line.send(request(report(2)))
            await line.until(lambda: store.waiting)
            await line.send(request(report(2)))
            await line.until(lambda: line.protocol.parsed == 2)
        assert [(await line.answer())[0][9:12] for _ in range(2)] == ["201", "200"]

    ride(story, store)


def test_empty_lines_between_known_heads_do_not_add_up_to_a_head_too_large() -> None:
    """Some clients send one after each body."""

    async def story(line: Line) -> None:
        assert await answers_of(line, report(1)) == ["201"]
        for _ in range(2):
            await line.send(b"\r\n")
            await line.until(lambda: line.protocol._unparsed == 2)
            assert await answers_of(line, report(1)) == ["200"]
            assert (line.protocol._unparsed, line.protocol.parsed) == (0, 1)

    ride(story)


def test_a_connection_that_begins_with_a_known_head_is_not_given_up_as_silent() -> None:
    async def story(line: Line) -> None:
        assert await answers_of(line, report(1)) == ["201"]
        line.protocol._expect(0.05)  # as when it was opened
        assert await answers_of(line, report(2)) == ["201"]
        late: list[bool] = []
        asyncio.get_running_loop().call_later(0.1, late.append, True)
        await line.until(lambda: bool(late))
        assert await answers_of(line, report(2)) == ["200"]
        assert line.protocol.parsed == 1

    ride(story)
