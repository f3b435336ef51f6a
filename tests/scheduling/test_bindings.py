"""Bindings: a job gets as many cores and GPUs as its placement counts, the same ones each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbank.cluster.node import Gpus, Node
from fairbank.cluster.partition_rules import OverSubscribe, PartitionRules
from fairbank.scheduling.placement.bindings import NodeBinding, bind
from fairbank.scheduling.placement.free_resources import NodeShare, Placement
from fairbank.scheduling.placement.node_table import NodeTable
from tests.scheduling.clusters import SmallMachine, clusters, resource_requests, rules

CORES = 12
SHARED = PartitionRules(name="shared", sharing=OverSubscribe.FORCE, rows=2)


def bound(
    cores: int,
    *held: NodeBinding,
    gpus: tuple[Gpus, ...] = (),
    node: Node = Node(name="n1", cpus=CORES),
    sharing: bool = False,
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the cores and GPUs of a job on a node, beside other jobs."""
    cluster = NodeTable([node], [PartitionRules(name="batch"), SHARED])
    share = NodeShare(0, cores * node.threads, 1, gpus)
    partition = "shared" if sharing else "batch"
    result = bind(cluster, Placement(1, (share,), partition, sharing), {"n1": held})
    return None if result is None else (result[0].cores, result[0].gpus)


def job(*cores: int, gpus: Sequence[int] = (), rows: int = 1) -> NodeBinding:
    return NodeBinding("n1", cores, tuple(gpus), rows)


def test_lowest_gap_that_is_large_enough_is_used() -> None:
    assert bound(3) == ((0, 1, 2), ())
    assert bound(3, job(2, 3)) == ((4, 5, 6), ())
    assert bound(2, job(2, 3)) == ((0, 1), ())


def test_lowest_cores_are_used_if_no_gap_is_large_enough() -> None:
    assert bound(4, job(3, 7, 10, 11)) == ((0, 1, 2, 4), ())


def test_job_gets_whole_cores_of_nodes_with_threads() -> None:
    assert bound(2, node=Node(name="n1", cpus=8, threads=2)) == ((0, 1), ())


def test_gpus_are_numbered_in_the_order_of_the_node() -> None:
    node = Node(name="n1", cpus=4, gpus=(Gpus("v100", 3), Gpus("a100", 2)))
    assert bound(1, node=node, gpus=(Gpus("a100", 1), Gpus("v100", 2))) == ((0,), (0, 1, 3))
    assert bound(1, job(0, gpus=[1]), node=node, gpus=(Gpus("v100", 2),)) == ((1,), (0, 2))
    assert bound(1, job(0, gpus=[3]), node=node, gpus=(Gpus("a100", 2),)) is None
    assert bound(1, node=node, gpus=(Gpus("h100", 1),)) is None


def test_core_is_shared_by_no_more_jobs_than_each_of_them_allows() -> None:
    others = job(*range(10), rows=2), job(10), job(0, 1, rows=4)
    assert bound(1, *others, sharing=True) == ((11,), ())
    assert bound(3, *others, sharing=True) == ((2, 3, 4), ())
    assert bound(9, *others, sharing=True) == ((2, 3, 4, 5, 6, 7, 8, 9, 11), ())
    assert bound(10, *others, sharing=True) is None
    assert bound(2, *others) is None


@given(st.sets(st.integers(0, CORES - 1)), st.integers(1, CORES), st.data())
@settings(max_examples=60, deadline=None)
def test_cores_are_adjacent_when_a_gap_is_large_enough(
    taken: set[int], count: int, data: st.DataObject
) -> None:
    held = [job(core) for core in data.draw(st.permutations(sorted(taken)))]
    free = [core for core in range(CORES) if core not in taken]
    gaps = (tuple(range(begin, begin + count)) for begin in free)
    gap = next((gap for gap in gaps if {*gap} <= {*free}), tuple(free[:count]))
    assert bound(count, *held) == (None if count > len(free) else (gap, ()))


@given(clusters, rules, st.data())
@settings(max_examples=20, deadline=None)
def test_running_jobs_have_as_much_as_counted_and_no_core_twice(
    nodes: list[Node], division: PartitionRules, data: st.DataObject
) -> None:
    machine, running = SmallMachine(nodes, division), list[tuple[Placement, list[NodeBinding]]]()
    for _ in range(data.draw(st.integers(1, 8))):
        wanted = msgspec.structs.asdict(data.draw(resource_requests(len(nodes))))
        wanted["shared"] = not wanted["exclusive"] and data.draw(st.booleans())
        placement = machine.would_go(**wanted)
        if placement is None:
            if running:
                ended, _ = running.pop(data.draw(st.integers(0, len(running) - 1)))
                machine.free.give(ended)
            continue
        bindings = bind(machine.cluster, placement, by_node(running))
        assert bindings == bind(machine.cluster, placement, by_node(running[::-1]))
        if bindings is None:
            assert placement.sharing
            continue
        machine.free.take(placement)
        running.append((placement, list(bindings)))
        for share, binding in zip(placement.shares, bindings, strict=True):
            check_share(nodes[share.place], share, binding)
        for jobs in by_node(running).values():
            check_node(jobs)


def by_node(running: Sequence[tuple[Placement, list[NodeBinding]]]) -> dict[str, list[NodeBinding]]:
    held: dict[str, list[NodeBinding]] = {}
    for _, bindings in running:
        for binding in bindings:
            held.setdefault(binding.node, []).append(binding)
    return held


def check_node(jobs: Sequence[NodeBinding]) -> None:
    """Check that no core has more jobs than each of them allows, and no GPU more than one."""
    cores = Counter(core for job in jobs for core in job.cores)
    assert all(cores[core] <= job.rows for job in jobs for core in job.cores)
    gpus = [gpu for job in jobs for gpu in job.gpus]
    assert len(gpus) == len(set(gpus))


def check_share(node: Node, share: NodeShare, binding: NodeBinding) -> None:
    """Check that the numbers are those of the node, and as many as the share counts."""
    assert binding.node == node.name
    assert len(set(binding.cores)) * node.threads == share.cpus
    assert set(binding.cores) <= set(range(node.cores))
    kinds = [kind for kind, number in node.gpus for _ in range(number)]
    assert Counter(kinds[gpu] for gpu in binding.gpus) == Counter(dict(share.gpus))
