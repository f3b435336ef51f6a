"""Cluster with the PrEp plug-in and a simulated agent."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from fairbank.agent.protocol import PluginMessage
from tests.slurm.agent import SimulatedAgent
from tests.slurm.lab.cluster import Cluster
from tests.support.conditions import wait_until

PROLOG_TIMEOUT_SECONDS = 12  # seconds that a prolog request may wait
NAME, SITE_FACTOR = "prep_fairbank.so", "site_factor_fairbank.so"
LUA = ("job_submit.lua", "cli_filter.lua")
UNSUPPORTED = "these plug-ins are for"  # message of plugins/build for an unsupported release


@dataclass(frozen=True)
class PrepCluster:
    """Cluster, and the agent that its slurmctld connects to. The agent runs unless the test stops
    it.
    """

    slurm: Cluster
    agent: SimulatedAgent


def build(checkout: Path, into: Path) -> Path:
    """Build the plug-in for the installed Slurm. Raises AssertionError with the compiler's
    messages; skips the test if the release is not supported.
    """
    process = subprocess.run(
        [str(checkout / "plugins" / "build"), str(into)],
        capture_output=True,
        text=True,
        check=False,
    )
    if UNSUPPORTED in process.stderr:
        pytest.skip(process.stderr.strip())
    assert process.returncode == 0, process.stdout + process.stderr
    return into / NAME


def install(plugin: Path, cluster: Cluster) -> None:
    target = cluster.place.plugins / plugin.name
    shutil.copy(plugin, target)
    target.chmod(0o755)


def install_lua(cluster: Cluster, checkout: Path) -> Path:
    """Install the Lua plug-ins as in docs/howto/install-next-to-slurm.md. Return the path of the
    policy file, which is not written yet.
    """
    conf = cluster.place.conf
    remove_policy(cluster)
    rules = conf / "fairbank"
    shutil.copytree(checkout / "plugins" / "fairbank", rules, dirs_exist_ok=True)
    for name in LUA:
        shutil.copy(checkout / "plugins" / name, conf)
    for path in (rules, *rules.iterdir(), *(conf / name for name in LUA)):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return policy_path(cluster)


def policy_path(cluster: Cluster) -> Path:
    """Return the path of the policy file."""
    return cluster.place.conf / "fairbank" / "policy"


def remove_policy(cluster: Cluster) -> None:
    """Remove the policy file of an earlier test, which `fairbank why` would obey."""
    policy_path(cluster).unlink(missing_ok=True)


def socket_of(cluster: Cluster) -> Path:
    return cluster.place.folder / "prep.sock"


def settings(cluster: Cluster, **changes: str) -> Mapping[str, str]:
    """Return the settings that load the plug-in. `changes` are its parameters without their
    prefix.
    """
    ours = {
        "socket": str(socket_of(cluster)),
        "patience": str(PROLOG_TIMEOUT_SECONDS),
        "poll_interval": "1",
        "outage_policy": "closed",
        **changes,
    }
    return {
        "PrEpPlugins": "prep/fairbank",
        "PrEpParameters": ",".join(f"fairbank_{key}={value}" for key, value in ours.items()),
    }


def site_factor_path(cluster: Cluster) -> Path:
    """Return the path of the agent's table of site factors."""
    return cluster.place.folder / "site_factor"


def site_factor_settings(cluster: Cluster) -> Mapping[str, str]:
    """Return the settings with which slurmctld adds the site factors of the table, read every
    second.
    """
    parameters = f"fairbank_table={site_factor_path(cluster)},fairbank_poll_interval=1"
    return {
        "PrioritySiteFactorPlugin": "site_factor/fairbank",
        "PrioritySiteFactorParameters": parameters,
    }


@contextmanager
def plugin_configured(cluster: Cluster, **changes: str) -> Iterator[None]:
    """Configure the PrEp plug-in for the duration of the block."""
    with cluster.configured(settings(cluster, **changes)):
        yield


def run_keys(messages: list[PluginMessage]) -> set[tuple[int, int, int]]:
    return {
        (message.run.job_id, message.run.submitted, message.run.restart) for message in messages
    }


def start_requeued(prep: PrepCluster, job: int) -> None:
    """Start a requeued job in three seconds instead of two minutes. In the same second, its
    credential would count as revoked.
    """
    prep.slurm.root("scontrol", "update", f"jobid={job}", "starttime=now+3")


def wait_for_end(prep: PrepCluster, job: int, count: int = 1, seconds: float = 30) -> None:
    wait_until(
        lambda: len(prep.agent.ends(job)) >= count,
        f"the end of job {job} to be reported",
        seconds=seconds,
    )
