"""Binary search for the number of a journal's entries before a time (about 40 index lookups).

Entries are numbered 1, 2, 3, ... and their times increase, unless a clock was set back. The search
advances by a step if the entry there exists and was made before the time, then halves the step. The
positions do not depend on the length of the journal: a later time never gives a smaller number, and
entries made since do not change the result.
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

FIRST_STEP = 1 << 40  # more entries than any journal will have
_ZERO = literal_column("0", BigInteger)
ALLOCATION: BindParameter[int] = bindparam("allocation", type_=BigInteger)


def count_before(made_at: Callable[[int], int | None], at: Instant) -> int:
    """Return the number of entries before `at`. `made_at` returns the time of an entry by number,
    or None.
    """
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
    """Return the same as SQL; each lookup is one search in the index of (allocation, seq).

    The statement takes the parameters `allocation` and `at`. It is long: build it once.
    """
    steps = _start(at)
    there = journal.alias(f"{at}_entry")
    made_before = (
        select(literal(1))
        .where(
            there.c.allocation == ALLOCATION,
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
    """Return the start of the search: no step if the first entry is not before the time."""
    first = journal.alias()
    begins = (
        first.c.allocation == ALLOCATION,
        first.c.seq == 1,
        first.c.at < bindparam(at, type_=BigInteger),
    )
    columns = (_number(0).label("place"), _number(FIRST_STEP).label("step"))
    return (
        select(*columns)
        .where(select(literal(1)).select_from(first).where(*begins).exists())
        .cte(f"{at}_cut", recursive=True)
    )


def _number(value: int) -> ColumnElement[int]:
    return cast(literal_column(str(value)), BigInteger)
