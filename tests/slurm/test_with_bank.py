"""Full stack: real jobs, the plug-in, the real agent, a real bank. Every run has one hold and one
charge, or is refused with a message.
"""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

import msgspec
import pytest

from fairbank.cluster.accounting_job import AccountingJob
from fairbank.core.units import round_up
from fairbank.rest.client import Client, parse_address
from fairbank.rest.client.bank_client import BankClient
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.held_jobs import Releaser
from fairbank.slurm.reconcile.prices import ClusterPrices
from fairbank.slurm.reconcile.resized import join_resized
from tests.slurm.accounting_audit import slurm_time
from tests.slurm.bank_cluster import RICH, SU, BankStack, agent_for, running_stack
from tests.slurm.conftest import RecordFigure
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.daemons import SLURMCTLD
from tests.slurm.lab.output_parsers import tres
from tests.slurm.lab.people import TEAMS
from tests.slurm.lab.shell import UNTIL_RELEASED
from tests.slurm.load import Operator
from tests.slurm.prep_cluster import build
from tests.support.conditions import wait_until
from tests.support.server import create_bank

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def stack(
    cluster: Cluster, checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BankStack]:
    plugin = build(checkout, tmp_path_factory.mktemp("plugins"))
    with (
        create_bank() as bank,
        running_stack(cluster, plugin, bank, agent_for(cluster, bank)) as stack,
    ):
        yield stack


@pytest.fixture
def at_rest(stack: BankStack) -> Iterator[BankStack]:
    """Return the stack with all daemons running, no job, and much credit for each project."""
    stack.slurm.calm()
    for team in TEAMS:
        for resource in ("cpu", "gpu"):
            stack.set_available(team.name, RICH, resource)
    try:
        yield stack
    finally:
        stack.bank.start()
        if not stack.agent.running:
            stack.agent.start()
        stack.slurm.calm()
        stack.agent.wait_until_empty()


def cost(row: dict[str, str]) -> int:
    """Return the cost of a run by accounting alone, in SU-minutes: billing units times elapsed
    time, rounded up.
    """
    return round_up(
        Fraction(tres(row["AllocTRES"]).get("billing", "0")) * int(row["ElapsedRaw"]) / 60
    )


def test_jobs_of_all_kinds_are_charged_as_accounting_counts(at_rest: BankStack) -> None:
    slurm = at_rest.slurm
    jobs = [
        slurm.submit("alice", "-c4", "--time=10", script="sleep 2"),
        slurm.submit("bob", "--mem=64G", script="sleep 1"),
        slurm.submit("carol", "--partition=gpu", "--gres=gpu:2", "-c16", script="exit 3"),
        slurm.submit("alice", "-N2", "--exclusive"),
    ]
    for job in jobs:
        slurm.wait_for(job, "COMPLETED", "FAILED")
    for job in jobs:
        (run,) = at_rest.wait_for_closed_runs(job)
        (row,) = slurm.wait_for_sacct(job, "COMPLETED", "FAILED")
        assert run["charged"] == cost(row)
        assert run["elapsed"] == int(row["ElapsedRaw"])
        assert run["held"] == 0


def test_each_piece_of_a_resized_job_is_charged_once(at_rest: BankStack) -> None:
    """A job that gives back a node just before its end pays for the time in which it had it."""
    slurm = at_rest.slurm
    begun = int(time.time())
    since = slurm_time(begun)
    job = slurm.submit("alice", "-N2", "--exclusive", "--time=10", script="sleep 600")
    slurm.wait_for(job, "RUNNING")
    time.sleep(8)  # so that half of the nodes is not a matter of rounding
    slurm.root("scontrol", "update", f"jobid={job}", "numnodes=1")
    assert at_rest.reconcile("--starttime", since).returncode == 0
    slurm.run("alice", "scancel", str(job)).checked()
    (run,) = at_rest.wait_for_closed_runs(job)
    accounting = SlurmCommands(slurm.place.environment)

    def records() -> list[AccountingJob]:
        # after a reset of slurmctld in another test, an older job may have the same number
        return [row for row in accounting.jobs_by_id([job]).rows if row.submitted >= begun]

    wait_until(lambda: all(record.end for record in records()), "the end of the job")
    (whole,) = join_resized(records())
    bank = BankClient(Client(parse_address(f"unix:{at_rest.bank.socket}")))
    prices = ClusterPrices(bank.cluster("lab"))
    assert len(whole.pieces) == 1
    assert run["elapsed"] == whole.elapsed
    assert prices.is_right_price(run["charged"], whole)
    at_the_end = msgspec.structs.replace(whole, pieces=())
    assert not prices.is_right_price(run["charged"], at_the_end)
    reconciled = at_rest.reconcile("--starttime", since)
    assert reconciled.returncode == 0, reconciled.stdout


