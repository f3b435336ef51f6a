"""Daily figures of fair share in an SQL database: they are no part of the books, so no batch touches them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Select, select

from fairbank.cluster.share_figure import ShareFigure, ShareQuery
from fairbank.store.rows import Row
from fairbank.store.schema import share_figure
from fairbank.values.trouble import Corrupt

_ALONE = "LOCK TABLE share_figure IN SHARE ROW EXCLUSIVE MODE"
"""Whoever records waits for who does; on SQLite there is one writer anyway."""


def keep(connection: Connection, figures: Sequence[ShareFigure]) -> bool:
    """Insert the figures of one cluster and day, unless there are some of that day. Inside a transaction that writes."""
    if not figures:
        return False
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(_ALONE)
    f = share_figure.c
    there = select(f.day).where(f.cluster == figures[0].cluster, f.day == figures[0].day).limit(1)
    if connection.execute(there).first() is not None:
        return False
    names = [column.name for column in share_figure.columns]
    place = "%s" if connection.dialect.name == "postgresql" else "?"
    # Past SQLAlchemy, which takes six times as long for a hundred thousand rows, while the bank on SQLite waits.
    insert = f"INSERT INTO share_figure ({', '.join(names)}) VALUES ({', '.join([place] * len(names))})"  # noqa: S608 (our own names)
    connection.exec_driver_sql(insert, [figure_row(each) for each in figures])
    return True


def wanted(query: ShareQuery) -> Select[Any]:
    f = share_figure.c
    found = select(share_figure).where(f.day >= query.since, f.day < query.until)
    if query.cluster is not None:
        found = found.where(f.cluster == query.cluster)
    if query.accounts is not None:
        found = found.where(f.account.in_(query.accounts))
    return found if query.users else found.where(f.login == "")


def figure_of(row: Row) -> ShareFigure:
    try:
        return msgspec.convert(tuple(row), ShareFigure)
    except msgspec.ValidationError as bad:
        raise Corrupt(f"a figure of fair share cannot be read: {bad}", remedy="restore from a backup, or delete its day") from bad


def figure_row(figure: ShareFigure) -> tuple[Any, ...]:
    return msgspec.structs.astuple(figure)
