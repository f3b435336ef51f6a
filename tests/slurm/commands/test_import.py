"""`fairbank slurm import` with a running bank and recorded Slurm output."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from fairbank.bank.policy import Policy
from fairbank.bank.records import BankProject
from fairbank.cli.framework.exit_codes import FOUND, NOT_DONE, WRONG_USAGE
from fairbank.core.progress import StageProgress, no_progress
from fairbank.core.time import Instant, iso
from fairbank.rest.client.bank_client import BankClient
from fairbank.service.ledger import Ledger
from fairbank.service.ops.upkeep import Upkeep
from fairbank.service.write_queue.writers import WriterThreads
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.people_import import import_people
from fairbank.store.factory import open_store
from tests.cli.test_terminal import Terminal
from tests.slurm.commands.site import HOUR, ME, MY_UID, CommandSite, command_site
from tests.support.clock import ManualClock
from tests.support.conditions import wait_until
from tests.support.names import EXAMPLES

pytestmark = pytest.mark.slow


GIDS = ("--gid", "chem=50001", "--gid", "bio=50002")


def test_import_creates_projects_once(bare_site: CommandSite) -> None:
    planned = bare_site.output("slurm", "import", *GIDS, "--dry-run")
    assert planned.startswith(
        "project chem: group chem (50001)\nproject bio: group bio (50002), under chem\nproject"
        f" chem: {ME} ({MY_UID}) is coordinator\n\nFor the bank's settings:\n\n[clusters.lab]\n"
    )
    assert json.loads(bare_site.output("project", "list", "--json"))["data"] == []
    assert "entered: 3 projects and members\n" in bare_site.output("slurm", "import", *GIDS)
    projects = json.loads(bare_site.output("project", "list", "--json"))["data"]
    assert [(project["account"], project["gid"], project["parent"]) for project in projects] == [
        ("chem", 50001, None),
        ("bio", 50002, 1),
    ]
    assert bare_site.output("slurm", "import").startswith(
        "The bank has every account and user of cluster lab.\n"
    )


def test_import_as_json_has_what_the_text_has(priced_site: CommandSite) -> None:
    """chem and bio with one member; the job costs 10 minutes at 4 SU an hour."""
    priced_site.set_accounting(priced_site.job(1))
    words = ("slurm", "import", *GIDS, "-S", "now-1day", "--cover", "--json")
    for dry_run in (True, False):
        document = json.loads(priced_site.output(*words, *["--dry-run"] * dry_run))
        (row,) = document["data"]
        assert (document["schema"], row["dry_run"]) == ("fairbank.slurm-import/2", dry_run)
        assert [(one["account"], one["gid"], one["parent"]) for one in row["projects"]] == [
            ("chem", 50_001, None),
            ("bio", 50_002, "chem"),
        ]
        member = {"account": "chem", "user": ME, "uid": MY_UID, "role": "coordinator"}
        assert row["members"] == [member]
        assert "[clusters.lab]" in row["settings"]
        assert (row["refused"], row["left_out"]) == ([], 0)
        history = row["history"]
        (cpu,) = history["resources"]
        assert (cpu["resource"], cpu["runs"], cpu["cost"]) == ("cpu", 1, 40)
        assert (cpu["charged"], history["covered"][0]["amount"]) == (None if dry_run else 40, 40)
    (again,) = json.loads(priced_site.output(*words))["data"]
    assert (again["projects"], again["members"], again["history"]["known"]) == ([], [], 1)


def test_import_reports_unknown_groups(bare_site: CommandSite) -> None:
    result = bare_site.run("slurm", "import", "--dry-run", code=FOUND)
    assert f"agents = [{MY_UID}]    # the uids that report runs: Slurm's user\n" in result.out
    assert (
        "account chem: this host has no group of this name; name its number: --gid chem=NUMBER"
        in " ".join(result.err.split())
    )


def test_import_without_new_projects_says_so(bare_site: CommandSite) -> None:
    result = bare_site.run("slurm", "import", code=FOUND)
    left = result.err.count("! account ") + result.err.count("! user ")
    assert left >= 2
    assert result.out.startswith(f"Nothing to enter; left out of cluster lab: {left}\n")
    assert bare_site.client.get("/project")["data"] == []


def test_omitted_rows_give_exit_code_8(bare_site: CommandSite) -> None:
    """A nightly import reports an unknown user every night, until an administrator lists them in
    --pass-over.
    """
    bare_site.slurm.set_output(
        "sacctmgr-show-associations",
        f"root|||1||\nchem||root|50||\nchem|{ME}||10||\nchem|nobody-here||10||\n",
    )
    command = ("slurm", "import", "--gid", "chem=50001")
    assert bare_site.output(*command, "--dry-run", code=FOUND).count("project chem") == 2
    last_line = bare_site.output(*command, code=FOUND).splitlines()[-1]
    assert last_line == "entered: 2 projects and members; left out: 1"
    assert bare_site.output(*command, code=FOUND).startswith(
        "Nothing to enter; left out of cluster lab: 1\n"
    )
    again = bare_site.run(*command, "--pass-over", "nobody-here", code=0)
    assert again.out.startswith("The bank has every account and user of cluster lab.\n")
    assert "nobody-here" not in again.err


def test_ignored_account_and_its_runs_are_not_imported(site: CommandSite) -> None:
    site.slurm.set_output(
        "sacctmgr-show-associations",
        f"root|||1||\nchem||root|50||\nold||root|50||\nold|{ME}||10||\nolder||old|1||\n",
    )
    site.set_accounting(site.job(1, account="old"))
    command = ("slurm", "import", "--gid", "older=50009", "-S", "now-1day")
    assert "account old: " in site.run(*command, code=FOUND).err
    result = site.run(*command, "--pass-over", "old", code=0)
    assert "old:" not in result.err
    assert {
        project["account"]: project["parent"] for project in site.client.get("/project")["data"]
    }["older"] is None


def test_runs_of_an_ignored_user_are_charged_only_where_a_project_pays(site: CommandSite) -> None:
    """Jobs of other users of the same account are still reported."""
    ignored = {"user": "gone", "owner": 4_242}
    site.set_accounting(site.job(1, account="bio", **ignored), site.job(2, **ignored))
    command = ("slurm", "import", "-S", "now-1day")
    dry_run = site.run(*command, "--dry-run", code=FOUND)
    assert "! job 1 of bio: " in dry_run.err
    assert site.run(*command, "--dry-run", "--pass-over", "gone", code=0).out == dry_run.out
    result = site.run(*command, "--pass-over", "gone", code=0)
    assert "job 1" not in result.err
    assert "history: 1 run charged, " in result.out

    site.set_accounting(
        site.job(1, account="bio", **ignored), site.job(2, **ignored), site.job(3, account="bio")
    )
    result = site.run(*command, "--pass-over", "gone", code=FOUND)
    assert [
        line.partition(":")[0] for line in result.err.splitlines() if line.startswith("! job")
    ] == ["! job 3 of bio"]


def test_import_reports_wrong_amounts_and_keeps_them(site: CommandSite) -> None:
    command = ("slurm", "import", "-S", "now-1day")
    site.set_accounting(site.job(1, elapsed=60))
    assert "history: 1 run charged, " in site.run(*command, code=0).out
    site.set_accounting(site.job(1, elapsed=6_000))
    result = site.run(*command, code=FOUND)
    assert "! job 1 of chem: charged amount differs from accounting; left as it is" in " ".join(
        result.err.split()
    )


def test_import_continues_after_a_name_conflict(bare_site: CommandSite) -> None:
    number = bare_site.client.post("/project", {"gname": "chemists", "gid": 50_001})["data"]["id"]
    errors = " ".join(bare_site.run("slurm", "import", *GIDS, code=FOUND).err.split())
    assert (
        errors
        == f"bank fairbank ! account chem: project {number} (chemists) has its gid 50001 already;"
        " name another: --gid chem=NUMBER"
    )
    assert [project["account"] for project in bare_site.client.get("/project")["data"]] == [
        "chemists",
        "bio",
    ]


def test_import_continues_after_a_refusal(bare_site: CommandSite) -> None:
    """Another administrator creates chem between the bank's list and the import."""

    class Before(BankClient):
        def projects(
            self, progress: StageProgress = no_progress, *, removed: bool = False
        ) -> list[BankProject]:
            return []

    bare_site.client.post("/project", {"gname": "chem", "gid": 50_003})
    gids = {"chem": 50_001, "bio": 50_002}
    result = import_people(
        SlurmCommands({**os.environ, **bare_site.slurm.environment}),
        Before(bare_site.client),
        cluster="lab",
        gids=gids,
    )
    assert [refusal.partition(":")[0] for refusal in result.refused] == [
        "account chem",
        f"user {ME}",
    ]
    assert "a project with this group, gid or account exists" in result.refused[0]
    assert [project["account"] for project in bare_site.client.get("/project")["data"]] == [
        "chem",
        "bio",
    ]


