"""Composition of factors to one whole number, in one partition and in several; queues that are
refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from benchmarks.priority import plain, plain_rows, plain_scale
from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import NICE_MAX
from fairbank.priority.multifactor import combination
from fairbank.priority.multifactor.combination import priorities, sum_as_shown, weigh_factors
from fairbank.priority.multifactor.pending_jobs import pending, scale
from fairbank.priority.settings import RAW, Flag, MultifactorSettings, PriorityWeights
from tests.priority.cluster import MEMORY, NOW, WEEK, WEIGHTS, cluster, priority, single_job

# --- composition ---


@pytest.mark.parametrize("flag", [None, *sorted(RAW, key=lambda value: value.name)])
def test_each_raw_flag_changes_only_its_factor(flag: Flag | None) -> None:
    to = cluster(association_max=100, totals={"cpu": [160, 160]})
    job = single_job(to, association=50, partition=0, qos=0, tres={"cpu": 16})
    settings = MultifactorSettings(
        weights=PriorityWeights(association=1, partition=1, qos=1, tres={"cpu": 1.0}),
        flags=frozenset({flag} if flag else ()),
    )
    terms = weigh_factors(job, to, settings, NOW)
    raw = {
        Flag.NO_NORMAL_ASSOC: 50,
        Flag.NO_NORMAL_PART: 1,
        Flag.NO_NORMAL_QOS: 5,
        Flag.NO_NORMAL_TRES: 16,
    }
    normal = {
        Flag.NO_NORMAL_ASSOC: 0.5,
        Flag.NO_NORMAL_PART: 0.5,
        Flag.NO_NORMAL_QOS: 0.5,
        Flag.NO_NORMAL_TRES: 0.1,
    }
    expected = {name: raw[name] if name is flag else value for name, value in normal.items()}
    result = (terms.association, terms.partition, terms.qos, terms.tres[0])
    names = (Flag.NO_NORMAL_ASSOC, Flag.NO_NORMAL_PART, Flag.NO_NORMAL_QOS, Flag.NO_NORMAL_TRES)
    assert {name: column[0] for name, column in zip(names, result, strict=True)} == expected


@pytest.mark.parametrize(
    ("site", "nice", "expected"),
    [(0, 0, 1), (0, 1, 1), (5, 0, 5), (5, 4, 1), (0, -3, 3), (NICE_MAX, -NICE_MAX, 2 * NICE_MAX)],
)
def test_site_is_added_and_nice_subtracted_with_minimum_1(
    site: int, nice: int, expected: int
) -> None:
    assert priority(single_job(cluster(), site=site, nice=nice), MultifactorSettings()) == expected


def test_priority_is_truncated() -> None:
    sums = np.array(
        [-1e300, 0.0, 0.999, 1.0, 1.999, 4294967294.99, 4294967295.0, 4294967295.5, 1e300, np.inf]
    )
    assert list(combination.cut(sums)) == [
        1,
        1,
        1,
        1,
        1,
        4294967294,
        4294967295,
        4294967295,
        4294967295,
        4294967295,
    ]


def test_terms_are_added_from_left_to_right() -> None:
    """In another order 0.7 + 0.7 + 0.6 is a little less than 2, and then truncated to 1."""
    to = cluster(association_max=10, totals={"cpu": [10, 10]})
    job = single_job(to, association=7, fairshare=0.7, tres={"cpu": 6})
    settings = MultifactorSettings(
        weights=PriorityWeights(association=1, fairshare=1, tres={"cpu": 1.0})
    )
    assert priority(job, settings, to) == 2
    assert sum_as_shown(weigh_factors(job, to, settings, NOW))[0] == 2.0


def test_without_slurmdbd_age_and_fair_share_are_0() -> None:
    job = single_job(cluster(), accrued_at=NOW - WEEK, fairshare=1.0, partition=1)
    weights = PriorityWeights(age=1_000, fairshare=1_000, partition=10)
    assert priority(job, MultifactorSettings(weights=weights)) == 2_010
    assert priority(job, MultifactorSettings(weights=weights, accounted=False)) == 10


def test_queue_matches_scalar_computation() -> None:
    random = np.random.default_rng(7)
    to, count = cluster(association_max=9), 70_001
    jobs = pending(
        to,
        count,
        accrued_at=NOW - random.integers(-9, 2 * WEEK, count),
        association=random.integers(0, 10, count),
        fairshare=random.random(count),
        nodes=random.integers(1, 12, count),
        cpus=random.integers(0, 170, count),
        nice=random.integers(-1_000, 1_000, count),
        site=random.integers(-1_000, 1_000, count),
        partition=random.integers(0, 2, count),
        qos=random.integers(-1, 2, count),
        tres={"cpu": random.integers(0, 160, count), "mem": random.integers(0, MEMORY, count)},
    )
    settings = MultifactorSettings(weights=WEIGHTS)
    together = priorities(jobs, to, settings, NOW)
    plainly = [plain(row, plain_scale(to, settings), settings, NOW) for row in plain_rows(jobs)]
    assert together.tolist() == plainly


# --- bad input ---


BAD: Mapping[str, tuple[dict[str, Any], str]] = {
    "not a number": ({"fairshare": [0.5, float("nan")]}, "fairshare[1]"),
    "above one": ({"fairshare": [1.5, 0.5]}, "fairshare[0]"),
    "infinite": ({"cpus": float("inf")}, "cpus[0]"),
    "negative": ({"nodes": [1, -1]}, "nodes[1]"),
    "too long a column": ({"nice": [1, 2, 3]}, "nice"),
    "no number": ({"nice": "polite"}, "nice"),
    "nicer than Slurm": ({"nice": 2**31 - 2}, "nice[0]"),
    "site factor out of range": ({"site": [0, -(2**31) + 2]}, "site[1]"),
    "no such partition": ({"partition": [0, 2]}, "partition[1]"),
    "no such QOS": ({"qos": [2, 0]}, "qos[0]"),
    "above the highest association": ({"association": 1}, "association[0]"),
    "no minutes": ({"limit_minutes": 0}, "limit_minutes[0]"),
    "no such TRES": ({"tres": {"gres/gpu": 1}}, "tres"),
    "a TRES of no number": ({"tres": {"mem": [1, float("nan")]}}, "tres[mem][1]"),
}


@pytest.mark.parametrize("case", BAD)
def test_invalid_row_is_named(case: str) -> None:
    columns, field = BAD[case]
    with pytest.raises(InvalidInput) as raised:
        pending(cluster(), 2, **columns)
    assert raised.value.field == field
    assert re.fullmatch(
        r"from -?\d+ to \d+(\.\d+e\+\d+)?|give one number, or one for each row|one of cpu, mem",
        raised.value.remedy or "",
    )


def test_invalid_scale_is_named() -> None:
    with pytest.raises(InvalidInput) as raised:
        scale(nodes=1, cpus=-1)
    assert raised.value.field == "cpus"
    with pytest.raises(InvalidInput) as raised:
        scale(nodes=1, cpus=1, partition_factors=[1, 2], totals={"mem": [1, float("inf")]})
    assert raised.value.field == "totals[mem][1]"


def test_weight_of_unknown_tres_is_reported() -> None:
    with pytest.raises(InvalidInput, match="gres/gpu is weighted") as raised:
        priority(
            single_job(cluster()),
            MultifactorSettings(weights=PriorityWeights(tres={"gres/gpu": 1.0})),
        )
    assert raised.value.field == "PriorityWeightTRES"
