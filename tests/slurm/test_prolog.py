"""PrologSlurmctld scripts instead of the plug-in: one asks the bank, the other the agent. Slurm
gets the answer, and reconciling charges the run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import pytest

from fairbank.rest.client import Client, parse_address
from tests.agent.running_agent import RunningAgent
from tests.slurm.bank_cluster import RICH, SU, agent_for, prices
from tests.slurm.conftest import RecordFigure
from tests.slurm.lab.cluster import Cluster
from tests.slurm.readable_checkout import PYTHON, install_client, require_system_python
from tests.support.conditions import wait_until
from tests.support.server import FairbankServer, create_bank

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

PACKED = Path(__file__).parents[2] / "packaging" / "slurm"
PROGRAM = "/opt/fairbank/bin/fairbank"
CLIENT, SOCKET = "/usr/local/libexec/fairbank/prolog_client", "/run/fairbank-agent/prep.sock"
WITH_SCRIPT, WITH_AGENT = "prolog_slurmctld", "prolog_with_agent"
TIMEOUT_SECONDS = 120  # each prolog starts Python, which is slow on a busy machine


class Bank:
    """Bank with a project of dave that has little credit and one of alice that has much, and the
    script that contacts it.
    """

    def __init__(self, server: FairbankServer, cluster: Cluster) -> None:
        self.server = server
        self.client = Client(parse_address(f"unix:{server.socket}"))
        self.script = cluster.place.folder / "prolog_slurmctld"
        self.log = cluster.place.logs / "prolog"
        self.agent: RunningAgent | None = None
        for number, (account, credit) in enumerate(
            (("wg_astro", RICH), ("wg_chem", 1 * SU)), 60_900
        ):
            self.client.post("/project", {"gname": account, "gid": number})
            terms = {
                "account": account,
                "resource": "cpu",
                "category": "research",
                "start": "2020-01-01",
                "end": "2040-01-01",
            }
            self.client.post("/alloc", {**terms, "amount": credit, "comment": "test"})

    @property
    def starting(self) -> Path:
        """Return the list of starting jobs that the clients of the agent share."""
        assert self.agent
        return self.agent.socket.with_name(f"{self.agent.socket.name}.starting")

    def write_script(self, cluster: Cluster) -> None:
        """Write the script that asks the bank, for this cluster and this bank."""
        packed = (PACKED / "prolog_slurmctld").read_text()
        assert PROGRAM in packed
        names = {"FAIRBANK_SERVER": f"unix:{self.server.socket}", **install_client(cluster)}
        self._write(cluster, packed.replace(PROGRAM, f"{PYTHON} -m fairbank.cli"), names)

    def write_script_with_agent(
        self, cluster: Cluster, agent: RunningAgent, checkout: Path, folder: Path
    ) -> None:
        """Write the script that asks the agent, and install its client."""
        # It builds the client for each Slurm, the plug-ins perhaps not for this one.
        build = [str(checkout / "plugins" / "build"), str(folder)]
        subprocess.run(build, capture_output=True, check=False)
        client = Path(shutil.copy(folder / "prolog_client", cluster.place.folder))
        client.chmod(0o755)
        self.agent = agent
        # In the package the socket's directory belongs to Slurm's user, here it is root's.
        self.starting.touch(mode=0o600)
        shutil.chown(self.starting, "slurm")
        packed = (PACKED / "prolog_with_agent").read_text()
        assert (CLIENT in packed, SOCKET in packed) == (True, True)
        text = packed.replace(CLIENT, str(client)).replace(SOCKET, str(agent.socket))
        self._write(cluster, text, {})

    def _write(self, cluster: Cluster, packed: str, names: Mapping[str, str]) -> None:
        names = {"SLURM_CONF": str(cluster.place.slurm_conf), **names}
        exports = "".join(f"export {name}='{value}'\n" for name, value in names.items())
        self.log.touch()
        self.log.chmod(0o666)
        output = f"exec 2>>{self.log}\n"
        self.script.write_text(packed.replace("export PATH\n", f"export PATH\n{exports}{output}"))
        self.script.chmod(0o755)

    def runs(self, job: int) -> list[str]:
        return [
            run["state"]
            for run in self.client.get("/job", {"limit": 1000})["data"]
            if run["job_id"] == job
        ]


@pytest.fixture(params=[WITH_SCRIPT, WITH_AGENT])
def bank(
    slurm: Cluster, request: pytest.FixtureRequest, checkout: Path, tmp_path: Path
) -> Iterator[Bank]:
    with ExitStack() as stack:
        server = stack.enter_context(create_bank())
        slurm_user = int(
            slurm.root("scontrol", "show", "config")
            .partition("SlurmUser")[2]
            .partition("(")[2]
            .partition(")")[0]
        )
        settings = server.config.read_text().partition("[clusters.local]")[0]
        agents = [slurm_user, os.geteuid()]
        server.config.write_text(f"{settings}[clusters.lab]\nagents = {agents}\n{prices()}")
        server.folder.chmod(0o755)
        server.start()
        bank = Bank(server, slurm)
        if request.param == WITH_SCRIPT:
            require_system_python()
            bank.write_script(slurm)
        else:
            agent = agent_for(slurm, server)
            stack.callback(agent.close)
            stack.callback(lambda: print(agent.log_text()))
            agent.start()
            bank.write_script_with_agent(slurm, agent, checkout, tmp_path)
        try:
            with slurm.configured({"PrologSlurmctld": str(bank.script)}):
                yield bank
        finally:
            print(bank.log.read_text())


def are_held(slurm: Cluster, job: int, count: int = 1) -> bool:
    """Return True if `count` jobs have Slurm's own reason for held jobs. Since 24.11 a scheduler
    pass before the end of the prolog overwrites another reason.
    """
    reasons = slurm.root(
        "squeue", "--noheader", "--array", f"--jobs={job}", "--format=%r"
    ).splitlines()
    return (
        sum(reason in ("job requeued in held state", "JobHeldAdmin") for reason in reasons) == count
    )


def waits_for_its_time(slurm: Cluster, job: int) -> bool:
    """Return True if the job was requeued: Slurm starts it again after two minutes."""
    fields = slurm.job(job)
    begin = datetime.fromisoformat(f"{fields['EligibleTime']}+00:00")
    return fields["JobState"] == "PENDING" and begin.timestamp() > time.time() + 60


def comment(slurm: Cluster, job: int | str) -> str:
    return (
        slurm.root("scontrol", "show", "job", str(job))
        .partition("AdminComment=")[2]
        .partition("\n")[0]
    )


def test_holds_and_refusals_without_a_plugin(
    slurm: Cluster, bank: Bank, record_figure: RecordFigure
) -> None:
    paid = slurm.submit("alice", "-c2", "--time=10", script="sleep 2")
    slurm.wait_for(paid, "COMPLETED", seconds=TIMEOUT_SECONDS)
    assert bank.runs(paid) == ["held"]  # only reconciling reports its end

    poor = slurm.submit("dave", "-c4", "--time=60")
    wait_until(lambda: are_held(slurm, poor), "the job to be held", seconds=TIMEOUT_SECONDS)
    assert comment(slurm, poor).startswith(
        "Fairbank: wg_chem: not enough credit: requested 4 SU, available 1 SU, short by 3 SU. "
    )
    assert bank.runs(poor) == []

    array = slurm.submit("dave", "-c4", "--time=60", "--array=1-2")
    wait_until(lambda: are_held(slurm, array, 2), "both tasks to be held", seconds=TIMEOUT_SECONDS)

    once = slurm.submit("dave", "-c4", "--time=60", "--no-requeue")
    slurm.wait_for(once, "CANCELLED", seconds=TIMEOUT_SECONDS)
    assert comment(slurm, once).startswith("Fairbank: wg_chem: not enough credit")

    for command in ("srun", "salloc"):
        result = slurm.run("dave", command, "-c4", "--time=60", "true")
        assert result.code == 1
        assert f"{command}: Fairbank: wg_chem: not enough credit" in result.err
        record_figure(
            f"$ {command} -c4 --time=60 true   (no plug-in)\n"
            + "".join(f"      {line}\n" for line in result.err.splitlines())
        )


def test_latency_of_srun_with_the_script(
    slurm: Cluster, bank: Bank, record_figure: RecordFigure
) -> None:
    def once() -> float:
        begun = time.monotonic()
        slurm.run("alice", "srun", "--time=5", "true").checked()
        return time.monotonic() - begun

    times = sorted(once() for _ in range(5))
    record_figure(f"srun true with PrologSlurmctld asking: median {times[2] * 1000:.0f} ms")


def rate_of_starts(slurm: Cluster, count: int) -> float:
    """Return how many tasks of an array start and end in a second."""
    begun = time.monotonic()
    array = slurm.submit("alice", f"--array=1-{count}", "--time=5", script=":")
    slurm.wait_for(array, "COMPLETED", seconds=TIMEOUT_SECONDS * 3)
    return count / (time.monotonic() - begun)


def test_rate_of_starts_without_a_prolog(slurm: Cluster, record_figure: RecordFigure) -> None:
    record_figure(f"without PrologSlurmctld: {rate_of_starts(slurm, 300):.1f} starts/s")


def test_rate_of_starts(slurm: Cluster, bank: Bank, record_figure: RecordFigure) -> None:
    rate = rate_of_starts(slurm, 300 if bank.agent else 20)
    record_figure(f"with {'the agent' if bank.agent else 'the script'}: {rate:.1f} starts/s")
    assert not bank.agent or bank.starting.read_text(), "the clients share no list"


def test_job_waits_while_the_bank_is_unavailable(slurm: Cluster, bank: Bank) -> None:
    """The script that asks the bank holds the job, the agent's lets it try again later."""
    bank.server.stop()
    job = slurm.submit("alice", "-c2", "--time=10")
    if bank.agent:
        wait_until(
            lambda: waits_for_its_time(slurm, job), "the job to wait", seconds=TIMEOUT_SECONDS
        )
        assert comment(slurm, job).startswith("Fairbank: the allocation bank cannot be reached now")
    else:
        wait_until(lambda: are_held(slurm, job), "the job to be held", seconds=TIMEOUT_SECONDS)
        assert "does not answer now" in comment(slurm, job)
    bank.server.start()
    if agent := bank.agent:
        wait_until(lambda: agent.status()["bank"]["reachable"], "the agent to reach the bank")
    else:
        slurm.root("scontrol", "release", str(job))
    slurm.root("scontrol", "update", f"jobid={job}", "starttime=now")
    slurm.wait_for(job, "COMPLETED", seconds=TIMEOUT_SECONDS)
    assert bank.runs(job) == ["held"]
