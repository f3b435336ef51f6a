"""Full cluster of ten thousand nodes and its queue: jobs of all sizes, the same in each run."""

from __future__ import annotations

from random import Random

from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.scheduling.machines.node_snapshot import OnNodes, node_snapshot
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.pending_job import Active, PendingJob, to_running
from fairbank.scheduling.placement.free_resources import FreeResources
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.placement.search import PlacementSearch, find_placement

NOW = 1_000_020
DAY = 86_400


def full_cluster(nodes: int, jobs: int, *, seed: int = 5, free: int = 0) -> OnNodes:
    """Return a cluster of `nodes` nodes, `free` of them idle, with `jobs` pending jobs.

    Half of the jobs ask for parts of a node, some for a tenth of the cluster.
    """
    chance = Random(seed)
    cluster = _cluster(nodes)
    available, places, running, number = (
        FreeResources(cluster),
        PlacementSearch(cluster),
        list[Active](),
        0,
    )
    while available.idle.bit_count() > free:
        number += 1
        job = _job(chance, number, nodes)
        if job.wanted.nodes <= max(available.idle.bit_count() - free, 1):
            where = find_placement(
                cluster, available, places.request(job.wanted, job.partitions[0]), cluster.usable
            )
            if where is not None:
                available.take(where)
                running.append(
                    to_running(job, where, NOW - 600, 600 + chance.randrange(1, job.limit or DAY))
                )
    pending = [_job(chance, 1_000_000 + number, nodes) for number in range(jobs)]
    return node_snapshot(Nodes(cluster, search=places), pending=pending, running=running)


def _cluster(nodes: int) -> NodeTable:
    there = [
        Node(
            name=f"n{number:05}",
            cpus=64,
            memory=256_000,
            weight=2 if number % 4 == 0 else 1,
            features=frozenset({f"rack{number // 100}", "intel" if number % 3 else "amd"}),
        )
        for number in range(nodes)
    ]
    fat = PartitionRules(name="fat", nodes=tuple(node.name for node in there[::4]))
    return NodeTable(
        there,
        [
            PartitionRules(name="batch"),
            PartitionRules(name="short", max_seconds=DAY // 6, tier=2),
            fat,
        ],
    )


def _job(chance: Random, number: int, nodes: int) -> PendingJob:
    partition = chance.choice(["batch", "batch", "fat", "short"])
    return PendingJob(
        number=number,
        wanted=_wanted(chance, nodes),
        partitions=(partition,),
        priority=chance.randrange(1, 10**6),
        limit=chance.randrange(600, DAY // 6 if partition == "short" else DAY),
        user=f"u{number % 200}",
        submitted=NOW - chance.randrange(1, 10**6),
    )


def _wanted(chance: Random, nodes: int) -> ResourceRequest:
    kind = chance.random()
    if kind < 0.5:
        return ResourceRequest(cpus_per_task=chance.choice([1, 4, 8, 16, 32]), memory_per_cpu=2_000)
    most = 64 if kind < 0.9 else nodes // 10
    size = 2 ** chance.randrange(0, max(most, 2).bit_length())
    return ResourceRequest(
        nodes=min(size, max(nodes // 8, 1)),
        exclusive=True,
        memory_per_node=0,
        constraint=chance.choice(["", "", "intel", "amd"]),
    )
