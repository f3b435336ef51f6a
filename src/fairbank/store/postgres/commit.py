"""COMMIT on PostgreSQL, and its outcome if the connection is lost."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import Connection, exc

from fairbank.core.errors import Unavailable
from fairbank.store.sql.db_errors import first_line

# The connection is lost, or the server ends it: also in the middle of a commit.
_LOST = ("08", "57P")


@contextmanager
def commit_errors(connection: Connection) -> Iterator[None]:
    """Translate a lost connection during COMMIT into Unavailable.

    Before COMMIT was sent nothing was carried out, and the error says so; afterwards the outcome is
    unknown.
    """
    _demand_session(connection)
    try:
        yield
    except (exc.DBAPIError, psycopg.OperationalError) as error:
        complaint = error.orig if isinstance(error, exc.DBAPIError) else error
        if isinstance(complaint, psycopg.OperationalError) and (
            complaint.sqlstate or "08"
        ).startswith(_LOST):
            raise Unavailable(
                "the database does not answer any more, and whether this was carried out is not"
                f" known: {first_line(complaint)}",
                remedy=(
                    "ask again with the same key: it counts once; without a key look into the"
                    " statement first"
                ),
            ) from error
        raise


def _demand_session(connection: Connection) -> None:
    """Raise Unavailable if the session has ended.

    An idle database sends nothing, so readable data is its farewell or the end of the connection.
    Only then a query is worthwhile.
    """
    driver: Any = connection.connection.driver_connection
    if not driver.closed and not _speaks(driver):
        return
    try:
        connection.exec_driver_sql("SELECT 1")
    except exc.DBAPIError as error:
        raise Unavailable(
            "the database does not answer any more, and this was not carried out:"
            f" {first_line(error.orig)}",
            remedy="try again",
        ) from error


def _speaks(driver: psycopg.Connection[Any]) -> bool:
    line = select.poll()
    line.register(driver.fileno(), select.POLLIN)
    return bool(line.poll(0))
