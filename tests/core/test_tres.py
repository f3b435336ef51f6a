"""TRES and their weights. Some figures are those of TRESBillingWeights and PriorityFlags in
slurm.conf(5).
"""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.tres import (
    BillingRule,
    billing,
    parse_counts,
    parse_quantities,
    parse_weights,
    price_setting_tres,
    tres_name,
)

SUM, MAX, MAX_GRES = BillingRule.SUM, BillingRule.MAX_TRES, BillingRule.MAX_TRES_GRES
GIB = 1024


# --- names ---


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("cpu", "cpu"),
        ("CPU", "cpu"),
        ("Mem", "mem"),
        ("node", "node"),
        ("energy", "energy"),
        ("GRES/gpu", "gres/gpu"),
        ("gres/gpu:a100", "gres/gpu:a100"),
        ("gpu", "gres/gpu"),
        ("GPU:A100", "gres/gpu:a100"),
        ("license/a", "license/a"),
        ("bb/cray", "bb/cray"),
        ("fs/disk", "fs/disk"),
        ("license/ansys@flex1", "license/ansys@flex1"),
        ("gres/gpu:2080ti", "gres/gpu:2080ti"),
        ("GRES/gpu:1g.10gb", "gres/gpu:1g.10gb"),
    ],
)
def test_each_tres_has_one_spelling(text: str, name: str) -> None:
    assert tres_name(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cpus",
        "memory",
        "gres",
        "gres/",
        "license/",
        "gpus",
        "gpux",
        "cpu ",
        "cpu\n",
        "ram",
        "\u00b5",
        "gres/a b",
        "gres/a,b",
        "license/a=1",
        "license/\x7f",
    ],
)
def test_unknown_tres_is_rejected(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a TRES") as no:
        tres_name(text)
    assert "gres/NAME" in str(no.value.remedy)


# --- counts ---


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("cpu=4", {"cpu": 4}),
        ("cpu=4,mem=16G,gres/gpu=1", {"cpu": 4, "mem": 16 * GIB, "gres/gpu": 1}),
        ("mem=512", {"mem": 512}),
        ("mem=512M", {"mem": 512}),
        ("mem=2048K", {"mem": 2}),
        ("mem=1T", {"mem": GIB**2}),
        ("mem=1GB", {"mem": GIB}),
        ("mem=1.5g", {"mem": 1536}),
        ("bb/cray=1P", {"bb/cray": GIB**3}),
        ("cpu=1K", {"cpu": 1024}),
        ("cpu=.5", {"cpu": Fraction(1, 2)}),
        ("cpu=4, mem=1G", {"cpu": 4, "mem": GIB}),
        ("GPU=2", {"gres/gpu": 2}),
        ("gpu:a100=2,gpu:t4=1", {"gres/gpu": 3, "gres/gpu:a100": 2, "gres/gpu:t4": 1}),
        ("gpu:a100=2,gpu=4", {"gres/gpu": 4, "gres/gpu:a100": 2}),
        ("gres/gpu:1g.10gb=2", {"gres/gpu": 2, "gres/gpu:1g.10gb": 2}),
        ("gres/shard:t4=8,gpu=1", {"gres/shard": 8, "gres/shard:t4": 8, "gres/gpu": 1}),
        ("license/ansys:flex=1", {"license/ansys:flex": 1}),
    ],
)
def test_counts_as_slurm_prints_them(text: str, counts: dict[str, int]) -> None:
    assert parse_counts(text) == counts


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ",",
            "cpu",
            "cpu=",
            "=4",
            "cpu=4,",
            "cpu=-1",
            "cpu=+1",
            "cpu=1e3",
            "cpu=1.",
            "cpu=.",
            "cpu=0x4",
            "cpu=nan",
            "cpu=inf",
            "cpu==4",
        ),
        *(
            "cpu=4;mem=1",
            "cpu = 4",
            "cpu=4 4",
            "mem=1X",
            "mem=1GX",
            "mem=1GiB",
            "mem=1BG",
            "cpu=\u0664",
            "foo=1",
            "cpu=4,CPU=4",
            "gpu=1,gres/gpu=1",
        ),
        "cpu=" + "9" * 19,
    ],
)
def test_other_texts_are_no_counts(text: str) -> None:
    with pytest.raises(InvalidInput) as no:
        parse_counts(text, field="tres")
    assert no.value.field == "tres"
    assert re.fullmatch(
        r"at most 18 digits|give each TRES once|known are cpu, mem, .*|use K, M, G, T or P|write"
        r" for example cpu=8,mem=16G,gres/gpu=1",
        no.value.remedy or "",
    )


