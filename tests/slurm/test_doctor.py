"""`fairbank doctor --slurm` on a real Slurm: no failed check on a correct installation, and each
fault is reported with a remedy.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.running_agent import RunningAgent
from tests.slurm.conftest import Tell
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.daemons import MUNGED, SLURMCTLD
from tests.slurm.prep_cluster import (
    SITE_FACTOR,
    build,
    install,
    install_lua,
    ranked,
    settings,
    socket_of,
    table_of,
)
from tests.slurm.prices import priced
from tests.support.conditions import wait_until
from tests.support.server import FAIRBANK, FairbankServer

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

SCRIPTS = {"JobSubmitPlugins": "lua", "CliFilterPlugins": "lua"}


class Ward:
    """Cluster with all plug-ins, its agent with a table of site factors, and a bank with its
    prices.
    """

    def __init__(
        self, cluster: Cluster, bank: FairbankServer, agent: RunningAgent, site: Path, policy: Path
    ) -> None:
        self.cluster, self.bank, self.agent, self.site, self.policy = (
            cluster,
            bank,
            agent,
            site,
            policy,
        )

    def fairbank(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **self.bank.environment,
            **self.agent.environment,
            **self.cluster.place.environment,
        }
        environment["FAIRBANK_SERVER"] = f"unix:{self.bank.socket}"
        return subprocess.run(
            [FAIRBANK, *words, "--site", str(self.site)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def wrong(self) -> list[str]:
        """Return the failed checks of the doctor, each with its remedy."""
        process = self.fairbank("doctor", "--slurm", "--json")
        assert process.returncode in (0, 8), process.stderr
        checks = json.loads(process.stdout)["data"]
        assert process.returncode == (0 if all(check["ok"] for check in checks) else 8)
        failed = [check for check in checks if not check["ok"]]
        assert all(check["remedy"] for check in failed)
        return [check["what"] for check in failed]


@pytest.fixture
def ward(slurm: Cluster, checkout: Path, tmp_path: Path) -> Iterator[Ward]:
    prep = build(checkout, tmp_path / "plugins")
    install(prep, slurm)
    install(prep.with_name(SITE_FACTOR), slurm)
    policy, site = install_lua(slurm, checkout), tmp_path / "slurm.toml"
    policy.unlink(missing_ok=True)  # another test may have had one
    site.write_text(f'policy = "{policy}"\n')
    factors = f'[site_factor]\npath = "{table_of(slurm)}"\ncluster = "lab"\nrefresh = 0.5\n'
    with priced() as bank:
        agent = RunningAgent(
            f"unix:{bank.socket}", tables=factors, socket=socket_of(slurm), slurm_user='"slurm"'
        )
        try:
            agent.start()
            with slurm.configured({**settings(slurm), **ranked(slurm), **SCRIPTS}):
                yield Ward(slurm, bank, agent, site, policy)
        finally:
            agent.close()


def test_doctor_on_an_installation_and_its_faults(ward: Ward, tell: Tell) -> None:
    assert f"the submission policy {ward.policy}: the file does not exist" in ward.wrong()
    synced = ward.fairbank("slurm", "sync")
    assert synced.returncode == 0, synced.stderr
    ward.policy.chmod(0o644)
    wait_until(lambda: ward.wrong() == [], "the plug-in to be connected", seconds=60)
    process = ward.fairbank("doctor", "--slurm")
    assert process.returncode == 0, process.stdout + process.stderr
    for name in ("job_submit.lua", "cli_filter.lua", "site_factor"):
        assert name in process.stdout
    tell(f"$ fairbank doctor --slurm\n{process.stdout}")

    ward.agent.kill()
    (silent,) = ward.wrong()
    assert silent.startswith("the agent answers: no agent answers at ")
    ward.agent.start()
    wait_until(lambda: ward.wrong() == [], "the plug-in to be connected again", seconds=60)

    ward.cluster.stop(MUNGED)
    try:
        assert any(
            "munged" in check or check.startswith("Slurm's commands answer")
            for check in ward.wrong()
        )
    finally:
        ward.cluster.start(MUNGED)

    ward.cluster.stop(SLURMCTLD)
    try:
        wait_until(lambda: len(ward.wrong()) == 2, "the agent to notice", seconds=60)
        no_answer, silent = ward.wrong()
        assert no_answer.startswith("slurmctld answers: scontrol ended with 1")
        assert silent == "slurmctld is connected to the agent: no"
    finally:
        ward.cluster.start(SLURMCTLD)
