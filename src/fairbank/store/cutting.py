"""Where time cuts a book: how many of its entries come before an instant, found in a few dozen looks however long the book is.

Entries are numbered 1, 2, 3, ... in their order, and their times rise with them, unless a clock was put back. So the cut is found
by steps that halve: go on by a step if there is an entry that far and it was made before the instant. The places looked at do not
depend on the length of the book, only on what is there: a later instant cuts no earlier, and entries made since leave a cut alone.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import CTE, BigInteger, ColumnElement, Select, case, cast, func, literal, literal_column, select

from fairbank.store.schema import journal
from fairbank.values.time import Instant

FIRST_STEP = 1 << 40  # more entries than any book will have
_ZERO = literal_column("0", BigInteger)


def cut(made_at: Callable[[int], int | None], at: Instant) -> int:
    """How many entries come before `at`; `made_at` tells when the entry of a number was made, None where there is none."""
    first = made_at(1)
    if first is None or first >= at:
        return 0
    place, step = 0, FIRST_STEP
    while step:
        made = made_at(place + step)
        if made is not None and made < at:
            place += step
        step >>= 1
    return place


def cut_in_sql(book: int, at: Instant, name: str) -> Select[int]:
    """The same as one statement: each look is one search in the index of (book, seq). `name` tells two cuts of one statement apart."""
    steps = _start(book, at, name)
    there = journal.alias(f"{name}_entry")
    made_before = (
        select(literal(1))
        .where(there.c.book == book, there.c.seq == steps.c.place + steps.c.step, there.c.at < at)
        .correlate(steps)
        .exists()
    )
    on = steps.c.place + case((made_before, steps.c.step), else_=_ZERO)
    steps = steps.union_all(select(on, steps.c.step // literal_column("2", BigInteger)).where(steps.c.step > _ZERO))
    return select(func.coalesce(func.max(steps.c.place), _ZERO))


def _start(book: int, at: Instant, name: str) -> CTE:
    """No step at all when the book's first entry is not before the instant."""
    first = journal.alias()
    begins_before = select(literal(1)).select_from(first).where(first.c.book == book, first.c.seq == 1, first.c.at < at).exists()
    columns = (_number(0).label("place"), _number(FIRST_STEP).label("step"))
    return select(*columns).where(begins_before).cte(name, recursive=True)


def _number(value: int) -> ColumnElement[int]:
    return cast(literal_column(str(value)), BigInteger)
