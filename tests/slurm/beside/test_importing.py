"""`fairbank slurm import`, against a bank that runs and a Slurm that says what was recorded."""

from __future__ import annotations

import json

import pytest

from tests.slurm.beside.centre import ME, MY_UID, Centre

pytestmark = pytest.mark.slow


GIDS = ("--gid", "chem=50001", "--gid", "bio=50002")


def test_import_enters_what_slurm_has_and_nothing_twice(centre: Centre) -> None:
    planned = centre.tell("slurm", "import", *GIDS, "--dry-run")
    assert planned.startswith(
        "project chem: group chem (50001)\n"
        "project bio: group bio (50002), under chem\n"
        f"project chem: {ME} ({MY_UID}) is coordinator\n\nFor the bank's settings:\n\n[clusters.lab]\n"
    )
    assert json.loads(centre.tell("project", "list", "--json"))["data"] == []
    assert "entered: 3 things\n" in centre.tell("slurm", "import", *GIDS)
    projects = json.loads(centre.tell("project", "list", "--json"))["data"]
    assert [(each["account"], each["gid"], each["parent"]) for each in projects] == [("chem", 50001, None), ("bio", 50002, 1)]
    assert centre.tell("slurm", "import").startswith("The bank has every account and user of cluster lab.\n")


def test_import_tells_what_it_cannot_enter(centre: Centre) -> None:
    said = centre.said("slurm", "import", "--dry-run", code=0)
    assert "account chem: this host has no group of this name; name its number: --gid chem=NUMBER" in " ".join(said.err.split())


def test_the_settings_that_import_writes_price_as_slurm_bills(centre: Centre) -> None:
    lines = centre.bank.folder / "cluster.toml"
    assert f"written: {lines}\n" in centre.tell("slurm", "import", *GIDS, "--settings", str(lines))
    centre.bank.stop()
    centre.bank.config.write_text(centre.bank.config.read_text() + lines.read_text())
    centre.bank.start()
    said = centre.said("slurm", "import", code=0)
    assert said.out == "The bank has every account and user of cluster lab.\n"
    assert said.err == ""


def test_a_history_is_charged_once(opened: Centre) -> None:
    opened.ran(opened.job(1), opened.job(2, account="bio", elapsed=60), opened.job(3, elapsed=0), opened.job(4, state="RUNNING"))
    words = ("slurm", "import", "-S", "now-1day", "--cover")
    assert opened.tell(*words).splitlines()[1:] == [
        "allocation for bio/cpu: 0.07 SU for 1 run, category history",
        "history: 2 runs charged, 0.73 SU; 0 known already",
    ]
    assert opened.available() == 600 - 40
    assert opened.tell(*words).splitlines()[1:] == ["history: 0 runs charged, 0 SU; 2 known already"]
    assert opened.available() == 600 - 40
    assert opened.tell("audit", "verify").endswith("every row is as the journal says\n")
