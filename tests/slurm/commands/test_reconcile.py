"""`fairbank reconcile` with a running bank and recorded Slurm output."""

from __future__ import annotations

import json
import pwd
import time

import msgspec
import pytest

from fairbank.core.time import DAY, iso
from fairbank.slurm.bank import BankClient
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.reconcile.compare import Category
from fairbank.slurm.reconcile.reconciler import Reconciler
from tests.slurm.commands.site import HOUR, Centre
from tests.slurm.reconcile.jobs import row_of
from tests.support.recorded_slurm import line

pytestmark = pytest.mark.slow


def test_ledger_that_agrees_with_accounting(opened: Centre) -> None:
    assert "The ledger and accounting agree." in opened.said("reconcile", code=0).err
    opened.ran(opened.job(1))
    opened.reconciled("--fix")
    result = opened.said("reconcile", code=0)
    assert "          1  agree to the minute\n" in result.out + result.err
    assert "The ledger and accounting agree." in result.err


def test_unknown_run_is_charged_with_fix(opened: Centre) -> None:
    opened.ran(opened.job(1))
    (row,) = opened.reconciled(code=8)
    assert (row["kind"], row["amount"], row["done"]) == ("MISSING", 40, "no")
    assert opened.available() == 600
    (row,) = opened.reconciled("--fix")
    assert (row["kind"], row["done"]) == ("MISSING", "yes")
    assert opened.available() == 560
    assert opened.reconciled() == []
    assert opened.reconciled("--fix") == []
    assert opened.available() == 560


def test_final_state_and_cpu_time_are_reported(opened: Centre) -> None:
    """Steps have lines of their own in sacct's output. An unreadable line only leaves its own
    values unknown.
    """
    first, second = opened.job(1, state="FAILED"), opened.job(2)
    opened.ran(first, second)
    submitted = iso(first.submitted)[:-1]
    opened.slurm.say(
        "sacct-spent",
        line(1, submitted, "127:0", "20:00.500")
        + line("1.batch", submitted, "1:0", "10:00")
        + line(2, submitted, "soon", "never"),
    )
    opened.reconciled("--fix")
    rows = {row["job_id"]: row for row in opened.client.get("/job")["data"]}
    columns = ("tres", "nodes", "cpus", "time_limit", "exit_code", "exit_signal", "cpu_seconds")
    assert [rows[1][column] for column in columns] == [
        "cpu=4,mem=4000M,node=1",
        1,
        4,
        3_600,
        127,
        0,
        1_201,
    ]
    assert [rows[2][column] for column in columns] == [
        "cpu=4,mem=4000M,node=1",
        1,
        4,
        3_600,
        None,
        None,
        None,
    ]


def test_lost_epilog_is_charged_to_the_minute(opened: Centre) -> None:
    job = opened.job(1)
    opened.report(job)
    assert opened.available() == 600 - 240
    opened.ran(job)
    (row,) = opened.reconciled("--fix")
    assert (row["kind"], row["amount"]) == ("OPEN", 40)
    assert opened.available() == 560


def test_incomplete_record_is_charged_from_the_reported_start(opened: Centre) -> None:
    """If the bank received the end too, reconcile finds no difference."""
    job = opened.job(1)
    opened.report(job)
    opened.ran(msgspec.structs.replace(job, partition="", tres="", qos=None, limit_seconds=None))
    (row,) = opened.reconciled("--fix")
    assert (row["kind"], row["amount"], row["done"]) == ("OPEN", 40, "yes")
    assert opened.available() == 560
    output = opened.tell("reconcile")
    assert "1  are incomplete in accounting, but the bank received their ends" in output
    assert json.loads(opened.tell("reconcile", "--json"))["summary"] == {
        "compared": 1,
        "matched": 0,
        "free": 0,
        "late": 0,
        "bank_only": 1,
    }


def test_incomplete_record_with_uid_0_has_no_owner(opened: Centre) -> None:
    """slurmdbd takes the user name from the association, but has no uid if it never received the
    start.
    """
    other = next(entry for entry in pwd.getpwall() if entry.pw_uid)
    job = opened.job(1, user=other.pw_name, owner=other.pw_uid)
    opened.report(job, owner_uid=other.pw_uid)
    opened.ran(
        msgspec.structs.replace(job, owner=0, partition="", tres="", qos=None, limit_seconds=None)
    )
    (row,) = opened.reconciled("--fix")
    assert (row["kind"], row["amount"], row["done"]) == ("OPEN", 40, "yes")
    assert opened.reconciled() == []


def test_lost_epilog_before_the_period_is_found(opened: Centre) -> None:
    job = opened.job(1, submitted=opened.now - 10 * DAY)
    opened.report(job)
    opened.slurm.say("sacct-jobs", row_of(job))
    (row,) = opened.reconciled("--fix")
    assert (row["kind"], row["amount"]) == ("OPEN", 40)


def test_hold_with_another_clock_is_found(opened: Centre) -> None:
    """The run starts before the first job of the period and is found in the ledger nevertheless."""
    job = opened.job(1)
    opened.report(job, start=job.submitted - 500)
    opened.ran(job)
    period = ("-S", f"@{job.submitted}")
    assert [row["kind"] for row in opened.reconciled("--fix", *period)] == ["OPEN"]
    assert opened.reconciled(*period) == []


def test_hold_of_an_unknown_job_is_released(opened: Centre) -> None:
    job = opened.job(1)
    opened.report(job)
    (row,) = opened.reconciled(code=8)
    assert (row["kind"], row["amount"]) == ("ORPHAN", 240)
    opened.reconciled("--fix")
    assert opened.available() == 600
    assert opened.reconciled() == []


