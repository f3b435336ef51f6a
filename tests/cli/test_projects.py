"""Projects: creation, members, renaming, removal and restoration by staff."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import CommandResult, Run
from tests.cli.output_values import entry_number, output_of
from tests.cli.site import AYLA, MINH


def test_new_project_gets_an_allocation_and_a_balance(changing: Run) -> None:
    assert output_of(changing("project", "create", "lab7", "--gid", 50_007)).endswith(
        ": project lab7: number 3, group lab7 (50007)\nbank fairbank\n"
    )
    assert "lab7" in output_of(changing("project", "add-user", "lab7", AYLA, "--role", "pi"))
    period = ("--start", "2026-11-01", "--end", "2027-11-01")
    words = (
        "alloc",
        "create",
        "-A",
        "lab7",
        "-r",
        "cpu",
        *period,
        "--amount",
        "2k",
        "--reason",
        "call 3",
    )
    creation = output_of(changing(*words))
    assert (
        creation.partition(": ")[2]
        == "allocation 4: lab7/cpu, 2026-11-01 .. 2027-10-31, active, 2,000 SU remaining\n"
        "bank fairbank\n"
    )
    assert entry_number(CommandResult(0, creation, "")) > 0
    assert "lab7    cpu         2000" in output_of(changing("balance", "-A", "lab7", "--as", AYLA))
    again = changing(*words)
    assert again.code == 7
    assert "of this resource at the same time" in " ".join(again.err.split())
    assert "61001" in output_of(changing("project", "users", "lab7"))
    output_of(changing("project", "remove-user", "lab7", AYLA, "--yes"))
    assert changing("balance", "-A", "lab7", "--as", AYLA).code == 3


def test_account_of_digits_is_the_account_and_no_other_number(changing: Run) -> None:
    """Centres name accounts by numbers: credit must not go to the project of that number."""
    output_of(changing("project", "create", "122825900664", "--gid", 50_061))
    output_of(changing("project", "create", "1", "--gid", 50_062))
    terms = ("-r", "cpu", "--end", "2027-11-01", "--amount", "5", "--reason", "call 3")
    for account in ("1", "122825900664"):
        created = output_of(changing("alloc", "create", "-A", account, *terms))
        assert f": {account}/cpu, " in created
    shown = changing("project", "show", "122825900664")
    assert (shown.code, "Project 122825900664: number 4" in shown.err) == (0, True)
    refused = " ".join(output_of(changing("project", "add-user", "1", AYLA), 2).split())
    assert "1 is the name of project 5 and the number of the project chem_qmc" in refused
    assert "give 5 for the first, chem_qmc for the other" in refused
    assert "61001" in output_of(changing("project", "add-user", "5", AYLA))
    assert changing("alloc", "create", "-A", "2", *terms).code == 3, "an account, no number"


def test_project_commands_accept_idempotency_keys(changing: Run) -> None:
    creation = ("project", "create", "lab11", "--gid", 50_011, "--idempotency-key", "p-1")
    assert output_of(changing(*creation)) == output_of(changing(*creation))
    assert "idempotency key" in output_of(
        changing("project", "create", "lab12", "--gid", 50_012, "--idempotency-key", "p-1"), 7
    )
    add = ("project", "add-user", "lab11", MINH, "--idempotency-key", "m-1")
    remove = ("project", "remove-user", "lab11", MINH, "--yes", "--idempotency-key", "m-2")
    for words in (add, remove, add):
        output_of(changing(*words))
    assert json.loads(changing("project", "show", "lab11", "--json").out)["data"] == [], (
        "carried out before: not again"
    )
    conflict = output_of(
        changing("project", "add-user", "lab11", MINH, "--role", "pi", "--idempotency-key", "m-1"),
        7,
    )
    assert "idempotency key" in conflict


def test_project_is_renamed_removed_and_restored(changing: Run) -> None:
    output_of(changing("project", "create", "lab30", "--gid", 50_030))
    output = output_of(
        changing(
            "project",
            "set",
            "lab30",
            "--gid",
            50_031,
            "-A",
            "lab31",
            "--parent",
            "chem_qmc",
            "--reason",
            "moved",
        )
    )
    assert output.endswith(" is changed\nbank fairbank\n")
    changed = entry_number(CommandResult(0, output, ""))
    assert (
        "an entry of this kind cannot be undone: project"
        in changing("undo", changed, "--reason", "x", "--yes").err
    )
    unknown = output_of(changing("project", "set", "lab31", "--group", "nosuchgroup"), 3)
    assert "field: --group try: name its number with --gid" in " ".join(unknown.split())
    again = changing("project", "set", "lab31", "--gid", 50_031)
    assert (again.out.startswith("project "), "carried out before" in again.err) == (True, True)
    assert "removed" not in changing("project", "show", "lab31").err
    assert "nothing is to change" in output_of(changing("project", "set", "lab31"), 2)
    assert entry_number(changing("project", "remove", "lab31", "--yes")) > changed
    assert "lab31" not in output_of(changing("project", "list"))
    assert "lab31" in output_of(changing("project", "list", "-a"))
    assert "removed" in changing("project", "show", "lab31").err
    assert "the project is still in use" in output_of(
        changing("project", "remove", "chem_qmc", "--yes"), 7
    )
    assert "ever had an allocation" in output_of(
        changing("project", "set", "chem_qmc", "-A", "chem"), 7
    )
    output_of(changing("project", "set", "lab31", "--restore"))
    assert "lab31" in output_of(changing("project", "list"))


def test_project_that_exists_is_reported_as_such(changing: Run) -> None:
    create = ("project", "create", "exists_qmc", "--gid", "4711")
    assert "project exists_qmc: number" in changing(*create).out
    again = changing(*create)
    assert (again.code, "project exists_qmc exists already: number" in again.out) == (0, True)


@pytest.mark.parametrize(
    ("words", "field"),
    [(["", "--gid", "4"], "GROUP"), ([""], "GROUP"), (["x", "--gid", "4", "-A", ""], "-A")],
)
def test_empty_project_name_is_refused(changing: Run, words: list[str], field: str) -> None:
    result = changing("project", "create", *words)
    assert (result.code, f"  field: {field}\n" in result.err) == (2, True)


def test_account_outside_ascii_is_selected_like_any_other(changing: Run) -> None:
    output_of(changing("project", "create", "größe", "--gid", 7400))
    grant = ("-r", "cpu", "--start", "2026-01-01", "--end", "2027-01-01", "--amount", 7)
    output_of(changing("alloc", "create", "-A", "größe", *grant, "--reason", "x"))
    for words in ("balance", "alloc list", "usage", "jobs -a"):
        selected = changing(*words.split(), "-A", "größe")
        assert selected.code == 0, selected.err
        assert words not in ("balance", "alloc list") or "größe" in selected.out
