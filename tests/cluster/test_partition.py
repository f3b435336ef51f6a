"""Partitions and the price factor of each QOS."""

from __future__ import annotations

from fractions import Fraction

import pytest

from fairbank.cluster.partition import Cluster, Partition, find_cluster, one_su, only_cluster
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.tres import BillingRule, parse_weights

DARWIN = Cluster(
    "darwin",
    {"standard": Partition("standard", "cpu"), "gpu-v100": Partition("gpu-v100", "gpu")},
    {"idle": Fraction(0), "urgent": Fraction(3, 2)},
)


def test_partition_bills_one_resource_by_the_dearest_tres() -> None:
    assert DARWIN.partition("gpu-v100").resource == "gpu"
    assert DARWIN.partition("standard").billing_rule is BillingRule.MAX_TRES


@pytest.mark.parametrize(
    ("weights", "rule", "text"),
    [
        (None, BillingRule.MAX_TRES, "1 core"),
        # One core is billed as 1, so is half of 4 GiB: 1 / 0.5 = 2.
        ("CPU=1.0,Mem=0.5G", BillingRule.MAX_TRES, "1 core or 2 GiB"),
        # 1 / 0.0625 = 16 cores, 1 / 0.03125 = 32 GiB.
        ("CPU=0.0625,Mem=0.03125G,GRES/gpu=1.0", BillingRule.MAX_TRES, "1 GPU, 16 cores or 32 GiB"),
        ("CPU=2.0,GRES/gpu=0.5", BillingRule.SUM, "0.5 cores or 2 GPUs, added up"),
        ("CPU=1.0,GRES/gpu=8.0", BillingRule.MAX_TRES, "0.125 GPUs or 1 core"),
        ("CPU=0.3", BillingRule.MAX_TRES, "3.33 cores"),
        ("CPU=0", BillingRule.MAX_TRES, "nothing"),
    ],
)
def test_one_su_is_explained(weights: str | None, rule: BillingRule, text: str) -> None:
    parsed = None if weights is None else parse_weights(weights)
    part = Partition("p", "cpu", parsed, rule)
    assert one_su("cpu", {"darwin": Cluster("darwin", {"p": part})}) == text
    assert one_su("gpu", {"darwin": Cluster("darwin", {"p": part})}) is None


def test_one_su_of_partitions_with_other_weights_names_them() -> None:
    dear = Partition("dear", "cpu", parse_weights("CPU=2"))
    partitions = {"standard": Partition("standard", "cpu"), "dear": dear}
    assert (
        one_su("cpu", {"darwin": Cluster("darwin", partitions)})
        == "in standard 1 core; in dear 0.5 cores"
    )


def test_one_su_of_several_clusters_names_them() -> None:
    clusters = {
        "alpha": Cluster("alpha", {"cpu": Partition("cpu", "cpu")}),
        "beta": Cluster("beta", {"cpu": Partition("cpu", "cpu", parse_weights("CPU=2"))}),
        "gamma": Cluster("gamma", {"gpu": Partition("gpu", "gpu")}),
    }
    assert one_su("cpu", clusters) == "in cpu of alpha 1 core; in cpu of beta 0.5 cores"
    assert one_su("gpu", clusters) == "1 core"
    assert one_su("storage", clusters) is None


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
    with pytest.raises(NotFound, match="there is no cluster 'gamma'") as error:
        find_cluster(
            {"beta": beta, "alpha": Cluster("alpha", {})}, "gamma", otherwise="; or go home"
        )
    assert error.value.remedy == "the settings know: alpha, beta; or go home"


def test_only_cluster_is_the_default() -> None:
    assert only_cluster({"darwin": Cluster("darwin", {})}) == "darwin"


@pytest.mark.parametrize(
    ("clusters", "known"), [((), "none"), (("darwin", "caviness"), "caviness, darwin")]
)
def test_no_default_without_exactly_one_cluster(clusters: tuple[str, ...], known: str) -> None:
    with pytest.raises(InvalidInput) as error:
        only_cluster({name: Cluster(name, {}) for name in clusters})
    assert error.value.field == "cluster"
    assert known in str(error.value.remedy)


@pytest.mark.parametrize(
    ("field", "how"),
    [("--clusters", "with -M CLUSTER, or FAIRBANK_CLUSTER"), ("cluster", "in the field cluster")],
)
def test_remedy_of_a_missing_cluster_is_in_words_of_the_request(field: str, how: str) -> None:
    with pytest.raises(InvalidInput) as error:
        only_cluster(["darwin", "wilkes"], field=field)
    assert error.value.field == field
    assert error.value.remedy == f"name one {how}; the settings know: darwin, wilkes"
