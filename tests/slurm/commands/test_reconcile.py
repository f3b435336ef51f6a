"""`fairbank reconcile` with a running bank and recorded Slurm output."""

from __future__ import annotations

import json
import pwd
import time
from fractions import Fraction
from typing import Any

import msgspec
import pytest

from fairbank.agent.reports.report import ReportKind, report_body
from fairbank.agent.run_memory import KnownRun
from fairbank.agent.run_states import AgentRunState
from fairbank.cluster.accounting_job import AccountingJob
from fairbank.cluster.job import Run
from fairbank.core.ids import OVERFLOW_UID
from fairbank.core.time import DAY, iso
from fairbank.rest.client.bank_client import BankClient
from fairbank.rest.client.response import Refused
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.reconcile.compare import Category
from fairbank.slurm.reconcile.reconciler import Reconciler
from tests.agent.plugin import epilog_event
from tests.slurm.commands.site import HOUR, MY_UID, CommandSite
from tests.slurm.reconcile.jobs import sacct_json, sacct_row
from tests.support.recorded_slurm import line

pytestmark = pytest.mark.slow


def test_ledger_that_agrees_with_accounting(site: CommandSite) -> None:
    assert "The ledger and accounting agree." in site.run("reconcile", code=0).err
    site.set_accounting(site.job(1))
    site.reconcile("--fix")
    result = site.run("reconcile", code=0)
    assert "          1  agree to the minute\n" in result.out + result.err
    assert "The ledger and accounting agree." in result.err


def test_unknown_run_is_charged_with_fix(site: CommandSite) -> None:
    site.set_accounting(site.job(1))
    (row,) = site.reconcile(code=8)
    assert (row["kind"], row["amount"], row["done"]) == ("MISSING", 40, "no")
    assert site.available() == 600
    (row,) = site.reconcile("--fix")
    assert (row["kind"], row["done"]) == ("MISSING", "yes")
    assert site.available() == 560
    assert site.reconcile() == []
    assert site.reconcile("--fix") == []
    assert site.available() == 560


def test_final_state_and_cpu_time_are_reported(site: CommandSite) -> None:
    """Steps have lines of their own in sacct's output. An unreadable line only leaves its own
    values unknown.
    """
    first, second = site.job(1, state="FAILED"), site.job(2)
    site.set_accounting(first, second)
    submitted = iso(first.submitted)[:-1]
    site.slurm.set_output(
        "sacct-spent",
        line(1, submitted, "127:0", "20:00.500")
        + line("1.batch", submitted, "1:0", "10:00")
        + line(2, submitted, "soon", "never"),
    )
    site.reconcile("--fix")
    rows = {row["job_id"]: row for row in site.client.get("/job")["data"]}
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


def test_lost_epilog_is_charged_to_the_minute(site: CommandSite) -> None:
    job = site.job(1)
    site.report(job)
    assert site.available() == 600 - 240
    site.set_accounting(job)
    (row,) = site.reconcile("--fix")
    assert (row["kind"], row["amount"]) == ("OPEN", 40)
    assert site.available() == 560


def test_what_a_restart_of_slurmctld_without_an_agent_loses_is_restored(site: CommandSite) -> None:
    """The plug-in keeps what it cannot hand over in memory: here the end of a job, both reports of
    another one that the outage policy let start, and the end of one that never began.
    """
    ended, unknown = site.job(1), site.job(2)
    never_began = site.job(3, state="CANCELLED", elapsed=0)
    site.report(ended)
    site.report(never_began)
    assert site.available() == 600 - 240 - 240
    site.set_accounting(ended, unknown, never_began)
    rows = {row["job_id"]: (row["kind"], row["amount"]) for row in site.reconcile("--fix")}
    assert rows == {1: ("OPEN", 40), 2: ("MISSING", 40), 3: ("OPEN", 0)}
    assert site.available() == 600 - 40 - 40
    assert site.reconcile() == []


