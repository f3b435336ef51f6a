"""Decay and reset of usage. Source: docs/reference/slurm-rules.md, "Usage decay"."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.time import DAY
from fairbank.priority.fairshare.charges import faded
from fairbank.priority.fairshare.decay import (
    Decay,
    Reset,
    fading,
    last_reset,
    next_reset,
    parse_half_life,
    parse_reset,
)

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("days", "a_second", "a_tick"),
    [
        (1, 0.9999919791666667, 0.9975966330719699),
        (7, 0.9999988541666667, 0.9996563088783914),
        (14, 0.9999994270833333, 0.999828139720436),
    ],
)
def test_decay_factor_equals_that_of_slurm(days: int, a_second: float, a_tick: float) -> None:
    decay = fading(days * DAY)
    assert (decay.a_second, decay.remaining(300)) == (a_second, a_tick)


@pytest.mark.parametrize(
    ("days", "half"), [(1, 0.5000722058782807), (7, 0.5000733971527376), (14, 0.5000734964252441)]
)
def test_slightly_more_than_half_is_left_after_half_life(days: int, half: float) -> None:
    assert fading(days * DAY).remaining(days * DAY) == half


def test_new_usage_decays_by_its_full_length() -> None:
    assert faded(fading(7 * DAY), np.array([300.0, 0.0, 100.0]))[0] * 4 == 1199.5875706540696
    assert faded(fading(7 * DAY), np.array([100.0]))[0] * 8 == 799.908338532358


def test_power_equals_c_library() -> None:
    seconds = np.arange(0.0, 5_000.0, 0.5)
    decay = fading(3 * DAY)
    assert faded(decay, seconds).tolist() == [
        second * math.pow(decay.a_second, second) for second in seconds.tolist()
    ]


def test_decay_of_no_jobs_is_empty() -> None:
    assert faded(fading(DAY), np.zeros(0)).tolist() == []


def test_half_life_0_has_no_decay() -> None:
    decay = fading(0, Reset.NONE)
    assert (decay.remaining(10**9), faded(decay, np.array([3600.0])).tolist()) == (1.0, [3600.0])


def test_decay_factor_is_never_0() -> None:
    assert fading(60).remaining(10**9) == 2.2250738585072014e-308


@given(st.integers(1, 10**6), st.integers(0, 10**7), st.integers(0, 10**6))
def test_longer_time_leaves_less(minutes: int, seconds: int, more: int) -> None:
    decay = fading(minutes * 60)
    assert 0 < decay.remaining(seconds + more) <= decay.remaining(seconds) <= 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7-0", 7 * DAY),
        ("14-00:00:00", 14 * DAY),
        ("0", 0),
        ("00:00:00", 0),
        ("0:30", 60),
        ("90", 5400),
    ],
)
def test_half_life_has_slurm_time_format(text: str, seconds: int) -> None:
    assert parse_half_life(text) == seconds


@pytest.mark.parametrize("text", ["", "-", "a week", "-1", "UNLIMITED"])
def test_invalid_half_life_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_half_life(text)
    assert refused.value.field == "PriorityDecayHalfLife"


def test_half_life_0_needs_a_reset_period() -> None:
    with pytest.raises(InvalidInput, match="never fades") as refused:
        fading(0)
    assert refused.value.field == "PriorityUsageResetPeriod"
    assert fading(7 * DAY) == Decay()


@pytest.mark.parametrize("half_life", [-60, 90, 2**32 * 60])
def test_half_life_beyond_slurm_range_is_refused(half_life: int) -> None:
    with pytest.raises(InvalidInput, match=f"{half_life} s"):
        fading(half_life)


def test_clock_that_goes_back_is_refused() -> None:
    with pytest.raises(InvalidInput, match="the clock went back by 5 s") as refused:
        Decay().remaining(-5)
    assert refused.value.field == "now"


# --- resets ---


def at(text: str, zone: ZoneInfo = BERLIN) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp())


def iso_minute(instant: int) -> str:
    return datetime.fromtimestamp(instant, BERLIN).isoformat()[:16]


@pytest.mark.parametrize(
    ("period", "now", "boundary"),
    [
        (Reset.NONE, "2026-12-31T00:00", "2026-03-04T12:00"),  # 4 March 2026 is a Wednesday
        (Reset.DAILY, "2026-03-04T23:59", "2026-03-04T12:00"),
        (Reset.DAILY, "2026-03-05T00:00", "2026-03-05T00:00"),
        (Reset.DAILY, "2026-03-09T08:00", "2026-03-09T00:00"),
        (Reset.WEEKLY, "2026-03-07T23:59", "2026-03-04T12:00"),
        (Reset.WEEKLY, "2026-03-08T00:00", "2026-03-08T00:00"),
        (Reset.WEEKLY, "2026-03-24T00:00", "2026-03-22T00:00"),
        (Reset.MONTHLY, "2026-03-31T23:59", "2026-03-04T12:00"),
        (Reset.MONTHLY, "2026-04-01T00:00", "2026-04-01T00:00"),
        (Reset.MONTHLY, "2027-01-15T00:00", "2027-01-01T00:00"),
        (Reset.QUARTERLY, "2026-03-31T23:59", "2026-03-04T12:00"),
        (Reset.QUARTERLY, "2026-05-05T00:00", "2026-04-01T00:00"),
        (Reset.YEARLY, "2026-12-31T23:59", "2026-03-04T12:00"),
        (Reset.YEARLY, "2027-02-01T00:00", "2027-01-01T00:00"),
    ],
)
def test_newest_boundary_since_last_reset(period: Reset, now: str, boundary: str) -> None:
    assert iso_minute(last_reset(period, at("2026-03-04T12:00"), at(now), BERLIN)) == boundary


def test_days_are_fixed_seconds_at_clock_change_and_months_are_not() -> None:
    before = at("2026-03-28T12:00")  # the clock goes forward in the night to the 29th
    assert (
        iso_minute(last_reset(Reset.DAILY, before, at("2026-03-30T12:00"), BERLIN))
        == "2026-03-30T01:00"
    )
    assert (
        iso_minute(last_reset(Reset.MONTHLY, before, at("2026-04-02T12:00"), BERLIN))
        == "2026-04-01T00:00"
    )


@pytest.mark.parametrize(
    ("period", "now", "boundary"),
    [
        (Reset.DAILY, "2026-03-04T12:00", "2026-03-05T00:00"),
        (Reset.DAILY, "2026-03-05T00:00", "2026-03-06T00:00"),
        (Reset.DAILY, "2026-03-28T23:00", "2026-03-29T00:00"),  # then the clock is put forward
        (Reset.DAILY, "2026-03-29T12:00", "2026-03-30T00:00"),
        (Reset.WEEKLY, "2026-03-04T12:00", "2026-03-08T00:00"),
        (Reset.WEEKLY, "2026-03-08T00:00", "2026-03-15T00:00"),
        (Reset.MONTHLY, "2026-03-31T23:59", "2026-04-01T00:00"),
        (Reset.MONTHLY, "2026-12-24T12:00", "2027-01-01T00:00"),
        (Reset.QUARTERLY, "2026-05-31T12:00", "2026-07-01T00:00"),
        (Reset.QUARTERLY, "2026-11-22T12:00", "2027-01-01T00:00"),
        (Reset.YEARLY, "2026-01-01T00:00", "2027-01-01T00:00"),
    ],
)
def test_next_reset_boundary(period: Reset, now: str, boundary: str) -> None:
    result = next_reset(period, at(now), BERLIN)
    assert result is not None
    assert iso_minute(result) == boundary


def test_no_next_boundary_without_reset() -> None:
    assert next_reset(Reset.NONE, 0, BERLIN) is None
    assert next_reset(Reset.NOW, 0, BERLIN) is None, "it came when Slurm started"


def test_week_from_sunday_is_complete() -> None:
    sunday = at("2026-03-08T12:00")
    assert (
        iso_minute(last_reset(Reset.WEEKLY, sunday, at("2026-03-14T23:59"), BERLIN))
        == "2026-03-08T12:00"
    )
    assert (
        iso_minute(last_reset(Reset.WEEKLY, sunday, at("2026-03-15T00:00"), BERLIN))
        == "2026-03-15T00:00"
    )


def test_reset_now_is_now_and_clock_going_back_resets_nothing() -> None:
    assert last_reset(Reset.NOW, 5, 10, UTC) == 10
    assert last_reset(Reset.DAILY, 3 * DAY, DAY, UTC) == 3 * DAY


@given(st.sampled_from(Reset), st.integers(0, 2**32), st.integers(0, 2**32))
def test_boundary_resets_once(period: Reset, last: int, now: int) -> None:
    result = last_reset(period, last, now, UTC)
    assert last <= result <= max(last, now)
    assert last_reset(period, result, now, UTC) == result


def test_reset_period_has_slurm_names() -> None:
    assert parse_reset(" monthly") is Reset.MONTHLY
    with pytest.raises(InvalidInput, match="'FORTNIGHTLY' is not a reset period"):
        parse_reset("FORTNIGHTLY")
