"""Factors of priorities: a vector computed by hand, and every variant of every factor."""

from __future__ import annotations

import numpy as np
import pytest

from fairbank.priority.multifactor import combination
from fairbank.priority.multifactor.combination import priorities, sum_as_shown, weigh_factors
from fairbank.priority.multifactor.pending_jobs import NO_QOS, pending, scale
from fairbank.priority.settings import RAW, Flag, MultifactorSettings, PriorityWeights
from tests.priority.cluster import NOW, WEEK, WEIGHTS, cluster, priority, single_job, vector

# --- V12 ---


def test_components_of_the_vector() -> None:
    terms = weigh_factors(vector(), cluster(), MultifactorSettings(weights=WEIGHTS), NOW)
    assert [float(column[0]) for column in terms[:6]] == [
        500.0,
        0.0,
        4084.7886331027494,
        37.50000000000001,
        500.0,
        1000.0,
    ]
    assert [float(column[0]) for column in terms.tres] == [50.0, 100.0]
    assert (terms.site[0], terms.nice[0]) == (50, 100)


def test_priority_of_the_vector_is_truncated() -> None:
    settings = MultifactorSettings(weights=WEIGHTS)
    assert sum_as_shown(weigh_factors(vector(), cluster(), settings, NOW))[0] == 6222.288633102749
    assert priority(vector(), settings) == 6222
    shares = [
        f"{column[0]:.0f}" for column in weigh_factors(vector(), cluster(), settings, NOW)[:6]
    ]
    assert shares == ["500", "0", "4085", "38", "500", "1000"]


