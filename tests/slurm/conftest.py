"""Shared cluster of the tests, the figures they measure, and the check that the host is unchanged
afterwards.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.slurm.agent import SimulatedAgent, let_run
from tests.slurm.lab.cluster import Cluster, names
from tests.slurm.lab.guard import cluster_guard, running_cluster
from tests.slurm.lab.packages import Unobtainable, check
from tests.slurm.prep_cluster import PrepCluster, build, install, plugin_configured, socket_of
from tests.support.conditions import wait_until

RecordFigure = Callable[[str], None]

SHOWN_LINES, SHOWN_COLUMNS = 40, 400  # of each failure in the summary

_FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def record_figure(request: pytest.FixtureRequest) -> RecordFigure:
    """Return a function that records a measured figure, shown after all tests."""
    return request.config.stash.setdefault(_FIGURES, []).append


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, record_figure: RecordFigure) -> Iterator[Cluster]:
    """Return the running cluster of all tests. A test that needs it idle requests `slurm`."""
    try:
        check()
    except Unobtainable as why:
        pytest.skip(f"Slurm: {why}")
    before, alone = host_accounts(), not names()
    name = f"tests-{os.getpid()}"
    with cluster_guard(name):
        begun = time.monotonic()
        cluster = Cluster.up(name)
        record_figure(
            f"from nothing to {len(cluster.node_names)} idle nodes:"
            f" {time.monotonic() - begun:.1f} s"
        )
        stay: list[str] = []
        try:
            yield cluster
        finally:
            begun = time.monotonic()
            stay = cluster.down()
            record_figure(f"from there to nothing: {time.monotonic() - begun:.1f} s")
    left = [f"process {process.pid}" for process in cluster.processes()]
    left += [str(cluster.place.folder)] if cluster.place.folder.exists() else []
    if alone and not names() and not stay:  # another checkout may run a cluster with the same users
        left += changed_accounts(before)
    if request.session.testsfailed:  # the failures matter more
        record_figure(f"left behind: {', '.join(left) or 'nothing'}")
    else:
        assert left == []


@pytest.fixture
def slurm(cluster: Cluster) -> Cluster:
    """Return the cluster with all daemons, no job and idle nodes, whatever state the previous test
    left.
    """
    cluster.calm()
    return cluster


@pytest.fixture(scope="module")
def cluster_with_plugin(
    cluster: Cluster, checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Return the cluster with the PrEp plug-in configured, for all tests of a module."""
    install(build(checkout, tmp_path_factory.mktemp("plugins")), cluster)
    with plugin_configured(cluster):
        yield cluster


@pytest.fixture
def prep(cluster_with_plugin: Cluster) -> Iterator[PrepCluster]:
    """Return the idle cluster and an agent that has received nothing yet."""
    agent = SimulatedAgent(socket_of(cluster_with_plugin)).start()
    cluster_with_plugin.calm()
    wait_until(lambda: agent.connections > 0, "the plug-in to find the agent")
    agent.received.clear()
    try:
        yield PrepCluster(cluster_with_plugin, agent)
    finally:
        agent.policy, agent.raw, agent.acknowledges = let_run, None, True
        agent.start() if agent.is_stopped else None
        cluster_with_plugin.calm()
        agent.stop()


@contextmanager
def own_cluster(
    name: str, size: str = "full", changes: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """Start a cluster beside that of all tests; skip the test if there can be none."""
    try:
        check()
    except Unobtainable as why:
        pytest.skip(f"Slurm: {why}")
    with running_cluster(name, size, changes) as cluster:
        yield cluster


def host_accounts() -> dict[str, set[str]]:
    """Return the lines of the host's user and group files, by file."""
    files = ("passwd", "group", "shadow", "gshadow", "subuid", "subgid")
    return {
        name: set(path.read_text().splitlines())
        for name in files
        if (path := Path("/etc", name)).exists()
    }


def changed_accounts(before: Mapping[str, set[str]]) -> list[str]:
    """Return the names with new or missing lines, and the file; not the lines, which may be
    secret.
    """
    now = host_accounts()
    return [
        f"{word} in /etc/{name}: {line.partition(':')[0]}"
        for name in sorted({*before, *now})
        for word, lines in (
            ("new", now.get(name, set()) - before.get(name, set())),
            ("gone", before.get(name, set()) - now.get(name, set())),
        )
        for line in sorted(lines)
    ]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the figures and, last, a summary of the failed tests for readers of the end of a
    log.
    """
    figures = config.stash.get(_FIGURES, [])
    if not figures:
        return
    terminalreporter.section("measured figures")
    for line in figures:
        terminalreporter.line(f"    {line}")
    failed = [
        report for outcome in ("failed", "error") for report in terminalreporter.getreports(outcome)
    ]
    if failed:
        terminalreporter.section("failures")
    for report in failed:
        terminalreporter.line(f"{report.nodeid} ({report.when})")
        for line in [line for line in report.longreprtext.splitlines() if line.startswith("E ")][
            :SHOWN_LINES
        ]:
            terminalreporter.line(line[:SHOWN_COLUMNS])
