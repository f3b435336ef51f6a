"""Where time cuts a book: how many of its entries come before an instant, found in a few dozen looks however long the book is.

Entries are numbered 1, 2, 3, ... in their order, and their times rise with them, unless a clock was put back. So the cut is found
by steps that halve: go on by a step if there is an entry that far and it was made before the instant. The places looked at do not
depend on the length of the book, only on what is there: a later instant cuts no earlier, and entries made since leave a cut alone.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    CTE,
    BigInteger,
    BindParameter,
    ColumnElement,
    ScalarSelect,
    bindparam,
    case,
    cast,
    func,
    literal,
    literal_column,
    select,
)

from fairbank.core.time import Instant
from fairbank.store.schema import journal

FIRST_STEP = 1 << 40  # more entries than any book will have
_ZERO = literal_column("0", BigInteger)
BOOK: BindParameter[int] = bindparam("book", type_=BigInteger)


def count_before(made_at: Callable[[int], int | None], at: Instant) -> int:
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


def count_before_sql(at: str) -> ScalarSelect[int]:
    """The same in SQL: each look is one search in the index of (book, seq).

    The statement is carried out with `book` and with an instant under the name `at`. It is long: build it once.
    """
    steps = _start(at)
    there = journal.alias(f"{at}_entry")
    made_before = (
        select(literal(1))
        .where(
            there.c.book == BOOK,
            there.c.seq == steps.c.place + steps.c.step,
            there.c.at < bindparam(at, type_=BigInteger),
        )
        .correlate(steps)
        .exists()
    )
    on = steps.c.place + case((made_before, steps.c.step), else_=_ZERO)
    steps = steps.union_all(
        select(on, steps.c.step // literal_column("2", BigInteger)).where(steps.c.step > _ZERO)
    )
    return select(func.coalesce(func.max(steps.c.place), _ZERO)).scalar_subquery()


def _start(at: str) -> CTE:
    """No step at all when the book's first entry is not before the instant."""
    first = journal.alias()
    begins = (first.c.book == BOOK, first.c.seq == 1, first.c.at < bindparam(at, type_=BigInteger))
    columns = (_number(0).label("place"), _number(FIRST_STEP).label("step"))
    return (
        select(*columns)
        .where(select(literal(1)).select_from(first).where(*begins).exists())
        .cte(f"{at}_cut", recursive=True)
    )


def _number(value: int) -> ColumnElement[int]:
    return cast(literal_column(str(value)), BigInteger)
