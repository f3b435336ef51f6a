"""`fairbank slurm import`, against a bank that runs and a Slurm that says what was recorded."""

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


def test_import_enters_what_slurm_has_and_nothing_twice(centre: Centre) -> None:
    planned = centre.tell("slurm", "import", *GIDS, "--dry-run")
    assert planned.startswith(
        "project chem: group chem (50001)\nproject bio: group bio (50002), under chem\nproject"
        f" chem: {ME} ({MY_UID}) is coordinator\n\nFor the bank's settings:\n\n[clusters.lab]\n"
    )
    assert json.loads(centre.tell("project", "list", "--json"))["data"] == []
    assert "entered: 3 things\n" in centre.tell("slurm", "import", *GIDS)
    projects = json.loads(centre.tell("project", "list", "--json"))["data"]
    assert [(each["account"], each["gid"], each["parent"]) for each in projects] == [
        ("chem", 50001, None),
        ("bio", 50002, 1),
    ]
    assert centre.tell("slurm", "import").startswith(
        "The bank has every account and user of cluster lab.\n"
    )


def test_import_tells_what_it_cannot_enter(centre: Centre) -> None:
    said = centre.said("slurm", "import", "--dry-run", code=FOUND)
    assert f"agents = [{MY_UID}]    # the uids that report runs: Slurm's user\n" in said.out
    assert (
        "account chem: this host has no group of this name; name its number: --gid chem=NUMBER"
        in " ".join(said.err.split())
    )


def test_import_that_enters_nothing_says_so(centre: Centre) -> None:
    said = centre.said("slurm", "import", code=FOUND)
    left = said.err.count("! account ") + said.err.count("! user ")
    assert left >= 2
    assert said.out.startswith(f"Nothing to enter; left out of cluster lab: {left}\n")
    assert centre.client.get("/project")["data"] == []


def test_omitted_rows_give_exit_code_8(centre: Centre) -> None:
    """Nightly: a stranger who stays one is reported every night, until an administrator says that
    he is to be passed over.
    """
    centre.slurm.say(
        "sacctmgr-show-associations",
        f"root|||1||\nchem||root|50||\nchem|{ME}||10||\nchem|nobody-here||10||\n",
    )
    words = ("slurm", "import", "--gid", "chem=50001")
    assert centre.tell(*words, "--dry-run", code=FOUND).count("project chem") == 2
    assert centre.tell(*words, code=FOUND).splitlines()[-1] == "entered: 2 things; left out: 1"
    assert centre.tell(*words, code=FOUND).startswith(
        "Nothing to enter; left out of cluster lab: 1\n"
    )
    again = centre.said(*words, "--pass-over", "nobody-here", code=0)
    assert again.out.startswith("The bank has every account and user of cluster lab.\n")
    assert "nobody-here" not in again.err


def test_an_account_that_is_passed_over_is_neither_entered_nor_told_and_its_runs_are_not_either(
    opened: Centre,
) -> None:
    opened.slurm.say(
        "sacctmgr-show-associations",
        f"root|||1||\nchem||root|50||\nold||root|50||\nold|{ME}||10||\nolder||old|1||\n",
    )
    opened.ran(opened.job(1, account="old"))
    words = ("slurm", "import", "--gid", "older=50009", "-S", "now-1day")
    assert "account old: " in opened.said(*words, code=FOUND).err
    said = opened.said(*words, "--pass-over", "old", code=0)
    assert "old:" not in said.err
    assert {each["account"]: each["parent"] for each in opened.client.get("/project")["data"]}[
        "older"
    ] is None


def test_runs_of_an_ignored_user_are_charged_only_where_a_project_pays(opened: Centre) -> None:
    """Others of the same account are told as ever."""
    gone = {"user": "gone", "owner": 4_242}
    opened.ran(opened.job(1, account="bio", **gone), opened.job(2, **gone))
    words = ("slurm", "import", "-S", "now-1day")
    foretold = opened.said(*words, "--dry-run", code=FOUND)
    assert "! job 1 of bio: " in foretold.err
    assert opened.said(*words, "--dry-run", "--pass-over", "gone", code=0).out == foretold.out
    said = opened.said(*words, "--pass-over", "gone", code=0)
    assert "job 1" not in said.err
    assert "history: 1 run charged, " in said.out

    opened.ran(
        opened.job(1, account="bio", **gone), opened.job(2, **gone), opened.job(3, account="bio")
    )
    said = opened.said(*words, "--pass-over", "gone", code=FOUND)
    assert [
        line.partition(":")[0] for line in said.err.splitlines() if line.startswith("! job")
    ] == ["! job 3 of bio"]


