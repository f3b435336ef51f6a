"""Partitions and the price factor of each QOS."""

from __future__ import annotations

from fractions import Fraction

import pytest

from fairbank.cluster.partition import Cluster, Partition, find_cluster
from fairbank.core.errors import NotFound
from fairbank.core.tres import BillingRule

DARWIN = Cluster(
    "darwin",
    {"standard": Partition("standard", "cpu"), "gpu-v100": Partition("gpu-v100", "gpu")},
    {"idle": Fraction(0), "urgent": Fraction(3, 2)},
)


def test_partition_bills_one_resource_by_the_dearest_tres() -> None:
    assert DARWIN.partition("gpu-v100").resource == "gpu"
    assert DARWIN.partition("standard").billing_rule is BillingRule.MAX_TRES


def test_unknown_partition_is_reported_with_the_known_ones() -> None:
    with pytest.raises(NotFound, match="darwin has no partition 'large'") as no:
        DARWIN.partition("large")
    assert (no.value.field, no.value.remedy) == ("partition", "there are: gpu-v100, standard")
    with pytest.raises(NotFound) as no:
        Cluster("empty", {}).partition("standard")
    assert no.value.remedy == "there are: none"


@pytest.mark.parametrize(
    ("qos", "factor"), [(None, 1), ("", 1), ("normal", 1), ("idle", 0), ("urgent", Fraction(3, 2))]
)
def test_qos_without_a_factor_costs_the_plain_price(qos: str | None, factor: Fraction) -> None:
    assert DARWIN.qos_factor(qos) == factor


def test_unknown_cluster_is_reported_with_the_known_ones() -> None:
    beta = Cluster("beta", {})
    assert find_cluster({"beta": beta}, "beta") is beta
    with pytest.raises(NotFound, match="there is no cluster 'gamma'") as told:
        find_cluster(
            {"beta": beta, "alpha": Cluster("alpha", {})}, "gamma", otherwise="; or go home"
        )
    assert told.value.remedy == "the settings know: alpha, beta; or go home"
