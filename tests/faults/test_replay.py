"""A recorded workload ends in the same books on every store: the bundled month always, the shared
traces where they are.
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
from tests.support.server import FairbankServer, made
from tests.support.traces import JOBS

Tell = Callable[[str], None]

STARTS = Instant(1_793_491_200)  # 2026-11-01


@pytest.fixture
def commands() -> Iterator[FairbankServer]:
    """Only to have commands to say: a replay makes its own books."""
    with made() as bank:
        yield bank


def replayed(
    commands: FairbankServer, trace: Path, urls: list[str], tell: Tell, *options: str
) -> None:
    """The same fingerprint on each store, and every invariant held."""
    fingerprints = set()
    for url in urls:
        done = commands.command(
            "replay", str(trace), "--store", url, "--json", *options, timeout=1_800
        )
        assert done.returncode == 0, done.stdout + done.stderr
        told = json.loads(done.stdout)
        summary = told["summary"]
        assert all(check["held"] for check in told["checks"])
        fingerprints.add(summary["fingerprint"])
        kind, refused = url.partition(":")[0], sum(summary["refusals"].values())
        facts = (
            f"{summary['jobs']:,} jobs, {refused:,} refusals, {summary['operations']:,} operations"
        )
        tell(f"{trace.name} on {kind}: {facts}, fingerprint {summary['fingerprint']}")
    assert len(fingerprints) == 1


@pytest.fixture
def urls(tmp_path: Path, database: str) -> list[str]:
    return ["memory:", f"sqlite:///{tmp_path}/fairbank.sqlite", database]


@pytest.mark.slow
def test_the_synthetic_month(tmp_path: Path, urls: list[str], tell: Tell) -> None:
    """As `fairbank replay` does it, but in this very process."""
    trace = tmp_path / "month.swf"
    trace.write_text("".join(write(*month(SyntheticSite(starts=STARTS), 1))))
    options = Namespace(
        grant=90, periods=2, days=None, by=None, record_overruns=False, progress="none", quiet=True
    )
    done = [replay_trace(options, str(trace), url, cluster="local") for url in urls]
    assert all(check.holds_true for each in done for check in each.checks)
    assert sum(done[0].refusals.values()) > 0
    assert len({each.fingerprint for each in done}) == 1
    tell(
        f"{done[0].demand.jobs:,} jobs, {done[0].operations:,} operations, fingerprint"
        f" {done[0].fingerprint} on {len(urls)} stores"
    )


@pytest.mark.campaign
@pytest.mark.usefixtures("at_length")
@pytest.mark.parametrize("periods", [1, 4])
@pytest.mark.parametrize("name", JOBS)
def test_a_shared_trace(
    commands: FairbankServer,
    recorded: Callable[[str], Path],
    name: str,
    periods: int,
    urls: list[str],
    tell: Tell,
) -> None:
    replayed(commands, recorded(name), urls, tell, "--periods", str(periods))