def test_srun_and_salloc_are_charged(at_rest: BankStack) -> None:
    for command in (
        ("srun", "sh", "-c", "echo $SLURM_JOB_ID; sleep 1"),
        ("salloc", "sh", "-c", "echo $SLURM_JOB_ID; srun true"),
    ):
        job = int(at_rest.slurm.run("dave", *command).checked().out)
        (run,) = at_rest.wait_for_closed_runs(job)
        assert run["state"] in ("charged", "released")


def test_project_without_credit_is_refused_with_a_message(
    at_rest: BankStack, record_figure: RecordFigure
) -> None:
    allocation = at_rest.set_available("wg_chem", 1 * SU)
    before = at_rest.charged_and_held(allocation)
    slurm = at_rest.slurm
    job = slurm.submit("dave", "-c4", "--time=60")
    wait_until(lambda: slurm.job(job).get("Reason") == "Allocation_exhausted", "the job to be held")
    shown = slurm.root("scontrol", "show", "job", str(job))
    assert (
        "AdminComment=Fairbank: wg_chem: not enough credit: requested 4 SU, available 1 SU,"
        " short by 3 SU" in shown
    )
    assert "denied" in slurm.run("dave", "scontrol", "release", str(job)).err
    for command in ("srun", "salloc"):
        result = slurm.run("dave", command, "-c4", "--time=60", "true")
        assert result.code == 1
        assert (
            f"{command}: Fairbank: wg_chem: not enough credit: requested 4 SU, available 1 SU,"
            " short by 3 SU. " in result.err
        )
        record_figure(
            f"$ {command} -c4 --time=60 true\n"
            + "".join(f"      {line}\n" for line in result.err.splitlines())
        )
    at_rest.agent.wait_until_empty()
    assert at_rest.charged_and_held(allocation) == before
    assert len(at_rest.refusals(job)) == 1
    assert at_rest.runs(job) == []
    record_figure(slurm.root("squeue", f"--jobs={job}"))


def test_refused_job_runs_after_a_deposit(at_rest: BankStack) -> None:
    allocation = at_rest.set_available("wg_chem", 1 * SU)
    slurm = at_rest.slurm
    job = slurm.submit("dave", "-c4", "--time=60")
    wait_until(lambda: slurm.job(job).get("Reason") == "Allocation_exhausted", "the job to be held")
    at_rest.deposit(allocation, 100 * SU)
    slurm.root("scontrol", "release", str(job))
    slurm.root("scontrol", "update", f"jobid={job}", "starttime=now+3")
    slurm.wait_for(job, "COMPLETED", seconds=60)
    (run,) = at_rest.wait_for_closed_runs(job)
    assert run["restart"] == 1


def slurm_holds(slurm: Cluster, job: int) -> bool:
    return slurm.job(job).get("Reason") == "Allocation_exhausted"


def test_held_jobs_are_released_automatically(at_rest: BankStack) -> None:
    """Jobs that the plug-in held and the bank would accept are released. A job with another comment
    of an operator stays held.
    """
    allocation = at_rest.set_available("wg_chem", 1 * SU)
    slurm = at_rest.slurm
    job, expensive, kept = (
        slurm.submit("dave", "-c4", f"--time={minutes}") for minutes in (60, 600, 60)
    )
    for held_job in (job, expensive, kept):
        wait_until(partial(slurm_holds, slurm, held_job), "the job to be held")
    slurm.root("scontrol", "update", f"jobid={kept}", "admincomment=not before Monday")
    client = Client(parse_address(f"unix:{at_rest.bank.socket}"))
    releaser = Releaser(client, SlurmCommands({**os.environ, **slurm.place.environment}), 60)
    releaser.run_round(0)
    assert releaser.status() == {"released": 0, "error": None, "remedy": None}
    at_rest.deposit(allocation, 10 * SU)
    releaser.run_round(60)
    slurm.root("scontrol", "update", f"jobid={job}", "starttime=now+3")
    slurm.wait_for(job, "COMPLETED", seconds=60)
    assert releaser.status() == {"released": 1, "error": None, "remedy": None}
    assert slurm.job(expensive)["Reason"] == "Allocation_exhausted"
    assert slurm.job(kept)["Reason"] == "Allocation_exhausted"


