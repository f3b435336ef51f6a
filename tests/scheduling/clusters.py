"""Small clusters, random resource requests, and a scheduler that tries every set of nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, permutations
from typing import Any

from hypothesis import strategies as st

from fairbank.cluster.node import Gpus, Node, NodeState
from fairbank.cluster.partition_rules import OverSubscribe, PartitionRules
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.free_resources import FreeResources, NodeDemand, Placement
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.placement.search import PlacementRequest, PlacementSearch, find_placement


def rack(count: int, **fields: Any) -> list[Node]:
    """Return nodes n1, n2, ... that are all alike."""
    alike: dict[str, Any] = {"cpus": 4, "memory": 4_000} | fields
    return [Node(name=f"n{number}", **alike) for number in range(1, count + 1)]


class SmallMachine:
    """Machine on which a test starts and ends jobs by hand."""

    def __init__(self, nodes: Sequence[Node], *partitions: PartitionRules) -> None:
        self.cluster = NodeTable(nodes, partitions or (PartitionRules(name="batch"),))
        self.places = PlacementSearch(self.cluster)
        self.free = FreeResources(self.cluster)

    def asks(self, partition: str = "batch", **fields: Any) -> PlacementRequest:
        return self.places.request(ResourceRequest(**({"memory_per_node": 1} | fields)), partition)

    def would_go(self, within: str | None = None, **fields: Any) -> Placement | None:
        among = self.cluster.usable if within is None else self.cluster.named(within.split(","))
        return find_placement(self.cluster, self.free, self.asks(**fields), among)

    def start(self, **fields: Any) -> str:
        """Start the job and return its nodes, or `nowhere`."""
        result = self.would_go(**fields)
        if result is None:
            return "nowhere"
        self.free.take(result)
        return self.cluster.names(result.nodes)

    def task_cpus(self, **fields: Any) -> list[int]:
        """Return the CPUs that the job would get on each node, in task distribution order."""
        result = self.would_go(**fields)
        assert result is not None
        return [share.cpus for share in result.shares]


FEATURES = ("x", "y", "z")
kinds = st.sampled_from(["x", "y", "z", "x&y", "x|y", "(x&y)"])
constraints = st.one_of(
    st.just(""),
    kinds.filter(lambda text: "(" not in text),
    st.just("[x|y]"),
    st.just("[(x&y)|z]"),
    st.builds("{}*{}".format, st.sampled_from(FEATURES), st.integers(1, 3)),
    st.builds(
        "[{}*{}&{}*{}]".format, *[st.sampled_from(["x", "y", "z", "(x|y)"]), st.integers(1, 2)] * 2
    ),
)
gpus = st.sampled_from([(), (Gpus("a", 1),), (Gpus("a", 2), Gpus("b", 1))])
nodes: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    cpus=st.sampled_from([2, 4, 8]),
    threads=st.sampled_from([1, 2]),
    memory=st.sampled_from([1_000, 2_000]),
    tmp=st.sampled_from([0, 10]),
    gpus=gpus,
    features=st.frozensets(st.sampled_from(FEATURES)),
    weight=st.integers(1, 2),
    state=st.sampled_from([NodeState.UP] * 5 + [NodeState.DOWN]),
)
clusters = st.lists(nodes, min_size=1, max_size=6).map(
    lambda drawn: [Node(name=f"n{number}", **fields) for number, fields in enumerate(drawn)]
)
rules = st.sampled_from(
    [PartitionRules(name="batch", sharing=sharing, rows=2) for sharing in OverSubscribe]
)


@st.composite
def resource_requests(draw: st.DrawFn, count: int) -> ResourceRequest:
    """Draw any request that a job may make of a machine with this number of nodes."""
    least = draw(st.integers(1, 3))
    required = draw(st.one_of(st.just(set[int]()), st.sets(st.integers(0, count - 1), max_size=1)))
    excluded = (
        draw(st.one_of(st.just(set[int]()), st.sets(st.integers(0, count - 1), max_size=2)))
        - required
    )
    memory: dict[str, int] = draw(
        st.sampled_from(
            [{}, {"memory_per_node": 0}, {"memory_per_node": 500}, {"memory_per_cpu": 200}]
        )
    )
    return ResourceRequest(
        nodes=least,
        max_nodes=draw(st.one_of(st.none(), st.integers(least, 4))),
        tasks=draw(st.one_of(st.none(), st.integers(1, 10))),
        cpus_per_task=draw(st.integers(1, 3)),
        cpus_per_node=draw(st.sampled_from([1, 1, 4])),
        memory_per_node=memory.get("memory_per_node"),
        memory_per_cpu=memory.get("memory_per_cpu"),
        gpus=draw(
            st.sampled_from([(), (), (Gpus("a", 1),), (Gpus("", 2),), (Gpus("b", 1), Gpus("", 1))])
        ),
        tmp=draw(st.sampled_from([0, 0, 5])),
        constraint=draw(constraints),
        contiguous=draw(st.booleans()),
        exclusive=draw(st.booleans()),
        required=tuple(f"n{number}" for number in required),
        excluded=tuple(f"n{number}" for number in excluded),
    )


def possible_placements(
    cluster: NodeTable, there: Sequence[Placement], request: PlacementRequest
) -> Iterable[frozenset[int]]:
    """Yield each set of nodes on which the job could start now, beside the running jobs."""
    tasks = [fitting(cluster, there, request.demand, place) for place in range(len(cluster.nodes))]
    up = [
        place for place, node in enumerate(cluster.nodes) if node.state.is_usable and tasks[place]
    ]
    for size in range(request.least, min(max(request.most, request.upto), len(up)) + 1):
        for some in combinations(up, size):
            if sum(tasks[place] for place in some) >= request.tasks and suits(
                frozenset(some), request
            ):
                yield frozenset(some)


def fitting(cluster: NodeTable, there: Sequence[Placement], what: NodeDemand, place: int) -> int:
    """Return the number of tasks that fit on a node: its CPUs, fewer while another resource is
    short.
    """
    node = cluster.nodes[place]
    held = [
        (share, placement.sharing)
        for placement in there
        for share in placement.shares
        if share.place == place
    ]
    whole = node.cores * node.threads
    left = what.rows * (whole - sum(share.cpus for share, sharing in held if not sharing)) - sum(
        share.cpus for share, sharing in held if sharing
    )
    memory = node.memory - sum(share.memory for share, _ in held)
    gpus = Counter(dict(node.gpus))
    for share, _ in held:
        gpus.subtract(dict(share.gpus))
    for kind, number in sorted(what.gpus, reverse=True):  # any type last
        if (gpus[kind] if kind else gpus.total()) < number:
            return 0
        if kind:
            gpus[kind] -= number
    if (what.alone and held) or node.tmp < what.tmp:
        return 0
    for tasks in range(min(left, what.most_tasks or left), 0, -1):
        cpus = max(tasks * what.cpus, what.least_cpus)
        enough = {None: node.memory, 0: what.memory_per_cpu * (whole if what.alone else cpus)}.get(
            what.memory, what.memory or 0
        )
        if cpus <= left and enough <= memory:
            return tasks
    return 0


def suits(some: frozenset[int], request: PlacementRequest) -> bool:
    """Return True if the request names these nodes; free resources do not matter."""
    alike = any(
        all(alternative >> place & 1 for place in some) for alternative in request.alternatives
    )
    named = set(node_set.each(request.required)) <= some
    together = not request.contiguous or max(some) - min(some) + 1 == len(some)
    expected = [kind for kind, count in request.kinds for _ in range(count)]
    counted = not expected or any(
        all(kind >> place & 1 for kind, place in zip(expected, order, strict=True))
        for order in permutations(some, len(expected))
    )
    return alike and named and together and counted