def test_incomplete_record_is_charged_from_the_reported_start(site: CommandSite) -> None:
    """If the bank received the end too, reconcile finds no difference."""
    job = site.job(1)
    site.report(job)
    site.set_accounting(
        msgspec.structs.replace(job, partition="", tres="", qos=None, limit_seconds=None)
    )
    (row,) = site.reconcile("--fix")
    assert (row["kind"], row["amount"], row["done"]) == ("OPEN", 40, "yes")
    assert site.available() == 560
    output = site.output("reconcile")
    assert "1  are incomplete in accounting, but the bank received their ends" in output
    document = json.loads(site.output("reconcile", "--json"))
    assert document["bank"] == "fairbank"
    assert document["summary"] == {
        "compared": 1,
        "matched": 0,
        "free": 0,
        "late": 0,
        "bank_only": 1,
    }


def test_incomplete_record_with_uid_0_has_no_owner(site: CommandSite) -> None:
    """slurmdbd takes the user name from the association, but has no uid if it never received the
    start.
    """
    other = next(entry for entry in pwd.getpwall() if entry.pw_uid)
    job = site.job(1, user=other.pw_name, owner=other.pw_uid)
    site.report(job, owner_uid=other.pw_uid)
    site.set_accounting(
        msgspec.structs.replace(job, owner=0, partition="", tres="", qos=None, limit_seconds=None)
    )
    (row,) = site.reconcile("--fix")
    assert (row["kind"], row["amount"], row["done"]) == ("OPEN", 40, "yes")
    assert site.reconcile() == []


def test_lost_epilog_before_the_period_is_found(site: CommandSite) -> None:
    job = site.job(1, submitted=site.now - 10 * DAY)
    site.report(job)
    site.slurm.set_output("sacct-jobs", sacct_row(job))
    (row,) = site.reconcile("--fix")
    assert (row["kind"], row["amount"]) == ("OPEN", 40)


def test_hold_with_another_clock_is_found(site: CommandSite) -> None:
    """The run starts before the first job of the period and is found in the ledger nevertheless."""
    job = site.job(1)
    site.report(job, start=job.submitted - 500)
    site.set_accounting(job)
    period = ("-S", f"@{job.submitted}")
    assert [row["kind"] for row in site.reconcile("--fix", *period)] == ["OPEN"]
    assert site.reconcile(*period) == []


def test_hold_of_an_unknown_job_is_released(site: CommandSite) -> None:
    job = site.job(1)
    site.report(job)
    (row,) = site.reconcile(code=8)
    assert (row["kind"], row["amount"]) == ("ORPHAN", 240)
    site.reconcile("--fix")
    assert site.available() == 600
    assert site.reconcile() == []


def test_hold_of_another_job_under_the_same_number_is_released(site: CommandSite) -> None:
    """The job of accounting is charged as another run, though the bank has refused its end."""
    job = site.job(1)
    site.report(job, owner_uid=MY_UID + 5)
    end = {"do": "complete", "end": job.end, "elapsed": job.elapsed, "state": job.state}
    with pytest.raises(Refused, match="contradicts the hold"):
        site.report(job, **end)
    site.set_accounting(job)
    rows = site.reconcile("--fix")
    assert [(row["kind"], row["done"]) for row in rows] == [("ORPHAN", "yes"), ("MISSING", "yes")]
    assert site.available() == 560
    runs = json.loads(site.output("jobs", "-a", "--json"))["data"]
    assert {(run["owner_uid"], run["restart"], run["charged"]) for run in runs} == {
        (MY_UID + 5, 0, 0),
        (MY_UID, 1, 40),
    }
    for words in ((), ("--fix",)):
        assert site.reconcile(*words) == []


def running_line(job: AccountingJob) -> str:
    """Return squeue's line of the job, which runs."""
    submitted = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(job.submitted))
    return "\x1f".join([str(job.job_id), submitted, "RUNNING"]) + "\n"


