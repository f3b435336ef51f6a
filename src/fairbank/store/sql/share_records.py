"""Daily fair-share records in an SQL database. They are not part of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Select, delete, func, select, tuple_

from fairbank.cluster.share_record import ShareQuery, ShareRecord, share_key
from fairbank.core.errors import Corrupt
from fairbank.store.schema import share_figure
from fairbank.store.sql.rows import Row

_f = share_figure.c
PLACE = (_f.cluster, _f.day, _f.account, _f.login, _f.partition)


def insert_records(connection: Connection, figures: Sequence[ShareRecord]) -> int:
    """Insert the records of associations that have none of that day; return their number. Needs a
    write transaction.
    """
    if not figures:
        return 0
    names = [column.name for column in share_figure.columns]
    place = "%s" if connection.dialect.name == "postgresql" else "?"
    # Without SQLAlchemy, which takes six times as long for 100,000 rows: on SQLite the bank waits
    # for this transaction.
    values = f"({', '.join(names)}) VALUES ({', '.join([place] * len(names))})"
    insert = f"INSERT INTO share_figure {values} ON CONFLICT DO NOTHING"
    return connection.exec_driver_sql(
        insert, [record_row(each) for each in sorted(figures, key=share_key)]
    ).rowcount


def delete_before(connection: Connection, before: int) -> int:
    """Delete the records of earlier days, cluster by cluster, the order of the primary key."""
    gone, cluster = 0, ""
    while (
        found := connection.execute(
            select(func.min(_f.cluster)).where(_f.cluster > cluster)
        ).scalar()
    ) is not None:
        cluster = found
        gone += connection.execute(
            delete(share_figure).where(_f.cluster == cluster, _f.day < before)
        ).rowcount
    return gone


def select_records(query: ShareQuery) -> Select[Any]:
    found = select(share_figure).where(_f.day >= query.since, _f.day < query.until)
    if query.cluster is not None:
        found = found.where(_f.cluster == query.cluster)
    if query.accounts is not None:
        found = found.where(_f.account.in_(query.accounts))
    if not query.users:
        found = found.where(_f.login == "")
    elif query.users_of is not None:
        found = found.where((_f.login == "") | _f.account.in_(query.users_of))
    if query.after is not None:
        found = found.where(tuple_(*PLACE) > tuple_(*query.after))
    return found if query.limit is None else found.order_by(*PLACE).limit(query.limit)


def record_of(row: Row) -> ShareRecord:
    try:
        return msgspec.convert(tuple(row), ShareRecord)
    except msgspec.ValidationError as bad:
        raise Corrupt(
            f"a figure of fair share cannot be read: {bad}",
            remedy="restore from a backup, or delete its day",
        ) from bad


def record_row(figure: ShareRecord) -> tuple[Any, ...]:
    return msgspec.structs.astuple(figure)
