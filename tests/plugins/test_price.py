"""Lua and the bank ask the same price, to the SU-minute, and the remedies are true."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairbank.bank.charge import bill, longest_paid
from fairbank.cluster.job import JobRequest
from fairbank.cluster.partition import Cluster
from fairbank.core.tres import BillingRule, parse_counts
from fairbank.core.units import show_shortfall, show_su
from fairbank.slurm.policy_file import PolicyPartition, SubmissionPolicy, render
from tests.plugins.interpreter import Lua
from tests.plugins.policies import CENTRE, CPU, GPU, GPU_T4, LONG, places

# The jobs of tests/slurm/test_jobs.py, whose billing Slurm itself has told, and what HADM's paper has.
EXAMPLES = [
    (CPU, "cpu=1,mem=64G,node=1", 60, "normal"),
    (CPU, "cpu=32,mem=1G,node=1", 60, "normal"),
    (CPU, "cpu=4,mem=2G,node=1", 7, "high"),
    (CPU, "cpu=1,mem=1000,node=1", 1, "low"),
    (GPU, "cpu=16,mem=64G,gres/gpu=2,node=1", 30, "normal"),
    (GPU, "cpu=8,mem=160G,gres/gpu=1,node=1", 10_080, "high"),
    (GPU_T4, "cpu=1,mem=1G,node=1", 1, "low"),
    (GPU_T4, "cpu=16,mem=96G,gres/gpu=1,node=2", 59, "normal"),
    (LONG, "cpu=64,mem=1T", 525_600, "high"),
]


def cluster_of(policy: SubmissionPolicy) -> Cluster:
    return Cluster(
        "lab",
        {place.partition.name: place.partition for place in policy.partitions},
        policy.qos_factors,
    )


def asked(
    lua: Lua,
    policy: SubmissionPolicy,
    place: PolicyPartition,
    counts: Mapping[str, Fraction],
    qos: str,
    minutes: int,
) -> Any:
    """Lua's policy, partition and counts."""
    read = lua.module("policy_file").parse(render(policy))
    held = lua.table(**{name: int(count) for name, count in counts.items()})
    return read, read.places[place.partition.name], held, qos, minutes


@pytest.mark.parametrize(("place", "counts", "minutes", "qos"), EXAMPLES)
def test_the_price_is_the_banks(
    lua: Lua, place: PolicyPartition, counts: str, minutes: int, qos: str
) -> None:
    held = parse_counts(counts)
    truth = bill(
        JobRequest("lab", place.partition.name, held, minutes * 60, qos), cluster_of(CENTRE)
    ).amount
    assert lua.module("price").amount(*asked(lua, CENTRE, place, held, qos, minutes)) == truth


_counts = st.dictionaries(
    st.sampled_from(["cpu", "mem", "node", "gres/gpu", "gres/gpu:a100"]),
    st.integers(0, 10**6).map(Fraction),
)


@given(
    place=places,
    counts=_counts,
    minutes=st.integers(1, 20_000),
    adding=st.sampled_from(BillingRule),
    qos=st.sampled_from(["high", "low", "x"]),
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_price_is_the_banks(
    lua: Lua,
    place: PolicyPartition,
    counts: dict[str, Fraction],
    minutes: int,
    adding: BillingRule,
    qos: str,
) -> None:
    place = msgspec.structs.replace(
        place, partition=msgspec.structs.replace(place.partition, billing_rule=adding)
    )
    policy = msgspec.structs.replace(CENTRE, projects=(), balances=(), partitions=(place,))
    truth = bill(
        JobRequest("lab", place.partition.name, counts, minutes * 60, qos), cluster_of(policy)
    ).amount
    if truth < 2**53:
        assert lua.module("price").amount(*asked(lua, policy, place, counts, qos, minutes)) == truth


@pytest.mark.parametrize(("place", "counts", "minutes", "qos"), EXAMPLES)
@pytest.mark.parametrize(
    "share", [Fraction(0), Fraction(1, 100), Fraction(1, 3), Fraction(99, 100)]
)
def test_what_is_said_to_fit_does_and_no_more_would(
    lua: Lua, place: PolicyPartition, counts: str, minutes: int, qos: str, share: Fraction
) -> None:
    price, held = lua.module("price"), parse_counts(counts)
    whole = bill(
        JobRequest("lab", place.partition.name, held, minutes * 60, qos), cluster_of(CENTRE)
    )
    left = int(whole.amount * share)
    where = asked(lua, CENTRE, place, held, qos, minutes)
    assert price.longest(*where, left) == min(
        longest_paid(whole.billing * whole.factor, left) // 60, minutes - 1 or 0
    )
    less = price.smaller(*where, left)
    if less is not None:
        smaller = {**held, **{name: Fraction(int(count)) for name, count in less.items()}}
        assert all(0 < smaller[name] < held[name] for name in dict(less))
        assert (
            bill(
                JobRequest("lab", place.partition.name, smaller, minutes * 60, qos),
                cluster_of(CENTRE),
            ).amount
            <= left
        )


@pytest.mark.parametrize("minutes", [0, 1, 25, 59, 60, 90, -90, -25, 3600, 7_200_000, 10**13 + 1])
@pytest.mark.parametrize("down", [True, False])
def test_amounts_look_as_they_do_elsewhere(lua: Lua, minutes: int, down: bool) -> None:
    assert lua.module("price").show(minutes, down) == show_su(minutes, down=down)


@pytest.mark.parametrize(
    ("price", "left"),
    [
        (46_080, 37_789),
        (61, 0),
        (61, 59),
        (25, 24),
        (90, -25),
        (60, 0),
        (10**12 + 1, 10**12 - 1),
        (1, 1),
        (1, 2),
    ],
)
def test_what_is_lacking_looks_as_in_the_banks_own_refusals(
    lua: Lua, price: int, left: int
) -> None:
    assert lua.module("price").show_short(price, left) == show_shortfall(price, left)


@given(price=st.integers(0, 10**12), left=st.integers(-(10**12), 10**12))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_is_lacking_looks_as_in_the_banks_own_refusals(
    lua: Lua, price: int, left: int
) -> None:
    assert lua.module("price").show_short(price, left) == show_shortfall(price, left)