def test_hold_of_a_running_job_is_kept(site: CommandSite) -> None:
    job = site.job(1, state="RUNNING")
    site.report(job)
    site.set_accounting(job)
    site.slurm.set_output("squeue", running_line(job))
    assert site.reconcile("--fix") == []
    assert site.available() == 360


def test_fix_names_what_was_charged_and_what_was_written_off(site: CommandSite) -> None:
    """Of 5 hours at 4 SU an hour chem has 10 SU. Then nothing is left."""
    job = site.job(1, submitted=site.now - 7 * HOUR, elapsed=5 * HOUR)
    site.set_accounting(job)
    assert "would charge 20 SU\n" in site.run("reconcile", code=8).out
    fixed = site.run("reconcile", "--fix", code=0).out
    assert "charged 10 SU, 10 SU beyond the credit written off\n" in fixed
    assert "10 charged, 10 written off" in " ".join(fixed.split())
    site.set_accounting(job, site.job(2))
    (row,) = site.reconcile("--fix")
    assert (row["amount"], row["charged"], row["written_off"]) == (40, 0, 40)


def test_amounts_of_two_resources_are_not_added(site: CommandSite) -> None:
    """An hour of 4 CPUs costs 4 SU of cpu, one of a GPU 12 of gpu. Of 10 SU of gpu 6 are held;
    they are released first, so that the charge is paid as far as the credit goes.
    """
    (chem,) = site.client.get("/project", {"account": "chem"})["data"]
    start, end = (iso(site.now + days * DAY) for days in (-30, 30))
    grant = {"category": "research", "start": start, "end": end, "amount": 600, "comment": "a test"}
    site.client.post("/alloc", {"project": chem["id"], "resource": "gpu", **grant})
    gpu = {"partition": "gpu", "tres": "cpu=1,mem=4000M,node=1,gres/gpu=1"}
    for job in (site.job(1), site.job(2, limit_seconds=1_800, **gpu)):
        site.report(job)  # lost in Slurm; holds of 4 SU of cpu and 6 SU of gpu
    long = {"submitted": site.now - 3 * HOUR, "elapsed": HOUR}
    site.set_accounting(site.job(3, **long), site.job(4, **long, **gpu))
    planned = site.run("reconcile", code=8).out
    assert "would charge cpu 4 SU; gpu 12 SU\n" in planned
    assert "would release cpu 4 SU; gpu 6 SU\n" in planned
    fixed = site.run("reconcile", "--fix", code=0).out
    assert "released cpu 4 SU; gpu 6 SU\n" in fixed
    assert "charged cpu 4 SU; gpu 10 SU, 2 SU beyond the credit written off\n" in fixed


def test_fix_counts_no_released_hold_as_charged(site: CommandSite) -> None:
    """Two ends cost nothing and release holds of 6 SU: in a free state, and without any time."""
    failed = site.job(1, state="NODE_FAIL")
    never_ran = site.job(2, elapsed=0, limit_seconds=1_800)
    for job in (failed, never_ran, site.job(3)):
        site.report(job)
    site.set_accounting(failed, never_ran)
    planned = site.run("reconcile", code=8).out
    assert "would charge 0 SU\n" in planned
    assert "would release 4 SU\n" in planned
    fixed = site.run("reconcile", "--fix", code=0).out
    assert "still held in the bank   charged 0 SU\n" in fixed
    assert "unknown to Slurm   released 4 SU\n" in fixed
    assert site.available() == 600


def test_plain_run_says_what_a_repair_could_not_do(site: CommandSite) -> None:
    """Of a line without a job id the job is unknown, and the bank has no credit for bio."""
    site.report(site.job(1))
    cut = sacct_row(site.job(9)).partition("\x1f")[2]
    site.slurm.set_output("sacct", sacct_row(site.job(2, account="bio")) + cut)
    plain = site.run("reconcile", code=8).out
    rows = {row["kind"]: str(row["done"]) for row in site.reconcile(code=8)}
    fixed = site.run("reconcile", "--fix", code=8).out
    for amount in ("charge 0 SU", "release 0 SU"):
        assert f"would {amount}" in plain
        assert amount.replace("e 0", "ed 0") in fixed
    assert rows["ORPHAN"].startswith("not released: a line of Slurm's output may belong to it")
    assert rows["MISSING"].startswith("there was no allocation of cpu that could pay")