def test_settings_of_import_price_as_slurm_bills(bare_site: CommandSite) -> None:
    lines = bare_site.bank.folder / "cluster.toml"
    assert f"written: {lines}\n" in bare_site.output(
        "slurm", "import", *GIDS, "--settings", str(lines)
    )
    bare_site.bank.stop()
    bare_site.bank.config.write_text(bare_site.bank.config.read_text() + lines.read_text())
    bare_site.bank.start()
    result = bare_site.run("slurm", "import", code=0)
    assert result.out == "The bank has every account and user of cluster lab.\n"
    assert result.err == "bank fairbank\n"


def test_file_of_settings_is_replaced_only_with_yes_without_a_terminal(
    bare_site: CommandSite,
) -> None:
    lines = bare_site.bank.folder / "cluster.toml"
    lines.write_text("written by hand\n")
    command = ("slurm", "import", *GIDS, "--settings", str(lines))
    refused = bare_site.run(*command, code=WRONG_USAGE)
    assert "field: --yes" in refused.err
    assert lines.read_text() == "written by hand\n"
    assert bare_site.client.get("/project")["data"] == []
    bare_site.run(*command, "--yes", code=0)
    assert lines.read_text().startswith("[clusters.lab]")
    bare_site.run(*command, code=0)  # the same lines


