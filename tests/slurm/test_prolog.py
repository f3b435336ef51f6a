"""PrologSlurmctld script instead of the plug-in: it asks the bank, Slurm gets the answer, and
reconciling charges the run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.rest.client import Client, parse_address
from tests.slurm.bank_cluster import RICH, SU, prices
from tests.slurm.conftest import RecordFigure
from tests.slurm.lab.cluster import Cluster
from tests.slurm.readable_checkout import PYTHON, install_client, require_system_python
from tests.support.conditions import wait_until
from tests.support.server import FairbankServer, create_bank

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

PATIENCE = 120  # each prolog starts Python, which is slow on a busy machine


class Bank:
    """Bank with a project of dave that has little credit and one of alice that has much, and the
    script that contacts it.
    """

    def __init__(self, server: FairbankServer, cluster: Cluster) -> None:
        self.server = server
        self.client = Client(parse_address(f"unix:{server.socket}"))
        self.script = cluster.place.folder / "prolog_slurmctld"
        for number, (account, credit) in enumerate(
            (("wg_astro", RICH), ("wg_chem", 1 * SU)), 60_900
        ):
            self.client.post("/project", {"gname": account, "gid": number})
            terms = {
                "account": account,
                "resource": "cpu",
                "category": "test",
                "start": "2020-01-01",
                "end": "2040-01-01",
            }
            self.client.post("/alloc", {**terms, "amount": credit, "comment": "test"})
        self.write(cluster)

    def write(self, cluster: Cluster) -> None:
        """Write the files of packaging/slurm for this cluster and this bank."""
        packed = (
            Path(__file__).parents[2] / "packaging" / "slurm" / "prolog_slurmctld"
        ).read_text()
        assert "/opt/fairbank/bin/fairbank slurm prolog" in packed
        names = {
            "SLURM_CONF": str(cluster.place.slurm_conf),
            "FAIRBANK_SERVER": f"unix:{self.server.socket}",
            **install_client(cluster),
        }
        exports = "".join(f"export {name}='{value}'\n" for name, value in names.items())
        log = cluster.place.logs / "prolog"
        log.touch()
        log.chmod(0o666)
        self.script.write_text(
            packed.replace("export PATH\n", f"export PATH\n{exports}exec >>{log} 2>&1\n").replace(
                "/opt/fairbank/bin/fairbank", f"{PYTHON} -m fairbank.cli"
            )
        )
        self.script.chmod(0o755)

    def runs(self, job: int) -> list[str]:
        return [
            run["state"]
            for run in self.client.get("/job", {"limit": 1000})["data"]
            if run["job_id"] == job
        ]


@pytest.fixture
def bank(slurm: Cluster) -> Iterator[Bank]:
    require_system_python()
    with create_bank() as server:
        slurm_user = int(
            slurm.root("scontrol", "show", "config")
            .partition("SlurmUser")[2]
            .partition("(")[2]
            .partition(")")[0]
        )
        settings = server.config.read_text().partition("[clusters.local]")[0]
        server.config.write_text(f"{settings}[clusters.lab]\nagents = [{slurm_user}]\n{prices()}")
        server.folder.chmod(0o755)
        server.start()
        bank = Bank(server, slurm)
        try:
            with slurm.configured({"PrologSlurmctld": str(bank.script)}):
                yield bank
        finally:
            print((slurm.place.logs / "prolog").read_text())


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
    slurm.wait_for(paid, "COMPLETED", seconds=PATIENCE)
    assert bank.runs(paid) == ["held"]  # only reconciling reports its end

    poor = slurm.submit("dave", "-c4", "--time=60")
    wait_until(lambda: are_held(slurm, poor), "the job to be held", seconds=PATIENCE)
    assert comment(slurm, poor).startswith(
        "Fairbank: wg_chem: not enough credit: requested 4 SU, available 1 SU, short by 3 SU. "
    )
    assert bank.runs(poor) == []

    array = slurm.submit("dave", "-c4", "--time=60", "--array=1-2")
    wait_until(lambda: are_held(slurm, array, 2), "both tasks to be held", seconds=PATIENCE)

    once = slurm.submit("dave", "-c4", "--time=60", "--no-requeue")
    slurm.wait_for(once, "CANCELLED", seconds=PATIENCE)
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


def test_job_is_held_while_the_bank_is_unavailable(slurm: Cluster, bank: Bank) -> None:
    bank.server.stop()
    job = slurm.submit("alice", "-c2", "--time=10")
    wait_until(
        lambda: "does not answer now" in comment(slurm, job), "the job to be held", seconds=PATIENCE
    )
    bank.server.start()
    slurm.root("scontrol", "release", str(job))
    slurm.root("scontrol", "update", f"jobid={job}", "starttime=now")
    slurm.wait_for(job, "COMPLETED", seconds=PATIENCE)
    assert bank.runs(job) == ["held"]