names = st.sampled_from(
    ["cpu", "mem", "node", "gres/gpu", "gres/gpu:a100", "license/a", "bb/cray", "fs/disk"]
)
numbers = st.decimals(0, 10**12, places=6)


@given(st.dictionaries(names, numbers, min_size=1))
def test_what_is_written_is_counted(written: dict[str, object]) -> None:
    text = ",".join(f"{name}={number:f}" for name, number in written.items())
    quantities = {name: Fraction(str(number)) for name, number in written.items()}
    assert parse_quantities(text, field="tres") == parse_weights(text) == quantities
    # A type counts as its GRES too, unless the text has that count.
    of_types = {"gres/gpu": quantities.get("gres/gpu:a100")} if "gres/gpu:a100" in written else {}
    assert parse_counts(text) == of_types | quantities


def test_gpus_by_type_cost_the_same_with_and_without_their_sum() -> None:
    weights = parse_weights("CPU=1.0,GRES/gpu=12")
    for by_type in ("gres/gpu:a100=2", "gres/gpu:a100=1,gres/gpu:1g.10gb=1"):
        for text in (f"cpu=1,{by_type}", f"cpu=1,{by_type},gres/gpu=2"):
            assert billing(parse_counts(text), weights, BillingRule.SUM) == 25


@given(st.text(max_size=20) | st.text("cpume=0123456789.,KMGTPB/", max_size=20))
def test_any_text_is_read_or_malformed(text: str) -> None:
    for read in (parse_counts, parse_weights):
        try:
            assert all(number >= 0 for number in read(text).values())
        except InvalidInput as no:
            assert no.field in ("tres", "weights")


# --- weights ---


@pytest.mark.parametrize(
    ("text", "name", "weight"),
    [
        ("CPU=1.0", "cpu", Fraction(1)),
        ("Mem=0.25G", "mem", Fraction(1, 4 * GIB)),
        ("Mem=0.5M", "mem", Fraction(1, 2)),
        ("Mem=0.5", "mem", Fraction(1, 2)),
        ("Mem=1K", "mem", Fraction(1)),
        ("Mem=1T", "mem", Fraction(1, GIB**2)),
        ("Mem=0.25g", "mem", Fraction(1, 4 * GIB)),
        ("Mem=0.25GB", "mem", Fraction(1, 4 * GIB)),
        ("Mem=0.25Gx", "mem", Fraction(1, 4 * GIB)),
        ("bb/cray=1G", "bb/cray", Fraction(1, GIB)),
        ("CPU=1K", "cpu", Fraction(1, GIB)),
        ("CPU=1M", "cpu", Fraction(1, GIB**2)),
        ("GRES/gpu=2.0", "gres/gpu", Fraction(2)),
        ("license/a=1.5", "license/a", Fraction(3, 2)),
        ("CPU=0", "cpu", Fraction(0)),
    ],
)
def test_weights_with_slurms_suffix_rule(text: str, name: str, weight: Fraction) -> None:
    assert parse_weights(text) == {name: weight}


def test_tenth_is_a_tenth() -> None:
    assert parse_weights("CPU=0.1") == {"cpu": Fraction(1, 10)}


@pytest.mark.parametrize(
    "text",
    [
        "CPU=1.0,foo=1",
        "CPU=1.0,Mem=x",
        "CPU=1.0,Mem=1X",
        "CPU=1.0,",
        "CPU=-1",
        "CPU=1,cpu=1",
        "CPU",
    ],
)
def test_one_bad_weight_invalidates_all_as_in_slurm(text: str) -> None:
    with pytest.raises(InvalidInput) as no:
        parse_weights(text)
    assert no.value.field == "weights"


# --- adding up ---

SLURMS_EXAMPLE = "CPU=1.0,Mem=0.25G,GRES/gpu=2.0,license/a=1.5"
CPU_NODES = "CPU=1.0,Mem=0.5G"  # 64 cores and 128 GiB a node: HADM, "Service Units"
GPU_NODES = "CPU=0.0625,Mem=0.03125G,GRES/gpu=1.0"  # with four devices a node