@pytest.mark.parametrize(("old", "form"), [(None, ()), ("written by hand\n", ("--json",))])
def test_import_writes_nothing_before_a_yes_to_the_plan(
    bare_site: CommandSite, old: str | None, form: tuple[str, ...]
) -> None:
    lines = bare_site.bank.folder / "Cluster.toml"
    if old is not None:
        lines.write_text(old)
    terminal = Terminal(
        bare_site, "slurm", "import", *GIDS, "--settings", str(lines), *form, columns=500
    )
    wait_until(lambda: "[y/N]" in terminal.read(), "the question")
    terminal.type("n\n")
    code, screen = terminal.end()
    assert code == NOT_DONE
    verb = "write" if old is None else "replace"
    question = f"Enter 3 projects and members and {verb} {lines}? [y/N]"
    assert [line.partition("] ")[0] + "]" for line in screen if "[y/N]" in line] == [question]
    assert screen.index("project chem: group chem (50001)") < len(screen) - 2
    assert screen[-1] == "Nothing was changed."
    assert (lines.read_text() if lines.exists() else None) == old
    assert bare_site.client.get("/project")["data"] == []


def test_names_as_wide_as_slurms_are_imported_and_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = (
        '[clusters.lab.partitions."128x24"]\nresource = "cpu"\n'
        '[clusters.lab.qos_factors]\n"2day" = 2\n'
    )
    accounts = dict(enumerate(EXAMPLES[:5], 1))
    with command_site(tmp_path, monkeypatch, capsys, prices) as site:
        rows = [f"{account}||root|1||\n{account}|{ME}||1||\n" for account in accounts.values()]
        site.slurm.set_output("sacctmgr-show-associations", "root|||1||\n" + "".join(rows))
        site.slurm.set_output(
            "sacctmgr-show-account", "".join(f"{account}|{ME}\n" for account in accounts.values())
        )
        site.set_accounting(
            *(
                msgspec.structs.replace(
                    site.job(number, account=account, partition="128x24"), qos="2day"
                )
                for number, account in accounts.items()
            )
        )
        gids = [f"--gid={account}={50_100 + number}" for number, account in accounts.items()]
        site.output("slurm", "import", *gids, "-S", "now-1day", "--cover")
        usage = json.loads(site.output("usage", "--by", "project", "--json"))["data"]
    assert {row["name"]: row["charged"] for row in usage} == dict.fromkeys(accounts.values(), 80)


def test_cover_without_start_time_is_refused(bare_site: CommandSite) -> None:
    result = bare_site.run("slurm", "import", "--cover", code=WRONG_USAGE)
    assert "add -S TIME" in result.err


def test_history_is_charged_once(site: CommandSite) -> None:
    site.set_accounting(
        site.job(1),
        site.job(2, account="bio", elapsed=60),
        site.job(3, elapsed=0),
        site.job(4, state="RUNNING"),
    )
    command = ("slurm", "import", "-S", "now-1day", "--cover")
    assert site.output(*command).splitlines()[1:] == [
        "allocation for bio/cpu: 0.07 SU for 1 run, category history",
        "history: 2 runs charged, 0.73 SU; 0 known already",
    ]
    assert site.available() == 600 - 40
    assert site.output(*command).splitlines()[1:] == [
        "history: 0 runs charged, 0 SU; 2 known already"
    ]
    assert site.available() == 600 - 40
    assert site.output("audit", "verify").endswith(
        "every row is as the journal says\nbank fairbank\n"
    )


def test_history_beyond_the_credit_is_written_off_and_named(site: CommandSite) -> None:
    """Of 5 hours at 4 SU an hour chem has 10 SU."""
    site.set_accounting(site.job(1, submitted=site.now - 7 * HOUR, elapsed=5 * HOUR))
    assert site.output("slurm", "import", "-S", "now-2days").splitlines()[-1] == (
        "history: 1 run charged, 10 SU, 10 SU beyond the credit written off; 0 known already"
    )


