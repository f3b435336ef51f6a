"""Number of senders, pauses, and treatment of failed requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.agent.reports.bank_status import (
    GROW_SECONDS,
    LONGEST_PAUSE,
    SHRINK_SECONDS,
    STABLE_SECONDS,
    BankStatus,
    SenderSettings,
    after_failure,
    resize_pool,
    retry_pause,
)
from fairbank.core.errors import Busy, FairbankError, Forbidden, InvalidInput, Unavailable


def test_pool_grows_while_reports_wait_and_shrinks_when_idle() -> None:
    limits = SenderSettings(1, 3)
    assert [resize_pool(size, limits, waited=GROW_SECONDS, idle=0) for size in (1, 2, 3)] == [
        2,
        3,
        3,
    ]
    assert [resize_pool(size, limits, waited=0, idle=SHRINK_SECONDS) for size in (3, 2, 1)] == [
        2,
        1,
        1,
    ]
    assert resize_pool(2, limits, waited=GROW_SECONDS / 2, idle=SHRINK_SECONDS / 2) == 2


@given(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9), st.floats(0, 99), st.floats(0, 99))
def test_pool_stays_within_its_limits(
    least: int, below: int, above: int, waited: float, idle: float
) -> None:
    limits = SenderSettings(least, least + below + above)
    assert (
        limits.minimum
        <= resize_pool(least + below, limits, waited=waited, idle=idle)
        <= limits.maximum
    )


def test_pauses_grow_to_a_limit() -> None:
    pauses = [retry_pause(failures) for failures in range(1, 100)]
    assert pauses == sorted(pauses)
    assert (retry_pause(0), pauses[0], pauses[-1]) == (0, 0.1, LONGEST_PAUSE)


def test_bank_is_stable_after_some_seconds() -> None:
    bank = BankStatus(0.0)
    assert bank.record_failure(Unavailable("x"), 10.0)
    assert not bank.record_failure(Unavailable("x"), 11.0)
    assert (bank.down_since, bank.retry_at) == (10.0, 11.0 + retry_pause(2))
    assert bank.record_success(20.0)
    assert not bank.is_stable(20.0)
    assert bank.is_stable(20.0 + STABLE_SECONDS)


@pytest.mark.parametrize(
    ("trouble", "size", "tried", "then"),
    [
        (Unavailable("x"), 1_000, 99, "retry"),
        (Busy("x"), 1, 99, "retry"),
        (Forbidden("x"), 1, 99, "retry"),
        (InvalidInput("x"), 2, 1, "split"),
        (InvalidInput("x"), 1, 1, "drop"),
        (FairbankError("a bug"), 1_000, 1, "retry"),
        (FairbankError("a bug"), 1_000, 3, "split"),
        (FairbankError("a bug"), 1, 3, "retry"),
        (FairbankError("a bug"), 1, 6, "drop"),
    ],
)
def test_treatment_of_a_failed_request(
    trouble: FairbankError, size: int, tried: int, then: str
) -> None:
    assert after_failure(trouble, size, tried) is then
