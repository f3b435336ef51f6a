"""Forecasts in words, as a table and as JSON."""

from __future__ import annotations

import math

import pytest

from fairbank.priority.fairshare.regimes import RankingRule
from fairbank.report.columns import DisplayFormat
from fairbank.report.fair_share import sentences, shown_level, span
from fairbank.report.share_forecast import (
    FORECAST_COLUMNS,
    Recovery,
    assumptions,
    forecast_data,
    forecast_rows,
)
from fairbank.report.tables import table

DAY = 86_400
BACKS = [
    Recovery("bio", "", "", math.inf, 0.0, 0.0),
    Recovery("chem", "", "", 0.77, 5.3 * DAY, 9.81 * DAY),
    Recovery("chem", "ayla", "gpu", 0.5, 3_600.4, 3_600.4),
    Recovery("old", "", "", 0.0, None, None),
]


def test_forecast_table() -> None:
    assert table(FORECAST_COLUMNS, forecast_rows(BACKS), DisplayFormat()).lines == [
        "ACCOUNT  USER         LEVEL   SOONEST    LATEST",
        "bio                  unused       now       now",
        "chem                   0.77  5.3 days  9.8 days",
        "chem     ayla (gpu)    0.50    1 hour    1 hour",
        "old                    0.00     never     never",
    ]


def test_forecast_sentences() -> None:
    assert list(sentences(BACKS[1:], "level 1")) == [
        "chem is back at level 1 in 5.3 days to 9.8 days, if it pauses.",
        "ayla in chem (gpu) is back at level 1 in about 1 hour, if it pauses.",
        "old does not come back to level 1 by a pause of its own.",
    ]


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        (999.994, "999.99"),
        (1_234.5, "1234"),
        (999_999, "999999"),
        (1e12, ">999999"),
        (math.inf, "unused"),
    ],
)
def test_levels_are_plain_decimals(level: float, shown: str) -> None:
    assert shown_level(level) == shown


def test_json_of_a_forecast_has_null_for_what_does_not_apply() -> None:
    result = forecast_data(BACKS, RankingRule(fair_tree=False))
    assert result[0]["level"] == "inf"
    assert result[2] == {
        "account": "chem",
        "user": "ayla",
        "partition": "gpu",
        "level": 0.5,
        "goal": "factor 0.5",
        "soonest_seconds": 3600,
        "latest_seconds": 3600,
        "least_level": None,
        "most_level": None,
        "least_factor": None,
        "most_factor": None,
    }
    assert (result[3]["user"], result[3]["soonest_seconds"]) == (None, None)


def test_assumptions_name_the_goal_and_the_reset_of_usage() -> None:
    assert (
        assumptions(RankingRule(fair_tree=True))[0] == "When each is back at level 1, if it pauses."
    )
    assert (
        assumptions(RankingRule(fair_tree=False))[0]
        == "When each is back at factor 0.5, if it pauses."
    )
    assert "nothing is reset" in assumptions(RankingRule(fair_tree=True))[2]
    rule = RankingRule(fair_tree=True, half_life=7 * DAY, reset_in=9 * DAY)
    assert assumptions(rule)[2:] == [
        (
            "Shares stay, usage fades as Slurm has it, and all usage is reset when it is due. Jobs"
            " that run count until they end."
        ),
        "Usage halves every 7 days.",
        (
            "All usage is reset in 9 days (PriorityUsageResetPeriod): an idle account has its share"
            " back by then."
        ),
    ]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0, "a minute"),
        (60, "1 minute"),
        (5_400, "1.5 hours"),
        (13.6 * DAY, "14 days"),
        (1_234 * DAY, "1234 days"),
    ],
)
def test_durations(seconds: float, shown: str) -> None:
    assert span(seconds) == shown