def test_harvard_half_age() -> None:
    job = single_job(cluster(), accrued_at=NOW - WEEK // 2)
    assert priority(job, MultifactorSettings(weights=PriorityWeights(age=10_000_000))) == 5_000_000


# --- age ---


@pytest.mark.parametrize(
    ("accrued_at", "expected"),
    [
        (0, 0.0),
        (NOW, 0.0),
        (NOW + 60, 0.0),
        (NOW - 1, 1 / WEEK),
        (NOW - WEEK + 1, (WEEK - 1) / WEEK),
        (NOW - WEEK, 1.0),
        (1, 1.0),
    ],
    ids=["not yet", "now", "clock went back", "a second", "nearly", "whole", "since 1970"],
)
def test_age_grows_to_1(accrued_at: int, expected: float) -> None:
    assert combination.age_factor(np.array([float(accrued_at)]), NOW, WEEK)[0] == expected


def test_max_age_0_counts_every_age_fully() -> None:
    assert list(combination.age_factor(np.array([0.0, NOW - 1.0, NOW + 5.0]), NOW, 0)) == [0, 1, 1]


# --- job size ---


@pytest.mark.parametrize(
    ("nodes", "cpus", "large", "small"),
    [
        (1, 1, 0.053125, 0.946875),
        (10, 160, 1.0, 0.0),
        (2, 16, 0.15, 0.85),
        (1, 8, 0.07500000000000001, 0.925),
        (5, 0, 0.5, 0.5),
    ],
)
def test_job_size_is_the_mean_of_nodes_and_cpus(
    nodes: int, cpus: int, large: float, small: float
) -> None:
    job = single_job(cluster(), nodes=nodes, cpus=cpus)
    assert combination.job_size_factor(job, cluster(), MultifactorSettings())[0] == pytest.approx(
        large, abs=1e-16
    )
    assert combination.job_size_factor(job, cluster(), MultifactorSettings(favour_small=True))[
        0
    ] == pytest.approx(small, abs=2e-16)


@pytest.mark.parametrize(
    ("nodes", "cpus", "minutes", "expected"),
    [
        (1, 1, 60, 0.0016666667),
        (10, 160, 60, 0.0166666667),
        (2, 16, 60, 0.0033333333),
        (10, 160, 1, 1.0),
        (10, 160, 2**32 - 1, 0.0),
    ],
)
def test_job_size_relative_to_time(nodes: int, cpus: int, minutes: int, expected: float) -> None:
    job = single_job(cluster(), nodes=nodes, cpus=cpus, limit_minutes=minutes)
    flags = frozenset({Flag.SMALL_RELATIVE_TO_TIME})
    assert combination.job_size_factor(job, cluster(), MultifactorSettings(flags=flags))[
        0
    ] == pytest.approx(expected, abs=1e-9)
    assert combination.job_size_factor(
        job, cluster(), MultifactorSettings(flags=flags, favour_small=True)
    )[0] == pytest.approx(1 - expected, abs=1e-9)


def test_job_larger_than_the_cluster_counts_as_the_whole_cluster() -> None:
    job = single_job(cluster(), nodes=11, cpus=161)
    assert combination.job_size_factor(job, cluster(), MultifactorSettings())[0] == 1.0


def test_oversized_job_wraps_with_favor_small() -> None:
    job = single_job(cluster(), nodes=11, cpus=161)
    assert (
        combination.job_size_factor(job, cluster(), MultifactorSettings(favour_small=True))[0]
        == 1.0
    )


def test_job_size_is_0_in_empty_cluster() -> None:
    nothing = scale(nodes=0, cpus=0)
    assert (
        combination.job_size_factor(single_job(nothing), nothing, MultifactorSettings())[0] == 0.0
    )


# --- association, partition, QOS, TRES: normalised and raw ---


def test_association_factor_is_relative_to_the_highest() -> None:
    to = cluster(association_max=200)
    job, plain, raw = (
        single_job(to, association=50),
        MultifactorSettings(weights=PriorityWeights(association=8)),
        frozenset({Flag.NO_NORMAL_ASSOC}),
    )
    assert priority(job, plain, to) == 2
    assert (
        priority(job, MultifactorSettings(weights=PriorityWeights(association=8), flags=raw), to)
        == 400
    )
    assert priority(single_job(cluster()), plain) == combination.LOWEST


def test_partition_and_qos_factors_are_relative_to_the_highest() -> None:
    settings = MultifactorSettings(weights=PriorityWeights(partition=100, qos=1_000))
    assert priority(single_job(cluster(), partition=0, qos=0), settings) == 550
    assert priority(single_job(cluster(), partition=1, qos=1), settings) == 1_100
    assert priority(single_job(cluster(), partition=1, qos=NO_QOS), settings) == 100


def test_highest_partition_factor_is_at_least_1() -> None:
    to = scale(nodes=1, cpus=1, partition_factors=[0])
    assert (
        priority(
            single_job(to, nice=-7), MultifactorSettings(weights=PriorityWeights(partition=100)), to
        )
        == 7
    )


def test_qos_of_priority_0_has_factor_0() -> None:
    to = scale(nodes=1, cpus=1, qos_priorities=[0, 0])
    assert (
        priority(single_job(to, qos=1), MultifactorSettings(weights=PriorityWeights(qos=100)), to)
        == 1
    )


def test_unnormalised_factors_match_slurm() -> None:
    """Weights of 1, association priority 100, job factors 10 and 20, QOS 200, a job of one CPU."""
    to = scale(
        nodes=1,
        cpus=4,
        partition_factors=[10, 20],
        qos_priorities=[200],
        association_max=100,
        totals={"cpu": [4, 4]},
    )
    job = pending(to, 2, association=100, partition=[0, 1], qos=0, tres={"cpu": 1})
    settings = MultifactorSettings(
        weights=PriorityWeights(association=1, partition=1, qos=1, tres={"cpu": 1.0}), flags=RAW
    )
    terms = weigh_factors(job, to, settings, NOW)
    assert [
        list(column) for column in (terms.association, terms.partition, terms.qos, terms.tres[0])
    ] == [[100, 100], [10, 20], [200, 200], [1, 1]]
    assert list(priorities(job, to, settings, NOW)) == [311, 321]


def test_tres_missing_in_partition_counts_0() -> None:
    to = cluster(totals={"cpu": [160, 160], "gres/gpu": [0, 8]})
    jobs = pending(to, 2, partition=[0, 1], tres={"gres/gpu": 4})
    settings = MultifactorSettings(weights=PriorityWeights(tres={"gres/gpu": 1_000.0}))
    assert list(priorities(jobs, to, settings, NOW)) == [1, 500]
