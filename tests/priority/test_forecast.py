"""Forecast of recovery: after the forecast pause a user is back at the share, by the rules of fair
share.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.time import DAY
from fairbank.priority.fairshare.classic import classic
from fairbank.priority.fairshare.decay import Decay, Reset, fading
from fairbank.priority.fairshare.fair_tree import fair_tree
from fairbank.priority.fairshare.forecast import LevelRange, Standpoint, back_after, level_after
from fairbank.priority.fairshare.tree import sum_usage
from tests.priority.random_trees import trees
from tests.priority.tree_text import TreeWithUsage, parse_tree
from tests.priority.trees import V1, V7

WEEK = fading(7 * DAY)
HALF = Standpoint(usage=80, others=20, share=0.5)


def test_pause_bounds_assume_others_fill_or_continue() -> None:
    result = back_after(HALF, WEEK)
    assert result.soonest is not None
    assert result.latest is not None
    assert 80 * WEEK.a_second**result.soonest == pytest.approx(50)  # of 100, as before
    assert 80 * WEEK.a_second**result.latest == pytest.approx(
        20
    )  # as much as the others go on using
    assert result.latest == pytest.approx(14 * DAY, rel=0.001)


def test_user_within_share_needs_no_pause() -> None:
    assert back_after(Standpoint(usage=10, others=90, share=0.5), WEEK) == (0, 0)
    assert back_after(Standpoint(usage=0, others=0, share=0.5), WEEK) == (0, 0)


@pytest.mark.parametrize(
    "who",
    [
        Standpoint(usage=10, others=90, share=0.0),
        Standpoint(
            usage=10, others=0, share=0.5
        ),  # whoever is alone has all of it, however little that is
        Standpoint(
            usage=10, others=90, share=0.2, charged=40
        ),  # others of its account keep it there
    ],
)
def test_some_users_never_recover_by_a_pause(who: Standpoint) -> None:
    assert back_after(who, WEEK) == (None, None)


def test_usage_reset_brings_all_associations_with_shares_back() -> None:
    never = fading(0, Reset.MONTHLY)
    assert back_after(HALF, never, reset_in=3 * DAY) == (3 * DAY, 3 * DAY)
    unhindered = back_after(HALF, WEEK)
    assert unhindered.soonest is not None
    assert back_after(HALF, WEEK, reset_in=int(unhindered.soonest) + 1) == (
        unhindered.soonest,
        int(unhindered.soonest) + 1,
    )
    assert back_after(Standpoint(usage=10, others=90, share=0.0), WEEK, reset_in=DAY) == (
        None,
        None,
    )
    assert back_after(Standpoint(usage=1, others=99, share=0.5), WEEK, reset_in=DAY) == (0, 0)


def test_usage_without_decay_never_recovers() -> None:
    assert back_after(HALF, fading(0, Reset.NONE)) == (None, None)


def test_level_after_a_pause_of_one_half_life() -> None:
    """Of 80 about 40 are left. The others have 20, or 60 if they take what it leaves."""
    after = level_after(HALF, WEEK, pause=7 * DAY)
    assert after.least == pytest.approx(0.5 * (40 + 20) / 40, rel=1e-3)
    assert after.most == pytest.approx(0.5 * (40 + 60) / 40, rel=1e-3)


def test_level_after_a_run_counts_all_of_it_at_once() -> None:
    """0.5 x (80 + 20 + 20) / (80 + 20); after a half-life 0.5 x (40 + 20 + 20) / (40 + 20)."""
    assert level_after(HALF, WEEK, run=20) == LevelRange(0.6, 0.6)
    later = level_after(HALF, WEEK, pause=7 * DAY, run=20)
    assert later.least == pytest.approx(0.5 * 80 / 60, rel=1e-3)
    alone = Standpoint(usage=0, others=0, share=0.25)
    assert level_after(alone, WEEK, run=7) == LevelRange(0.25, 0.25)


def test_level_counts_what_the_account_is_charged_for_others() -> None:
    """U2 of vector V1: 0.05 x (12.5 + 75) / (12.5 + 2.5) after a half-life."""
    who = Standpoint(usage=25, others=75, share=0.05, charged=2.5)
    assert level_after(who, WEEK, pause=7 * DAY).least == pytest.approx(4.375 / 15, rel=1e-3)


def test_level_without_decay_is_only_known_at_least() -> None:
    """Without a half-life a pause leaves all, and what the others use meanwhile is unknown."""
    never = fading(0, Reset.MONTHLY)
    assert level_after(HALF, never, pause=7 * DAY) == LevelRange(0.625, None)
    assert level_after(HALF, never, run=20) == LevelRange(0.6, 0.6)


def test_level_after_a_reset_has_no_usage_but_the_run() -> None:
    pause = {"pause": 7 * DAY, "reset_in": 3 * DAY}
    assert level_after(HALF, WEEK, **pause) == LevelRange(math.inf, math.inf)
    assert level_after(HALF, WEEK, **pause, run=20) == LevelRange(0.5, None)
    assert level_after(HALF, WEEK, pause=DAY, reset_in=3 * DAY).least < 1


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0.01, 0.99), st.floats(0, 0.5))
def test_level_after_the_forecast_pause_is_the_one_that_was_asked_for(
    usage: int, others: int, share: float, part: float
) -> None:
    who = Standpoint(usage=usage, others=others, share=share, charged=others * part)
    back = back_after(who, WEEK)
    assume(back.latest and back.soonest)
    assert back.latest is not None
    assert back.soonest is not None
    assert level_after(who, WEEK, pause=round(back.latest)).least == pytest.approx(1, rel=1e-4)
    assert level_after(who, WEEK, pause=round(back.soonest)).most == pytest.approx(1, rel=1e-4)


def paused(
    case: TreeWithUsage, row: int, seconds: float, decay: Decay, *, taken_over: bool
) -> list[float]:
    """Return the own usage of each association after this user has paused for the given time."""
    left = decay.a_second**seconds
    mine, others = case.own[row], sum(case.own) - case.own[row]
    growth = 1 + mine * (1 - left) / others if taken_over else 1.0
    return [amount * (left if at == row else growth) for at, amount in enumerate(case.own)]


@given(trees(), st.sampled_from([0.25, 0.5, 0.6]), st.sampled_from([1, 3]), st.booleans())
def test_forecast_of_classic_factor_is_reached(
    case: TreeWithUsage, factor: float, dampening: int, taken_over: bool
) -> None:
    users = np.flatnonzero(case.tree.is_user & (case.usage > 0))
    assume(len(users))
    now, together = classic(case.tree, case.usage, dampening=dampening), float(case.usage[0])
    forecasts = 0
    for row in users.tolist():
        used = float(case.usage[row])
        charged = min(max(float(now.effective_usage[row]) * together - used, 0.0), together - used)
        who = Standpoint(
            usage=used, others=together - used, share=float(now.norm_shares[row]), charged=charged
        )
        seconds = back_after(who, WEEK, level=1 / (-math.log2(factor) * dampening))[not taken_over]
        if seconds is None or not 0 < seconds < 300 * DAY:
            continue
        later = sum_usage(case.tree, paused(case, row, seconds, WEEK, taken_over=taken_over))
        # What is charged is a difference of sums that may be 10**9 times as large.
        assert classic(case.tree, later, dampening=dampening).factor[row] == pytest.approx(
            factor, rel=1e-5
        )
        forecasts += 1
    assume(forecasts)


@pytest.mark.parametrize("taken_over", [False, True])
def test_forecast_of_fair_tree_level_is_reached(taken_over: bool) -> None:
    tree_with_usage = parse_tree(V7)
    alice, physics = tree_with_usage.at["alice"], tree_with_usage.at["physics"]
    account = float(tree_with_usage.usage[physics])
    share = float(fair_tree(tree_with_usage.tree, tree_with_usage.usage).norm_shares[alice])
    who = Standpoint(usage=300, others=account - 300, share=share)
    assert who.level == pytest.approx(
        float(fair_tree(tree_with_usage.tree, tree_with_usage.usage).level[alice])
    )
    seconds = back_after(who, WEEK)[not taken_over]
    assert seconds is not None
    own = paused(tree_with_usage, alice, seconds, WEEK, taken_over=False)
    own[tree_with_usage.at["bob"]] += (300 - own[alice]) * taken_over
    assert float(
        fair_tree(tree_with_usage.tree, sum_usage(tree_with_usage.tree, own)).level[alice]
    ) == pytest.approx(1)


@given(
    st.floats(0, 1e15),
    st.floats(0, 1e15),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from([0.01, 0.5, 1.0, 3.0]),
)
def test_earliest_is_before_latest_and_not_negative(
    usage: float, others: float, share: float, part: float, level: float
) -> None:
    result = back_after(
        Standpoint(usage=usage, others=others, share=share, charged=others * part),
        WEEK,
        level=level,
    )
    assert (result.soonest is None) == (result.latest is None) or result.soonest is not None
    if result.soonest is not None and result.latest is not None:
        assert 0 <= result.soonest <= result.latest * (1 + 1e-9) + 1e-6
        assert math.isfinite(result.latest)


def test_longer_half_life_takes_longer_in_proportion() -> None:
    slow, fast = back_after(HALF, fading(14 * DAY)).latest, back_after(HALF, WEEK).latest
    assert slow is not None
    assert fast is not None
    assert slow / fast == pytest.approx(2, rel=1e-5)


@pytest.mark.parametrize("field", ["usage", "others", "share", "charged"])
@pytest.mark.parametrize("amount", [-1.0, math.nan, math.inf])
def test_invalid_usage_and_share_are_refused(field: str, amount: float) -> None:
    fields = {"usage": 1.0, "others": 1.0, "share": 0.5} | {field: amount}
    with pytest.raises(InvalidInput) as refused:
        Standpoint(**fields)
    assert refused.value.field == field


@pytest.mark.parametrize("level", [0.0, -1.0, math.inf, math.nan])
def test_invalid_level_is_refused(level: float) -> None:
    with pytest.raises(InvalidInput, match="level"):
        back_after(HALF, WEEK, level=level)


def test_forecast_of_v1_matches_hand_computation() -> None:
    """U2 used a quarter of the total with a twentieth of the shares; half of its accounts' usage
    counts as its own.
    """
    tree_with_usage = parse_tree(V1)
    now = classic(tree_with_usage.tree, tree_with_usage.usage)
    u2 = tree_with_usage.at["U2"]
    assert float(now.effective_usage[u2]) == pytest.approx(0.275)
    who = Standpoint(usage=25, others=75, share=0.05, charged=2.5)
    assert who.level == pytest.approx(0.05 / 0.275)
    result = back_after(who, WEEK)
    assert result.latest is not None
    assert result.soonest is not None
    # 25 x + 2.5 = 0.05 (25 x + 75), and 25 x + 2.5 w = 5 where w = (100 - 25 x) / 75
    assert WEEK.a_second**result.latest == pytest.approx((0.05 * 75 - 2.5) / (25 * 0.95))
    assert WEEK.a_second**result.soonest == pytest.approx(
        (5 - 2.5 * 100 / 75) / (25 - 2.5 * 25 / 75)
    )
