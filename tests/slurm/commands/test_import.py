"""`fairbank slurm import` with a running bank and recorded Slurm output."""

from __future__ import annotations

import json
import os

import pytest

from fairbank.cli.framework.exit_codes import FOUND, WRONG_USAGE
from fairbank.slurm.bank import BankClient, Progress, no_progress
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.importer import import_people
from fairbank.slurm.reconcile.bank_records import BankProject
from tests.slurm.commands.site import ME, MY_UID, Centre

pytestmark = pytest.mark.slow


GIDS = ("--gid", "chem=50001", "--gid", "bio=50002")


def test_import_creates_projects_once(centre: Centre) -> None:
    planned = centre.tell("slurm", "import", *GIDS, "--dry-run")
    assert planned.startswith(
        "project chem: group chem (50001)\nproject bio: group bio (50002), under chem\nproject"
        f" chem: {ME} ({MY_UID}) is coordinator\n\nFor the bank's settings:\n\n[clusters.lab]\n"
    )
    assert json.loads(centre.tell("project", "list", "--json"))["data"] == []
    assert "entered: 3 things\n" in centre.tell("slurm", "import", *GIDS)
    projects = json.loads(centre.tell("project", "list", "--json"))["data"]
    assert [(project["account"], project["gid"], project["parent"]) for project in projects] == [
        ("chem", 50001, None),
        ("bio", 50002, 1),
    ]
    assert centre.tell("slurm", "import").startswith(
        "The bank has every account and user of cluster lab.\n"
    )


def test_import_reports_unknown_groups(centre: Centre) -> None:
    result = centre.said("slurm", "import", "--dry-run", code=FOUND)
    assert f"agents = [{MY_UID}]    # the uids that report runs: Slurm's user\n" in result.out
    assert (
        "account chem: this host has no group of this name; name its number: --gid chem=NUMBER"
        in " ".join(result.err.split())
    )


def test_import_without_new_projects_says_so(centre: Centre) -> None:
    result = centre.said("slurm", "import", code=FOUND)
    left = result.err.count("! account ") + result.err.count("! user ")
    assert left >= 2
    assert result.out.startswith(f"Nothing to enter; left out of cluster lab: {left}\n")
    assert centre.client.get("/project")["data"] == []


def test_omitted_rows_give_exit_code_8(centre: Centre) -> None:
    """A nightly import reports an unknown user every night, until an administrator lists them in
    --pass-over.
    """
    centre.slurm.say(
        "sacctmgr-show-associations",
        f"root|||1||\nchem||root|50||\nchem|{ME}||10||\nchem|nobody-here||10||\n",
    )
    command = ("slurm", "import", "--gid", "chem=50001")
    assert centre.tell(*command, "--dry-run", code=FOUND).count("project chem") == 2
    assert centre.tell(*command, code=FOUND).splitlines()[-1] == "entered: 2 things; left out: 1"
    assert centre.tell(*command, code=FOUND).startswith(
        "Nothing to enter; left out of cluster lab: 1\n"
    )
    again = centre.said(*command, "--pass-over", "nobody-here", code=0)
    assert again.out.startswith("The bank has every account and user of cluster lab.\n")
    assert "nobody-here" not in again.err


def test_ignored_account_and_its_runs_are_not_imported(opened: Centre) -> None:
    opened.slurm.say(
        "sacctmgr-show-associations",
        f"root|||1||\nchem||root|50||\nold||root|50||\nold|{ME}||10||\nolder||old|1||\n",
    )
    opened.ran(opened.job(1, account="old"))
    command = ("slurm", "import", "--gid", "older=50009", "-S", "now-1day")
    assert "account old: " in opened.said(*command, code=FOUND).err
    result = opened.said(*command, "--pass-over", "old", code=0)
    assert "old:" not in result.err
    assert {
        project["account"]: project["parent"] for project in opened.client.get("/project")["data"]
    }["older"] is None


def test_runs_of_an_ignored_user_are_charged_only_where_a_project_pays(opened: Centre) -> None:
    """Jobs of other users of the same account are still reported."""
    ignored = {"user": "gone", "owner": 4_242}
    opened.ran(opened.job(1, account="bio", **ignored), opened.job(2, **ignored))
    command = ("slurm", "import", "-S", "now-1day")
    dry_run = opened.said(*command, "--dry-run", code=FOUND)
    assert "! job 1 of bio: " in dry_run.err
    assert opened.said(*command, "--dry-run", "--pass-over", "gone", code=0).out == dry_run.out
    result = opened.said(*command, "--pass-over", "gone", code=0)
    assert "job 1" not in result.err
    assert "history: 1 run charged, " in result.out

    opened.ran(
        opened.job(1, account="bio", **ignored),
        opened.job(2, **ignored),
        opened.job(3, account="bio"),
    )
    result = opened.said(*command, "--pass-over", "gone", code=FOUND)
    assert [
        line.partition(":")[0] for line in result.err.splitlines() if line.startswith("! job")
    ] == ["! job 3 of bio"]


