"""Reports about a removed project: staff can read them, former members cannot."""

from __future__ import annotations

import json

import pytest

from fairbank.cli.commands.bank import sproject
from tests.cli.conftest import Run, runner
from tests.cli.output_values import output_of
from tests.cli.site import AYLA


@pytest.fixture
def removed_allocation(changing: Run) -> int:
    """Return the allocation of ayla's project lab40, which was removed."""
    output_of(changing("project", "create", "lab40", "--gid", 50_040))
    output_of(changing("project", "add-user", "lab40", AYLA))
    period = ("--start", "2026-01-01", "--end", "2026-06-01", "--amount", 5)
    output_of(changing("alloc", "create", "-A", "lab40", "-r", "cpu", *period, "--reason", "x"))
    (row,) = json.loads(output_of(changing("alloc", "list", "-A", "lab40", "--json")))["data"]
    output_of(changing("project", "remove", "lab40", "--yes"))
    return int(row["id"])


def test_list_reports_that_the_project_was_removed(changing: Run) -> None:
    """Staff get the option that shows it; former members get the message for an unknown project."""
    output_of(changing("project", "create", "lab41", "--gid", 50_041))
    output_of(changing("project", "add-user", "lab41", AYLA))
    output_of(changing("project", "remove", "lab41", "--yes"))
    for words in (("-A", "lab41"), ("-g", "lab41"), ("-g", 50_041)):
        shown = changing("project", "list", *words)
        assert (shown.code, shown.out) == (0, "")
        output = " ".join(shown.err.split())
        assert "lab41 (number " in output
        assert f"was removed. See: fairbank project list -a {words[0]} {words[1]}" in output
        assert "lab41" in output_of(changing("project", "list", "-a", *words))
        member = changing("project", "list", *words, "--as", AYLA)
        assert (member.code, "lab41 (number" in member.err) == (3, False)
    assert "was removed" not in changing("project", "list", "-A", "nobody").err


def test_removed_project_is_found_by_its_account(
    changing: Run, removed_allocation: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"Allocation {removed_allocation}  lab40/" in output_of(
        changing("statement", "-A", "lab40")
    )
    assert (
        json.loads(output_of(changing("alloc", "list", "-A", "lab40", "--json")))["data"][0]["id"]
        == removed_allocation
    )
    assert "! lab40/cpu: ended " in changing("balance", "-A", "lab40").err
    assert "lab40" not in output_of(changing("balance"))
    assert output_of(changing("jobs", "-A", "lab40")) == ""
    hadm = runner(sproject.run, capsys)
    for words in (("-A", "lab40"), ("-g", "lab40"), ("-A", "lab40", "--detail")):
        assert "lab40" in output_of(hadm("projects", *words))
    assert "lab40" not in output_of(hadm("projects"))
    for words in (("balance", "-A", "lab40"), ("statement", "-A", "lab40")):
        assert "you have no project with the account 'lab40'" in " ".join(
            output_of(changing(*words, "--as", AYLA), 3).split()
        )
    assert "lab40" not in hadm("projects", "-A", "lab40", "--as", AYLA).out
