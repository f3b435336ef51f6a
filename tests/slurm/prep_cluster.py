"""A cluster with the PrEp plug-in and an agent of the tests beside it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from fairbank.agent.protocol import PluginMessage
from tests.slurm.agent import Agent
from tests.slurm.lab.cluster import Cluster
from tests.support.conditions import wait_until

PATIENCE = 12  # seconds that a question may wait
NAME, SITE_FACTOR = "prep_fairbank.so", "site_factor_fairbank.so"
LUA = ("job_submit.lua", "cli_filter.lua")
STRANGER = "these plug-ins are made for"  # so plugins/build refuses a release that it does not know


@dataclass(frozen=True)
class Desk:
    """The cluster, and the agent that its slurmctld knows. The agent of a test is at work unless
    the test stops it.
    """

    slurm: Cluster
    agent: Agent


def build(checkout: Path, into: Path) -> Path:
    """The plug-in for the Slurm of this machine. Raises AssertionError with what the compiler said;
    skips where it is not made for it.
    """
    done = subprocess.run(
        [str(checkout / "plugins" / "build"), str(into)],
        capture_output=True,
        text=True,
        check=False,
    )
    if STRANGER in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    return into / NAME


def install(plugin: Path, cluster: Cluster) -> None:
    target = cluster.place.plugins / plugin.name
    shutil.copy(plugin, target)
    target.chmod(0o755)


def install_lua(cluster: Cluster, checkout: Path) -> Path:
    """The submission policy's plug-ins where Slurm looks for them, as
    docs/howto/install-next-to-slurm.md has it. The file that they read is returned, and yet to be
    written.
    """
    conf = cluster.place.conf
    rules = conf / "fairbank"
    shutil.copytree(checkout / "plugins" / "fairbank", rules, dirs_exist_ok=True)
    for name in LUA:
        shutil.copy(checkout / "plugins" / name, conf)
    for path in (rules, *rules.iterdir(), *(conf / name for name in LUA)):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return rules / "policy"


def socket_of(cluster: Cluster) -> Path:
    return cluster.place.folder / "prep.sock"


def settings(cluster: Cluster, **changes: str) -> Mapping[str, str]:
    """Return the settings that load the plug-in. `changes` are its parameters, without their
    prefix.
    """
    ours = {
        "socket": str(socket_of(cluster)),
        "patience": str(PATIENCE),
        "poll_interval": "1",
        "outage_policy": "closed",
        **changes,
    }
    return {
        "PrEpPlugins": "prep/fairbank",
        "PrEpParameters": ",".join(f"fairbank_{key}={value}" for key, value in ours.items()),
    }


def table_of(cluster: Cluster) -> Path:
    """Return the path of the site factors that the agent writes."""
    return cluster.place.folder / "site_factor"


def ranked(cluster: Cluster) -> Mapping[str, str]:
    """Return the settings with which slurmctld adds the site factors of that table, read every
    second.
    """
    parameters = f"fairbank_table={table_of(cluster)},fairbank_poll_interval=1"
    return {
        "PrioritySiteFactorPlugin": "site_factor/fairbank",
        "PrioritySiteFactorParameters": parameters,
    }


@contextmanager
def asking(cluster: Cluster, **changes: str) -> Iterator[None]:
    """The cluster asks for a while."""
    with cluster.configured(settings(cluster, **changes)):
        yield


def runs(told: list[PluginMessage]) -> set[tuple[int, int, int]]:
    return {(each.run.job_id, each.run.submitted, each.run.restart) for each in told}


def start_soon(desk: Desk, job: int) -> None:
    """Not two minutes after it was requeued, but not within the same second either: its credential
    would count as revoked.
    """
    desk.slurm.root("scontrol", "update", f"jobid={job}", "starttime=now+3")


def wait_for_end(desk: Desk, job: int, count: int = 1, seconds: float = 30) -> None:
    wait_until(
        lambda: len(desk.agent.ends(job)) >= count,
        f"the end of job {job} to be told",
        seconds=seconds,
    )