def test_unreadable_line_keeps_only_the_hold_of_its_job(site: CommandSite) -> None:
    site.report(site.job(1))
    site.report(site.job(2))
    assert site.available() == 600 - 2 * 240
    site.slurm.set_output("sacct-jobs", sacct_row(site.job(1)).replace("COMPLETED", "?"))
    result = site.run("reconcile", "--fix", code=8)
    assert "! not read: sacct, line 1, State: '?' is not a job state" in result.err
    assert site.available() == 360


@pytest.mark.parametrize(
    ("account", "kept"), [("chem\x1fx", 1), ("chem\nx", 1), ("chem\n\nx", 1), ("chem\n2", 2)]
)
def test_broken_line_keeps_only_the_holds_of_its_jobs(
    site: CommandSite, account: str, kept: int
) -> None:
    """A line end may be followed by what looks like the id of another job."""
    site.report(site.job(1))
    site.report(site.job(2))
    broken = sacct_row(site.job(1, account=account))
    site.slurm.set_output("sacct", broken)
    site.slurm.set_output("sacct-jobs", broken)
    result = site.run("reconcile", "--fix", code=8)
    assert "! not read: sacct, line 1" in result.err
    assert site.available() == 600 - 240 * kept


def test_line_of_an_unknown_job_keeps_all_holds(site: CommandSite) -> None:
    """Charges are repaired all the same."""
    site.report(site.job(1))
    lost = site.job(2)
    site.slurm.set_output("sacct", sacct_row(lost) + sacct_row(lost).replace("2", "?", 1))
    site.slurm.set_output("sacct-jobs", sacct_row(lost))
    result = site.run("reconcile", "--fix", code=8)
    assert "! not read: sacct, line 2, JobIDRaw: '?'" in result.err
    assert site.available() == 600 - 240 - 40


def test_job_that_never_ran_stops_no_repair(site: CommandSite) -> None:
    site.report(site.job(1))
    waiting = site.job(2, state="PENDING", partition="cpu,gpu")
    site.set_accounting(
        waiting,
        msgspec.structs.replace(waiting, job_id=3, state="CANCELLED", end=site.now, account=""),
    )
    result = site.run("reconcile", "--fix", code=0)
    assert "not read" not in result.err
    assert site.available() == 600


def test_unreadable_price_is_not_guessed(site: CommandSite) -> None:
    site.slurm.set_output("sacct", sacct_row(site.job(1)) + sacct_row(site.job(2, tres="cpu=?")))
    site.slurm.set_output("sacct-jobs", "")
    result = site.run("reconcile", "--fix", code=8)
    assert "! not read: sacct, line 2, AllocTRES" in result.err
    assert "its record in accounting is incomplete" in result.out
    assert site.available() == 560


def test_cell_that_no_price_needs_stops_no_charge(site: CommandSite) -> None:
    site.set_accounting_cells(site.job(1), TimelimitRaw="xx", UID="?")
    result = site.run("reconcile", "--fix", code=0)
    assert "not read" not in result.err
    assert site.available() == 560
    assert site.reconcile() == []


@pytest.mark.parametrize("printed", ["", "billing=??"])
def test_run_without_tres_is_named_by_its_line(site: CommandSite, printed: str) -> None:
    site.set_accounting_cells(site.job(1), AllocTRES=printed)
    for words in (("reconcile",), ("reconcile", "--fix"), ("slurm", "import", "-S", "now-1day")):
        assert "! not read: sacct, line 1, AllocTRES: is empty" in site.run(*words, code=8).err
    assert site.available() == 600