@pytest.mark.parametrize(
    ("weights", "job", "by_sum", "by_max", "by_max_gres"),
    [
        (SLURMS_EXAMPLE, "cpu=1,mem=8G", "3", "2", "2"),
        (SLURMS_EXAMPLE, "cpu=1,mem=8G,license/a=1", "4.5", "3.5", "3.5"),
        (SLURMS_EXAMPLE, "cpu=1,mem=10G,license/a=1", "5", "4", "4"),
        (SLURMS_EXAMPLE, "cpu=1,mem=8G,gres/gpu=1", "5", "2", "4"),
        (CPU_NODES, "cpu=1,mem=64G", "33", "32", "32"),
        (CPU_NODES, "cpu=32,mem=1G", "32.5", "32", "32"),
        (CPU_NODES, "cpu=64,mem=128G", "128", "64", "64"),
        (GPU_NODES, "cpu=16,mem=32G,gpu=1", "3", "1", "2"),
        (GPU_NODES, "cpu=20,mem=10G,gpu=1", "2.5625", "1.25", "2.25"),
        (GPU_NODES, "cpu=1,mem=1G,gpu=4", "4.09375", "4", "4.0625"),
        (GPU_NODES, "cpu=16", "1", "1", "1"),
        (GPU_NODES, "mem=32G", "1", "1", "1"),
        (GPU_NODES, "gpu=1", "1", "1", "1"),
        ("CPU=0.5,Mem=0.125G", "cpu=4,mem=16G", "4", "2", "2"),
        ("license/a=1.5,fs/disk=1", "cpu=4,license/a=2", "3", "3", "3"),
        ("CPU=1.0", "mem=16G", "0", "0", "0"),
        (
            "CPU=1.0,gres/gpu=1,gres/gpu:a100=3,node=5",
            "cpu=2,gpu=2,gpu:a100=2,node=1",
            "15",
            "6",
            "13",
        ),
    ],
)
def test_slurms_three_ways_of_adding_up(
    weights: str, job: str, by_sum: str, by_max: str, by_max_gres: str
) -> None:
    counts, prices = parse_counts(job), parse_weights(weights)
    assert [billing(counts, prices, adding) for adding in (SUM, MAX, MAX_GRES)] == [
        Fraction(text) for text in (by_sum, by_max, by_max_gres)
    ]


@pytest.mark.parametrize("adding", BillingRule)
@pytest.mark.parametrize("weights", [None, {}])
def test_without_weights_a_job_bills_its_cpus(
    weights: dict[str, Fraction] | None, adding: BillingRule
) -> None:
    assert billing(parse_counts("cpu=7,mem=100G"), weights, adding) == 7
    assert billing(parse_counts("mem=100G"), weights, adding) == 0


def test_billing_itself_is_never_weighted() -> None:
    assert billing(parse_counts("cpu=1,billing=99"), parse_weights("cpu=1,billing=5"), SUM) == 1


def test_tres_that_set_the_price() -> None:
    weighted = {
        "cpu": Fraction(1),
        "mem": Fraction(2),
        "gres/gpu": Fraction(3),
        "license/a": Fraction(1),
    }
    assert price_setting_tres(weighted, SUM) == frozenset(weighted)
    assert price_setting_tres(weighted, MAX) == {"gres/gpu", "license/a"}
    assert price_setting_tres(weighted, MAX_GRES) == {"mem", "gres/gpu", "license/a"}
    assert price_setting_tres({}, MAX) == frozenset()


weightings = st.dictionaries(names, st.fractions(0, 100), min_size=1)
jobs = st.dictionaries(names, st.fractions(0, 1000))


@given(jobs, weightings)
def test_maximum_is_never_dearer_than_the_sum(
    counts: dict[str, Fraction], weights: dict[str, Fraction]
) -> None:
    dearest, gres_apart, everything = (
        billing(counts, weights, adding) for adding in (MAX, MAX_GRES, SUM)
    )
    assert 0 <= dearest <= gres_apart <= everything


@given(jobs, weightings, st.sampled_from(BillingRule), st.integers(0, 9))
def test_twice_the_job_is_twice_the_price(
    counts: dict[str, Fraction], weights: dict[str, Fraction], adding: BillingRule, times: int
) -> None:
    larger = {name: count * times for name, count in counts.items()}
    assert billing(larger, weights, adding) == times * billing(counts, weights, adding)


@given(jobs, weightings, st.sampled_from(BillingRule))
def test_order_changes_no_price(
    counts: dict[str, Fraction], weights: dict[str, Fraction], adding: BillingRule
) -> None:
    turned = dict(reversed(weights.items()))
    assert billing(counts, weights, adding) == billing(
        dict(reversed(counts.items())), turned, adding
    )


def test_too_long_number_is_reported() -> None:
    with pytest.raises(InvalidInput, match="the number in 'cpu=99999999999999999999' is too long"):
        parse_counts("cpu=99999999999999999999")
