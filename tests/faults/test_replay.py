"""Replay of a workload gives the same ledger on every store: the synthetic month always, the shared
traces if present.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairbank.cli.commands.planning.replay import replay_trace
from fairbank.core.time import Instant
from fairbank.simulator.traces.swf import write
from fairbank.simulator.traces.synthetic import SyntheticSite, month
from tests.support.figures import LogFigure
from tests.support.server import FairbankServer, create_bank
from tests.support.traces import JOBS

STARTS = Instant(1_793_491_200)  # 2026-11-01


@pytest.fixture
def command_server() -> Iterator[FairbankServer]:
    """Provide a server to run commands; a replay creates its own ledger."""
    with create_bank() as bank:
        yield bank


def check_replays(
    command_server: FairbankServer,
    trace: Path,
    urls: list[str],
    log_figure: LogFigure,
    *options: str,
) -> None:
    """Check that each store gets the same fingerprint and holds every invariant."""
    fingerprints = set()
    for url in urls:
        done = command_server.command(
            "replay", str(trace), "--store", url, "--json", *options, timeout=1_800
        )
        assert done.returncode == 0, done.stdout + done.stderr
        data = json.loads(done.stdout)
        summary = data["summary"]
        assert all(check["ok"] for check in data["checks"])
        fingerprints.add(summary["fingerprint"])
        kind, refused = url.partition(":")[0], sum(summary["refusals"].values())
        facts = (
            f"{summary['jobs']:,} jobs, {refused:,} refusals, {summary['operations']:,} operations"
        )
        log_figure(f"{trace.name} on {kind}: {facts}, fingerprint {summary['fingerprint']}")
    assert len(fingerprints) == 1


@pytest.fixture
def urls(tmp_path: Path, database: str) -> list[str]:
    return ["memory:", f"sqlite:///{tmp_path}/fairbank.sqlite", database]


@pytest.mark.slow
def test_synthetic_month_gives_the_same_ledger_on_every_store(
    tmp_path: Path, urls: list[str], log_figure: LogFigure
) -> None:
    """The replay of `fairbank replay`, in this process."""
    trace = tmp_path / "month.swf"
    trace.write_text("".join(write(*month(SyntheticSite(starts=STARTS), 1))))
    options = Namespace(
        grant=90, periods=2, days=None, by=None, record_overruns=False, progress="none", quiet=True
    )
    done = [replay_trace(options, str(trace), url, cluster="local") for url in urls]
    assert all(check.holds_true for replay in done for check in replay.checks)
    assert sum(done[0].refusals.values()) > 0
    assert len({replay.fingerprint for replay in done}) == 1
    log_figure(
        f"{done[0].demand.jobs:,} jobs, {done[0].operations:,} operations, fingerprint"
        f" {done[0].fingerprint} on {len(urls)} stores"
    )


@pytest.mark.campaign
@pytest.mark.usefixtures("long_form")
@pytest.mark.parametrize("periods", [1, 4])
@pytest.mark.parametrize("name", JOBS)
def test_shared_trace_gives_the_same_ledger_on_every_store(
    command_server: FairbankServer,
    recorded: Callable[[str], Path],
    name: str,
    periods: int,
    urls: list[str],
    log_figure: LogFigure,
) -> None:
    check_replays(command_server, recorded(name), urls, log_figure, "--periods", str(periods))
