"""Ticks over all usage, each rule as a short story.

Source: docs/reference/slurm-rules.md, "Usage" and "Usage decay".
"""

from __future__ import annotations

import numpy as np
import pytest

from fairbank.core.errors import InvalidInput
from fairbank.core.time import DAY
from fairbank.priority.fairshare.charges import faded, seconds_run
from fairbank.priority.fairshare.decay import Decay, Reset, fading
from fairbank.priority.fairshare.usage_ticks import (
    Rules,
    UsageLedger,
    apply_tick,
    end_jobs,
    reset_usage,
)
from tests.priority.accounts import (
    ALICE,
    BILLING,
    BOB,
    CAROL,
    CHEM,
    CPU,
    KEPT,
    NAMES,
    NORMAL,
    OPTICS,
    PAYERS,
    PHYSICS,
    ROOT,
    STANDBY,
    job,
    together,
)
from tests.priority.recomputed_usage import minutes, zero_usage

WEEK = Rules(Decay())
NEVER = Rules(fading(0, Reset.NONE))
NOON = 1_000_000_000
NOBODY = job(ALICE, 0).only(np.array([False]))


def raw(usage: UsageLedger, who: int) -> float:
    return float(usage.associations.raw[who])


def empty() -> UsageLedger:
    return zero_usage(PAYERS, len(NAMES))


# --- V10 ---


def test_four_cpus_for_three_ticks_then_three_idle_ticks() -> None:
    usage, running, seen = empty(), job(ALICE, NOON, cpus=4), []
    for number in range(1, 7):
        now = NOON + 300 * number
        usage = apply_tick(
            usage, running if number <= 3 else NOBODY, PAYERS, WEEK, last=now - 300, now=now
        )
        seen.append(raw(usage, ALICE))
    assert seen[:3] == [1199.5875706540696, 2398.7628537105134, 3597.525990868918]
    assert seen[5] == pytest.approx(
        3593.817952352436, rel=2e-16
    )  # V10 took doubles all the way; Slurm's ledger is a long double


def test_short_job_is_charged_once_at_its_end() -> None:
    usage = end_jobs(
        empty(), job(ALICE, NOON + 50, NOON + 150, cpus=8), PAYERS, WEEK, last=NOON, now=NOON + 150
    )
    assert raw(usage, ALICE) == 799.908338532358


def test_idle_half_life_halves_usage() -> None:
    usage = apply_tick(empty(), job(ALICE, NOON), PAYERS, NEVER, last=NOON, now=NOON + 300)
    assert raw(
        apply_tick(usage, NOBODY, PAYERS, WEEK, last=NOON, now=NOON + 7 * DAY), ALICE
    ) == pytest.approx(300 * 0.5000733971527376, rel=1e-15)


def test_half_life_0_keeps_usage() -> None:
    usage, running = empty(), job(ALICE, NOON, cpus=4)
    for number in range(1, 7):
        now = NOON + 300 * number
        usage = apply_tick(
            usage, running if number <= 3 else NOBODY, PAYERS, NEVER, last=now - 300, now=now
        )
    assert raw(usage, ALICE) == 3600


def test_constant_use_converges_to_steady_state() -> None:
    decay = Decay()
    added, left = float(faded(decay, np.array([300.0]))[0]), decay.remaining(300)
    assert added / (1 - left) == pytest.approx(872576.78, abs=0.005)


# --- who is charged ---


def test_association_and_its_parents_are_charged() -> None:
    running = together(
        job(BOB, NOON, cpus=2), job(ALICE, NOON), job(CAROL, NOON, cpus=4), job(-1, NOON, cpus=9)
    )
    usage = apply_tick(empty(), running, PAYERS, NEVER, last=NOON, now=NOON + 10)
    assert [raw(usage, who) for who in (BOB, OPTICS, ALICE, PHYSICS, CAROL, CHEM, ROOT)] == [
        20,
        20,
        10,
        30,
        40,
        40,
        70,
    ]
    assert usage.associations.wall.tolist() == [30, 20, 10, 10, 10, 10, 10]


def test_both_qos_are_charged_with_usage_factor_of_job() -> None:
    running = together(
        job(ALICE, NOON, qos=NORMAL, partition_qos=STANDBY, factor=0.5),
        job(ALICE, NOON, qos=NORMAL, partition_qos=NORMAL),
    )
    usage = apply_tick(empty(), running, PAYERS, NEVER, last=NOON, now=NOON + 10)
    assert usage.qos.raw.tolist() == [15, 5, 0]
    assert raw(usage, ALICE) == 15


