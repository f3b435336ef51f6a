"""Dry runs of `fairbank slurm import` and `sync`: the real run makes the predicted changes."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairbank.cli.framework.exit_codes import FOUND
from fairbank.core.time import DAY, iso
from fairbank.core.units import show_su
from fairbank.rest.client import Refused
from fairbank.slurm.bank import BankClient
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.importer import import_people
from fairbank.slurm.reconcile.import_plan import NewMember, PlannedProject
from tests.slurm.commands.site import HOUR, ME, MY_UID, Centre, a_centre
from tests.slurm.prices import PRICES

pytestmark = pytest.mark.slow

GIDS = ("--gid", "chem=50001", "--gid", "bio=50002")
OTHER, OTHER_UID = next(
    (entry.pw_name, entry.pw_uid) for entry in pwd.getpwall() if entry.pw_uid not in (0, MY_UID)
)


@pytest.fixture
def fresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Centre]:
    """Return a bank with prices and nothing else."""
    with a_centre(tmp_path, monkeypatch, capsys, PRICES) as site:
        yield site


def books(centre: Centre) -> Any:
    """Return the last number and hash of each journal."""
    return centre.client.get("/audit")["data"]


# --- people ---


def test_import_creates_planned_projects_and_members(fresh: Centre) -> None:
    fresh.slurm.say(
        "sacctmgr-show-associations",
        f"root|||1||\nchem||root|50||\nbio||chem|50||\nchem|{ME}||10||\n"
        f"chem|{OTHER}||10||\nbio|{OTHER}||1||\n",
    )
    bank, gids = BankClient(fresh.client), {"chem": 50_001, "bio": 50_002}
    slurm = SlurmCommands({**os.environ, **fresh.slurm.environment})
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
        (project.account, project.group, project.gid, accounts.get(project.parent or 0))
        for project in created
    ]
    assert projects == [
        (step.account, step.group, step.gid, step.parent)
        for step in planned.steps
        if isinstance(step, PlannedProject)
    ]
    members = {
        (project.account, uid, role) for project in created for uid, role in project.members.items()
    }
    assert members == {
        (step.account, step.uid, step.role) for step in planned.steps if isinstance(step, NewMember)
    }
    assert import_people(slurm, bank, gids=gids, dry_run=True).plan.steps == ()


def test_invalid_gid_does_not_stop_import(fresh: Centre) -> None:
    command = ("slurm", "import", "--gid", "chem=4294967295", "--gid", "bio=50002")
    planned, done = fresh.said(*command, "--dry-run", code=FOUND), fresh.said(*command, code=FOUND)
    assert "account chem: 4294967295 is no number of a group" in " ".join(planned.err.split())
    assert (planned.err, planned.out.splitlines()) == (done.err, done.out.splitlines()[:-1])


# --- history ---


def told(centre: Centre, *words: str, code: int) -> tuple[list[str], list[str]]:
    """Return the lines on allocations, charges and releases, and the jobs that were left out."""
    result = centre.said("slurm", "import", *GIDS, "-S", "now-1day", *words, code=code)
    done = [
        line.replace("would be ", "")
        for line in result.out.splitlines()
        if line.startswith(("allocation", "history", "lost"))
    ]
    return done, re.findall(r"^! job (\d+)", result.err, re.MULTILINE)


def past(centre: Centre) -> None:
    """Set accounting to a complete job, one of the child project, one with a node failure, one of
    an unknown account, one in a removed partition, and a running one.
    """
    centre.ran(
        centre.job(1),
        centre.job(2, account="bio", elapsed=60),
        centre.job(3, state="NODE_FAIL"),
        centre.job(4, account="nobody"),
        centre.job(5, partition="old"),
        centre.job(6, state="RUNNING"),
    )


@pytest.mark.parametrize("cover", [("--cover",), ()])
def test_history_of_new_accounts_is_predicted(fresh: Centre, cover: tuple[str, ...]) -> None:
    past(fresh)
    before = books(fresh)
    planned = told(fresh, *cover, "--dry-run", code=FOUND)
    assert books(fresh) == before
    allocations = [
        "allocation for chem/cpu: 0.66 SU for 2 runs, category history",
        "allocation for bio/cpu: 0.06 SU for 1 run, category history",
    ]
    assert planned[0][:-1] == (allocations if cover else [])
    assert told(fresh, *cover, code=FOUND) == planned


@pytest.fixture
def lenient(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Centre]:
    """Return a bank whose prices make TIMEOUT free, and a node failure not."""
    with a_centre(tmp_path, monkeypatch, capsys, PRICES, 'free_states = ["TIMEOUT"]\n') as site:
        yield site


def test_free_states_are_read_from_the_bank(lenient: Centre) -> None:
    lenient.ran(lenient.job(1, state="TIMEOUT"), lenient.job(2, state="NODE_FAIL", elapsed=1_200))
    planned = told(lenient, "--cover", "--dry-run", code=0)
    assert planned[0] == [
        "allocation for chem/cpu: 1.33 SU for 2 runs, category history",
        "history: 2 runs charged, 1.33 SU; 0 known already",
    ]
    assert told(lenient, "--cover", code=0) == planned
    chem = next(allocation for allocation in lenient.client.get("/alloc")["data"])
    assert (chem["deposited"], chem["charged"]) == (80, 80)
    lenient.said("reconcile", "-S", "now-1day", code=0)


def test_reconcile_charges_the_predicted_amounts(lenient: Centre) -> None:
    told(lenient, code=0)
    projects = lenient.client.get("/project")["data"]
    chem = next(project["id"] for project in projects if project["account"] == "chem")
    start, end = (iso(lenient.now + days * DAY) for days in (-30, 30))
    terms = {
        "resource": "cpu",
        "category": "test",
        "start": start,
        "end": end,
        "amount": 600,
        "comment": "a test",
    }
    lenient.client.post("/alloc", {"project": chem, **terms})
    lenient.ran(lenient.job(1, state="TIMEOUT"), lenient.job(2, state="NODE_FAIL", elapsed=1_200))
    rows = lenient.reconciled("-S", "now-1day", code=FOUND)
    assert {row["job_id"]: row["amount"] for row in rows} == {1: 0, 2: 80}
    lenient.reconciled("-S", "now-1day", "--fix", code=0)
    assert lenient.available() == 600 - 80


def test_history_with_open_holds_is_predicted(opened: Centre) -> None:
    """The history has a job with an open hold, one that was refused before and is charged now, and
    the hold of a job that Slurm has lost.
    """
    past(opened)
    held, refused, lost = opened.job(7), opened.job(8, account="bio"), opened.job(9)
    opened.ran(opened.job(1), opened.job(2, account="bio", elapsed=60), held, refused)
    opened.report(held)
    opened.report(lost)
    with pytest.raises(Refused):
        opened.report(refused)
    with pytest.raises(Refused):
        end = {
            "do": "complete",
            "end": refused.end,
            "elapsed": refused.elapsed,
            "state": refused.state,
            "time_limit": 0,
        }
        opened.report(refused, **end)
    before = books(opened)
    planned = told(opened, "--cover", "--dry-run", code=0)
    assert books(opened) == before
    assert [line.partition(":")[0] for line in planned[0]] == [
        "allocation for bio/cpu",
        "history",
        "lost in Slurm",
    ]
    assert told(opened, "--cover", code=0) == planned
    assert opened.now - (refused.end or 0) > HOUR


def test_charge_equals_dry_run(opened: Centre) -> None:
    past(opened)
    planned, _ = told(opened, "--dry-run", code=FOUND)
    left = opened.available()
    told(opened, code=FOUND)
    assert planned == [
        f"history: 2 runs charged, {show_su(left - opened.available())} SU; 0 known already"
    ]


# --- sync ---


def test_sync_makes_the_planned_changes(opened: Centre) -> None:
    """The plan has a new account, a changed parent, a new member, a removed user, limits, and the
    limit of a removed project.
    """
    opened.tell("project", "create", "lab7", "--gid", "50007", "--parent", "chem")
    opened.tell("project", "create", "gone", "--gid", "50008")
    opened.tell("project", "remove", "4", "--yes")
    accounts = "root|||1||\nchem||root|50||\nbio||root|50||\ngone||root|1||\n"
    opened.slurm.say(
        "sacctmgr-show-associations", f"{accounts}chem|{OTHER}||10||\ngone|{OTHER}||1||\n"
    )
    opened.slurm.say("sshare", "root||0|\nchem||600|cpu=1,billing=30\nbio||0|\ngone||0|\n")
    command = ("slurm", "sync", "--no-policy", "--accounts", "--fence", "--remove")
    planned = [
        line.removeprefix("sacctmgr -i ").partition("   #")[0]
        for line in opened.tell(*command, "--dry-run").splitlines()
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
    assert not [line for line in opened.slurm.asked if "--immediate" in line]
    assert opened.tell(*command).endswith(f"made: {len(planned)} changes\n")
    assert [
        line.removeprefix("sacctmgr --immediate ")
        for line in opened.slurm.asked
        if "--immediate" in line
    ] == planned


def test_dry_run_names_the_policy_file(opened: Centre) -> None:
    rules = opened.bank.folder / "slurm.toml"
    rules.write_text(
        f'policy = "{opened.bank.folder}/policy"\npublic_policy = "{opened.bank.folder}/public"\n'
    )
    command = ("slurm", "sync", "--site", str(rules))
    planned = opened.tell(*command, "--dry-run")
    files = [opened.bank.folder / name for name in ("policy", "public")]
    assert not any(path.exists() for path in files)
    assert opened.tell(*command) == planned.replace("would write", "written")
    assert all(path.exists() for path in files)
