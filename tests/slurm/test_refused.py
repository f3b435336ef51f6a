"""Messages that a refused user sees, from the submit command to the balance: sbatch, srun and
salloc, with and without the submission policy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

import pytest

from fairbank.rest.client import Client, parse_address
from tests.slurm.bank_cluster import SU, Office, agent_beside, opened
from tests.slurm.conftest import Tell
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.people import PEOPLE
from tests.slurm.prep_cluster import build, install_lua
from tests.slurm.readable_checkout import PYTHON, SPROJECT, demand_python, lend
from tests.support.conditions import wait_until
from tests.support.server import FAIRBANK, made

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

UID = next(person.uid for person in PEOPLE if person.name == "dave")
USER, TEAM, ASKED = "dave", "wg_chem", ("-p", "cpu", "-c4", "-t", "60")
SHORT = "requested 4 SU, available 1 SU, short by 3 SU"


class Terminal:
    """Terminal of a user in their team's group. `page` has all commands and their output."""

    def __init__(self, office: Office) -> None:
        self.office, self.page = office, ""
        self._environment = {**lend(office.slurm), "FAIRBANK_SERVER": f"unix:{office.bank.socket}"}

    def type(self, *command: str) -> tuple[int, str]:
        """Run a command; return its exit code and its output."""
        return self._seen(command, command)

    def fairbank(self, *arguments: str) -> tuple[int, str]:
        return self._seen(("fairbank", *arguments), (PYTHON, "-m", "fairbank.cli", *arguments))

    def sproject(self, *arguments: str) -> tuple[int, str]:
        return self._seen(("sproject", *arguments), (PYTHON, "-c", SPROJECT, *arguments))

    def _seen(self, typed: tuple[str, ...], command: tuple[str, ...]) -> tuple[int, str]:
        result = self.office.slurm.run(USER, *command, group=TEAM, environment=self._environment)
        output = result.out + result.err
        self.page += f"$ {' '.join(typed)}\n{output}"
        return result.code, output


@pytest.fixture(scope="module")
def office(
    cluster: Cluster, checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Office]:
    demand_python()
    cluster.calm()
    plugin = build(checkout, tmp_path_factory.mktemp("plugins"))
    with made() as bank, opened(cluster, plugin, bank, agent_beside(cluster, bank)) as office:
        (project,) = (
            project["id"] for project in office.rows("/project") if project["account"] == TEAM
        )
        Client(parse_address(f"unix:{bank.socket}")).put(
            f"/project/{project}/member/{UID}", {"role": "member"}
        )
        office.leave(TEAM, 1 * SU)
        yield office


@contextmanager
def controlled(office: Office, checkout: Path, folder: Path) -> Iterator[None]:
    """Configure job_submit.lua with the policy that `fairbank slurm sync` has written; jobs beyond
    the credit are refused.
    """
    policy, site = install_lua(office.slurm, checkout), folder / "slurm.toml"
    site.write_text(f'policy = "{policy}"\nprice = "refuse"\n')
    environment = {"FAIRBANK_SERVER": f"unix:{office.bank.socket}"}
    synced = office.slurm.run(
        "root",
        FAIRBANK,
        "slurm",
        "sync",
        "--site",
        str(site),
        "--progress",
        "none",
        environment=environment,
    )
    assert synced.code == 0, synced.out + synced.err
    policy.chmod(0o644)
    with office.slurm.configured({"JobSubmitPlugins": "lua"}):
        yield


def rows_of(page: str, *columns: str) -> list[tuple[str, ...]]:
    """Return the cells below these columns of a table, line by line."""
    lines = [line.split() for line in page.splitlines()]
    (head,) = [at for at, words in enumerate(lines) if set(columns) <= set(words)]
    rows = takewhile(bool, lines[head + 1 :])  # notes stand behind an empty line
    return [tuple(words[lines[head].index(column)] for column in columns) for words in rows]


def test_submission_policy_refuses_at_submission(
    office: Office, checkout: Path, tmp_path: Path, tell: Tell
) -> None:
    terminal = Terminal(office)
    with controlled(office, checkout, tmp_path):
        for command in (
            ("sbatch", *ASKED, "--wrap", "true"),
            ("srun", *ASKED, "true"),
            ("salloc", *ASKED, "true"),
        ):
            code, output = terminal.type(*command)
            assert (code, output.partition(":")[0]) == (1, command[0])
            assert "short by 3 SU" in output, output
        assert office.slurm.queued() == []
    tell(terminal.page)


def test_bank_refuses_at_the_start(office: Office, tell: Tell) -> None:
    terminal = Terminal(office)
    code, output = terminal.type("sbatch", *ASKED, "--wrap", "true")
    assert code == 0
    job = output.split()[-1]
    wait_until(
        lambda: office.slurm.job(job).get("Reason") == "Allocation_exhausted", "the job to be held"
    )
    assert "(Allocation_exhausted)" in terminal.type("squeue", "--me")[1]
    shown = office.slurm.run(USER, "scontrol", "show", "job", job).out
    assert f"AdminComment=Fairbank: {TEAM}: not enough credit: {SHORT}. Try " in shown
    for command in ("srun", "salloc"):
        code, output = terminal.type(command, *ASKED, "true")
        assert code == 1
        assert f"{command}: Fairbank: {TEAM}: not enough credit: {SHORT}. Try " in output
    code, output = terminal.sproject("allocations")
    assert (code, rows_of(output, "PROJECT", "RESOURCE")) == (0, [(TEAM, "cpu"), (TEAM, "gpu")]), (
        output
    )
    code, output = terminal.fairbank("balance")
    assert (code, "unit SU" in output) == (0, True), output
    assert rows_of(output, "PROJECT", "RESOURCE", "GRANTED", "HELD", "AVAILABLE")[0] == (
        TEAM,
        "cpu",
        "1",
        "0",
        "1",
    ), output
    code, output = terminal.sproject("failures")
    refused = rows_of(output, "PROJECT", "OWNER", "AMOUNT", "BALANCE")
    assert (code, refused) == (0, [(TEAM, USER, "4", "1")] * 3), output
    assert (job,) in rows_of(output, "JOB-ID"), output
    tell(terminal.page)
    office.slurm.root("scancel", job)
