"""Forecasts in words, as a table, and for programs."""

from __future__ import annotations

import math

import pytest

from fairbank.report.columns import Look
from fairbank.report.forecasts import COLUMNS, Back, as_data, sentences, span, table_rows
from fairbank.report.tables import table

DAY = 86_400
BACKS = [
    Back("bio", "", "", math.inf, 0.0, 0.0),
    Back("chem", "", "", 0.77, 5.3 * DAY, 9.81 * DAY),
    Back("chem", "ayla", "gpu", 0.5, 3_600.4, 3_600.4),
    Back("old", "", "", 0.0, None, None),
]


def test_the_table() -> None:
    assert table(COLUMNS, table_rows(BACKS), Look()).lines == [
        "ACCOUNT  USER         LEVEL   SOONEST    LATEST",
        "bio                  unused       now       now",
        "chem                   0.77  5.3 days  9.8 days",
        "chem     ayla (gpu)    0.50    1 hour    1 hour",
        "old                    0.00     never     never",
    ]


def test_in_words() -> None:
    assert list(sentences(BACKS[1:])) == [
        "chem is back at 1 in 5.3 days to 9.8 days, if it pauses.",
        "ayla in chem (gpu) is back at 1 in about 1 hour, if it pauses.",
        "old does not come back to 1 by a pause of its own.",
    ]


def test_for_programs() -> None:
    found = as_data(BACKS)
    assert found[0]["level"] == "inf"
    assert found[2] == {
        "account": "chem",
        "user": "ayla",
        "partition": "gpu",
        "level": 0.5,
        "soonest_seconds": 3600,
        "latest_seconds": 3600,
    }
    assert (found[3]["user"], found[3]["soonest_seconds"]) == (None, None)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.0, "a minute"), (60, "1 minute"), (5_400, "1.5 hours"), (13.6 * DAY, "14 days"), (1_234 * DAY, "1234 days")],
)
def test_lengths_of_time(seconds: float, shown: str) -> None:
    assert span(seconds) == shown
