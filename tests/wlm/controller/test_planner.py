"""Planner of the controller: passes in a thread, whose plans may be dropped."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from fairbank.scheduling.machines.node_snapshot import OnNodes, node_snapshot
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.wlm.controller.planner import Planner
from fairbank.wlm.core.events import PlanMade
from fairbank.wlm.core.settings import SchedulingSettings


def test_plan_for_an_earlier_cluster_is_dropped_and_a_new_pass_made() -> None:
    async def drop_first() -> tuple[int, int]:
        snapshots: list[OnNodes] = []
        plans: asyncio.Queue[PlanMade] = asyncio.Queue()

        def replace_cluster() -> None:
            planner.drop_plan()
            planner.request()

        def snapshot() -> tuple[Callable[[], OnNodes], int]:
            if not snapshots:  # comes before the end of the pass, which is another callback
                asyncio.get_running_loop().call_soon(replace_cluster)
            snapshots.append(node_snapshot(Nodes(NodeTable([], []))))
            return lambda: snapshots[-1], 1_000

        planner = Planner(SchedulingSettings, snapshot, plans.put_nowait)
        planner.request()
        await plans.get()
        planner.close()
        return len(snapshots), plans.qsize()

    assert asyncio.run(drop_first()) == (2, 0)


def test_end_of_the_controller_does_not_wait_for_a_pass() -> None:
    begun, may_go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def slow_snapshot() -> OnNodes:
        begun.set()
        may_go_on.wait()
        ended.set()
        return node_snapshot(Nodes(NodeTable([], [])))

    async def close_during_a_pass() -> int:
        plans: asyncio.Queue[PlanMade] = asyncio.Queue()
        planner = Planner(SchedulingSettings, lambda: (slow_snapshot, 1_000), plans.put_nowait)
        planner.request()
        while not begun.is_set():
            await asyncio.sleep(0)
        planner.close()
        assert not ended.is_set()
        may_go_on.set()
        while not ended.is_set():
            await asyncio.sleep(0)
        return plans.qsize()

    assert asyncio.run(close_during_a_pass()) == 0