def test_each_cell_without_which_a_run_has_no_price_is_named(site: CommandSite) -> None:
    """A job that never started needs none of them."""
    blanks = {"account": "", "partition": "", "tres": ""}
    never_ran = msgspec.structs.replace(site.job(2, **blanks), state="CANCELLED", start=None)
    site.set_accounting(site.job(1, **blanks), never_ran)
    answer = json.loads(site.output("reconcile", "--json", code=8))
    assert answer["unreadable"] == [
        f"sacct, line 1, {cell}: is empty" for cell in ("Partition", "Account", "AllocTRES")
    ]
    assert [(row["job_id"], row["kind"]) for row in answer["data"]] == [(1, "INCOMPLETE")]


def test_blank_account_is_all_that_a_run_lacks(site: CommandSite) -> None:
    site.set_accounting(site.job(1, account=""))
    for words in (("reconcile",), ("reconcile", "--fix"), ("slurm", "import", "-S", "now-1day")):
        assert "! not read: sacct, line 1, Account: is empty" in site.run(*words, code=8).err
    (row,) = json.loads(site.output("shadow", "--json"))["data"]
    assert (row["account"], row["jobs"], row["refused"]) == ("", 1, 1)


def test_job_of_an_unknown_state_is_not_offered_for_repair(site: CommandSite) -> None:
    """Nor is its hold released, or an allocation created for it."""
    site.report(site.job(2, state="COMPLETED"))
    known = site.available()
    site.set_accounting(site.job(1, state="SOMESTATE"), site.job(2, state="SOMESTATE"))
    for _ in range(2):
        result = site.run("reconcile", "--fix", code=8)
        assert "! not read: sacct, line 1, State: 'SOMESTATE' is not a job state" in result.err
        assert result.out.count("charge") == 0
    cover = ("slurm", "import", "-S", "now-1day", "--cover")
    lines = [
        site.output(*words, code=8).splitlines()[-1] for words in ((*cover, "--dry-run"), cover)
    ]
    assert lines == [
        "history: 0 runs would be charged, price 0 SU; 0 known already",
        "history: 0 runs charged, 0 SU; 0 known already",
    ]
    assert site.available() == known


def test_owner_without_uid_is_charged_to_the_project(site: CommandSite) -> None:
    """Columns know the uid of a user who is gone, JSON knows only the name."""
    columns, from_json = site.job(1, owner=61_999, user="ghost"), site.job(2, user="gone")
    site.slurm.set_output("sinfo", "slurm-wlm 24.11.5\n")
    for name in ("sacct", "sacct-jobs"):
        jobs = [
            sacct_json(job)
            for job in (msgspec.structs.replace(columns, owner=None, user="ghost"), from_json)
        ]
        site.slurm.set_output(f"{name}.json", json.dumps({"jobs": jobs}))
    site.slurm.set_output("sacct-jobs", sacct_row(columns))
    site.reconcile("--fix")
    rows = {row["job_id"]: row for row in site.client.get("/job")["data"]}
    assert (rows[1]["owner_uid"], rows[2]["owner_uid"]) == (61_999, OVERFLOW_UID)
    assert (rows[1]["charged"], rows[2]["charged"]) == (40, 40)


def resized(site: CommandSite, first: int) -> list[AccountingJob]:
    """Return the records of a job that gave back half of its processors after an hour."""
    before = site.job(1, submitted=first, elapsed=HOUR, state="RESIZING", tres="cpu=4")
    after = site.job(1, submitted=first + HOUR, elapsed=HOUR, tres="cpu=2")
    return [before, after]


def test_each_piece_of_a_resized_job_is_charged_once(site: CommandSite) -> None:
    site.set_accounting(*resized(site, site.now - 3 * HOUR))
    (row,) = site.reconcile("--fix")
    assert (row["kind"], row["amount"], row["done"]) == ("MISSING", 60 * 4 + 60 * 2, "yes")
    assert site.available() == 600 - 360
    assert site.reconcile("--fix") == []


