"""Billing in Slurm's doubles. Source: docs/reference/slurm-rules.md, "Billing"."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import STATIC_TRES
from fairbank.core.tres import BillingRule, billing, parse_counts, parse_weights
from fairbank.priority.fairshare.columns import Doubles, Wholes
from tests.priority.double_billing import NO_CONSUME, billable, limit_counts, prices, whole

SUM, MAX, MAX_GRES = BillingRule.SUM, BillingRule.MAX_TRES, BillingRule.MAX_TRES_GRES
NAMES = (*STATIC_TRES, "gres/gpu", "license/a", "bb/cray")
V11 = "CPU=1.0,Mem=0.25G,GRES/gpu=2.0,license/a=1.5"
DARWIN = "CPU=1.0,Mem=0.5G"
DARWIN_GPU = "CPU=0.0625,Mem=0.03125G,GRES/gpu=1.0"
REQUEUE = "CPU=0.5,Mem=0.125G"


def counts(*jobs: str) -> Wholes:
    """Return a row for each job, in the order of NAMES."""
    read = [parse_counts(job) for job in jobs]
    return np.array([[int(job.get(name, 0)) for name in NAMES] for job in read], np.uint64)


def billed(weights: str | None, adding: BillingRule, *jobs: str) -> Doubles:
    table = prices(NAMES, [parse_weights(weights) if weights else None], adding)
    return billable(counts(*jobs), np.zeros(len(jobs), np.int64), table)


@pytest.mark.parametrize(
    ("weights", "job", "by_sum", "by_max", "by_max_gres"),
    [
        (V11, "cpu=1,mem=8G", 3.0, 2.0, 2.0),
        (V11, "cpu=1,mem=8G,license/a=1", 4.5, 3.5, 3.5),
        (V11, "cpu=1,mem=10G,license/a=1", 5.0, 4.0, 4.0),
        (V11, "cpu=1,mem=8G,gres/gpu=1", 5.0, 2.0, 4.0),
        (DARWIN, "cpu=1,mem=64G", 33.0, 32.0, 32.0),
        (DARWIN, "cpu=32,mem=1G", 32.5, 32.0, 32.0),
        (DARWIN, "cpu=64,mem=128G", 128.0, 64.0, 64.0),
        (DARWIN_GPU, "cpu=16,mem=32G,gpu=1", 3.0, 1.0, 2.0),
        (DARWIN_GPU, "cpu=20,mem=10G,gpu=1", 2.5625, 1.25, 2.25),
        (DARWIN_GPU, "cpu=1,mem=1G,gpu=4", 4.09375, 4.0, 4.0625),
        (REQUEUE, "cpu=4,mem=16G", 4.0, 2.0, 2.0),
    ],
)
def test_figures_of_v11(
    weights: str, job: str, by_sum: float, by_max: float, by_max_gres: float
) -> None:
    assert [billed(weights, adding, job)[0] for adding in (SUM, MAX, MAX_GRES)] == [
        by_sum,
        by_max,
        by_max_gres,
    ]


def test_shown_and_limited_billing_is_truncated() -> None:
    units = np.concatenate(
        [billed(V11, SUM, "cpu=1,mem=8G,license/a=1"), billed(V11, MAX, "cpu=1,mem=8G,license/a=1")]
    )
    assert whole(units).tolist() == [4, 3]
    assert whole(billed(DARWIN_GPU, MAX, "cpu=20,mem=10G,gpu=1")).tolist() == [1]


def test_without_weights_a_job_bills_its_cpus() -> None:
    assert [billed(None, adding, "cpu=7,mem=128G,gpu=2")[0] for adding in BillingRule] == [
        7.0,
        7.0,
        7.0,
    ]


def test_each_partition_has_its_own_weights() -> None:
    table = prices(NAMES, [parse_weights(DARWIN), None, parse_weights(REQUEUE)], SUM)
    jobs = counts(*["cpu=4,mem=16G"] * 4)
    assert billable(jobs, np.array([2, 1, 0, 1]), table).tolist() == [4.0, 4.0, 12.0, 4.0]


def test_burst_buffer_and_license_are_added_under_every_rule() -> None:
    assert [
        billed("bb/cray=1G,CPU=1,license/a=1", adding, "cpu=1,bb/cray=2G,license/a=3")[0]
        for adding in BillingRule
    ] == [6.0, 6.0, 6.0]


def test_billing_and_unconsumed_tres_are_not_billed() -> None:
    job = counts("cpu=2,billing=50")
    job[0, NAMES.index("license/a")] = NO_CONSUME
    table = prices(NAMES, [parse_weights("CPU=1,billing=1,license/a=1")], SUM)
    assert billable(job, np.zeros(1, np.int64), table).tolist() == [2.0]


def test_usage_ledger_omits_energy_and_truncates_billing() -> None:
    job = counts("cpu=2,mem=1G,energy=900,billing=50")
    job[0, NAMES.index("license/a")] = NO_CONSUME
    held = limit_counts(job, np.array([2.75]), NAMES)
    assert dict(zip(NAMES, held[0].tolist(), strict=True)) == dict.fromkeys(NAMES, 0) | {
        "cpu": 2,
        "mem": 1024,
        "billing": 2,
    }
    assert job[0, NAMES.index("energy")] == 900


def test_weights_are_summed_in_the_order_of_slurms_ids() -> None:
    # 0.1 + 0.2 + 0.3 is 0.6000000000000001 in doubles, 0.3 + 0.2 + 0.1 is 0.6
    assert (
        billed("mem=0.2,node=0.3,cpu=0.1", SUM, "cpu=1,mem=1M,node=1")[0]
        == 0.1 + 0.2 + 0.3
        != 0.3 + 0.2 + 0.1
    )


@pytest.mark.parametrize(
    ("text", "suffixed"),
    [
        ("Mem=0.3G", 0.3 / 1024),
        ("Mem=0.7T", 0.7 / 1048576),
        ("CPU=0.3K", 0.3 / 1024),
        ("Mem=0.3K", 0.3),
    ],
)
def test_weight_with_suffix_is_divided_as_double(text: str, suffixed: float) -> None:
    assert prices(NAMES, [parse_weights(text)], SUM).weights.max() == suffixed


# --- bad input ---


@pytest.mark.parametrize(
    "text", ["CPU=nan", "CPU=inf", "CPU=-1", "CPU=1e400", "CPU=1,Disk=2", "CPU"]
)
def test_invalid_weight_invalidates_the_string(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_weights(text, field="TRESBillingWeights")
    assert refused.value.field == "TRESBillingWeights"
    assert re.fullmatch(
        r"known are cpu, mem, .*|write for example cpu=8,mem=16G,gres/gpu=1",
        refused.value.remedy or "",
    )


@pytest.mark.parametrize("weight", [Fraction(10) ** 400, Fraction(-1), float("nan"), float("inf")])
def test_weight_beyond_double_names_its_partition(weight: Fraction) -> None:
    with pytest.raises(InvalidInput, match="partition row 1: .* is not a weight for cpu"):
        prices(NAMES, [None, {"cpu": weight}], SUM)


def test_weight_of_uncounted_tres_is_refused() -> None:
    with pytest.raises(InvalidInput, match="partition row 0 has a weight for gres/tpu") as refused:
        prices(NAMES, [parse_weights("gres/tpu=1")], SUM)
    assert refused.value.remedy is not None
    assert refused.value.remedy.startswith("add it to AccountingStorageTRES")


@pytest.mark.parametrize("units", [-1.0, 2.0**64, float("nan"), float("inf")])
def test_counts_beyond_maximum_name_their_row(units: float) -> None:
    with pytest.raises(InvalidInput, match="row 2 bills"):
        whole(np.array([0.0, 2.0**63, units]))


# --- properties ---

amounts = st.integers(0, 2**53)
weighing = st.fractions(0, 1000, max_denominator=10_000)


@st.composite
def jobs_and_weights(draw: st.DrawFn) -> tuple[list[list[int]], dict[str, Fraction]]:
    jobs = draw(
        st.lists(
            st.lists(amounts, min_size=len(NAMES), max_size=len(NAMES)), min_size=1, max_size=5
        )
    )
    return jobs, draw(st.dictionaries(st.sampled_from(NAMES), weighing, min_size=1))


@settings(max_examples=40)
@given(jobs_and_weights(), st.sampled_from(BillingRule))
def test_bank_and_slurm_differ_only_in_rounding(
    drawn: tuple[list[list[int]], dict[str, Fraction]], adding: BillingRule
) -> None:
    jobs, weights = drawn
    ours = billable(
        np.array(jobs, np.uint64), np.zeros(len(jobs), np.int64), prices(NAMES, [weights], adding)
    )
    exact = [
        float(
            billing(
                {name: Fraction(n) for name, n in zip(NAMES, job, strict=True)}, weights, adding
            )
        )
        for job in jobs
    ]
    assert ours.tolist() == pytest.approx(exact, rel=1e-12)


@settings(max_examples=30)
@given(jobs_and_weights(), st.integers(0, len(NAMES) - 1))
def test_billing_is_monotonic_and_rules_are_ordered(
    drawn: tuple[list[list[int]], dict[str, Fraction]], place: int
) -> None:
    jobs, weights = drawn
    held, nowhere = np.array(jobs, np.uint64), np.zeros(len(jobs), np.int64)
    more = held.copy()
    more[:, place] += np.uint64(1)
    billed_by_rule = [
        billable(held, nowhere, prices(NAMES, [weights], adding)) for adding in (SUM, MAX_GRES, MAX)
    ]
    assert (billed_by_rule[0] * (1 + 1e-12) >= billed_by_rule[1]).all()
    assert (billed_by_rule[1] * (1 + 1e-12) >= billed_by_rule[2]).all()
    for adding, before in zip((SUM, MAX_GRES, MAX), billed_by_rule, strict=True):
        assert (billable(more, nowhere, prices(NAMES, [weights], adding)) >= before).all()


def test_largest_counts_and_weights_stay_finite() -> None:
    held = np.full((1, len(NAMES)), 2**64 - 3, np.uint64)
    everything = {name: Fraction(10**15) for name in NAMES}
    assert np.isfinite(
        billable(held, np.zeros(1, np.int64), prices(NAMES, [everything], SUM))
    ).all()
