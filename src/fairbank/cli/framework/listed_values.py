"""Requests for options that list several values, such as `-A chem,bio`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairbank.cli.framework.context import Context, Row

ASKED_MAX = 200


def spread(query: Mapping[str, object]) -> list[dict[str, object]]:
    """Return one query for each combination of lists such as `-A chem,bio -j 1,2`.

    The bank takes one value of each. What is listed twice, perhaps by name and by number, is
    requested once. Raises InvalidInput.
    """
    queries: list[dict[str, object]] = [{}]
    for key, value in query.items():
        values = list(dict.fromkeys(value)) if isinstance(value, list) else [value]
        if len(queries) * len(values) > ASKED_MAX:
            raise InvalidInput(
                f"{len(queries) * len(values)} requests for the listed values are too many",
                field=key,
                remedy=f"name fewer at a time: each combination is a request, at most {ASKED_MAX}",
            )
        queries = [{**part, key: one} for part in queries for one in values]
    return queries


def rows_of_each(
    context: Context, path: str, query: Mapping[str, object], limit: int = 0
) -> list[Row]:
    """Return the rows of all listed values, the last entered first.

    Args:
        context: the command, which sends the requests.
        path: the path of the list, such as `/job`.
        query: its parameters; a list stands for one request for each value (`spread`).
        limit: maximum number of rows together; 0: all.
    """
    queries = spread(query)
    rows = [row for part in queries for row in context.rows(path, part, limit)]
    if len(queries) > 1:
        rows.sort(key=lambda row: -row["id"])
        rows = rows[:limit] if limit else rows
    return rows