def test_import_reports_wrong_amounts_and_keeps_them(opened: Centre) -> None:
    command = ("slurm", "import", "-S", "now-1day")
    opened.ran(opened.job(1, elapsed=60))
    assert "history: 1 run charged, " in opened.said(*command, code=0).out
    opened.ran(opened.job(1, elapsed=6_000))
    result = opened.said(*command, code=FOUND)
    assert "! job 1 of chem: charged amount differs from accounting; left as it is" in " ".join(
        result.err.split()
    )


def test_import_continues_after_a_name_conflict(centre: Centre) -> None:
    number = centre.client.post("/project", {"gname": "chemists", "gid": 50_001})["data"]["id"]
    errors = " ".join(centre.said("slurm", "import", *GIDS, code=FOUND).err.split())
    assert (
        errors
        == f"! account chem: project {number} (chemists) has its gid 50001 already; name another:"
        " --gid chem=NUMBER"
    )
    assert [project["account"] for project in centre.client.get("/project")["data"]] == [
        "chemists",
        "bio",
    ]


def test_import_continues_after_a_refusal(centre: Centre) -> None:
    """Another administrator creates chem between the bank's list and the import."""

    class Before(BankClient):
        def projects(
            self, progress: Progress = no_progress, *, removed: bool = False
        ) -> list[BankProject]:
            return []

    centre.client.post("/project", {"gname": "chem", "gid": 50_003})
    gids = {"chem": 50_001, "bio": 50_002}
    result = import_people(
        SlurmCommands({**os.environ, **centre.slurm.environment}),
        Before(centre.client),
        cluster="lab",
        gids=gids,
    )
    assert [refusal.partition(":")[0] for refusal in result.refused] == [
        "account chem",
        f"user {ME}",
    ]
    assert "a project with this group, gid or account exists" in result.refused[0]
    assert [project["account"] for project in centre.client.get("/project")["data"]] == [
        "chem",
        "bio",
    ]


def test_settings_of_import_price_as_slurm_bills(centre: Centre) -> None:
    lines = centre.bank.folder / "cluster.toml"
    assert f"written: {lines}\n" in centre.tell("slurm", "import", *GIDS, "--settings", str(lines))
    centre.bank.stop()
    centre.bank.config.write_text(centre.bank.config.read_text() + lines.read_text())
    centre.bank.start()
    result = centre.said("slurm", "import", code=0)
    assert result.out == "The bank has every account and user of cluster lab.\n"
    assert result.err == ""


def test_cover_without_start_time_is_refused(centre: Centre) -> None:
    result = centre.said("slurm", "import", "--cover", code=WRONG_USAGE)
    assert "add -S TIME" in result.err


def test_history_is_charged_once(opened: Centre) -> None:
    opened.ran(
        opened.job(1),
        opened.job(2, account="bio", elapsed=60),
        opened.job(3, elapsed=0),
        opened.job(4, state="RUNNING"),
    )
    command = ("slurm", "import", "-S", "now-1day", "--cover")
    assert opened.tell(*command).splitlines()[1:] == [
        "allocation for bio/cpu: 0.06 SU for 1 run, category history",
        "history: 2 runs charged, 0.73 SU; 0 known already",
    ]
    assert opened.available() == 600 - 40
    assert opened.tell(*command).splitlines()[1:] == [
        "history: 0 runs charged, 0 SU; 2 known already"
    ]
    assert opened.available() == 600 - 40
    assert opened.tell("audit", "verify").endswith("every row is as the journal says\n")


def test_covered_history_needs_no_reconciling(opened: Centre) -> None:
    """A free run before all other runs of its project is covered too."""
    opened.ran(opened.job(1, account="bio", state="NODE_FAIL"))
    assert opened.tell("slurm", "import", "-S", "now-1day", "--cover").splitlines()[1:] == [
        "allocation for bio/cpu: 0 SU for 1 run, category history",
        "history: 1 run charged, 0 SU; 0 known already",
    ]
    opened.said("reconcile", "-S", "now-1day", code=0)
