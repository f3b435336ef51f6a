"""Explanation of fair share: levels in words, and the time when a project that used too much is
back at its share.
"""

from __future__ import annotations

import math

import pytest

from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.priority.fairshare.regimes import RankingRule, level_of
from fairbank.report.columns import DisplayFormat
from fairbank.report.fair_share import TREE_COLUMNS, reading_guide, tree_data, tree_rows
from fairbank.report.share_forecast import Recovery, assumptions
from fairbank.report.slurm.sshare import ShareRow
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
        "ACCOUNT / USER  SHARES   NORM  USAGE   LEVEL  FACTOR  REGIME",
        "bio                 40  0.400  0.180    2.22          under, 1:2.2",
        "chem                40  0.400  0.520    0.77          over, 1.3:1",
        "  chem_qmc          20  0.500  0.700    0.71          over, 1.4:1",
        "    ayla             1  0.333  0.588    0.57   0.250  over, 1.8:1",
        "    jorge            1  0.333  0.330    1.01   0.500  about even",
        "    minh (gpu)  parent  0.500  0.100           0.750  as its account",
        "new                 20  0.200  0.000  unused          unused",
        "old                  0  0.000  0.300    0.00          no share",
    ]


def test_guide_explains_only_the_levels_that_are_shown() -> None:
    assert reading_guide(ROWS, FAIR_TREE, BACKS) == [
        "Level: above 1 it used less than its share, below 1 more.",
        (
            "unused: nothing that it used counts now; its jobs go before those of siblings that"
            " used something."
        ),
        "under: 1:2 used half of its share; its jobs go before those of siblings that used theirs.",
        (
            "about even: it used its share; its jobs go behind those of siblings that used less,"
            " before the others."
        ),
        ("over: 2:1 used twice its share; its jobs wait behind those of siblings that used less."),
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


def test_usage_without_half_life_never_decays_and_only_a_reset_clears_it() -> None:
    never = RankingRule(fair_tree=True, half_life=0)
    assert reading_guide(ROWS, never, BACKS)[-1] == (
        "Usage never decays here (PriorityDecayHalfLife=0): no pause lowers what was used, and a"
        " level rises only by what others use; nothing resets usage."
    )
    *_, decay, reset = reading_guide(ROWS, never._replace(reset_in=9 * DAY), BACKS)
    assert decay.endswith("rises only by what others use or by the reset.")
    assert reset == (
        "All usage is reset in 9 days (PriorityUsageResetPeriod): an idle account has its share"
        " back by then."
    )
    forecast = assumptions(never)
    assert "never: no pause of its own brings it back; only what others use does." in forecast
    assert not any("Soonest" in text or "fades" in text for text in forecast)


def test_share_without_weight_says_which_factors_decide() -> None:
    """Levels are then no reason why a job waits, so no regime is explained."""
    unweighted = FAIR_TREE._replace(weights={"age": 10_000.0, "qos": 2_000.0})
    texts = reading_guide(ROWS, unweighted)
    assert texts[1] == (
        "Fair share has no weight here (PriorityWeightFairshare=0), so levels move no job. By"
        " weight these decide: age (10,000), then QOS (2,000)."
    )
    assert not any(text.startswith("under:") for text in texts)
    assert texts[1] in assumptions(unweighted)
    (text,) = [text for text in assumptions(FAIR_TREE._replace(weights={})) if "weight" in text]
    assert text.endswith("the order of submission decides, and nice values.")
    weighed = FAIR_TREE._replace(weights={"fair_share": 1.0})
    assert reading_guide(ROWS, weighed) == reading_guide(ROWS, FAIR_TREE)


@pytest.mark.parametrize(
    ("level", "words"),
    [
        (math.inf, "unused"),
        (8e5, "under"),
        (2.0, "under, 1:2"),
        (1.049, "about even"),
        (0.951, "about even"),
        (0.5, "over, 2:1"),
        (0.1, "over, 10:1"),
        (0.099, "no share left"),
    ],
)
def test_regimes_of_fasrc_in_words(level: float, words: str) -> None:
    """FASRC: unused, used 1:2, even, used 2:1, and no share left, here below a tenth: 2 ** -10 is
    less than 0.001 of the weight.
    """
    row = ShareRow("a", parent="root", shares=1, norm_shares=0.5, level=level)
    (shown,) = tree_rows([ShareRow("root"), row], FAIR_TREE)
    assert shown["words"] == words
    (_, data) = tree_data([ShareRow("root"), row], FAIR_TREE)
    assert data["regime"] == words.split(",")[0]


def test_age_lifts_jobs_of_an_account_without_share_left_if_it_has_weight() -> None:
    rows = [ShareRow("root"), ShareRow("a", parent="root", shares=1, level=0.01)]
    rule = FAIR_TREE._replace(weights={"fair_share": 5.0, "age": 1.0})
    assert reading_guide(rows, rule)[1].endswith(
        "those of all siblings, until their age lifts them."
    )
    assert reading_guide(rows, FAIR_TREE)[1].endswith("those of all siblings.")


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


def test_json_of_the_tree_has_inherited_shares_and_infinite_levels_as_text() -> None:
    by_name = {(row["account"], row["user"]): row for row in tree_data(ROWS, FAIR_TREE)}
    assert by_name["new", None]["level"] == "inf"
    assert by_name["chem_qmc", "minh"]["shares"] == "parent"
    assert by_name["chem_qmc", "minh"]["level"] is None
    assert (by_name["root", None]["shares"], by_name["root", None]["raw_usage"]) == (None, 1000)