def test_differences_for_people_are_reported_and_left(opened: Centre) -> None:
    words = ("slurm", "import", "-S", "now-1day")
    opened.ran(opened.job(1, elapsed=60))
    assert "history: 1 run charged, " in opened.said(*words, code=0).out
    opened.ran(opened.job(1, elapsed=6_000))
    said = opened.said(*words, code=FOUND)
    assert "! job 1 of chem: charged amount differs from accounting; left as it is" in " ".join(
        said.err.split()
    )


def test_import_goes_on_past_names_that_other_projects_have(centre: Centre) -> None:
    number = centre.client.post("/project", {"gname": "chemists", "gid": 50_001})["data"]["id"]
    said = " ".join(centre.said("slurm", "import", *GIDS, code=FOUND).err.split())
    assert (
        said
        == f"! account chem: project {number} (chemists) has its gid 50001 already; name another:"
        " --gid chem=NUMBER"
    )
    assert [each["account"] for each in centre.client.get("/project")["data"]] == [
        "chemists",
        "bio",
    ]


def test_import_goes_on_past_what_the_bank_refuses(centre: Centre) -> None:
    """Another administrator entered chem while we asked."""

    class Before(BankClient):
        def projects(
            self, progress: Progress = no_progress, *, removed: bool = False
        ) -> list[BankProject]:
            return []

    centre.client.post("/project", {"gname": "chem", "gid": 50_003})
    gids = {"chem": 50_001, "bio": 50_002}
    found = import_people(
        SlurmCommands({**os.environ, **centre.slurm.environment}),
        Before(centre.client),
        cluster="lab",
        gids=gids,
    )
    assert [no.partition(":")[0] for no in found.refused] == ["account chem", f"user {ME}"]
    assert "a project with this group, gid or account exists" in found.refused[0]
    assert [each["account"] for each in centre.client.get("/project")["data"]] == ["chem", "bio"]


def test_the_settings_that_import_writes_price_as_slurm_bills(centre: Centre) -> None:
    lines = centre.bank.folder / "cluster.toml"
    assert f"written: {lines}\n" in centre.tell("slurm", "import", *GIDS, "--settings", str(lines))
    centre.bank.stop()
    centre.bank.config.write_text(centre.bank.config.read_text() + lines.read_text())
    centre.bank.start()
    said = centre.said("slurm", "import", code=0)
    assert said.out == "The bank has every account and user of cluster lab.\n"
    assert said.err == ""


def test_covering_without_a_history_is_refused(centre: Centre) -> None:
    said = centre.said("slurm", "import", "--cover", code=WRONG_USAGE)
    assert "add -S TIME" in said.err


def test_a_history_is_charged_once(opened: Centre) -> None:
    opened.ran(
        opened.job(1),
        opened.job(2, account="bio", elapsed=60),
        opened.job(3, elapsed=0),
        opened.job(4, state="RUNNING"),
    )
    words = ("slurm", "import", "-S", "now-1day", "--cover")
    assert opened.tell(*words).splitlines()[1:] == [
        "allocation for bio/cpu: 0.06 SU for 1 run, category history",
        "history: 2 runs charged, 0.73 SU; 0 known already",
    ]
    assert opened.available() == 600 - 40
    assert opened.tell(*words).splitlines()[1:] == [
        "history: 0 runs charged, 0 SU; 2 known already"
    ]
    assert opened.available() == 600 - 40
    assert opened.tell("audit", "verify").endswith("every row is as the journal says\n")


def test_a_covered_history_leaves_nothing_to_reconcile(opened: Centre) -> None:
    """A run that cost nothing, before all others of its project and alone, is covered as well."""
    opened.ran(opened.job(1, account="bio", state="NODE_FAIL"))
    assert opened.tell("slurm", "import", "-S", "now-1day", "--cover").splitlines()[1:] == [
        "allocation for bio/cpu: 0 SU for 1 run, category history",
        "history: 1 run charged, 0 SU; 0 known already",
    ]
    opened.said("reconcile", "-S", "now-1day", code=0)
