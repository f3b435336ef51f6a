"""Explanation of fair share: levels in words, and the time when a project that used too much is
back at its share.
"""

from __future__ import annotations

import math

import pytest

from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.report.columns import DisplayFormat
from fairbank.report.fair_share import (
    TREE_COLUMNS,
    RankingRule,
    Recovery,
    level_of,
    reading_guide,
    tree_data,
    tree_rows,
)
from fairbank.report.sshare import ShareRow
from fairbank.report.tables import table

DAY = 86_400
FAIR_TREE, CLASSIC = (
    RankingRule(fair_tree=True, half_life=14 * DAY),
    RankingRule(fair_tree=False, half_life=14 * DAY),
)

ROWS = [
    ShareRow("root", effective=1.0, usage=1000),
    ShareRow("bio", parent="root", shares=40, norm_shares=0.4, effective=0.18, level=0.4 / 0.18),
    ShareRow("chem", parent="root", shares=40, norm_shares=0.4, effective=0.52, level=0.4 / 0.52),
    ShareRow("chem_qmc", parent="chem", shares=20, norm_shares=0.5, effective=0.7, level=0.5 / 0.7),
    ShareRow(
        "chem_qmc",
        "ayla",
        shares=1,
        norm_shares=0.333,
        effective=0.588,
        factor=0.25,
        level=0.333 / 0.588,
    ),
    ShareRow(
        "chem_qmc",
        "jorge",
        shares=1,
        norm_shares=0.333,
        effective=0.33,
        factor=0.5,
        level=0.333 / 0.33,
    ),
    ShareRow(
        "chem_qmc", "minh", "gpu", shares=ON_PARENT, norm_shares=0.5, effective=0.1, factor=0.75
    ),
    ShareRow("new", parent="root", shares=20, norm_shares=0.2, effective=0.0, level=math.inf),
    ShareRow("old", parent="root", shares=0, norm_shares=0.0, effective=0.3, level=0.0),
]


BACKS = [
    Recovery("bio", "", "", 0.4 / 0.18, 0.0, 0.0),
    Recovery("chem", "", "", 0.4 / 0.52, 5.3 * DAY, 9.81 * DAY),
    Recovery("chem_qmc", "", "", 0.5 / 0.7, 6.8 * DAY, 17.1 * DAY),
    Recovery("chem_qmc", "ayla", "", 0.333 / 0.588, 11 * DAY, 12 * DAY),
    Recovery("old", "", "", 0.0, None, None),
]


def test_tree_table() -> None:
    assert table(TREE_COLUMNS, tree_rows(ROWS, FAIR_TREE), DisplayFormat()).lines == [
        "ACCOUNT / USER  SHARES   NORM  USAGE   LEVEL  FACTOR",
        "bio                 40  0.400  0.180    2.22          under",
        "chem                40  0.400  0.520    0.77          over",
        "  chem_qmc          20  0.500  0.700    0.71          over",
        "    ayla             1  0.333  0.588    0.57   0.250  over",
        "    jorge            1  0.333  0.330    1.01   0.500  about even",
        "    minh (gpu)  parent  0.500  0.100           0.750  as its account",
        "new                 20  0.200  0.000  unused          under",
        "old                  0  0.000  0.300    0.00          no share",
    ]


def test_reading_guide() -> None:
    assert reading_guide(ROWS, FAIR_TREE, BACKS) == [
        "Level: above 1 it used less than its share, below 1 more.",
        "Where no other job competes for nodes, jobs start at any level.",
        (
            "Accounts are ranked among their siblings, and users within their account; the factor"
            " is the rank."
        ),
        "Usage halves every 14 days.",
        "chem_qmc is back at level 1 in 6.8 days to 17 days, if it pauses.",
        "chem is back at level 1 in 5.3 days to 9.8 days, if it pauses.",
        (
            "Soonest: the others take what it leaves. Latest: they go on as they do now, and it"
            " stays free."
        ),
        "If all pause, all usage fades alike and no level moves.",
    ]
    assert reading_guide(ROWS, FAIR_TREE, BACKS, ["bio"])[-1] == "Usage halves every 14 days."
    assert "At level 1 the factor is 0.500, without usage 1." in reading_guide(ROWS, CLASSIC)
    assert "At level 1 the factor is 0.871, without usage 1." in reading_guide(
        ROWS, CLASSIC._replace(dampening=5)
    )
    assert reading_guide(ROWS, RankingRule(fair_tree=True, half_life=0))[-1].startswith(
        "Usage does not fade here"
    )


def test_reading_guide_mentions_the_usage_reset() -> None:
    output = reading_guide(ROWS, RankingRule(fair_tree=True, half_life=0, reset_in=9 * DAY), BACKS)
    assert "All usage is reset in 9 days: an idle account has its share back by then." in output


def test_classic_factor_above_half_is_within_the_share() -> None:
    mild = [back._replace(level=0.5) for back in BACKS]
    assert any("is back at factor 0.5 in" in line for line in reading_guide(ROWS, CLASSIC, mild))
    assert not any(
        "is back at" in line for line in reading_guide(ROWS, CLASSIC._replace(dampening=5), mild)
    )


def test_classic_rule_has_levels() -> None:
    assert level_of(
        ShareRow("a", shares=1, norm_shares=0.4, effective=0.52, level=0.0), CLASSIC
    ) == pytest.approx(0.769, abs=0.001)
    assert level_of(ShareRow("a", shares=1, norm_shares=0.4, effective=0.0), CLASSIC) == math.inf
    assert level_of(ShareRow("a", shares=0, effective=0.1), CLASSIC) == 0.0
    assert level_of(ShareRow("root", effective=1.0), CLASSIC) is None


def test_json_output() -> None:
    by_name = {(row["account"], row["user"]): row for row in tree_data(ROWS, FAIR_TREE)}
    assert by_name["new", None]["level"] == "inf"
    assert by_name["chem_qmc", "minh"]["shares"] == "parent"
    assert by_name["chem_qmc", "minh"]["level"] is None
    assert (by_name["root", None]["shares"], by_name["root", None]["raw_usage"]) == (None, 1000)
