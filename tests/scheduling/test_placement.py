"""Placement of jobs: the choices of slurmctld, and laws that hold on any cluster."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbank.cluster.node import Gpus, Node, NodeState
from fairbank.cluster.partition_rules import OverSubscribe, PartitionRules
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.scheduling.placement.free_resources import FreeResources, Placement
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.placement.search import PlacementSearch, find_placement
from tests.scheduling.clusters import (
    SmallMachine,
    clusters,
    possible_placements,
    rack,
    resource_requests,
    rules,
)
from tests.support.gres import MATCH_EXAMPLES


def test_lightest_nodes_go_first_and_heavier_ones_only_where_these_are_too_few() -> None:
    machine = SmallMachine(
        [
            *rack(2, weight=8),
            Node(name="fat1", cpus=4, memory=4_000, weight=40),
            Node(name="thin1", cpus=4, memory=4_000),
        ]
    )
    assert machine.start(nodes=1, exclusive=True) == "thin1"
    assert machine.start(nodes=1, exclusive=True) == "n1"
    assert machine.start(nodes=2, exclusive=True) == "n2,fat1"


@pytest.mark.parametrize(("of_node", "requested", "fits"), MATCH_EXAMPLES)
def test_gpu_type_is_compared_with_its_case_as_slurm_does(
    of_node: str, requested: str, fits: bool
) -> None:
    machine = SmallMachine(rack(1, gpus=(Gpus(of_node, 4),)))
    assert machine.start(gpus=(Gpus(requested, 1),)) == ("n1" if fits else "nowhere")


def test_long_reservation_uses_no_more_memory_than_a_short_one() -> None:
    machine, sizes = SmallMachine(rack(3)), set[int]()
    for _ in range(1_000):
        where = machine.would_go(nodes=2, tasks=2)
        assert where is not None
        machine.free.take(where)
        assert machine.start(exclusive=True, nodes=2) == "nowhere"
        machine.free.give(where)
        sizes.add(len(pickle.dumps(machine.free)))
    assert max(sizes) < 2 * min(sizes)


def test_nodes_that_must_be_woken_come_last_whatever_their_weight() -> None:
    machine = SmallMachine(
        [
            Node(name="asleep", state=NodeState.POWERED_DOWN, weight=0),
            Node(name="waking", state=NodeState.POWERING_UP),
            *rack(1, weight=99),
        ]
    )
    assert [machine.start(exclusive=True) for _ in range(4)] == [
        "n1",
        "waking",
        "asleep",
        "nowhere",
    ]


def test_smallest_sufficient_run_of_nodes_is_used() -> None:
    machine = SmallMachine(rack(10))
    assert machine.start(required=("n4",), exclusive=True) == "n4"
    assert machine.start(required=("n7",), exclusive=True) == "n7"
    assert machine.start(nodes=2, exclusive=True) == "n[5-6]"
    assert machine.start(nodes=3, exclusive=True) == "n[1-3]"
    assert machine.start(nodes=4, exclusive=True) == "nowhere"


def test_job_of_one_node_goes_to_the_smallest_sufficient_node() -> None:
    machine = SmallMachine(rack(4, cpus=64))
    for node, cpus in (("n1", 20), ("n2", 50), ("n4", 40)):
        assert machine.start(required=(node,), cpus_per_task=cpus) == node
    assert machine.start(tasks=14) == "n2"
    assert machine.start(tasks=20) == "n1", "of runs the tightest goes first"
    assert machine.start(tasks=3, cpus_per_task=4) == "n1"
    assert machine.start(tasks=20) == "n4"
    assert machine.start(tasks=60) == "n3"
    assert machine.start(tasks=10) == "n1"
    assert machine.start(tasks=8) == "n[3-4]", "none is enough alone"


def test_largest_runs_of_nodes_are_used_if_none_is_sufficient() -> None:
    machine = SmallMachine(rack(9))
    machine.start(nodes=2, required=("n3", "n8"), exclusive=True)
    assert machine.start(nodes=6, exclusive=True) == "n[1-2,4-7]"


def test_contiguous_nodes_are_one_run_or_none() -> None:
    machine = SmallMachine(rack(7))
    machine.start(required=("n4",), exclusive=True)
    assert machine.start(nodes=4, contiguous=True) == "nowhere"
    assert machine.start(nodes=3, contiguous=True, exclusive=True) == "n[1-3]"
    assert machine.start(nodes=4, exclusive=True) == "nowhere"


def test_required_nodes_are_taken_and_the_others_beside_them() -> None:
    machine = SmallMachine(rack(9))
    assert machine.start(nodes=3, required=("n8",), exclusive=True) == "n[7-9]"
    assert machine.start(nodes=2, excluded=("n1", "n2"), exclusive=True) == "n[3-4]"
    assert machine.start(required=("n8",), exclusive=True) == "nowhere"


def test_jobs_share_a_node_until_its_cpus_its_memory_or_its_gpus_are_given_away() -> None:
    machine = SmallMachine(rack(1, cpus=8, memory=4_000, gpus=(Gpus("a100", 2),)))
    assert machine.start(cpus_per_task=4, memory_per_node=1_000, gpus=(Gpus("a100", 1),)) == "n1"
    assert machine.start(memory_per_node=3_500) == "nowhere"
    assert machine.start(gpus=(Gpus("", 2),)) == "nowhere"
    assert machine.start(exclusive=True) == "nowhere"
    assert machine.start(cpus_per_task=4, memory_per_node=3_000, gpus=(Gpus("", 1),)) == "n1"
    assert machine.start() == "nowhere"


def test_job_without_memory_request_takes_all_memory_of_a_node() -> None:
    machine = SmallMachine(rack(1))
    assert machine.start(memory_per_node=None) == "n1"
    assert machine.start() == "nowhere"
    default = SmallMachine(rack(1), PartitionRules(name="batch", memory_per_cpu=1_000))
    assert [default.start(memory_per_node=None) for _ in range(5)] == ["n1"] * 4 + ["nowhere"]


def test_tasks_fill_the_first_nodes_and_leave_one_for_each_node_behind() -> None:
    machine = SmallMachine(rack(4))
    assert machine.task_cpus(nodes=2, tasks=5) == [4, 1]
    assert machine.task_cpus(nodes=3, tasks=6) == [4, 1, 1]
    assert machine.task_cpus(tasks=9) == [4, 4, 1]
    assert machine.task_cpus(tasks=4, tasks_per_node=2) == [2, 2]
    assert machine.task_cpus(nodes=2, cpus_per_task=3) == [3, 3]
    assert machine.task_cpus(nodes=2, exclusive=True) == [4, 4]
    assert machine.would_go(tasks=9, max_nodes=2) is None


def test_range_of_nodes_gets_as_many_as_are_free() -> None:
    """As slurmctld 22.05 does: a range of two to four nodes gets four if four are free. A range
    that begins with one gets one if only one is free.
    """
    machine = SmallMachine(rack(6))
    assert machine.start(nodes=2, max_nodes=4, exclusive=True) == "n[1-4]"
    assert machine.start(max_nodes=4, exclusive=True) == "n[5-6]"
    assert machine.start(max_nodes=4, exclusive=True) == "nowhere"
    assert SmallMachine(rack(6)).task_cpus(max_nodes=3, tasks=6) == [4, 1, 1]
    assert (
        SmallMachine(rack(6), PartitionRules(name="batch", max_nodes=2)).start(max_nodes=4)
        == "n[1-2]"
    )
    assert (
        SmallMachine([*rack(2), Node(name="heavy", weight=9)]).start(max_nodes=3) == "n[1-2],heavy"
    )


def test_core_is_given_away_whole() -> None:
    machine = SmallMachine(rack(1, cpus=8, threads=2))
    assert machine.task_cpus(cpus_per_task=3) == [4]
    machine.start(cpus_per_task=3)
    assert machine.would_go(cpus_per_task=5) is None


def test_few_idle_nodes_are_found_among_many_busy_ones() -> None:
    machine = SmallMachine(
        [
            *rack(4, cpus=2),
            Node(name="big1", cpus=8, memory=4_000),
            Node(name="mid1", cpus=5, memory=4_000),
        ]
    )
    assert machine.start(tasks=13, max_nodes=2) == "big1,mid1"


def test_brackets_take_nodes_that_are_all_alike() -> None:
    left, right = frozenset({"left"}), frozenset({"right"})
    machine = SmallMachine(
        [
            *rack(2, features=left),
            *(Node(name=f"r{number}", cpus=4, memory=4_000, features=right) for number in range(3)),
        ]
    )
    assert machine.start(nodes=3, constraint="[left|right]", exclusive=True) == "r[0-2]"
    assert machine.start(nodes=3, constraint="[left|right]", exclusive=True) == "nowhere"


def test_counts_take_some_nodes_of_a_kind_and_any_others() -> None:
    fat = frozenset({"fat"})
    machine = SmallMachine(
        [*rack(4), Node(name="fat1", cpus=4, memory=4_000, features=fat, weight=9)]
    )
    assert machine.start(nodes=3, constraint="fat*1", exclusive=True) == "n[3-4],fat1"
    assert machine.start(nodes=1, constraint="fat*1", exclusive=True) == "nowhere"


def test_two_kinds_need_two_nodes_though_one_node_is_of_both() -> None:
    both, one = frozenset({"x", "y"}), frozenset({"x"})
    machine = SmallMachine(
        [Node(name="a", memory=4_000, features=both), Node(name="b", memory=4_000, features=one)]
    )
    assert machine.start(nodes=2, constraint="[x*1&y*1]") == "a,b"
    assert (
        SmallMachine([Node(name="a", memory=4_000, features=both)]).start(constraint="[x&y]")
        == "nowhere"
    )


def test_where_cpus_are_shared_idle_ones_are_taken_first() -> None:
    machine = SmallMachine(
        rack(2), PartitionRules(name="batch", sharing=OverSubscribe.FORCE, rows=2)
    )
    assert [machine.start(cpus_per_task=4) for _ in range(5)] == ["n1", "n2", "n1", "n2", "nowhere"]
    requests = SmallMachine(
        rack(1), PartitionRules(name="batch", sharing=OverSubscribe.YES, rows=2)
    )
    assert [
        requests.start(cpus_per_task=4, shared=share) for share in (True, False, True, True)
    ] == ["n1", "nowhere", "n1", "nowhere"]


def test_exclusive_partition_gives_whole_nodes() -> None:
    machine = SmallMachine(rack(2), PartitionRules(name="batch", sharing=OverSubscribe.EXCLUSIVE))
    assert [machine.start() for _ in range(3)] == ["n1", "n2", "nowhere"]


def test_missing_name_is_reported_with_the_known_ones() -> None:
    machine = SmallMachine(rack(3))
    with pytest.raises(NotFound) as no:
        machine.asks(required=("n9",))
    assert (no.value.field, no.value.remedy) == ("required", "there are: n[1-3]")
    with pytest.raises(NotFound) as no:
        machine.asks(partition="debug")
    assert (no.value.field, no.value.remedy) == ("partition", "there are: batch")
    with pytest.raises(InvalidInput, match="n1 is there twice"):
        NodeTable([Node(name="n1"), Node(name="n1")])
    with pytest.raises(InvalidInput, match="partition batch is there twice"):
        NodeTable(rack(1), [PartitionRules(name="batch")] * 2)


@st.composite
def snapshots(
    draw: st.DrawFn,
) -> tuple[list[Node], PartitionRules, list[tuple[ResourceRequest, bool]]]:
    """Draw a cluster and jobs that start one after the other; some end before the next starts."""
    cluster = draw(clusters)
    return (
        cluster,
        draw(rules),
        draw(
            st.lists(
                st.tuples(resource_requests(len(cluster)), st.booleans()), min_size=1, max_size=8
            )
        ),
    )


@pytest.mark.slow
@given(snapshots())
@settings(max_examples=150, deadline=None)
def test_placement_is_exact_and_never_oversubscribed(
    case: tuple[list[Node], PartitionRules, list[tuple[ResourceRequest, bool]]],
) -> None:
    nodes, division, jobs = case
    cluster = NodeTable(nodes, [division])
    free, places, there = FreeResources(cluster), PlacementSearch(cluster), list[Placement]()
    for wanted, stays in jobs:
        request = places.request(wanted, "batch")
        ways = set(possible_placements(cluster, there, request))
        result = find_placement(cluster, free, request, cluster.usable)
        assert (result is None) == (not ways)
        if result is None:
            continue
        assert frozenset(share.place for share in result.shares) in ways
        if request.upto > request.least and len(request.alternatives) == request.demand.rows == 1:
            assert len(result.shares) == max(map(len, ways)), "of a range as many as there are"
        free.take(result)
        there.append(result)
        assert_held(cluster, free, there, division)
        if not stays:
            free.give(there.pop())
    assert_held(cluster, free, there, division)


def assert_held(
    cluster: NodeTable, free: FreeResources, there: list[Placement], division: PartitionRules
) -> None:
    """Check that the free resources are those without a job, and that no two jobs have the same
    resource.
    """
    for at, node in enumerate(cluster.nodes):
        plain = [
            share
            for placement in there
            for share in placement.shares
            if share.place == at and not placement.sharing
        ]
        sharing = [
            share
            for placement in there
            for share in placement.shares
            if share.place == at and placement.sharing
        ]
        left = node.cores * node.threads - sum(share.cpus for share in plain)
        assert left == free.cpus[at] >= 0
        assert sum(share.cpus for share in sharing) == free.shared[at] <= left * division.rows
        assert all(share.cpus % node.threads == 0 for share in plain + sharing)
        assert node.memory - sum(share.memory for share in plain + sharing) == free.memory[at] >= 0
        for kind, number in node.gpus:
            held = sum(
                count for share in plain + sharing for name, count in share.gpus if name == kind
            )
            assert number - held == free.gpus[kind][at] >= 0
        assert bool(free.idle >> at & 1) == (not plain + sharing)


@given(snapshots())
@settings(max_examples=60, deadline=None)
def test_cached_placements_equal_new_searches(
    case: tuple[list[Node], PartitionRules, list[tuple[ResourceRequest, bool]]],
) -> None:
    nodes, division, jobs = case
    cluster = NodeTable(nodes, [division])
    free, places = FreeResources(cluster), PlacementSearch(cluster)
    requests = [places.request(wanted, "batch") for wanted, _ in jobs]
    for request in requests:
        if (result := find_placement(cluster, free, request, cluster.usable)) is not None:
            free.take(result)
        for earlier in requests:
            assert np.array_equal(free.tasks(earlier.demand), free.copy().tasks(earlier.demand))
            assert free.nodes(earlier.demand) == free.copy().nodes(earlier.demand)


def test_partition_uses_so_many_cpus_of_a_node() -> None:
    """MaxCPUsPerNode counts the jobs of the partition, and only these."""
    rules = PartitionRules(name="few", max_cpus_per_node=4), PartitionRules(name="all")
    cluster = NodeTable([Node(name="n1", cpus=16, memory=99)], rules)
    search, free = PlacementSearch(cluster), FreeResources(cluster)

    def place(cpus: int, partition: str, *, exclusive: bool = False) -> Placement | None:
        wanted = ResourceRequest(cpus_per_task=cpus, memory_per_node=9, exclusive=exclusive)
        request = search.request(wanted, partition)
        placement = find_placement(cluster, free, request, cluster.all_nodes)
        if placement is not None:
            free.take(placement)
        return placement

    assert place(5, "few") is None
    assert place(1, "few", exclusive=True) is None
    first = place(3, "few")
    assert first is not None
    assert place(8, "all") is not None
    assert place(2, "few") is None
    free.give(first)
    assert place(4, "few") is not None


@pytest.mark.parametrize(
    ("flags", "nodes"),
    [((), (2, 3)), (("PartitionMinNodes",), (1, 3)), (("PartitionMaxNodes",), (2, 4))],
)
def test_qos_overrides_node_limits_of_the_partition(
    flags: tuple[str, ...], nodes: tuple[int, int]
) -> None:
    cluster = NodeTable(rack(4), [PartitionRules(name="batch", min_nodes=2, max_nodes=3)])
    wanted = ResourceRequest(nodes=1, max_nodes=4)
    request = PlacementSearch(cluster).request(wanted, "batch", frozenset(flags))
    assert (request.least, request.upto) == nodes
