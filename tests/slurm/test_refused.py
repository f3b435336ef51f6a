"""Messages that a refused user sees, from the submit command to the balance: sbatch, srun and
salloc, with and without the submission policy.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from tests.slurm.accounting_audit import slurm_time
from tests.slurm.bank_cluster import SU, BankStack, agent_for, running_stack, sync_policy
from tests.slurm.conftest import RecordFigure
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.people import PEOPLE
from tests.slurm.prep_cluster import build, plugin_configured
from tests.slurm.readable_checkout import PYTHON, SPROJECT, install_client, require_system_python
from tests.support.conditions import wait_until
from tests.support.server import create_bank

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

UID = next(person.uid for person in PEOPLE if person.name == "dave")
USER, TEAM, OPTIONS = "dave", "wg_chem", ("-p", "cpu", "-c4", "-t", "60")
WAITED = "00:00:17"  # longer than a start usually takes
SHORT = "requested 4 SU, available 1 SU, short by 3 SU. "


class Terminal:
    """Terminal of a user in their team's group. `page` has all commands and their output."""

    def __init__(self, stack: BankStack) -> None:
        self.stack, self.page = stack, ""
        self._environment = {
            **install_client(stack.slurm),
            "FAIRBANK_SERVER": f"unix:{stack.bank.socket}",
        }

    def run(self, *command: str) -> tuple[int, str]:
        """Run a command; return its exit code and its output."""
        return self._run(command, command)

    def fairbank(self, *arguments: str) -> tuple[int, str]:
        return self._run(("fairbank", *arguments), (PYTHON, "-m", "fairbank.cli", *arguments))

    def sproject(self, *arguments: str) -> tuple[int, str]:
        return self._run(("sproject", *arguments), (PYTHON, "-c", SPROJECT, *arguments))

    def _run(self, typed: tuple[str, ...], command: tuple[str, ...]) -> tuple[int, str]:
        result = self.stack.slurm.run(USER, *command, group=TEAM, environment=self._environment)
        output = result.out + result.err
        self.page += f"$ {' '.join(typed)}\n{output}"
        return result.code, output


@pytest.fixture(scope="module")
def stack(
    cluster: Cluster, checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BankStack]:
    require_system_python()
    cluster.calm()
    plugin = build(checkout, tmp_path_factory.mktemp("plugins"))
    with (
        create_bank() as bank,
        running_stack(cluster, plugin, bank, agent_for(cluster, bank)) as stack,
    ):
        stack.add_member(TEAM, UID)
        stack.set_available(TEAM, 1 * SU)
        yield stack


def rows_of(page: str, *columns: str) -> list[tuple[str, ...]]:
    """Return the cells below these columns of a table, line by line."""
    lines = [line.split() for line in page.splitlines()]
    (head,) = [at for at, words in enumerate(lines) if set(columns) <= set(words)]
    rows = takewhile(bool, lines[head + 1 :])  # notes follow an empty line
    return [tuple(words[lines[head].index(column)] for column in columns) for words in rows]


def test_submission_policy_refuses_at_submission(
    stack: BankStack, checkout: Path, tmp_path: Path, record_figure: RecordFigure
) -> None:
    terminal = Terminal(stack)
    sync_policy(stack, checkout, tmp_path, 'price = "refuse"')
    with stack.slurm.configured({"JobSubmitPlugins": "lua"}):
        for command in (
            ("sbatch", *OPTIONS, "--wrap", "true"),
            ("srun", *OPTIONS, "true"),
            ("salloc", *OPTIONS, "true"),
        ):
            code, output = terminal.run(*command)
            assert (code, output.partition(":")[0]) == (1, command[0])
            assert "short by 3 SU" in output, output
        assert stack.slurm.queued() == []
    record_figure(terminal.page)


def test_bank_refuses_at_the_start(stack: BankStack, record_figure: RecordFigure) -> None:
    terminal = Terminal(stack)
    code, output = terminal.run("sbatch", *OPTIONS, "--wrap", "true")
    assert code == 0
    job = output.split()[-1]
    wait_until(
        lambda: stack.slurm.job(job).get("Reason") == "Allocation_exhausted", "the job to be held"
    )
    assert "(Allocation_exhausted)" in terminal.run("squeue", "--me")[1]
    shown = stack.slurm.run(USER, "scontrol", "show", "job", job).out
    assert f"AdminComment=Fairbank: {TEAM}: not enough credit: {SHORT}" in shown
    for command in ("srun", "salloc"):
        code, output = terminal.run(command, *OPTIONS, "true")
        assert code == 1
        assert f"{command}: Fairbank: {TEAM}: not enough credit: {SHORT}" in output
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
    record_figure(terminal.page)
    stack.slurm.root("scancel", job)


@pytest.mark.parametrize("patience", [40, 5], ids=["by the bank", "by the plug-in before"])
def test_job_refused_after_waiting_for_an_absent_agent_is_free(
    stack: BankStack, patience: int, record_figure: RecordFigure
) -> None:
    """The job is allocated nodes and waits, so that accounting has a run of many seconds."""
    slurm, since = stack.slurm, time.time() - 1
    with plugin_configured(slurm, patience=str(patience)):
        stack.agent.stop()
        job = slurm.submit(USER, *OPTIONS, group=TEAM)

        def has_waited() -> bool:
            shown = slurm.job(job)
            return shown["RunTime"] >= WAITED or shown["Reason"] == "Fairbank_does_not_answer"

        wait_until(has_waited, "the job to wait for the agent", seconds=60)
        stack.agent.start()
        wait_until(
            lambda: slurm.job(job)["Reason"] == "Allocation_exhausted", "the bank to refuse the job"
        )
        stack.agent.wait_until_empty()
    rows = [row for row in slurm.sacct(f"--jobs={job}", "--duplicates") if row["Start"] != "None"]
    record_figure(f"refused after waiting: {[(row['State'], row['ElapsedRaw']) for row in rows]}")
    reconciled = stack.reconcile("--fix", "--starttime", slurm_time(since))
    assert reconciled.returncode == 0, reconciled.stdout + reconciled.stderr
    assert {(run["charged"], run["held"]) for run in stack.runs(job)} <= {(0, 0)}
    slurm.root("scancel", str(job))
