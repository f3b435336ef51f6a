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
from tests.slurm.conftest import RecordFigure
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.daemons import MUNGED, SLURMCTLD
from tests.slurm.prep_cluster import (
    SITE_FACTOR,
    build,
    install,
    install_lua,
    settings,
    site_factor_path,
    site_factor_settings,
    socket_of,
)
from tests.slurm.prices import priced
from tests.support.conditions import wait_until
from tests.support.server import FAIRBANK, FairbankServer

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

SCRIPTS = {"JobSubmitPlugins": "lua", "CliFilterPlugins": "lua"}


class DoctorCluster:
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

    def failed_checks(self) -> list[str]:
        """Return the failed checks of the doctor, each with its remedy."""
        process = self.fairbank("doctor", "--slurm", "--json")
        assert process.returncode in (0, 8), process.stderr
        checks = json.loads(process.stdout)["data"]
        assert process.returncode == (0 if all(check["ok"] for check in checks) else 8)
        failed = [check for check in checks if not check["ok"]]
        assert all(check["remedy"] for check in failed)
        return [check["what"] for check in failed]


@pytest.fixture
def doctor_cluster(slurm: Cluster, checkout: Path, tmp_path: Path) -> Iterator[DoctorCluster]:
    prep = build(checkout, tmp_path / "plugins")
    install(prep, slurm)
    install(prep.with_name(SITE_FACTOR), slurm)
    policy, site = install_lua(slurm, checkout), tmp_path / "slurm.toml"
    site.write_text(f'policy = "{policy}"\n')
    factors = f'[site_factor]\npath = "{site_factor_path(slurm)}"\ncluster = "lab"\nrefresh = 0.5\n'
    with priced() as bank:
        agent = RunningAgent(
            f"unix:{bank.socket}", tables=factors, socket=socket_of(slurm), slurm_user='"slurm"'
        )
        try:
            agent.start()
            with slurm.configured({**settings(slurm), **site_factor_settings(slurm), **SCRIPTS}):
                yield DoctorCluster(slurm, bank, agent, site, policy)
        finally:
            agent.close()


def test_doctor_on_an_installation_and_its_faults(
    doctor_cluster: DoctorCluster, record_figure: RecordFigure
) -> None:
    assert (
        f"submission policy {doctor_cluster.policy}: the file does not exist"
        in doctor_cluster.failed_checks()
    )
    synced = doctor_cluster.fairbank("slurm", "sync")
    assert synced.returncode == 0, synced.stderr
    doctor_cluster.policy.chmod(0o644)
    wait_until(
        lambda: doctor_cluster.failed_checks() == [], "the plug-in to be connected", seconds=60
    )
    process = doctor_cluster.fairbank("doctor", "--slurm")
    assert process.returncode == 0, process.stdout + process.stderr
    for name in ("job_submit.lua", "cli_filter.lua", "site_factor"):
        assert name in process.stdout
    record_figure(f"$ fairbank doctor --slurm\n{process.stdout}")

    doctor_cluster.agent.kill()
    silent, lost = doctor_cluster.failed_checks()
    assert "those of jobs that ended more than 300 s (MinJobAge) before are lost" in lost
    assert silent.startswith("agent: no agent answers at ")
    doctor_cluster.agent.start()
    wait_until(
        lambda: doctor_cluster.failed_checks() == [],
        "the plug-in to be connected again",
        seconds=60,
    )

    doctor_cluster.cluster.stop(MUNGED)
    try:
        assert any(
            "munged" in check or check.startswith("Slurm's commands")
            for check in doctor_cluster.failed_checks()
        )
    finally:
        doctor_cluster.cluster.start(MUNGED)

    doctor_cluster.cluster.stop(SLURMCTLD)
    try:
        wait_until(
            lambda: len(doctor_cluster.failed_checks()) == 3, "the agent to notice", seconds=60
        )
        no_answer, lost, silent = doctor_cluster.failed_checks()
        assert "(MinJobAge) before are lost" in lost
        assert no_answer.startswith("slurmctld answers: scontrol ended with 1")
        assert silent == "slurmctld is connected to the agent: no"
    finally:
        doctor_cluster.cluster.start(SLURMCTLD)