def test_resize_at_the_same_price_agrees_and_counts_no_hours(site: CommandSite) -> None:
    """The dearer memory stays, the processors do not, so their hours are unknown."""
    first = site.now - 2 * HOUR
    before = site.job(1, submitted=first, state="RESIZING", tres="cpu=4,mem=16G,node=1")
    after = site.job(1, submitted=first + 600, tres="cpu=2,mem=16G,node=1")
    site.report(before, billing=8)
    job: dict[str, Any] = {"run": Run("lab", 1, first, 0), "start": first, "tres": after.tres}
    message = epilog_event(
        1, 1_200, **job, uid=MY_UID, billing=Fraction(8), end=after.end, resized=first + 600
    )
    pieces = KnownRun(AgentRunState.HELD, billing="8").pieces_of(message)
    site.client.post("/job", json.loads(report_body(message, ReportKind.COMPLETE, "key1", pieces)))
    site.set_accounting(before, after)
    assert site.reconcile() == []
    assert site.available() == 600 - 20 * 8
    (row,) = json.loads(site.output("usage", "-S", "now-1day", "--json"))["data"]
    assert (row["charged"], row["core_seconds"], row["gpu_seconds"]) == (20 * 8, 0, 0)


def test_piece_without_the_next_record_is_reported(site: CommandSite) -> None:
    """Its time was used, and nothing says what came after it."""
    before, after = resized(site, site.now - 4 * HOUR)
    late = after.submitted + HOUR // 2
    after = msgspec.structs.replace(after, submitted=late, start=late, end=late + HOUR)
    site.set_accounting(before, after)
    rows = site.reconcile("--fix", code=8)
    assert [(row["kind"], row["amount"], row["done"]) for row in rows] == [
        ("INCOMPLETE", None, "no"),
        ("MISSING", 60 * 2, "yes"),
    ]
    assert [row["kind"] for row in site.reconcile(code=8)] == ["INCOMPLETE"]


def test_resized_job_that_runs_is_left_alone(site: CommandSite) -> None:
    before, _ = resized(site, site.now - 4 * HOUR)
    site.set_accounting(before)
    site.slurm.set_output("squeue", running_line(before))
    assert site.reconcile("--fix") == []


def test_piece_before_the_period_is_charged_too(site: CommandSite) -> None:
    records = resized(site, site.now - 3 * DAY)
    later = msgspec.structs.replace(
        records[1], elapsed=2 * DAY - HOUR, end=site.now - DAY, tres="cpu=0,mem=1M"
    )
    site.slurm.set_output("sacct", sacct_row(later))
    site.slurm.set_output("sacct-jobs", "".join(map(sacct_row, (records[0], later))))
    (row,) = site.reconcile("--fix")
    assert (row["kind"], row["submitted"]) == ("MISSING", records[0].submitted)
    charged = site.available()
    assert site.reconcile("--fix") == []
    assert site.available() == charged


def test_second_piece_is_no_run_of_its_own(site: CommandSite) -> None:
    """The agent has charged the run; accounting lists its second piece alone."""
    before, after = resized(site, site.now - 4 * DAY)
    after = msgspec.structs.replace(
        after, elapsed=3 * DAY - HOUR, end=site.now - DAY, tres="mem=1M"
    )
    site.report(before, tres="cpu=1")
    site.report(
        before, do="complete", end=after.end, elapsed=3 * DAY, state="COMPLETED", tres="mem=1M",
        pieces=[{"seconds": HOUR, "tres": "cpu=4"}],
    )  # fmt: skip
    site.slurm.set_output("sacct", sacct_row(after))
    site.slurm.set_output("sacct-jobs", "".join(map(sacct_row, (before, after))))
    charged = site.available()
    assert site.reconcile("--fix") == []
    assert site.available() == charged


def test_release_needs_visibility_of_all_jobs(site: CommandSite) -> None:
    site.slurm.set_output("scontrol-show-config", "ClusterName = lab\nSlurmUser = slurm(64030)\n")
    site.report(site.job(1))
    for uid, done in ((61_009, "not released: Slurm may hide other users' jobs"), (64_030, None)):
        reconciler = Reconciler(SlurmCommands(uid=uid), BankClient(site.client), grace_seconds=HOUR)
        (outcome,) = reconciler.reconcile(site.now - DAY, site.now, fix=True).outcomes
        assert (outcome.finding.category, (outcome.problem or "").partition(";")[0]) == (
            Category.ORPHAN,
            done or "",
        )
    assert site.available() == 600


