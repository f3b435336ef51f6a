"""What is around all answers: their schema, the time, the next page; and what was carried out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from msgspec import UNSET

from fairbank.bank.rules import Done
from fairbank.core.time import Clock, iso
from fairbank.rest.bodies import answers

T = TypeVar("T")


class Numbered(Protocol):
    @property
    def id(self) -> int: ...


def single(schema: str, clock: Clock, data: T) -> answers.Single[T]:
    """One thing, with its schema's name and the time of the answer."""
    return answers.Single(schema=f"fairbank.{schema}/1", as_of=iso(clock.now()), data=data)


def listing(
    schema: str, clock: Clock, data: list[T], next_: str | None = None
) -> answers.Listing[T]:
    """Rows, with their schema's name and the time of the answer; `next_` is the cursor of the next page, if there is one."""
    return answers.Listing(
        schema=f"fairbank.{schema}/1", as_of=iso(clock.now()), data=data, next=next_
    )


def cut(limit: int, found: Sequence[T], place: Callable[[T], object]) -> tuple[list[T], str | None]:
    """The rows of a page of which one more was looked for (`Page.and_one`), and the cursor of the page after it: the place of its last
    row, None where there are no more."""
    rows = list(found[:limit])
    return rows, str(place(rows[-1])) if len(found) > limit else None


def by_id(row: Numbered) -> int:
    """The place of a row in a list by numbers."""
    return row.id


def granted(done: Done) -> answers.Granted:
    """What was carried out, amounts in SU-minutes."""
    return answers.Granted(
        entry=done.entry or None,
        amount=done.amount,
        allocation=done.allocation,
        run=done.run,
        available=done.available,
        written_off=done.written_off,
        cpu_counted=UNSET if done.cpu_counted is None else done.cpu_counted,
        again=done.again,
    )