def test_covered_history_needs_no_reconciling(site: CommandSite) -> None:
    """A free run before all other runs of its project is covered too."""
    site.set_accounting(site.job(1, account="bio", state="NODE_FAIL"))
    assert site.output("slurm", "import", "-S", "now-1day", "--cover").splitlines()[1:] == [
        "allocation for bio/cpu: 0 SU for 1 run, category history",
        "history: 1 run charged, 0 SU; 0 known already",
    ]
    site.run("reconcile", "-S", "now-1day", code=0)


def test_job_that_never_ran_leaves_an_import_complete(site: CommandSite) -> None:
    """A night's jobs may be cancelled in several partitions, or without an account."""
    waiting = site.job(2, state="PENDING", partition="cpu,gpu")
    cancelled = {"state": "CANCELLED", "end": site.now}
    site.set_accounting(
        site.job(1),
        waiting,
        msgspec.structs.replace(waiting, job_id=3, partition="gpu,cpu", **cancelled),
        msgspec.structs.replace(waiting, job_id=4, account="", **cancelled),
    )
    output = site.output("slurm", "import", "-S", "now-1day")
    assert "history: 1 run charged" in output


def test_run_that_ended_just_now_is_covered_when_it_is_charged(site: CommandSite) -> None:
    """Until then the agent's report of its end may be on its way."""
    command = ("slurm", "import", "-S", "now-1day", "--cover")
    recent = {"account": "bio", "submitted": site.now - 90}
    site.set_accounting(site.job(1, elapsed=80, **recent))
    nothing = ["history: 0 runs charged, 0 SU; 0 known already"]
    assert site.output(*command, "--dry-run").splitlines()[-1:] == [
        "history: 0 runs would be charged, price 0 SU; 0 known already"
    ]
    assert site.output(*command).splitlines()[1:] == nothing
    assert len(site.client.get("/alloc")["data"]) == 1  # of chem
    site.set_accounting(
        site.job(1, elapsed=15, **recent),
        site.job(2, elapsed=15, **recent),  # in one second
    )
    assert site.output(*command).splitlines()[1:] == [
        "allocation for bio/cpu: 0.03 SU for 2 runs, category history",
        "history: 2 runs charged, 0.03 SU; 0 known already",
    ]
    assert site.output(*command).splitlines()[1:] == [nothing[0].replace("; 0", "; 2")]


def test_run_of_one_second_is_covered_and_charged_once(site: CommandSite) -> None:
    command = ("slurm", "import", "-S", "now-1day", "--cover")
    site.set_accounting(site.job(1, account="bio", elapsed=1))
    site.client.post(  # as an import does that fails before it charges the run
        "/alloc",
        {
            "project": next(
                row["id"] for row in site.client.get("/project")["data"] if row["account"] == "bio"
            ),
            "resource": "cpu",
            "category": "history",
            "start": iso(site.now - 2 * HOUR),
            "end": iso(site.now - 2 * HOUR + 1),
            "amount": 1,
            "comment": "x",
        },
    )
    with (
        closing(open_store(site.bank.store)) as store,
        closing(WriterThreads(Ledger(store, Policy()))) as queue,
    ):
        upkeep = Upkeep(store, queue, ManualClock(Instant(site.now)), 0)
        assert upkeep.sweep().allocations_ended == 1
    lines = ("history: 1 run charged, 0.02 SU; 0 known already", "0 SU; 1 known already")
    for line in lines:
        assert site.output(*command).splitlines()[-1].endswith(line)


def test_each_piece_of_a_resized_job_is_imported_once(site: CommandSite) -> None:
    """slurmdbd stores the start of the job with each record, and counts the time from there."""
    before = site.job(1, elapsed=1_800, state="RESIZING", tres="cpu=4")
    after = msgspec.structs.replace(
        site.job(1, elapsed=3_600, tres="cpu=2"), submitted=before.submitted + 1_800
    )
    site.set_accounting(before, after)
    for line in (
        "history: 1 run charged, 3 SU; 0 known already",
        "history: 0 runs charged, 0 SU; 1 known already",
    ):
        assert site.output("slurm", "import", "-S", "now-1day").splitlines()[-1] == line
    assert site.reconcile() == []


def test_second_import_repeats_the_reason_of_the_first(site: CommandSite) -> None:
    site.set_accounting(
        site.job(1, account="oldacct"), site.job(2, partition="oldpart"), site.job(3)
    )
    command = ("slurm", "import", "-S", "now-1day", "--cover")
    first = site.run(*command, code=FOUND).err
    assert "no such project" in first
    assert "partition 'oldpart'" in first
    assert site.run(*command, code=FOUND).err == first
