"""Bounds of an allocation next to its figures: the credit limit, and the period to the hour if it
is not in whole days.
"""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.cli.commands.admin import alloc
from fairbank.cli.commands.bank import balance
from fairbank.report.columns import DisplayFormat

ROW = {"state": "active", "remaining": 0, "available": 0, "my_cap": None}
NOON, MIDNIGHT = "2026-11-21T12:00:00Z", "2026-11-21T00:00:00Z"


@pytest.mark.parametrize(("limits", "extra"), [([0, 0], True), ([0, 60], False)])
def test_balance_shows_the_credit_limit_if_any(limits: list[int], extra: bool) -> None:
    (limit,) = [
        column
        for column in balance.columns([{**ROW, "credit_limit": limit} for limit in limits])
        if column.head == "LIMIT"
    ]
    assert limit.extra is extra


@pytest.mark.parametrize(
    ("short", "shown"),
    [(False, "lasts; about 9.22 SU will be unused"), (True, "lasts; ~9.22 unused")],
)
def test_unused_credit_is_exact_at_every_width(short: bool, shown: str) -> None:
    row = {**ROW, "outlook": "lasts", "runs_out": None, "left_over": 553, "deposited": 600_000}
    (runs_out,) = [column for column in balance.COLUMNS if column.head == "RUNS-OUT"]
    assert runs_out.cell(row, DisplayFormat(short=short)) == shown


@pytest.mark.parametrize(
    ("start", "end", "shown"),
    [
        (MIDNIGHT, "2026-11-22T00:00:00Z", ["2026-11-21", "2026-11-21"]),
        (NOON, "2026-11-23T00:00:00Z", ["2026-11-21 12:00:00", "2026-11-23 00:00:00"]),
        (MIDNIGHT, NOON, ["2026-11-21 00:00:00", "2026-11-21 12:00:00"]),
    ],
)
def test_period_not_in_whole_days_is_shown_with_hours(
    start: str, end: str, shown: list[str]
) -> None:
    row: dict[str, Any] = {"start": start, "end": end}
    bounds = [column for column in alloc.COLUMNS if column.head in ("START", "END")]
    assert [alloc.show_cell(column, row, DisplayFormat()) for column in bounds] == shown