def test_visibility_of_all_runs_is_required(site: CommandSite) -> None:
    for words in (("reconcile",), ("shadow",), ("slurm", "import"), ("slurm", "sync")):
        result = site.run(*words, "--as", "61009", code=4)
        assert "you do not see everybody's runs and projects" in result.err


def test_ledger_of_many_pages(site: CommandSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairbank.rest.client.bank_client.PAGE", 1)
    monkeypatch.setattr("fairbank.rest.client.bank_client.BATCH", 2)
    site.set_accounting(*(site.job(number) for number in range(1, 6)))
    assert [row["done"] for row in site.reconcile("--fix")] == ["yes"] * 5
    assert site.reconcile() == []
    assert site.available() == 600 - 5 * 40


def test_refused_charge_is_reported_once_and_retried_only_on_demand(site: CommandSite) -> None:
    site.set_accounting(site.job(1, account="bio"))
    (row,) = site.reconcile("--fix", code=8)
    assert str(row["done"]).startswith(
        "the project has no allocation of this resource at this time"
    )
    for words in ((), ("--fix",)):
        (row,) = site.reconcile(*words, code=8)
        assert row["kind"] == "REFUSED"
    (row,) = site.reconcile("--fix", "--again", code=8)
    assert (row["kind"], row["done"]) == ("REFUSED", "no")  # it would only be refused again
    assert len(json.loads(site.output("jobs", "--refused", "-a", "--json"))["data"]) == 1
    site.output(
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
    site.reconcile("--fix", "--again")
    assert site.reconcile() == []


def test_restarted_run_is_charged_as_its_own_run(site: CommandSite) -> None:
    """A late report of the agent for the same run counts nothing twice."""
    first = site.job(1, state="REQUEUED", elapsed=0)
    second = msgspec.structs.replace(site.job(1), submitted=(first.end or 0) + 1)
    site.set_accounting(first, second)
    site.reconcile("--fix")
    (row,) = json.loads(site.output("jobs", "-a", "--json"))["data"]
    assert (row["job_id"], row["restart"]) == (1, 1)
    facts = {
        "restart": 1,
        "submitted": second.submitted,
        "end": second.end,
        "elapsed": second.elapsed,
        "state": "COMPLETED",
    }
    site.report(second, do="complete", qos="normal", **facts)
    assert site.available() == 560


def test_reconcile_without_slurmdbd_changes_nothing(site: CommandSite) -> None:
    site.report(site.job(1))
    site.slurm.remove_output("sacct")
    result = site.run("reconcile", "--fix", code=6)
    assert "sacct ended with 1" in result.err
    assert site.available() == 360


def test_reconcile_output_without_json(site: CommandSite) -> None:
    site.set_accounting(site.job(1), site.job(2))
    lines = site.output("reconcile", code=8).splitlines()
    assert lines[0].startswith("Compared 2 finished runs of cluster lab in ")
    assert lines[1:4] == [
        "          0  agree to the minute",
        "          0  ran for no time and cost nothing",
        "          2  ended in Slurm, unknown to the bank   would charge 1.33 SU",
    ]
    assert site.run("reconcile", "--progress", "plain", code=8).err.startswith(
        "sacct 50%\nsacct 100%\n"
    )


def test_invalid_options_are_reported(site: CommandSite) -> None:
    assert "--again does nothing by itself" in site.run("reconcile", "--again", code=2).err
    assert (
        "the period ends before it begins"
        in site.run("reconcile", "-S", "now", "-E", "now-1day", code=2).err
    )
    assert "belongs to cluster lab, not darwin" in site.run("reconcile", "-M", "darwin", code=2).err