def test_unknown_account_is_refused_with_a_remedy(at_rest: BankStack) -> None:
    result = at_rest.slurm.run("root", "srun", "--account=root", "true")
    assert (
        "srun: Fairbank: root: there is no such project: no project has the account 'root'. "
        "Remedy: " in result.err
    )


def test_limits_requeues_and_cancellations(at_rest: BankStack) -> None:
    slurm = at_rest.slurm
    job = slurm.submit(
        "alice", "--requeue", "--time=10", script="[ $SLURM_RESTART_COUNT ] || sleep 600"
    )
    slurm.wait_for(job, "RUNNING")
    wait_until(lambda: [run["held"] for run in at_rest.runs(job)] == [10], "ten minutes to be held")
    slurm.root("scontrol", "update", f"jobid={job}", "timelimit=25")
    wait_until(
        lambda: [run["held"] for run in at_rest.runs(job)] == [25], "the new limit to be held"
    )
    slurm.root("scontrol", "requeue", str(job))
    slurm.wait_for(job, "PENDING")
    slurm.root("scontrol", "update", f"jobid={job}", "starttime=now+3")
    slurm.wait_for(job, "COMPLETED", seconds=60)
    runs = at_rest.wait_for_closed_runs(job, 2)
    assert [run["restart"] for run in runs] == [0, 1]
    cancelled = slurm.submit("alice", script="sleep 600")
    slurm.wait_for(cancelled, "RUNNING")
    slurm.run("alice", "scancel", str(cancelled)).checked()
    (run,) = at_rest.wait_for_closed_runs(cancelled)
    assert run["outcome"] == "CANCELLED"


def test_jobs_wait_for_an_unavailable_bank_and_start_later(at_rest: BankStack) -> None:
    slurm = at_rest.slurm
    at_rest.bank.kill()
    deferred = slurm.submit("alice")
    open_ = slurm.submit("carol", "--partition=gpu", "--gres=gpu:1", script="sleep 1")
    slurm.wait_for(open_, "COMPLETED", seconds=60)
    wait_until(
        lambda: slurm.job(deferred).get("Reason") == "Fairbank_does_not_answer",
        "the job to be deferred",
    )
    refused = slurm.run("alice", "srun", "true")
    assert (
        "srun: Fairbank: the allocation bank cannot be reached now; try again later" in refused.err
    )
    at_rest.agent.kill()
    at_rest.agent.start()
    at_rest.bank.start()
    wait_until(lambda: slurm.job(deferred)["Priority"] != "0", "the job to be released", seconds=60)
    slurm.root("scontrol", "update", f"jobid={deferred}", "starttime=now+3")
    operator = Operator(slurm)

    def over() -> bool:
        operator.start_requeued_jobs()  # on a slow machine, the first start may fail
        return slurm.states(deferred) == ["COMPLETED"]

    wait_until(over, "the job to be over", seconds=90)
    assert [run["state"] for run in at_rest.wait_for_closed_runs(open_)] == ["charged"]
    wait_until(lambda: at_rest.runs(deferred)[-1]["state"] != "held", "the job to be settled")


