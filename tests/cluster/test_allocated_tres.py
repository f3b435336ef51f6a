"""TRES that Slurm gives to requests, with the right values that the lab's Slurm 22.05 allocated.

A node of cpu has 64 CPUs and 128 GiB, one of gpu 48, 500 GiB and four GPUs; jobs get 1000 MiB for
each CPU (docs/reference/slurm-rules.md, "Whole nodes and memory").
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product

import msgspec
import pytest

from fairbank.cluster.allocated_tres import (
    Memory,
    MemoryUnit,
    NodeSize,
    allocated_tres,
    reason_unfit,
)
from fairbank.cluster.job import JobRequest
from fairbank.cluster.partition import Partition
from fairbank.core.errors import InvalidInput
from fairbank.core.gres import gres_counts, most_gres, parse_gres
from fairbank.core.tres import BillingRule, billing, parse_counts, parse_weights

WEIGHTS = parse_weights("CPU=1,Mem=0.5G,GRES/gpu=12")
PER_CPU = Memory(1000, MemoryUnit.CPU)
CPU = Partition("cpu", "cpu", WEIGHTS, size=NodeSize(64, 131_072, {}), default_memory=PER_CPU)
GPU = Partition(
    "gpu", "gpu", WEIGHTS, size=NodeSize(48, 512_000, {"gres/gpu": 4}), default_memory=PER_CPU
)
MIXED = Partition(
    "mixed", "gpu", WEIGHTS, size=NodeSize(8, 1, {"gres/gpu": 4, "gres/gpu:a": 4, "gres/gpu:t": 4})
)
TYPED = Partition("typed", "gpu", WEIGHTS, size=NodeSize(8, 1, {"gres/gpu": 4, "gres/gpu:a": 4}))
PARTLY = Partition("partly", "gpu", WEIGHTS, size=NodeSize(8, 1, {"gres/gpu": 6, "gres/gpu:a": 4}))
UNKNOWN = Partition("old", "cpu", WEIGHTS)


EACH = {"--cpus-per-task": "cpu=30", "--gpus-per-task": "gres/gpu=3"}


def request(tres: str, memory: Memory | None = None, *, exclusive: bool = False) -> JobRequest:
    return JobRequest("lab", "any", parse_counts(tres), 300, None, exclusive, memory)


WHOLE, ALL = True, Memory(0)


@pytest.mark.parametrize(
    ("partition", "tres", "memory", "exclusive", "allocated"),
    [
        (CPU, "cpu=1,node=1", None, WHOLE, "cpu=64,mem=64000,node=1"),
        (CPU, "cpu=70,node=1", None, WHOLE, "cpu=128,mem=128000,node=2"),
        (CPU, "cpu=1,node=1", Memory(10_240), WHOLE, "cpu=64,mem=10240,node=1"),
        (CPU, "cpu=1", Memory(1_500, MemoryUnit.CPU), WHOLE, "cpu=64,mem=96000,node=1"),
        (CPU, "cpu=1,node=1", ALL, False, "cpu=1,mem=131072,node=1"),
        (CPU, "cpu=2,node=2", ALL, WHOLE, "cpu=128,mem=262144,node=2"),
        (CPU, "cpu=8,node=1", None, False, "cpu=8,mem=8000,node=1"),
        (CPU, "cpu=8,node=1,mem=0", None, False, "cpu=8,mem=131072,node=1"),
        (GPU, "cpu=1,node=1", None, WHOLE, "cpu=48,gres/gpu=4,mem=48000,node=1"),
        (GPU, "cpu=1,node=1,gres/gpu=2", None, WHOLE, "cpu=48,gres/gpu=4,mem=48000,node=1"),
        (GPU, "cpu=2,node=2,gres/gpu=2", None, WHOLE, "cpu=96,gres/gpu=8,mem=96000,node=2"),
        (GPU, "cpu=1,node=1,gres/gpu=1", ALL, False, "cpu=1,gres/gpu=1,mem=512000,node=1"),
        (GPU, "cpu=2,node=1,gres/gpu=8", None, False, "cpu=2,gres/gpu=8,mem=2000,node=2"),
        (
            GPU,
            "cpu=1,gres/gpu=2",
            Memory(4_096, MemoryUnit.GPU),
            False,
            "cpu=1,gres/gpu=2,mem=8192,node=1",
        ),
        (MIXED, "cpu=1", None, WHOLE, "cpu=8,node=1,gpu=4,gpu:a=4,gpu:t=4"),
        (MIXED, "cpu=1,gpu:t=4", None, WHOLE, "cpu=8,node=1,gpu=4,gpu:t=4"),
        (MIXED, "cpu=1,gpu:t=5", None, WHOLE, "cpu=16,node=2,gpu=8,gpu:a=3,gpu:t=8"),
        (MIXED, "cpu=1,gpu=8", None, False, "cpu=1,node=2,gpu=8"),
        (TYPED, "cpu=1,gpu=2", None, False, "cpu=1,node=1,gpu=2,gpu:a=2"),
        (TYPED, "cpu=1,gpu=3,gpu:t=1", None, False, "cpu=1,node=1,gpu=3,gpu:t=1"),
        (PARTLY, "cpu=1,gpu=2", None, False, "cpu=1,node=1,gpu=2"),
        (UNKNOWN, "cpu=70", None, False, "cpu=70,node=1"),
        (UNKNOWN, "cpu=8,mem=4G", None, False, "cpu=8,mem=4096,node=1"),
    ],
)
def test_job_gets_whole_nodes_and_the_memory_of_its_partition(
    partition: Partition, tres: str, memory: Memory | None, exclusive: bool, allocated: str
) -> None:
    job = request(tres, memory, exclusive=exclusive)
    assert allocated_tres(job, partition) == parse_counts(allocated)


KINDS = tuple(gres_counts(parse_gres(text)) for text in ("gpu:a:4", "gpu:t:4"))


@pytest.mark.parametrize("dearer", ["a", "t"])
@pytest.mark.parametrize(
    ("tres", "allocated"),
    [
        ("cpu=1", "cpu=8,node=1,gpu=4,gpu:{dearer}=4"),
        ("cpu=2,node=2", "cpu=16,node=2,gpu=8,gpu:{dearer}=8"),
        ("cpu=1,gpu=1", "cpu=8,node=1,gpu=4,gpu:{dearer}=4"),
        ("cpu=1,gpu:t=1", "cpu=8,node=1,gpu=4,gpu:t=4"),
        ("cpu=1,gpu:t=5", "cpu=16,node=2,gpu=8,gpu:t=8"),
        ("cpu=2,node=2,gpu:a=1,gpu:t=4", "cpu=16,node=2,gpu=8,gpu:a=4,gpu:t=7"),  # at most
    ],
)
def test_whole_nodes_that_differ_cost_what_the_dearest_of_them_does(
    dearer: str, tres: str, allocated: str
) -> None:
    """No node has GPUs of both types, so that no job pays for both on one node."""
    cheaper = "t" if dearer == "a" else "a"
    weights = parse_weights(f"CPU=1,GRES/gpu:{dearer}=12,GRES/gpu:{cheaper}=3")
    size = msgspec.structs.replace(MIXED.size, kinds=KINDS)
    place = msgspec.structs.replace(MIXED, size=size, weights=weights, billing_rule=BillingRule.SUM)
    counts = allocated_tres(request(tres, exclusive=True), place)
    assert counts == parse_counts(allocated.format(dearer=dearer))


def test_kind_that_alone_needs_too_many_nodes_is_priced_next_to_another_kind() -> None:
    """--gpus=10 on two nodes fits on two t, and on one node of each kind, which costs 120."""
    kinds = tuple(gres_counts(parse_gres(text)) for text in ("gpu:a:4", "gpu:t:8"))
    weights = parse_weights("CPU=1,GRES/gpu:a=12,GRES/gpu:t=1")
    size = NodeSize(32, 1, most_gres(kinds), kinds)
    place = Partition("p", "gpu", weights, BillingRule.SUM, size)
    job = request("cpu=1,node=2,gpu=10", exclusive=True)
    assert allocated_tres(job, place) == parse_counts("cpu=96,node=3,gpu=12,gpu:a=12")
    job = msgspec.structs.replace(job, max_nodes=2)
    assert allocated_tres(job, place) == parse_counts("cpu=64,node=2,gpu=16,gpu:a=8,gpu:t=16")


@pytest.mark.parametrize("nodes", [1, 2])
def test_kind_that_can_be_no_node_of_a_job_does_not_raise_its_price(nodes: int) -> None:
    """All nodes of the job must be t: with one a, the others have too few GPUs."""
    kinds = tuple(gres_counts(parse_gres(text)) for text in ("gpu:a:4", "gpu:t:8"))
    weights = parse_weights("CPU=1,GRES/gpu:a=12,GRES/gpu:t=1")
    size = NodeSize(32, 1, most_gres(kinds), kinds)
    place = Partition("p", "gpu", weights, BillingRule.SUM, size)
    job = request(f"cpu=1,node={nodes},gpu={8 * nodes}", exclusive=True)
    job = msgspec.structs.replace(job, max_nodes=nodes)
    assert billing(allocated_tres(job, place), weights, BillingRule.SUM) == 40 * nodes


@pytest.mark.parametrize("nodes", [1, 2, 3])
@pytest.mark.parametrize("rule", BillingRule)
@pytest.mark.parametrize(
    "texts",
    [("gpu:a:4", "gpu:t:8"), ("gpu:a:2,gpu:t:2", "gpu:t:8"), ("gpu:a:1", "gpu:t:3", "gpu:2")],
)
def test_no_mix_of_nodes_costs_more_than_the_quote_of_as_many_whole_nodes(
    texts: tuple[str, ...], rule: BillingRule, nodes: int
) -> None:
    """A kind that alone needs more nodes than the job may have can lie next to another kind."""
    kinds = tuple(gres_counts(parse_gres(text)) for text in texts)
    weights = parse_weights("CPU=1,GRES/gpu:a=12,GRES/gpu:t=1")
    gres = most_gres(kinds)
    place = Partition("p", "gpu", weights, rule, NodeSize(32, 1, gres, kinds))
    for requested, number in product(("gpu", "gpu:a", "gpu:t"), range(0, 25, 5)):
        name = f"gres/{requested}"
        job = request(f"cpu=1,node={nodes},{requested}={number}", exclusive=True)
        job = msgspec.structs.replace(job, max_nodes=nodes)
        quote = billing(allocated_tres(job, place), weights, rule)
        able = [kind for kind in kinds if name in kind or not number]
        for mix in combinations_with_replacement(able, nodes):
            held = {tres: Fraction(sum(kind.get(tres, 0) for kind in mix)) for tres in gres}
            if held.get(name, 0) >= number:
                price = billing({"cpu": Fraction(32 * nodes), **held}, weights, rule)
                assert price <= quote, (requested, number, mix)


@pytest.mark.parametrize("partition", [CPU, GPU])
@pytest.mark.parametrize("tres", ["cpu=1", "cpu=70,node=2", "cpu=1,gres/gpu=1"])
@pytest.mark.parametrize("memory", [None, ALL, Memory(10_240)])
def test_exclusive_partition_gives_each_job_what_exclusive_does(
    partition: Partition, tres: str, memory: Memory | None
) -> None:
    place = msgspec.structs.replace(partition, exclusive=True)
    whole = allocated_tres(request(tres, memory, exclusive=True), partition)
    assert allocated_tres(request(tres, memory), place) == whole


@pytest.mark.parametrize(
    ("size", "tres", "memory", "exclusive", "setting"),
    [
        (NodeSize(), "cpu=1", None, True, "node_cpus"),
        (NodeSize(64), "cpu=1", None, True, "node_gres"),
        (NodeSize(64), "cpu=1", ALL, False, "node_memory"),
        (NodeSize(64), "cpu=1", Memory(0, MemoryUnit.CPU), False, "node_memory"),
    ],
)
def test_size_that_a_price_needs_is_named(
    size: NodeSize, tres: str, memory: Memory | None, exclusive: bool, setting: str
) -> None:
    with pytest.raises(InvalidInput) as error:
        allocated_tres(
            request(tres, memory, exclusive=exclusive), Partition("p", "cpu", WEIGHTS, size=size)
        )
    remedy = str(error.value.remedy)
    assert f"clusters.lab.partitions.any.{setting};" in remedy
    assert ("without --exclusive: --tres" in remedy) == exclusive  # with it the size is needed


def test_size_that_costs_nothing_is_not_needed() -> None:
    by_cpu = Partition("p", "cpu", size=NodeSize(64))
    counts = allocated_tres(request("cpu=1", ALL, exclusive=True), by_cpu)
    assert counts == {"cpu": Fraction(64), "node": Fraction(1), "mem": Fraction(0)}


@pytest.mark.parametrize(
    ("tres", "memory", "partition", "reason"),
    [
        (
            "cpu=1,gres/gpu=1",
            None,
            CPU,
            "the job asks for gres/gpu, and the nodes of partition cpu have none",
        ),
        ("cpu=1,gres/gpu=1,gres/gpu:v100=1", None, GPU, None),  # the settings name no types
        ("cpu=1,gpu:t=4", None, MIXED, None),
        (
            "cpu=1,gpu:v=1",
            None,
            MIXED,
            "the job asks for gres/gpu:v, and the nodes of partition mixed have none",
        ),
        (
            "cpu=1",
            Memory(200 * 1024),
            CPU,
            "--mem asks for 200 GiB on one node, and a node of partition cpu has 128 GiB",
        ),
        ("cpu=1,gres/gpu=1", Memory(10**9), UNKNOWN, None),
    ],
)
def test_partition_whose_nodes_are_too_small_does_not_fit(
    tres: str, memory: Memory | None, partition: Partition, reason: str | None
) -> None:
    assert reason_unfit(request(tres, memory), partition) == reason


@pytest.mark.parametrize(
    ("option", "tres", "nodes"),
    [("--cpus-per-task", "cpu=90", 3), ("--gpus-per-task", "cpu=4,gres/gpu=12", 4)],
)
def test_task_that_leaves_too_little_of_a_node_for_another_one_has_its_own_node(
    option: str, tres: str, nodes: int
) -> None:
    """A node of gpu has 48 CPUs and four GPUs."""
    job = msgspec.structs.replace(
        request(tres), node_requests={option: parse_counts(EACH[option])}, max_nodes=nodes
    )
    assert allocated_tres(job, GPU)["node"] == nodes
    assert reason_unfit(job, GPU) is None
    fewer = msgspec.structs.replace(job, max_nodes=nodes - 1)
    assert str(reason_unfit(fewer, GPU)).endswith(
        f"needs {nodes} nodes of partition gpu, each with 48 CPUs, 4 gres/gpu"
    )
    assert reason_unfit(fewer, UNKNOWN) is None
