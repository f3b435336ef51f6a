"""Shared cluster of the tests, the figures they measure, and the check that the host is unchanged
afterwards.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.slurm.agent import Agent, let_run
from tests.slurm.lab.cluster import Cluster, names
from tests.slurm.lab.packages import Unobtainable, check
from tests.slurm.prep_cluster import Desk, asking, build, install, socket_of
from tests.support.conditions import wait_until

Tell = Callable[[str], None]

TOLD_LINES, TOLD_COLUMNS = 40, 400  # of each failure, at the end of the output

_FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def tell(request: pytest.FixtureRequest) -> Tell:
    """Return a function that records a measured figure, shown after all tests."""
    return request.config.stash.setdefault(_FIGURES, []).append


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, checkout: Path, tell: Tell) -> Iterator[Cluster]:
    """Return the running cluster of all tests. A test that needs it idle requests `slurm`."""
    try:
        check()
    except Unobtainable as why:
        pytest.skip(f"Slurm: {why}")
    before, alone = people_of_the_host(), not names()
    name = f"tests-{os.getpid()}"
    with guarded(name, checkout):
        begun = time.monotonic()
        cluster = Cluster.up(name)
        tell(
            f"from nothing to {len(cluster.node_names)} idle nodes:"
            f" {time.monotonic() - begun:.1f} s"
        )
        stay: list[str] = []
        try:
            yield cluster
        finally:
            begun = time.monotonic()
            stay = cluster.down()
            tell(f"from there to nothing: {time.monotonic() - begun:.1f} s")
    left = [f"process {process.pid}" for process in cluster.processes()]
    left += [str(cluster.place.folder)] if cluster.place.folder.exists() else []
    if (
        alone and not names() and not stay
    ):  # another checkout may have a cluster of its own, with the same people
        left += changed(before)
    if request.session.testsfailed:  # they are what to look at
        tell(f"left behind: {', '.join(left) or 'nothing'}")
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
def asked_cluster(
    cluster: Cluster, checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Return the cluster with the PrEp plug-in configured, for all tests of a module."""
    install(build(checkout, tmp_path_factory.mktemp("plugins")), cluster)
    with asking(cluster):
        yield cluster


@pytest.fixture
def desk(asked_cluster: Cluster) -> Iterator[Desk]:
    """Return the idle cluster and an agent that has received nothing yet."""
    agent = Agent(socket_of(asked_cluster)).start()
    asked_cluster.calm()
    wait_until(lambda: agent.connections > 0, "the plug-in to find the agent")
    agent.heard.clear()
    try:
        yield Desk(asked_cluster, agent)
    finally:
        agent.policy, agent.raw, agent.notes = let_run, None, True
        agent.start() if agent.absent else None
        asked_cluster.calm()
        agent.stop()


@contextmanager
def guarded(name: str, checkout: Path) -> Iterator[None]:
    """Start a process that removes the cluster if the tests are killed."""
    command = [sys.executable, "-m", "tests.slurm.lab", "guard", "--name", name]
    with subprocess.Popen(command, cwd=checkout, stdin=subprocess.PIPE, start_new_session=True):
        yield


def people_of_the_host() -> dict[str, set[str]]:
    """Return the lines of the host's user and group files, by file."""
    files = ("passwd", "group", "shadow", "gshadow", "subuid", "subgid")
    return {
        name: set(path.read_text().splitlines())
        for name in files
        if (path := Path("/etc", name)).exists()
    }


def changed(before: Mapping[str, set[str]]) -> list[str]:
    """Return the names with new or missing lines, and the file; not the lines, which may be
    secret.
    """
    now = people_of_the_host()
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
    terminalreporter.section("figures of the lab")
    for line in figures:
        terminalreporter.line(f"    {line}")
    failed = [
        report for outcome in ("failed", "error") for report in terminalreporter.getreports(outcome)
    ]
    if failed:
        terminalreporter.section("what failed")
    for report in failed:
        terminalreporter.line(f"{report.nodeid} ({report.when})")
        for line in [line for line in report.longreprtext.splitlines() if line.startswith("E ")][
            :TOLD_LINES
        ]:
            terminalreporter.line(line[:TOLD_COLUMNS])
