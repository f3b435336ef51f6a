"""Share of a lab and charges of its nodes: the figures of Harvard's page. Source: FASRC."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import SHARES_MAX
from fairbank.core.tres import parse_weights
from fairbank.priority.fairshare.site_shares import (
    Communal,
    Holdings,
    SharedNode,
    ShareSource,
    core_tres,
    node_weights,
    raw_shares,
    requeue_weights,
    shares,
)

GIB = 1024
ONE = Fraction(1)
BROADWELL = SharedNode("b1", 32, ONE, 128 * GIB)
ABU_DHABI = SharedNode("a1", 64, Fraction(1, 4), 256 * GIB)
SKYLAKE = SharedNode("s1", 40, Fraction(6, 5), 192 * GIB)
NODES = {
    node.name: node
    for node in (BROADWELL, ABU_DHABI, SKYLAKE, SharedNode("b2", 32, ONE, 128 * GIB))
}


def holdings(
    *,
    public: frozenset[str] = frozenset(),
    labs: dict[str, tuple[str, ...]] | None = None,
    communal: tuple[Communal, ...] = (),
) -> Holdings:
    return Holdings(NODES, ("lab1", "lab2", "lab3"), public, labs or {}, communal)


# --- what nodes charge ---


@pytest.mark.parametrize(
    ("chip", "gigaflops", "tres"),
    [
        ("AMD Abu Dhabi", "4.15", "0.25"),
        ("Intel Nehalem", "4.15", "0.25"),
        ("Intel Sandy/Ivy Bridge", "8.3", "0.5"),
        ("Intel Haswell/Broadwell", "16.6", "1.0"),
        ("Intel Skylake", "19.92", "1.2"),
    ],
)
def test_charge_per_core_is_relative_to_broadwell(chip: str, gigaflops: str, tres: str) -> None:
    assert core_tres(Fraction(gigaflops), Fraction("16.6")) == Fraction(tres), chip


@pytest.mark.parametrize(
    ("node", "written"),
    [
        (BROADWELL, "CPU=1.0,Mem=0.25G"),
        (ABU_DHABI, "CPU=0.25,Mem=0.0625G"),
        (SKYLAKE, "CPU=1.2,Mem=0.25G"),
    ],
)
def test_memory_of_a_node_costs_as_much_as_its_cores(node: SharedNode, written: str) -> None:
    weights = node_weights(node)
    assert weights == parse_weights(written)
    assert weights["mem"] * node.memory == weights["cpu"] * node.cores == node.tres


def test_requeue_partitions_charge_half() -> None:
    assert requeue_weights(node_weights(BROADWELL)) == parse_weights("CPU=0.5,Mem=0.125G")


# --- what shares are made of ---


def test_share_is_sum_of_gratis_lab_and_communal() -> None:
    result = shares(
        holdings(
            public=frozenset({"a1"}),
            labs={"lab1": ("b1",)},
            communal=(Communal("school", ("s1",), {"lab1": ONE, "lab3": Fraction(3)}),),
        )
    )
    gratis = Fraction(16, 3)
    assert result == {
        "lab1": ShareSource(gratis, Fraction(32), Fraction(12)),
        "lab2": ShareSource(gratis),
        "lab3": ShareSource(gratis, Fraction(0), Fraction(36)),
    }
    assert (
        sum(share.total for share in result.values())
        == ABU_DHABI.tres + BROADWELL.tres + SKYLAKE.tres
    )
    assert raw_shares(result) == {"lab1": 49, "lab2": 5, "lab3": 41}


def test_labs_divide_bought_shares_freely() -> None:
    bought = Communal(
        "dept", ("b1",), {"lab1": Fraction(1, 2), "lab2": Fraction(3, 2), "lab3": Fraction(0)}
    )
    assert [share.communal for share in shares(holdings(communal=(bought,))).values()] == [8, 24, 0]


@pytest.mark.parametrize(
    ("held", "message", "field"),
    [
        (Holdings(NODES, ()), "no accounts", "accounts"),
        (Holdings(NODES, ("lab1", "lab1")), "account lab1 is named twice", "accounts"),
        (holdings(labs={"lab9": ("b1",)}), "no account 'lab9'", "labs"),
        (holdings(labs={"lab1": ("b1", "b1")}), "node b1 is named twice", "labs.lab1"),
        (
            holdings(communal=(Communal("dept", ("b1",), {"lab9": ONE}),)),
            "no account 'lab9'",
            "communal.dept",
        ),
        (holdings(communal=(Communal("dept", ("b1",), {}),)), "the parts of dept", "communal.dept"),
        (
            holdings(communal=(Communal("dept", ("b1",), {"lab1": Fraction(2), "lab2": -ONE}),)),
            "the parts of dept",
            "communal.dept",
        ),
    ],
)
def test_invalid_division_of_shares_is_named(held: Holdings, message: str, field: str) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        shares(held)
    assert refused.value.field == field
    assert re.fullmatch(
        r"give each lab a part of 0 or more, one of them more|name (at least one|each once|one of"
        r" the accounts)",
        refused.value.remedy or "",
    )


def test_too_many_shares_are_refused() -> None:
    assert raw_shares({"lab1": ShareSource(lab=Fraction(SHARES_MAX))}) == {"lab1": SHARES_MAX}
    with pytest.raises(InvalidInput, match="account lab1 would have 2147483647 shares"):
        raw_shares({"lab1": ShareSource(lab=Fraction(SHARES_MAX + 1))})


def test_small_share_stays_positive_and_equal_labs_stay_equal() -> None:
    result = raw_shares(
        {
            "a": ShareSource(Fraction(1, 5)),
            "b": ShareSource(),
            "c": ShareSource(Fraction(5, 2)),
            "d": ShareSource(lab=Fraction(5, 2)),
        }
    )
    assert result == {"a": 1, "b": 0, "c": 3, "d": 3}


cores = st.fractions(0, 10_000, max_denominator=1_000)


@given(cores, cores)
def test_whole_shares_are_within_one_of_the_exact_and_keep_their_order(
    first: Fraction, second: Fraction
) -> None:
    whole = raw_shares({"one": ShareSource(first), "other": ShareSource(lab=second)})
    assert abs(whole["one"] - first) < 1
    assert (whole["one"] <= whole["other"]) if first <= second else (whole["one"] >= whole["other"])
