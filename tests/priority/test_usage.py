"""Usage ledger: decay, resets, project chains, and recomputed sums. Source: docs/reference/slurm-
rules.md, "Usage".
"""

from __future__ import annotations

import numpy as np
import pytest

from fairbank.core.errors import InvalidInput
from fairbank.priority.fairshare.decay import Decay
from fairbank.priority.fairshare.tree import DEPTH_MAX
from fairbank.priority.fairshare.usage import (
    DecayedUsage,
    copy_usage,
    decay_usage,
    lines,
    nothing_used,
)
from fairbank.priority.fairshare.usage_ticks import Rules, apply_tick
from tests.priority.accounts import (
    ALICE,
    BOB,
    CAROL,
    CHEM,
    NAMES,
    OPTICS,
    PARENT,
    PAYERS,
    PHYSICS,
    ROOT,
    job,
    together,
)
from tests.priority.recomputed_usage import minutes, rebuilt, zero_usage

NOON = 1_000_000_000


def used() -> DecayedUsage:
    jobs = together(
        job(BOB, NOON, cpus=3), job(ALICE, NOON, cpus=7), job(CAROL, NOON), job(BOB, NOON)
    )
    rules = Rules(Decay())
    usage = zero_usage(PAYERS, len(NAMES))
    return apply_tick(usage, jobs, PAYERS, rules, last=NOON, now=NOON + 123).associations


def test_chains_lead_from_user_to_root_in_job_order() -> None:
    to = lines(np.array([ALICE, -1, BOB]), PARENT)
    assert list(zip(to.job.tolist(), to.row.tolist(), strict=True)) == [
        (0, ALICE),
        (0, PHYSICS),
        (0, ROOT),
        (2, BOB),
        (2, OPTICS),
        (2, PHYSICS),
        (2, ROOT),
    ]


def test_rows_without_parents_are_chains_of_one() -> None:
    assert lines(np.array([2, -1, 0])).row.tolist() == [2, 0]
    assert lines(np.zeros(0, np.int64), PARENT).row.tolist() == []


def test_parents_may_follow_children() -> None:
    assert lines(np.array([0]), np.array([2, -1, 1])).row.tolist() == [0, 2, 1]


def test_chain_of_maximum_depth_is_charged_to_root() -> None:
    parent = np.arange(-1, DEPTH_MAX)
    assert len(lines(np.array([DEPTH_MAX]), parent).row) == DEPTH_MAX + 1
    with pytest.raises(
        InvalidInput, match=f"row {DEPTH_MAX + 1}: {DEPTH_MAX} parents above it and no root"
    ):
        lines(np.array([DEPTH_MAX + 1]), np.arange(-1, DEPTH_MAX + 1))


@pytest.mark.parametrize("parent", [[-1, 1], [-1, 2, 1], [0, 1]])
def test_parents_without_root_are_refused(parent: list[int]) -> None:
    with pytest.raises(InvalidInput, match="row 1: 1000 parents above it and no root") as refused:
        lines(np.array([1]), np.array(parent))
    assert refused.value.field == "parent"


def test_usage_decays_as_long_double() -> None:
    usage = nothing_used(2, 1)
    usage.raw[:] = np.longdouble(1) / 3
    once = decay_usage(usage, 0.9996563088783914)
    assert once.raw[0] == np.longdouble(1) / 3 * np.longdouble(0.9996563088783914)
    assert decay_usage(usage, 0.5, np.array([True, False])).raw.tolist() == [
        usage.raw[0],
        usage.raw[0] / 2,
    ]
    assert decay_usage(usage, 1.0).raw.tolist() == usage.raw.tolist()


def test_sums_rebuilt_from_own_usage_are_equal() -> None:
    before = used()
    own = copy_usage(before)
    for figure in own:
        figure[[ROOT, PHYSICS, OPTICS, CHEM]] = 0
    after = rebuilt(own, PARENT)
    assert after.raw.tolist() == pytest.approx(before.raw.tolist(), rel=1e-15)
    assert after.tres == pytest.approx(before.tres, rel=1e-15)
    assert after.wall.tolist() == pytest.approx(before.wall.tolist(), rel=1e-15)


def test_usage_of_deleted_users_stays_with_account() -> None:
    own = nothing_used(7, 1)
    own.raw[[BOB, OPTICS]] = 5, 2
    assert rebuilt(own, PARENT).raw.tolist() == [7, 7, 0, 7, 5, 0, 0]


def test_minutes_are_truncated() -> None:
    assert minutes(np.array([0, 59, 60, 2**64 - 1], np.uint64)).tolist() == [
        0,
        0,
        1,
        (2**64 - 1) // 60,
    ]
    assert minutes(np.array([59.99, 30059.0, 60.0], np.longdouble)).tolist() == [0, 500, 1]
    assert minutes(np.array([1e300], np.longdouble))[0] >= 2**63
