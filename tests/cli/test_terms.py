"""Terms of an allocation, changed by staff: its period, state, limit and caps."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests.cli.conftest import Run
from tests.cli.output_values import entry_of, told
from tests.cli.site import CPU, GPU, JORGE


def test_a_credit_limit_is_not_among_what_will_be_lost(changing: Run) -> None:
    told(changing("project", "create", "lab9", "--gid", 50_009))
    terms = ("--start", "2026-01-01", "--end", "2026-12-01", "--amount", 30, "--credit-limit", 50)
    told(changing("alloc", "create", "-A", "lab9", "-r", "cpu", *terms, "--reason", "x"))
    assert "80  " in changing("balance", "-A", "lab9").out
    assert "! 30 " in changing("balance", "-A", "lab9").out
    (row,) = json.loads(changing("balance", "-A", "lab9", "--json").out)["data"]
    assert (row["available"], row["left_over"]) == (80 * 60, 30 * 60)


def test_a_start_behind_that_of_jobs_which_hold_credit_is_reported(changing: Run) -> None:
    set_it = ("alloc", "set", CPU, "--reason", "x", "--dry-run", "--start")
    assert "Jobs that began before" in changing(*set_it, "now").err
    assert "Jobs that began before" not in changing(*set_it, "2026-01-01").err


def test_what_is_over_is_shown_so_and_opened_again_with_a_new_end(changing: Run) -> None:
    told(changing("project", "create", "lab10", "--gid", 50_010))
    of_it = ("-A", "lab10", "-r", "cpu")
    period = ("--start", "2025-11-01", "--end", "2025-12-01")
    number = json.loads(
        told(changing("alloc", "create", *of_it, *period, "--reason", "x", "--json"))
    )["data"]["id"]
    next_one = json.loads(
        told(
            changing(
                "alloc",
                "create",
                *of_it,
                "--start",
                "2090-01-01",
                "--end",
                "2091-01-01",
                "--reason",
                "x",
                "--json",
            )
        )
    )
    assert next_one["data"]["state"] == "planned"
    listed = {
        row["id"]: row["state"]
        for row in json.loads(changing("alloc", "list", *of_it, "--json").out)["data"]
    }
    assert listed == {number: "ended", next_one["data"]["id"]: "planned"}
    for state in ("planned", "active", "ended"):
        rows = json.loads(changing("alloc", "list", *of_it, "--state", state, "--json").out)["data"]
        assert [row["id"] for row in rows] == [
            each for each, stands in listed.items() if stands == state
        ]
    assert "state      ended" in changing("alloc", "show", number).out
    no = " ".join(told(changing("alloc", "reopen", number, "--reason", "x"), 7).split())
    assert f"fairbank alloc reopen {number} --end ... --reason" in no
    for words in (("set", number, "--end"), ("extend", number)):
        no = " ".join(told(changing("alloc", *words, "2089-01-01", "--reason", "x"), 7).split())
        assert "does not" in no
        assert f"fairbank alloc reopen {number} --end" in no
    assert "--end 2089-01-01" in no  # the words to type instead
    assert "active" in told(
        changing("alloc", "reopen", number, "--end", "2089-06-01", "--reason", "x")
    )


def test_frozen_allocation_past_its_end_accepts_late_reports(changing: Run) -> None:
    told(changing("project", "create", "lab19", "--gid", 50_019))
    of_it = (
        "-A",
        "lab19",
        "-r",
        "cpu",
        "--start",
        "2026-01-01",
        "--end",
        "2089-01-01",
        "--reason",
        "x",
    )
    number = json.loads(told(changing("alloc", "create", *of_it, "--json")))["data"]["id"]
    told(changing("alloc", "freeze", number, "--reason", "x"))
    assert ", ended, " in told(changing("alloc", "end", number, "--reason", "x"))
    assert ", ended, " in told(changing("alloc", "thaw", number, "--reason", "x"))
    assert ", active, " in told(
        changing("alloc", "reopen", number, "--end", "2089-01-01", "--reason", "x")
    )


def test_a_no_says_which_name_or_state_it_was(changing: Run) -> None:
    told(changing("project", "create", "lab9", "--gid", 50_009))
    taken = told(changing("project", "create", "lab9b", "--gid", 50_009), 7)
    assert "has gid 50009" in " ".join(taken.split())
    thaw = told(changing("alloc", "thaw", CPU, "--reason", "x"), 7)
    assert f"allocation {CPU} is active already" in " ".join(thaw.split())


def test_terms_change_and_the_allocation_lives_on(changing: Run) -> None:
    assert "2027-09-01" in told(
        changing("alloc", "set", CPU, "--end", "2027-09-01", "--reason", "extended")
    )
    assert "credit limit 500 SU" in told(
        changing("alloc", "set", CPU, "--credit-limit", 500, "--shared", "--reason", "bridging")
    )
    assert told(changing("alloc", "freeze", CPU, "--reason", "asked")).count("frozen") == 1
    assert told(changing("alloc", "thaw", CPU, "--reason", "asked")).count("active") == 1
    told(
        changing(
            "alloc",
            "set",
            CPU,
            "--credit-limit",
            0,
            "--not-shared",
            "--end",
            "2027-07-01",
            "--reason",
            "back",
        )
    )
    assert changing("alloc", "thaw", CPU, "--reason", "twice").code == 7
    assert changing("alloc", "set", CPU, "--reason", "nothing").code == 2


def test_a_statement_names_the_credit_limit_where_it_proves_its_figures(changing: Run) -> None:
    def heading_and_proof() -> tuple[str, str]:
        result = changing("statement", CPU)
        return " ".join(result.out.partition("\nAs of ")[0].split()), result.err.splitlines()[-1]

    granted = heading_and_proof()[0].partition(" granted ")[2]
    assert heading_and_proof()[1].endswith(f"= granted {granted} SU")
    told(changing("alloc", "set", CPU, "--credit-limit", 5, "--reason", "bridging"))
    heading, proof = heading_and_proof()
    assert heading.endswith(f"granted {granted} credit limit 5")
    assert proof.startswith("ok  used")
    assert proof.endswith(f"= granted {granted} + limit 5 SU")
    told(changing("alloc", "set", CPU, "--credit-limit", 0, "--reason", "back"))


def test_a_statement_says_which_terms_became_what(changing: Run) -> None:
    def newest(*words: object) -> tuple[str, dict[str, object]]:
        number = entry_of(changing("alloc", *words, "--reason", "why"))
        rows = csv.DictReader(io.StringIO(changing("statement", CPU, "--csv").out))
        entry = json.loads(changing("statement", CPU, "--json").out)["data"][-1]
        assert entry["id"] == number
        return next(row["REASON"] for row in rows if row["ENTRY"] == str(number)), entry["changed"]

    assert newest("freeze", CPU) == ("state frozen; why", {"state": "frozen"})
    assert newest("thaw", CPU) == ("state active; why", {"state": "active"})
    assert newest("set", CPU, "--credit-limit", 5) == ("credit limit 5; why", {"credit_limit": 300})
    output, changed = newest(
        "set", CPU, "--credit-limit", 0, "--shared", "--end", "2027-08-01T00:00Z"
    )
    assert changed == {"credit_limit": 0, "shared": True, "end": "2027-08-01T00:00:00Z"}
    assert output == "end 2027-07-31T20:00:00-04:00, shared, credit limit 0; why"
    told(
        changing(
            "undo",
            json.loads(changing("statement", CPU, "--json").out)["data"][-1]["id"],
            "--reason",
            "back",
        )
    )
    assert "not shared, credit limit 5; undo of entry" in changing("statement", CPU, "--csv").out
    assert newest("set", CPU, "--credit-limit", 0)[1] == {"credit_limit": 0}


def test_an_allocation_is_extended_and_closed(changing: Run) -> None:
    assert "2028-09-01" in told(
        changing("alloc", "extend", CPU, "2028-09-01", "--reason", "renewed")
    )
    shorter = told(changing("alloc", "extend", CPU, "2028-08-01", "--reason", "renewed"), 2)
    assert "alloc set 1 --end 2028-08-01" in " ".join(shorter.split())
    shown = changing(
        "alloc",
        "set",
        CPU,
        "--end",
        "2027-07-01",
        "--credit-limit",
        "5",
        "--shared",
        "--reason",
        "x",
        "--dry-run",
    ).out
    for each in ("end 2027-07-01 00:00:00", "credit_limit 5 SU", "shared yes"):
        assert each in shown
    told(changing("alloc", "set", CPU, "--end", "2027-07-01", "--reason", "back"))
    closed = entry_of(changing("alloc", "close", GPU, "--reason", "over"))
    assert "ended" in changing("alloc", "show", GPU).out
    told(changing("undo", closed, "--reason", "not over"))


def test_caps_are_set_and_lifted(changing: Run) -> None:
    assert "has a cap of 5000 SU in allocation 1" in told(
        changing("alloc", "cap", CPU, JORGE, "5k")
    )
    assert "5000" in changing("alloc", "users", CPU).out
    assert "has no cap" in told(changing("alloc", "cap", CPU, JORGE, "none"))


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (
            (
                "alloc",
                "create",
                "-A",
                "chem_qmc",
                "-r",
                "fpga",
                "--start",
                "2028-01-01",
                "--end",
                "2027-01-01",
                "--reason",
                "x",
            ),
            "--end",
        ),
        (
            (
                "alloc",
                "create",
                "-A",
                "chem_qmc",
                "-r",
                "fpga",
                "--end",
                "2020-01-01",
                "--reason",
                "x",
            ),
            "--end",
        ),
        (
            (
                "alloc",
                "create",
                "-A",
                "chem_qmc",
                "-r",
                "fpga",
                "--start",
                "2028-01-01",
                "--end",
                "2028-01-01",
                "--reason",
                "x",
            ),
            "--end",
        ),
        (("alloc", "set", CPU, "--end", "2020-01-01", "--reason", "x"), "--end"),
        (("alloc", "set", CPU, "--start", "2028-01-01", "--reason", "x"), "--start"),
    ],
)
@pytest.mark.parametrize("dry", [True, False])
def test_an_allocation_that_would_end_before_it_starts(
    changing: Run, words: tuple[object, ...], field: str, dry: bool
) -> None:
    result = changing(*words, *(["--dry-run"] if dry else []))
    assert (result.code, result.out) == (2, "")
    assert "would not end after it starts" in result.err
    assert f"  field: {field}\n" in result.err
