"""Price of a job in several partitions, and cheaper requests that the credit pays.

Nodes of cpu have 8 CPUs, of big 32; a CPU costs 1 SU an hour in cpu and 2 in big.
"""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.bank.pricing import bill
from fairbank.bank.quote import (
    CheaperRequest,
    Quote,
    cheaper_partition,
    cheapest_first,
    deciding,
    less_memory,
    smaller_requests,
)
from fairbank.cluster.allocated_tres import NodeSize
from fairbank.cluster.job import JobRequest
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.time import parse_duration
from fairbank.core.tres import BillingRule, parse_weights

CLUSTER = Cluster(
    "lab",
    {
        "cpu": Partition("cpu", "cpu", size=NodeSize(8)),
        "big": Partition("big", "cpu", {"cpu": Fraction(2)}, size=NodeSize(32)),
        "gpu": Partition("gpu", "gpu", {"cpu": Fraction(1, 4)}),
    },
    {"low": Fraction(1, 2), "high": Fraction(2), "own": Fraction(1, 4)},
    qos_resources={"own": "own"},
    default_partition="cpu",
)


def quoted(
    partition: str, available: int, *, cpus: int = 8, nodes: int = 1, seconds: int = 3_600
) -> Quote:
    counts = {"cpu": Fraction(cpus), "node": Fraction(nodes)}
    price = bill(JobRequest("lab", partition, counts, seconds), CLUSTER)
    return Quote(price, 1, available, fits=price.amount <= available)


def test_dearest_partition_decides_and_the_cheapest_is_named() -> None:
    """8 CPUs for an hour: 480 SU-minutes in cpu, 960 in big."""
    quotes = [quoted("big", 1_000), quoted("cpu", 1_000)]
    assert deciding(quotes).bill.partition == "big"
    assert [quote.bill.partition for quote in cheapest_first(quotes)] == ["cpu", "big"]
    assert cheaper_partition(quotes) == CheaperRequest("partition", "cpu", 480)
    assert cheaper_partition([quotes[0]]) is None


def test_partition_that_does_not_fit_decides_although_another_is_dearer() -> None:
    """In gpu 120 SU-minutes are asked and 100 available, in big 960 of 1,000."""
    quotes = [quoted("big", 1_000), quoted("gpu", 100)]
    assert deciding(quotes).bill.partition == "gpu"
    assert cheaper_partition(quotes) == CheaperRequest("partition", "big", 960)


def test_prices_of_different_resources_are_not_compared() -> None:
    assert cheaper_partition([quoted("big", 1_000), quoted("gpu", 1_000)]) is None


def test_least_changes_that_fit_are_named() -> None:
    """4 nodes with 32 CPUs for 10 hours cost 19,200 SU-minutes; 10,000 pay for 312 minutes, for two
    nodes (9,600), and for QOS low (9,600). QOS own has credit of its own.
    """
    job = quoted("cpu", 10_000, cpus=32, nodes=4, seconds=36_000)
    assert list(smaller_requests([job], 4, None, CLUSTER)) == [
        CheaperRequest("time_limit", "05:12:00", 9_984),
        CheaperRequest("nodes", "2", 9_600),
        CheaperRequest("qos", "low", 9_600),
    ]


def with_memory(gibibytes: int, available: int, rule: BillingRule) -> Quote:
    """Return the quote of 8 CPUs (1 SU each) on two nodes, with a GiB at 1/2 SU, for an hour."""
    weights = parse_weights("CPU=1,Mem=0.5G")
    partition = Partition("cpu", "cpu", weights, rule)
    counts = {"cpu": Fraction(8), "node": Fraction(2), "mem": Fraction(gibibytes * 1024)}
    price = bill(JobRequest("lab", "cpu", counts, 3_600), Cluster("lab", {"cpu": partition}))
    return Quote(price, 1, available, fits=price.amount <= available)


def test_memory_from_which_on_the_cpus_set_the_price_is_named() -> None:
    """64 GiB cost 32 SU; the 8 CPUs cost 8 SU, as much as 16 GiB: 8 GiB on each of two nodes."""
    rule = BillingRule.MAX_TRES
    cheaper = CheaperRequest("mem", "8G", 480)
    assert less_memory(with_memory(64, 2_000, rule), rule) == cheaper
    assert less_memory(with_memory(64, 500, rule), rule) == cheaper
    assert less_memory(with_memory(64, 479, rule), rule) is None  # that would not fit either
    assert less_memory(with_memory(16, 2_000, rule), rule) is None  # the CPUs set it
    rule = BillingRule.SUM
    assert less_memory(with_memory(64, 9_000, rule), rule) is None


@given(
    cpus=st.integers(1, 40),
    nodes=st.integers(1, 5),
    available=st.integers(0, 20_000),
    tasks=st.integers(1, 3),
)
def test_cheaper_request_fits_in_each_partition(
    cpus: int, nodes: int, available: int, tasks: int
) -> None:
    def quotes(**changes: int) -> list[Quote]:
        size = {"cpus": cpus * nodes, "nodes": nodes, "seconds": 7_200} | changes
        return [
            msgspec.structs.replace(quoted(name, available, **size), tasks=tasks)
            for name in ("cpu", "big")
        ]

    for change in smaller_requests(quotes(), nodes, None, CLUSTER):
        if change.change == "nodes":
            fewer = int(change.value)
            changed = quotes(cpus=cpus * fewer, nodes=fewer)
            larger = quotes(cpus=cpus * (fewer + 1), nodes=fewer + 1)
        elif change.change == "time_limit":
            seconds = parse_duration(change.value, field="-t")
            changed, larger = quotes(seconds=seconds), quotes(seconds=seconds + 60)
        else:
            continue
        assert max(quote.total for quote in changed) <= available
        assert max(quote.total for quote in larger) > available
        assert change.total in [quote.total for quote in changed]


@pytest.mark.parametrize(
    ("text", "names"), [("cpu", ("cpu",)), ("gpu,cpu,gpu", ("gpu", "cpu")), (None, ("cpu",))]
)
def test_partitions_of_a_list_are_taken_once(text: str | None, names: tuple[str, ...]) -> None:
    assert CLUSTER.partition_names(text) == names


@pytest.mark.parametrize("text", ["", "cpu,", ",", "cpu, gpu", "-1"])
def test_list_with_an_invalid_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as error:
        CLUSTER.partition_names(text)
    assert error.value.field == "partition"


def test_cluster_without_default_partition_names_its_partitions() -> None:
    with pytest.raises(InvalidInput) as error:
        msgspec.structs.replace(CLUSTER, default_partition=None).partition_names(None)
    assert error.value.remedy == "there are: big, cpu, gpu"
    with pytest.raises(NotFound, match="nosuch"):
        quoted("nosuch", 0)
