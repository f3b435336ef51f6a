"""Node daemon and launcher: their connections, and what ended jobs leave behind."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from fairbank.wlm.protocol.messages import PollNode, Registration
from tests.support.conditions import wait_until
from tests.wlm.node.running_node import RunningNode
from tests.wlm.stepd.steps import private_kib

AT_ONCE = 20
GROWTH_KIB = 2_048
"""Memory by which a daemon may grow: two KiB for each of 1,000 jobs."""


def descriptors(pid: int) -> list[str]:
    """Return what the open files of a process are, such as `socket:[7]`."""
    files = list[str]()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it is closed now
            files.append(str(path.readlink()))
    return sorted(files)


def unix_sockets() -> dict[str, str]:
    """Return the paths of the Unix sockets of this host, by the names of their descriptors."""
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return {f"socket:[{row[6]}]": "".join(row[7:]) for row in rows}


def run_jobs(node: RunningNode, numbers: range) -> None:
    """Run jobs, some at a time, and let the node forget them."""
    for first in numbers[::AT_ONCE]:
        batch = range(first, min(first + AT_ONCE, numbers.stop))
        runs = [node.submit("true", number, output="/dev/null") for number in batch]
        for run in runs:
            node.controller.wait(run, "finished")
            node.controller.forget(run)
        node.controller.changes.clear()


@pytest.mark.parametrize("jobs", [60, pytest.param(1_000, marks=pytest.mark.campaign)])
def test_jobs_leave_no_descriptor_or_memory_behind(node: RunningNode, jobs: int) -> None:
    daemons = [node.pid, node.launcher]
    run_jobs(node, range(1, jobs + 1))  # caches are full then
    files, memory = [*map(descriptors, daemons)], [*map(private_kib, daemons)]
    run_jobs(node, range(jobs + 1, 2 * jobs + 1))
    wait_until(lambda: [*map(descriptors, daemons)] == files, "the descriptors of before")
    growth = [now - before for now, before in zip(map(private_kib, daemons), memory, strict=True)]
    assert max(growth) < GROWTH_KIB, growth
    assert [*(node.folder / "spool/jobs").iterdir()] == []


def test_node_has_no_connection_but_to_its_controller_and_steps(tmp_path: Path) -> None:
    """The nodes of a job do not speak with each other, and no port is open."""
    nodes = list[RunningNode]()
    try:
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            nodes.append(RunningNode(tmp_path / name))
        start = nodes[0].job("exec sleep 600")
        for node in nodes:
            node.submit("exec sleep 600", run=start.run)
            node.controller.wait(start.run, "running")
        for node in nodes:
            paths = unix_sockets()
            own = [name for name in descriptors(node.pid) if name.startswith("socket:")]
            # Its own end of a connection to a socket with a path has none: those to the launcher,
            # to the step daemon, and both ends of the pair that wakes the event loop.
            assert Counter(paths.get(name, name) for name in own) == {node.hosted.socket: 2, "": 4}
            node.controller.end(start.run)
            node.controller.wait(start.run, "finished")
            node.controller.forget(start.run)
            assert node.controller.ask(PollNode(), Registration).runs == ()
            wait_until(
                partial(_has_connections, node, len(own) - 1), "the end of the step's connection"
            )
    finally:
        for node in nodes:
            node.close()


def _has_connections(node: RunningNode, count: int) -> bool:
    return sum(name.startswith("socket:") for name in descriptors(node.pid)) == count
