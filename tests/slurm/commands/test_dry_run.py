"""Dry runs of `fairbank slurm import` and `sync`: the forecast steps are those then carried out."""

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
    (each.pw_name, each.pw_uid) for each in pwd.getpwall() if each.pw_uid not in (0, MY_UID)
)


@pytest.fixture
def fresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Centre]:
    """A bank with prices and nothing else."""
    with a_centre(tmp_path, monkeypatch, capsys, PRICES) as found:
        yield found


def books(centre: Centre) -> Any:
    """Return the last number and link of each journal."""
    return centre.client.get("/audit")["data"]


# --- people ---


def test_projects_and_members_are_entered_as_they_were_planned(fresh: Centre) -> None:
    fresh.slurm.say(
        "sacctmgr-show-associations",
        f"root|||1||\nchem||root|50||\nbio||chem|50||\nchem|{ME}||10||\n"
        f"chem|{OTHER}||10||\nbio|{OTHER}||1||\n",
    )
    bank, gids = BankClient(fresh.client), {"chem": 50_001, "bio": 50_002}
    slurm = SlurmCommands({**os.environ, **fresh.slurm.environment})
    planned = import_people(slurm, bank, gids=gids, dry_run=True).plan
    assert bank.projects() == []
    roles = {each.role for each in planned.steps if isinstance(each, NewMember)}
    parents = {each.parent for each in planned.steps if isinstance(each, PlannedProject)}
    assert (roles, parents) == ({"coordinator", "member"}, {None, "chem"})

    done = import_people(slurm, bank, gids=gids)
    assert (done.plan, done.refused) == (planned, ())
    there = bank.projects()
    accounts = {each.id: each.account for each in there}
    projects = [
        (each.account, each.group, each.gid, accounts.get(each.parent or 0)) for each in there
    ]
    assert projects == [
        (each.account, each.group, each.gid, each.parent)
        for each in planned.steps
        if isinstance(each, PlannedProject)
    ]
    members = {(each.account, uid, role) for each in there for uid, role in each.members.items()}
    assert members == {
        (each.account, each.uid, each.role) for each in planned.steps if isinstance(each, NewMember)
    }
    assert import_people(slurm, bank, gids=gids, dry_run=True).plan.steps == ()


def test_a_number_that_no_group_has_keeps_the_others_from_nothing(fresh: Centre) -> None:
    words = ("slurm", "import", "--gid", "chem=4294967295", "--gid", "bio=50002")
    planned, done = fresh.said(*words, "--dry-run", code=FOUND), fresh.said(*words, code=FOUND)
    assert "account chem: 4294967295 is no number of a group" in " ".join(planned.err.split())
    assert (planned.err, planned.out.splitlines()) == (done.err, done.out.splitlines()[:-1])


# --- history ---


def told(centre: Centre, *words: str, code: int) -> tuple[list[str], list[str]]:
    """Return what was, or would be, opened, charged and released; and the jobs that are left."""
    said = centre.said("slurm", "import", *GIDS, "-S", "now-1day", *words, code=code)
    done = [
        line.replace("would be ", "")
        for line in said.out.splitlines()
        if line.startswith(("allocation", "history", "lost"))
    ]
    return done, re.findall(r"^! job (\d+)", said.err, re.MULTILINE)


def past(centre: Centre) -> None:
    """A whole job, one of the project below, one whose node failed, one of nobody's, one in a
    partition of old, and one that runs.
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
def test_the_history_of_accounts_that_are_yet_to_be_entered(
    fresh: Centre, cover: tuple[str, ...]
) -> None:
    past(fresh)
    before = books(fresh)
    planned = told(fresh, *cover, "--dry-run", code=FOUND)
    assert books(fresh) == before
    opened = [
        "allocation for chem/cpu: 0.66 SU for 2 runs, category history",
        "allocation for bio/cpu: 0.06 SU for 1 run, category history",
    ]
    assert planned[0][:-1] == (opened if cover else [])
    assert told(fresh, *cover, code=FOUND) == planned


@pytest.fixture
def lenient(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Centre]:
    """A bank with prices at which running into one's limit is free, and a node failure is not."""
    with a_centre(tmp_path, monkeypatch, capsys, PRICES, 'free_states = ["TIMEOUT"]\n') as found:
        yield found


def test_what_costs_nothing_is_asked_of_the_bank(lenient: Centre) -> None:
    lenient.ran(lenient.job(1, state="TIMEOUT"), lenient.job(2, state="NODE_FAIL", elapsed=1_200))
    planned = told(lenient, "--cover", "--dry-run", code=0)
    assert planned[0] == [
        "allocation for chem/cpu: 1.33 SU for 2 runs, category history",
        "history: 2 runs charged, 1.33 SU; 0 known already",
    ]
    assert told(lenient, "--cover", code=0) == planned
    chem = next(each for each in lenient.client.get("/alloc")["data"])
    assert (chem["deposited"], chem["charged"]) == (80, 80)
    lenient.said("reconcile", "-S", "now-1day", code=0)


def test_what_reconcile_would_charge_is_what_it_charges(lenient: Centre) -> None:
    told(lenient, code=0)
    found = lenient.client.get("/project")["data"]
    chem = next(each["id"] for each in found if each["account"] == "chem")
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
    assert {each["job_id"]: each["amount"] for each in rows} == {1: 0, 2: 80}
    lenient.reconciled("-S", "now-1day", "--fix", code=0)
    assert lenient.available() == 600 - 80


def test_the_history_beside_allocations_and_holds(opened: Centre) -> None:
    """Jobs that are charged again, whose hold is open, that were refused before and are paid now,
    and a hold that Slurm has lost.
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


def test_every_change_in_slurm_is_made_as_it_was_planned(opened: Centre) -> None:
    """An account, one below it, another parent, a new member, one who is none, fences, and that of
    a project which was removed.
    """
    opened.tell("project", "create", "lab7", "--gid", "50007", "--parent", "chem")
    opened.tell("project", "create", "gone", "--gid", "50008")
    opened.tell("project", "remove", "4", "--yes")
    accounts = "root|||1||\nchem||root|50||\nbio||root|50||\ngone||root|1||\n"
    opened.slurm.say(
        "sacctmgr-show-associations", f"{accounts}chem|{OTHER}||10||\ngone|{OTHER}||1||\n"
    )
    opened.slurm.say("sshare", "root||0|\nchem||600|cpu=1,billing=30\nbio||0|\ngone||0|\n")
    words = ("slurm", "sync", "--no-policy", "--accounts", "--fence", "--remove")
    planned = [
        line.removeprefix("sacctmgr -i ").partition("   #")[0]
        for line in opened.tell(*words, "--dry-run").splitlines()
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
    assert opened.tell(*words).endswith(f"made: {len(planned)} changes\n")
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
    words = ("slurm", "sync", "--site", str(rules))
    planned = opened.tell(*words, "--dry-run")
    files = [opened.bank.folder / name for name in ("policy", "public")]
    assert not any(each.exists() for each in files)
    assert opened.tell(*words) == planned.replace("would write", "written")
    assert all(each.exists() for each in files)
