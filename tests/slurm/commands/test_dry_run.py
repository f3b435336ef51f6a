"""Dry runs of `fairbank slurm import` and `sync`: the real run makes the predicted changes."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairbank.cli.framework.exit_codes import FOUND
from fairbank.core.time import DAY, iso
from fairbank.core.units import show_su
from fairbank.rest.client import Refused
from fairbank.rest.client.bank_client import BankClient
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.people_import import import_people
from fairbank.slurm.reconcile.import_plan import NewMember, PlannedProject
from tests.slurm.commands.site import HOUR, ME, MY_UID, CommandSite, command_site
from tests.slurm.prices import PRICES

pytestmark = pytest.mark.slow

GIDS = ("--gid", "chem=50001", "--gid", "bio=50002")
OTHER, OTHER_UID = next(
    (entry.pw_name, entry.pw_uid) for entry in pwd.getpwall() if entry.pw_uid not in (0, MY_UID)
)


def journal_heads(site: CommandSite) -> Any:
    """Return the last number and hash of each journal."""
    return site.client.get("/audit")["data"]


# --- projects and members ---


def test_import_creates_planned_projects_and_members(priced_site: CommandSite) -> None:
    priced_site.slurm.set_output(
        "sacctmgr-show-associations",
        f"root|||1||\nchem||root|50||\nbio||chem|50||\nchem|{ME}||10||\n"
        f"chem|{OTHER}||10||\nbio|{OTHER}||1||\n",
    )
    bank, gids = BankClient(priced_site.client), {"chem": 50_001, "bio": 50_002}
    slurm = SlurmCommands({**os.environ, **priced_site.slurm.environment})
    planned = import_people(slurm, bank, gids=gids, dry_run=True).plan
    assert bank.projects() == []
    roles = {step.role for step in planned.steps if isinstance(step, NewMember)}
    parents = {step.parent for step in planned.steps if isinstance(step, PlannedProject)}
    assert (roles, parents) == ({"coordinator", "member"}, {None, "chem"})

    done = import_people(slurm, bank, gids=gids)
    assert (done.plan, done.refused) == (planned, ())
    created = bank.projects()
    accounts = {project.id: project.account for project in created}
    projects = [
        (project.account, project.gname, project.gid, accounts.get(project.parent or 0))
        for project in created
    ]
    assert projects == [
        (step.account, step.group, step.gid, step.parent)
        for step in planned.steps
        if isinstance(step, PlannedProject)
    ]
    members = {
        (project.account, member["uid"], member["role"])
        for project in created
        for member in priced_site.client.get(f"/project/{project.id}/member")["data"]
        if member["via"] == "bank"
    }
    assert members == {
        (step.account, step.uid, step.role) for step in planned.steps if isinstance(step, NewMember)
    }
    assert import_people(slurm, bank, gids=gids, dry_run=True).plan.steps == ()


def test_invalid_gid_does_not_stop_import(priced_site: CommandSite) -> None:
    command = ("slurm", "import", "--gid", "chem=4294967295", "--gid", "bio=50002")
    planned, done = (
        priced_site.run(*command, "--dry-run", code=FOUND),
        priced_site.run(*command, code=FOUND),
    )
    assert "account chem: 4294967295 is not a number of a group" in " ".join(planned.err.split())
    assert (planned.err, planned.out.splitlines()) == (done.err, done.out.splitlines()[:-1])


# --- history ---


def history_lines(site: CommandSite, *words: str, code: int) -> tuple[list[str], list[str]]:
    """Return the lines on allocations, charges and releases, and the jobs that were left out."""
    result = site.run("slurm", "import", *GIDS, "-S", "now-1day", *words, code=code)
    done = [
        line.replace("would be ", "").replace("price ", "")
        for line in result.out.splitlines()
        if line.startswith(("allocation", "history", "lost"))
    ]
    return done, re.findall(r"^! job (\d+)", result.err, re.MULTILINE)


def set_history(site: CommandSite) -> None:
    """Set accounting to a complete job, one of the child project, one with a node failure, one of
    an unknown account, one in a removed partition, and a running one.
    """
    site.set_accounting(
        site.job(1),
        site.job(2, account="bio", elapsed=60),
        site.job(3, state="NODE_FAIL"),
        site.job(4, account="nobody"),
        site.job(5, partition="old"),
        site.job(6, state="RUNNING"),
    )


@pytest.mark.parametrize("cover", [("--cover",), ()])
def test_history_of_new_accounts_is_predicted(
    priced_site: CommandSite, cover: tuple[str, ...]
) -> None:
    set_history(priced_site)
    before = journal_heads(priced_site)
    planned = history_lines(priced_site, *cover, "--dry-run", code=FOUND)
    assert journal_heads(priced_site) == before
    allocations = [
        "allocation for chem/cpu: 0.67 SU for 2 runs, category history",
        "allocation for bio/cpu: 0.07 SU for 1 run, category history",
    ]
    assert planned[0][:-1] == (allocations if cover else [])
    assert history_lines(priced_site, *cover, code=FOUND) == planned


def test_record_that_contradicts_itself_is_left_by_both(priced_site: CommandSite) -> None:
    """A run of a day between two instants ten minutes apart: the bank refuses such an end. No
    allocation is larger for it.
    """
    end = priced_site.now - HOUR
    strange = msgspec.structs.replace(priced_site.job(1, elapsed=DAY), end=end)
    strange = msgspec.structs.replace(strange, start=end - 600)
    priced_site.set_accounting(strange, priced_site.job(2))
    planned = history_lines(priced_site, "--cover", "--dry-run", code=FOUND)
    assert planned == (
        [
            "allocation for chem/cpu: 0.67 SU for 1 run, category history",
            "history: 1 run charged, 0.67 SU; 0 known already",
        ],
        ["1"],
    )
    assert history_lines(priced_site, "--cover", code=FOUND) == planned
    offered = priced_site.run("reconcile", code=FOUND)
    assert f"elapsed is {DAY} s" in " ".join(offered.out.split())
    assert "repair them with" not in offered.err


@pytest.fixture
def lenient_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[CommandSite]:
    """Return a bank whose prices make TIMEOUT free, and a node failure not."""
    with command_site(
        tmp_path, monkeypatch, capsys, PRICES, 'free_states = ["TIMEOUT"]\n'
    ) as started:
        yield started


def test_free_states_are_read_from_the_bank(lenient_site: CommandSite) -> None:
    lenient_site.set_accounting(
        lenient_site.job(1, state="TIMEOUT"), lenient_site.job(2, state="NODE_FAIL", elapsed=1_200)
    )
    planned = history_lines(lenient_site, "--cover", "--dry-run", code=0)
    assert planned[0] == [
        "allocation for chem/cpu: 1.33 SU for 2 runs, category history",
        "history: 2 runs charged, 1.33 SU; 0 known already",
    ]
    assert history_lines(lenient_site, "--cover", code=0) == planned
    chem = next(allocation for allocation in lenient_site.client.get("/alloc")["data"])
    assert (chem["deposited"], chem["charged"]) == (80, 80)
    lenient_site.run("reconcile", "-S", "now-1day", code=0)


def test_reconcile_charges_the_predicted_amounts(lenient_site: CommandSite) -> None:
    history_lines(lenient_site, code=0)
    projects = lenient_site.client.get("/project")["data"]
    chem = next(project["id"] for project in projects if project["account"] == "chem")
    start, end = (iso(lenient_site.now + days * DAY) for days in (-30, 30))
    terms = {
        "resource": "cpu",
        "category": "research",
        "start": start,
        "end": end,
        "amount": 600,
        "comment": "a test",
    }
    lenient_site.client.post("/alloc", {"project": chem, **terms})
    lenient_site.set_accounting(
        lenient_site.job(1, state="TIMEOUT"), lenient_site.job(2, state="NODE_FAIL", elapsed=1_200)
    )
    rows = lenient_site.reconcile("-S", "now-1day", code=FOUND)
    assert {row["job_id"]: row["amount"] for row in rows} == {1: 0, 2: 80}
    lenient_site.reconcile("-S", "now-1day", "--fix", code=0)
    assert lenient_site.available() == 600 - 80


def test_history_with_open_holds_is_predicted(site: CommandSite) -> None:
    """The history has a job with an open hold, one that was refused before and is charged now, and
    the hold of a job that Slurm has lost.
    """
    set_history(site)
    held, refused, lost = site.job(7), site.job(8, account="bio"), site.job(9)
    site.set_accounting(site.job(1), site.job(2, account="bio", elapsed=60), held, refused)
    site.report(held)
    site.report(lost)
    with pytest.raises(Refused):
        site.report(refused)
    with pytest.raises(Refused):
        end = {
            "do": "complete",
            "end": refused.end,
            "elapsed": refused.elapsed,
            "state": refused.state,
            "time_limit": 0,
        }
        site.report(refused, **end)
    before = journal_heads(site)
    planned = history_lines(site, "--cover", "--dry-run", code=0)
    assert journal_heads(site) == before
    assert [line.partition(":")[0] for line in planned[0]] == [
        "allocation for bio/cpu",
        "history",
        "lost in Slurm",
    ]
    assert history_lines(site, "--cover", code=0) == planned
    assert site.now - (refused.end or 0) > HOUR


def test_hold_of_a_free_run_is_not_counted_as_lost(site: CommandSite) -> None:
    """A run that ended with its node releases 4 SU too, but Slurm knows it."""
    set_history(site)
    free, lost = site.job(7, state="NODE_FAIL"), site.job(9)
    site.set_accounting(free)
    for job in (free, lost):
        site.report(job)
    planned = history_lines(site, "--dry-run", code=0)
    assert planned[0][-1] == "lost in Slurm: 1 hold released, 4 SU"
    assert history_lines(site, code=0) == planned
    assert site.available() == 600


def test_charge_equals_dry_run(site: CommandSite) -> None:
    set_history(site)
    planned, _ = history_lines(site, "--dry-run", code=FOUND)
    left = site.available()
    history_lines(site, code=FOUND)
    assert planned == [
        f"history: 2 runs charged, {show_su(left - site.available())} SU; 0 known already"
    ]


# --- sync ---


def test_sync_makes_the_planned_changes(site: CommandSite) -> None:
    """The plan has a new account, a changed parent, a new member, a removed user, limits, and the
    limit of a removed project.
    """
    site.output("project", "create", "lab7", "--gid", "50007", "--parent", "chem")
    site.output("project", "create", "gone", "--gid", "50008")
    site.output("project", "remove", "4", "--yes")
    accounts = "root|||1||\nchem||root|50||\nbio||root|50||\ngone||root|1||\n"
    site.slurm.set_output(
        "sacctmgr-show-associations", f"{accounts}chem|{OTHER}||10||\ngone|{OTHER}||1||\n"
    )
    site.slurm.set_output("sshare", "root||0|\nchem||600|cpu=1,billing=30\nbio||0|\ngone||0|\n")
    command = ("slurm", "sync", "--no-policy", "--accounts", "--fence", "--remove", "--yes")
    planned = [
        line.removeprefix("sacctmgr -i ").partition("   #")[0]
        for line in site.output(*command, "--dry-run").splitlines()
    ]
    kinds = [" ".join(line.split()[:2]) for line in planned]
    assert kinds == [
        "modify account",
        "add account",
        "add user",
        "delete user",
        "delete user",
        *["modify account"] * 4,
    ]
    assert sum("parent=" in line for line in planned) == 2
    assert sum("GrpTRESMins=" in line for line in planned) == 4
    assert "name=gone" in planned[-1]
    assert not [line for line in site.slurm.command_lines if "--immediate" in line]
    assert site.output(*command).endswith(f"made: {len(planned)} changes\n")
    assert [
        line.removeprefix("sacctmgr --immediate ")
        for line in site.slurm.command_lines
        if "--immediate" in line
    ] == planned


def test_dry_run_names_the_policy_file(site: CommandSite) -> None:
    rules = site.bank.folder / "slurm.toml"
    rules.write_text(
        f'policy = "{site.bank.folder}/policy"\npublic_policy = "{site.bank.folder}/public"\n'
    )
    command = ("slurm", "sync", "--site", str(rules))
    planned = site.output(*command, "--dry-run")
    files = [site.bank.folder / name for name in ("policy", "public")]
    assert not any(path.exists() for path in files)
    assert site.output(*command) == planned.replace("would write", "written")
    assert all(path.exists() for path in files)