def test_hold_of_a_running_job_is_kept(opened: Centre) -> None:
    job = opened.job(1, state="RUNNING")
    opened.report(job)
    opened.ran(job)
    queued = [
        str(job.job_id),
        time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(job.submitted)),
        "RUNNING",
    ]
    opened.slurm.say("squeue", "\x1f".join(queued) + "\n")
    assert opened.reconciled("--fix") == []
    assert opened.available() == 360


def test_no_hold_is_released_with_unreadable_lines(opened: Centre) -> None:
    """The unreadable line may belong to the run."""
    opened.report(opened.job(1))
    opened.slurm.say("sacct-jobs", row_of(opened.job(1)).replace("chem", "ch|em"))
    result = opened.said("reconcile", "--fix", code=8)
    assert "! not read: sacct, line 1, Account: 'ch|em' is not a name" in result.err
    assert opened.available() == 360


def test_release_needs_visibility_of_all_jobs(opened: Centre) -> None:
    opened.slurm.say("scontrol-show-config", "ClusterName = lab\nSlurmUser = slurm(64030)\n")
    opened.report(opened.job(1))
    for uid, done in ((61_009, "not released: Slurm may hide other users' jobs"), (64_030, None)):
        reconciler = Reconciler(
            SlurmCommands(uid=uid), BankClient(opened.client), grace_seconds=HOUR
        )
        (outcome,) = reconciler.reconcile(opened.now - DAY, opened.now, fix=True).outcomes
        assert (outcome.finding.category, (outcome.problem or "").partition(";")[0]) == (
            Category.ORPHAN,
            done or "",
        )
    assert opened.available() == 600


def test_visibility_of_all_runs_is_required(opened: Centre) -> None:
    for words in (("reconcile",), ("shadow",), ("slurm", "import"), ("slurm", "sync")):
        result = opened.said(*words, "--as", "61009", code=4)
        assert "you do not see everybody's runs and projects" in result.err


def test_ledger_of_many_pages(opened: Centre, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairbank.slurm.bank.PAGE", 1)
    monkeypatch.setattr("fairbank.slurm.bank.BATCH", 2)
    opened.ran(*(opened.job(number) for number in range(1, 6)))
    assert [row["done"] for row in opened.reconciled("--fix")] == ["yes"] * 5
    assert opened.reconciled() == []
    assert opened.available() == 600 - 5 * 40


def test_refused_charge_is_reported_once_and_retried_only_on_demand(opened: Centre) -> None:
    opened.ran(opened.job(1, account="bio"))
    (row,) = opened.reconciled("--fix", code=8)
    assert str(row["done"]).startswith(
        "the project has no allocation of this resource at this time"
    )
    for words in ((), ("--fix",)):
        (row,) = opened.reconciled(*words, code=8)
        assert row["kind"] == "REFUSED"
    (row,) = opened.reconciled("--fix", "--again", code=8)
    assert str(row["done"]).startswith("there was no allocation that could pay")
    assert len(json.loads(opened.tell("jobs", "--refused", "-a", "--json"))["data"]) == 1
    opened.tell(
        "alloc",
        "create",
        "-A",
        "bio",
        "-r",
        "cpu",
        "--start",
        "now-30days",
        "--end",
        "now+1days",
        "--amount",
        "1",
        "--reason",
        "x",
    )
    opened.reconciled("--fix", "--again")
    assert opened.reconciled() == []


def test_restarted_run_is_charged_as_its_own_run(opened: Centre) -> None:
    """A late report of the agent for the same run counts nothing twice."""
    first = opened.job(1, state="REQUEUED", elapsed=0)
    second = msgspec.structs.replace(opened.job(1), submitted=(first.end or 0) + 1)
    opened.ran(first, second)
    opened.reconciled("--fix")
    (row,) = json.loads(opened.tell("jobs", "-a", "--json"))["data"]
    assert (row["job_id"], row["restart"]) == (1, 1)
    facts = {
        "restart": 1,
        "submitted": second.submitted,
        "end": second.end,
        "elapsed": second.elapsed,
        "state": "COMPLETED",
    }
    opened.report(second, do="complete", qos="normal", **facts)
    assert opened.available() == 560


def test_reconcile_without_slurmdbd_changes_nothing(opened: Centre) -> None:
    opened.report(opened.job(1))
    opened.slurm.forget("sacct")
    result = opened.said("reconcile", "--fix", code=6)
    assert "sacct ended with 1" in result.err
    assert opened.available() == 360


def test_reconcile_output_without_json(opened: Centre) -> None:
    opened.ran(opened.job(1), opened.job(2))
    lines = opened.tell("reconcile", code=8).splitlines()
    assert lines[0].startswith("Compared 2 finished runs of cluster lab in ")
    assert lines[1:4] == [
        "          0  agree to the minute",
        "          0  ran for no time and cost nothing",
        "          2  ended in Slurm, unknown to the bank   would charge 1.33 SU",
    ]
    assert opened.said("reconcile", "--progress", "plain", code=8).err.startswith(
        "sacct 50%\nsacct 100%\n"
    )


def test_invalid_options_are_reported(opened: Centre) -> None:
    assert "--again does nothing by itself" in opened.said("reconcile", "--again", code=2).err
    assert (
        "the period ends before it begins"
        in opened.said("reconcile", "-S", "now", "-E", "now-1day", code=2).err
    )
    assert (
        "belongs to cluster lab, not darwin" in opened.said("reconcile", "-M", "darwin", code=2).err
    )