def test_killed_agent_loses_and_repeats_nothing(
    at_rest: BankStack, record_figure: RecordFigure
) -> None:
    slurm = at_rest.slurm
    begun = time.monotonic()
    job = slurm.submit("alice", "--array=1-200")
    ids = range(job, job + 200)

    def count_closed() -> int:
        rows = at_rest.rows("/job", account="wg_astro")
        return len([row for row in rows if row["job_id"] in ids and row["state"] != "held"])

    for enough in (20, 60, 120):
        wait_until(
            partial(lambda enough: count_closed() >= enough, enough),
            "some to be settled",
            seconds=60,
        )
        at_rest.agent.kill()
        at_rest.agent.start()
    slurm.wait_for(job, "COMPLETED", seconds=120)
    wait_until(lambda: count_closed() == 200, "all to be settled", seconds=60)
    record_figure(
        f"200 tasks charged, with an agent killed three times: {time.monotonic() - begun:.1f} s"
    )
    assert at_rest.bank.command("audit", "verify").returncode == 0


def test_killed_controller_loses_no_charge(at_rest: BankStack) -> None:
    slurm = at_rest.slurm
    job = slurm.submit("alice", script=UNTIL_RELEASED)
    slurm.wait_for(job, "RUNNING")
    slurm.wait_until_saved(job)
    slurm.kill(SLURMCTLD)
    slurm.start(SLURMCTLD)
    slurm.let_end("alice", job)
    slurm.wait_for(job, "COMPLETED", seconds=60)
    (run,) = at_rest.wait_for_closed_runs(job)
    assert run["restart"] == 0


def test_number_given_again_after_a_crash_is_charged_to_its_new_owner(at_rest: BankStack) -> None:
    """slurmctld is killed before it has saved that a task of an array started. It gives the number
    to a task of another array of the same second. The bank refuses the report of its end.
    """
    slurm, since = at_rest.slurm, slurm_time(time.time())
    lost, kept = arrays_of_one_second(slurm)
    slurm.wait_until_saved(kept)
    saved = (slurm.place.state / "job_state").read_bytes()
    number = start_task(slurm, lost)
    wait_until(lambda: [run["state"] for run in at_rest.runs(number)] == ["held"], "the hold")
    slurm.kill(SLURMCTLD)
    (slurm.place.state / "job_state").write_bytes(saved)
    slurm.let_end("alice", number)
    slurm.start(SLURMCTLD)
    wait_until(lambda: not has_steps(slurm), "the lost task to be over", seconds=60)
    slurm.wait_for_nodes("idle")
    assert start_task(slurm, kept) == number
    wait_until(lambda: slurm.job(number)["RunTime"] > "00:00:01", "it to cost something")
    slurm.let_end("carol", number)
    (row,) = slurm.wait_for_sacct(f"{kept}_1", "COMPLETED")
    wait_until(lambda: at_rest.refusals(number) != [], "the end to be refused")
    slurm.root("scancel", str(lost), str(kept))
    at_rest.wait_for_closed_runs(kept)
    fixed = at_rest.reconcile("--starttime", since, "--fix")
    assert fixed.returncode == 0, fixed.stdout
    assert [(run["owner_uid"], run["state"], run["charged"]) for run in at_rest.runs(number)] == [
        (pwd.getpwnam("alice").pw_uid, "released", 0),
        (pwd.getpwnam("carol").pw_uid, "charged", cost(row)),
    ]
    again = at_rest.reconcile("--starttime", since)
    assert again.returncode == 0, again.stdout


def arrays_of_one_second(slurm: Cluster) -> tuple[int, int]:
    """Return held arrays of alice and carol on different nodes, submitted in the same second."""
    while True:
        first, second = (
            slurm.submit(user, "--array=1-2%1", "--hold", f"-w{node}", script=UNTIL_RELEASED)
            for user, node in (("alice", "c01"), ("carol", "c02"))
        )
        if slurm.job(first)["SubmitTime"] == slurm.job(second)["SubmitTime"]:
            return first, second
        slurm.root("scancel", str(first), str(second))


def start_task(slurm: Cluster, array: int) -> int:
    """Release an array, and return the number of its first task when it runs."""
    slurm.root("scontrol", "release", str(array))

    def running() -> list[str]:
        query = ("--noheader", "--states=RUNNING", f"--jobs={array}", "--format=%A")
        return slurm.root("squeue", *query).split()

    wait_until(lambda: running() != [], "a task to run")
    (number,) = running()
    return int(number)


def has_steps(slurm: Cluster) -> bool:
    return any(b"slurmstepd" in process.command for process in slurm.processes())