def test_qos_with_no_decay_keeps_unscaled_seconds() -> None:
    running = job(ALICE, NOON, cpus=4, qos=KEPT, partition_qos=NORMAL)
    usage = apply_tick(empty(), running, PAYERS, WEEK, last=NOON, now=NOON + 300)
    assert [float(amount) for amount in usage.qos.raw] == [1199.5875706540696, 0, 1200]
    later = apply_tick(usage, NOBODY, PAYERS, WEEK, last=NOON + 300, now=NOON + 300 + 7 * DAY)
    assert float(later.qos.raw[KEPT]) == 1200
    assert float(later.qos.tres[KEPT, CPU]) == 1200
    assert float(later.qos.raw[NORMAL]) == raw(later, ALICE) < 600
    # contrary to the manual, a reset spares it not
    assert reset_usage(later).qos.raw.tolist() == [0, 0, 0]


def test_v13_usage_factor_2_charges_twice() -> None:
    running = job(ALICE, NOON, NOON + 600, cpus=10, qos=NORMAL, factor=2.0)
    usage = end_jobs(empty(), running, PAYERS, NEVER, last=NOON, now=NOON + 600)
    assert (
        raw(usage, ALICE),
        float(usage.associations.tres[ALICE, CPU]),
        float(usage.qos.raw[NORMAL]),
    ) == (12000, 12000, 12000)


def test_usage_factor_0_charges_nothing() -> None:
    usage = apply_tick(
        empty(), job(ALICE, NOON, factor=0.0), PAYERS, WEEK, last=NOON, now=NOON + 300
    )
    assert (raw(usage, ROOT), float(usage.associations.wall[ROOT])) == (0, 0)


# --- the two ledgers ---


def test_raw_usage_keeps_fraction_of_billing() -> None:
    usage = apply_tick(
        empty(), job(ALICE, NOON, cpus=20, billable=1.25), PAYERS, NEVER, last=NOON, now=NOON + 100
    )
    assert raw(usage, ALICE) == 125
    assert [float(usage.associations.tres[ALICE, tres]) for tres in (CPU, BILLING)] == [2000, 100]
    assert minutes(usage.associations.tres)[ALICE, [CPU, BILLING]].tolist() == [33, 1]


def test_without_limits_only_raw_usage_and_wall_are_kept() -> None:
    lax = Rules(Decay(), limits=False)
    usage = apply_tick(empty(), job(ALICE, NOON, cpus=4), PAYERS, lax, last=NOON, now=NOON + 300)
    assert raw(usage, ALICE) == 1199.5875706540696
    assert not usage.associations.tres.any()


# --- clocks ---


def test_clock_that_goes_back_is_refused() -> None:
    with pytest.raises(InvalidInput, match="went back by 300 s"):
        apply_tick(empty(), NOBODY, PAYERS, WEEK, last=NOON, now=NOON - 300)


def test_second_tick_at_same_time_changes_nothing() -> None:
    running = job(ALICE, NOON)
    usage = apply_tick(empty(), running, PAYERS, WEEK, last=NOON, now=NOON + 300)
    again = apply_tick(usage, running, PAYERS, WEEK, last=NOON + 300, now=NOON + 300)
    assert again.associations.raw.tolist() == usage.associations.raw.tolist()


def test_first_tick_charges_jobs_from_their_start() -> None:
    usage = apply_tick(empty(), job(ALICE, NOON), PAYERS, NEVER, last=0, now=NOON + 900)
    assert raw(usage, ALICE) == 900
    assert (
        raw(apply_tick(usage, NOBODY, PAYERS, WEEK, last=0, now=NOON + DAY), ALICE) == 900
    )  # nobody knows how long it is to fade


def test_run_time_ends_now_or_at_job_end() -> None:
    jobs = together(
        job(ALICE, NOON),
        job(ALICE, NOON, NOON + 50),
        job(ALICE, NOON, NOON + 150),
        job(ALICE, NOON + 200),
    )
    assert seconds_run(jobs, NOON + 10, NOON + 100).tolist() == [90, 40, 90, 0]


def test_jobs_are_charged_while_slurmctld_is_down() -> None:
    usage = apply_tick(empty(), job(ALICE, NOON), PAYERS, NEVER, last=NOON, now=NOON + DAY)
    assert raw(usage, ALICE) == DAY
