"""What takes too long is ended, each at its own time, and nothing else is. The clock of the loop moves when told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from fairbank.rest.server.overdue import Overdue
from tests.rest.server.stopped import StoppedLoop

PATIENCE = 60.0


def run(story: Callable[[StoppedLoop, Overdue], Awaitable[list[str]]]) -> list[str]:
    async def told() -> list[str]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, StoppedLoop)
        return await story(loop, Overdue(PATIENCE))

    with asyncio.Runner(loop_factory=StoppedLoop) as runner:
        return runner.run(told())


def begin(overdue: Overdue, until: asyncio.Event | None = None) -> asyncio.Task[str]:
    """Something that waits for the event, or for ever; what became of it."""

    async def waits() -> None:
        await (until or asyncio.Event()).wait()

    async def bound() -> str:
        try:
            await overdue.bound(waits())
        except TimeoutError:
            return "late"
        return "done"

    return asyncio.create_task(bound())


def test_each_is_ended_at_its_own_time() -> None:
    async def story(loop: StoppedLoop, overdue: Overdue) -> list[str]:
        first = [begin(overdue), begin(overdue)]
        await loop.pass_by(PATIENCE / 2)
        second = begin(overdue)
        await loop.pass_by(PATIENCE / 2)
        assert not second.done()
        said = [await each for each in first]
        await loop.pass_by(PATIENCE / 2)
        return [*said, await second]

    assert run(story) == ["late", "late", "late"]


def test_who_comes_when_all_were_ended_has_the_whole_time() -> None:
    async def story(loop: StoppedLoop, overdue: Overdue) -> list[str]:
        first = begin(overdue)
        await loop.pass_by(PATIENCE)
        event = asyncio.Event()
        second = begin(overdue, event)
        await loop.pass_by(PATIENCE / 2)
        event.set()
        third = begin(overdue)
        await loop.pass_by(PATIENCE)
        return [await first, await second, await third]

    assert run(story) == ["late", "done", "late"]


def test_who_was_done_in_time_is_left_alone() -> None:
    async def story(loop: StoppedLoop, overdue: Overdue) -> list[str]:
        async def goes_on() -> None:
            await overdue.bound(asyncio.sleep(0))
            await asyncio.Event().wait()

        task = asyncio.create_task(goes_on())
        begin(overdue)
        await loop.pass_by(2 * PATIENCE)
        said = "ended" if task.done() else "still there"
        task.cancel()
        return [said]

    assert run(story) == ["still there"]


def test_who_is_cancelled_by_others_was_not_late() -> None:
    async def story(loop: StoppedLoop, overdue: Overdue) -> list[str]:
        task = begin(overdue)
        await loop.pass_by(0)
        task.cancel()
        await loop.pass_by(PATIENCE)
        return ["cancelled" if task.cancelled() else await task]

    assert run(story) == ["cancelled"]


def test_what_went_wrong_inside_comes_out() -> None:
    async def story(loop: StoppedLoop, overdue: Overdue) -> list[str]:
        async def broken() -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await overdue.bound(broken())
        return []

    assert run(story) == []
