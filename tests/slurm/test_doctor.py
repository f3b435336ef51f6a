"""`fairbank doctor --slurm` beside a real Slurm: all is well while it is, and what is broken is told with the remedy."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.running import RunningAgent
from tests.slurm.desk import asking, build, install, socket_of
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.daemons import MUNGED, SLURMCTLD
from tests.slurm.priced import priced
from tests.support.server import FAIRBANK, FairbankServer
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

MISSING = ["slurmctld: JobSubmitPlugins=(none)", "submit commands: CliFilterPlugins=(none)"]
"""What the lab leaves out, and the doctor tells."""


class Ward:
    """A cluster whose slurmctld asks an agent, and a bank with its prices."""

    def __init__(self, cluster: Cluster, bank: FairbankServer, agent: RunningAgent, site: Path) -> None:
        self.cluster, self.bank, self.agent, self.site = cluster, bank, agent, site

    def fairbank(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**self.bank.environment, **self.agent.environment, **self.cluster.place.environment}
        environment["FAIRBANK_SERVER"] = f"unix:{self.bank.socket}"
        return subprocess.run(
            [FAIRBANK, *words, "--site", str(self.site)], env=environment, capture_output=True, text=True, check=False, timeout=60
        )

    def wrong(self) -> list[str]:
        """What the doctor finds; each with what to do."""
        done = self.fairbank("doctor", "--slurm", "--json")
        assert done.stdout, done.stderr
        checks = json.loads(done.stdout)["data"]
        assert done.returncode == (0 if all(each["ok"] for each in checks) else 8)
        found = [each for each in checks if not each["ok"]]
        assert all(each["remedy"] for each in found)
        return [each["what"] for each in found]


@pytest.fixture
def ward(slurm: Cluster, checkout: Path, tmp_path: Path) -> Iterator[Ward]:
    install(build(checkout, tmp_path / "plugins"), slurm)
    site = tmp_path / "slurm.toml"
    site.write_text(f'policy = "{tmp_path}/policy"\n')
    with priced() as bank:
        agent = RunningAgent(f"unix:{bank.socket}", socket=socket_of(slurm), slurm_user='"slurm"')
        try:
            agent.start()
            with asking(slurm):
                yield Ward(slurm, bank, agent, site)
        finally:
            agent.close()


def test_a_fresh_installation_and_what_breaks_in_it(ward: Ward) -> None:
    assert f"the submission policy {ward.site.with_name('policy')}: it is not there" in ward.wrong()
    synced = ward.fairbank("slurm", "sync")
    assert synced.returncode == 0, synced.stderr
    ward.site.with_name("policy").chmod(0o644)
    wait_until(lambda: ward.wrong() == MISSING, "the plug-in to be connected", seconds=60)

    ward.agent.kill()
    (silent, *rest) = ward.wrong()
    assert silent.startswith("the agent answers: no agent answers at ")
    assert rest == MISSING
    ward.agent.start()
    wait_until(lambda: ward.wrong() == MISSING, "the plug-in to be connected again", seconds=60)

    ward.cluster.stop(MUNGED)
    try:
        assert any("munged" in each or each.startswith("Slurm's commands answer") for each in ward.wrong())
    finally:
        ward.cluster.start(MUNGED)

    ward.cluster.stop(SLURMCTLD)
    try:
        wait_until(lambda: len(ward.wrong()) == 2 + len(MISSING), "the agent to notice", seconds=60)
        (gone, *rest) = ward.wrong()
        assert gone.startswith("slurmctld answers: scontrol ended with 1")
        assert rest == [*MISSING, "slurmctld is connected to the agent: no"]
    finally:
        ward.cluster.start(SLURMCTLD)
