"""Price of a job, line by line. The nodes are those of the HADM report, "Service Units"."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.bank.pricing import Line, bill, cost
from fairbank.cluster.job import JobRequest
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.errors import NotFound
from fairbank.core.time import parse_duration
from fairbank.core.tres import BillingRule, parse_counts, parse_weights

DARWIN = Cluster(
    "darwin",
    {
        "standard": Partition("standard", "cpu", parse_weights("CPU=1.0,Mem=0.5G")),
        "gpu-v100": Partition(
            "gpu-v100", "gpu", parse_weights("CPU=0.0625,Mem=0.03125G,GRES/gpu=1.0")
        ),
        "plain": Partition("plain", "cpu"),
        "summed": Partition("summed", "cpu", parse_weights("CPU=1.0,Mem=0.5G"), BillingRule.SUM),
    },
    {"idle": Fraction(0), "urgent": Fraction(3, 2)},
)


def job(partition: str, tres: str, limit: str, qos: str | None = None) -> JobRequest:
    return JobRequest("darwin", partition, parse_counts(tres), parse_duration(limit), qos)


@pytest.mark.parametrize(
    ("partition", "tres", "billed"),
    [
        ("standard", "cpu=1,mem=64G", 32),
        ("standard", "cpu=32,mem=1G", 32),
        ("standard", "cpu=64,mem=128G", 64),
        ("gpu-v100", "cpu=16,mem=1G,gpu=1", 1),
        ("gpu-v100", "cpu=1,mem=32G,gpu=1", 1),
        ("gpu-v100", "cpu=1,mem=1G,gpu=1", 1),
        ("gpu-v100", "cpu=16,mem=1G", 1),
        ("gpu-v100", "cpu=1,mem=32G", 1),
        ("gpu-v100", "cpu=1,mem=1G,gpu=4", 4),
        ("plain", "cpu=7,mem=128G", 7),
        ("summed", "cpu=1,mem=64G", 33),
    ],
)
def test_job_is_billed_for_blocked_share_of_node(partition: str, tres: str, billed: int) -> None:
    drawn = bill(job(partition, tres, "60"), DARWIN)
    assert drawn.billing == billed
    assert (drawn.amount, drawn.seconds) == (billed * 60, 3_600)


def test_bill_marks_the_lines_that_set_the_price() -> None:
    drawn = bill(job("standard", "cpu=1,mem=64G", "1-0", "urgent"), DARWIN)
    assert drawn.resource == "cpu"
    assert drawn.lines == (
        Line("cpu", Fraction(1), Fraction(1), Fraction(1), sets_price=False),
        Line("mem", Fraction(65_536), Fraction(1, 2_048), Fraction(32), sets_price=True),
    )
    assert (drawn.factor, drawn.amount) == (Fraction(3, 2), 32 * 24 * 60 * 3 // 2)


def test_free_qos_costs_nothing() -> None:
    assert bill(job("standard", "cpu=64", "7-0", "idle"), DARWIN).amount == 0


def test_unknown_partition_has_no_price() -> None:
    with pytest.raises(NotFound, match="no partition 'large'"):
        bill(job("large", "cpu=1", "60"), DARWIN)


@pytest.mark.parametrize(
    ("units", "factor", "seconds", "minutes"),
    [
        ("1", "1", 55, 1),
        ("1", "1", 60, 1),
        ("1", "1", 61, 2),
        ("0.0625", "1", 960, 1),
        ("3", "0.1", 200, 1),
        ("3", "0.1", 201, 2),
        ("1", "1", 0, 0),
    ],
)
def test_cost_is_exact_and_rounded_up_once(
    units: str, factor: str, seconds: int, minutes: int
) -> None:
    assert cost(Fraction(units), Fraction(factor), seconds) == minutes


counts = st.dictionaries(
    st.sampled_from(["cpu", "mem", "gres/gpu", "license/a"]),
    st.integers(1, 10_000).map(Fraction),  # no memory means all memory of a node
    min_size=1,
)
requests = st.builds(
    JobRequest,
    st.just("darwin"),
    st.sampled_from(sorted(DARWIN.partitions)),
    counts,
    st.integers(0, 10**6),
)


@given(requests, st.sampled_from([None, "urgent", "idle", "normal"]))
def test_price_is_the_sum_of_counted_lines(request: JobRequest, qos: str | None) -> None:
    drawn = bill(
        JobRequest(request.cluster, request.partition, request.counts, request.limit_seconds, qos),
        DARWIN,
    )
    assert sum(line.weighted for line in drawn.lines if line.sets_price) == drawn.billing
    assert all(line.weighted == line.count * line.weight for line in drawn.lines)
    assert 0 <= drawn.amount - drawn.billing * drawn.factor * drawn.seconds / 60 < 1
