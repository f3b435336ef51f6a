"""What is around all answers: their schema, the time, the next page; and what was carried out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec import UNSET

from fairbank.bank.ledger import Done
from fairbank.bank.query import Page
from fairbank.rest.bodies import answers
from fairbank.values.time import Clock, iso

T = TypeVar("T")


def single(schema: str, clock: Clock, data: T) -> answers.Single[T]:
    """One thing, with its schema's name and the time of the answer."""
    return answers.Single(schema=f"fairbank.{schema}/1", as_of=iso(clock.now()), data=data)


def listing(schema: str, clock: Clock, data: list[T], next_: str | None = None) -> answers.Listing[T]:
    """Rows, with their schema's name and the time of the answer; `next_` is the cursor of the next page, if there is one."""
    return answers.Listing(schema=f"fairbank.{schema}/1", as_of=iso(clock.now()), data=data, next=next_)


def next_after(page: Page, numbers: Sequence[int]) -> str | None:
    """The cursor of the page after this one; None when this one is not full."""
    return str(numbers[-1]) if numbers and len(numbers) >= page.limit else None


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
