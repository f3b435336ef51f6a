"""How many senders there are, how long they wait, and what a failed request means for its letters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import Busy, FairbankError, Forbidden, InvalidInput, Unavailable
from fairbank.slurm.agent.faring import SETTLED_SECONDS, Faring, Next, after_failure
from fairbank.slurm.agent.pool import (
    GROW_SECONDS,
    LONGEST_PAUSE,
    SHRINK_SECONDS,
    Senders,
    pause,
    resized,
)


def test_the_pool_grows_while_letters_wait_and_shrinks_when_idle() -> None:
    limits = Senders(1, 3)
    assert [resized(size, limits, waited=GROW_SECONDS, idle=0) for size in (1, 2, 3)] == [2, 3, 3]
    assert [resized(size, limits, waited=0, idle=SHRINK_SECONDS) for size in (3, 2, 1)] == [2, 1, 1]
    assert resized(2, limits, waited=GROW_SECONDS / 2, idle=SHRINK_SECONDS / 2) == 2


@given(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9), st.floats(0, 99), st.floats(0, 99))
def test_the_pool_stays_within_its_limits(
    least: int, below: int, above: int, waited: float, idle: float
) -> None:
    limits = Senders(least, least + below + above)
    assert (
        limits.minimum <= resized(least + below, limits, waited=waited, idle=idle) <= limits.maximum
    )


def test_pauses_grow_to_a_limit() -> None:
    pauses = [pause(failures) for failures in range(1, 100)]
    assert pauses == sorted(pauses)
    assert (pause(0), pauses[0], pauses[-1]) == (0, 0.1, LONGEST_PAUSE)


def test_a_bank_is_back_when_it_has_answered_for_a_while() -> None:
    bank = Faring(0.0)
    assert bank.failed(Unavailable("x"), 10.0)
    assert not bank.failed(Unavailable("x"), 11.0)
    assert (bank.down_since, bank.retry_at) == (10.0, 11.0 + pause(2))
    assert bank.answered(20.0)
    assert not bank.is_back(20.0)
    assert bank.is_back(20.0 + SETTLED_SECONDS)


@pytest.mark.parametrize(
    ("trouble", "size", "tried", "then"),
    [
        (Unavailable("x"), 1_000, 99, Next.AGAIN),
        (Busy("x"), 1, 99, Next.AGAIN),
        (Forbidden("x"), 1, 99, Next.AGAIN),
        (InvalidInput("x"), 2, 1, Next.SPLIT),
        (InvalidInput("x"), 1, 1, Next.ASIDE),
        (FairbankError("a bug"), 1_000, 1, Next.AGAIN),
        (FairbankError("a bug"), 1_000, 3, Next.SPLIT),
        (FairbankError("a bug"), 1, 3, Next.AGAIN),
        (FairbankError("a bug"), 1, 6, Next.ASIDE),
    ],
)
def test_what_a_failed_request_means_for_its_letters(
    trouble: FairbankError, size: int, tried: int, then: Next
) -> None:
    assert after_failure(trouble, size, tried) is then
