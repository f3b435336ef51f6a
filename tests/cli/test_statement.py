"""Statements: selection by name, pages, and figures that add up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairbank.cli.commands.bank import job_rows
from fairbank.cli.commands.bank.statement import COLUMNS
from fairbank.report.columns import DisplayFormat, with_minutes
from tests.cli.conftest import Run


def test_statement_is_found_by_project_and_resource(fairbank: Run) -> None:
    by_name = fairbank("statement", "-A", "chem_qmc", "-r", "gpu", "-S", "2026-01-01", "--csv")
    assert by_name == fairbank("statement", "2", "-S", "2026-01-01", "--csv")
    several = fairbank("statement", "-A", "chem_qmc")
    assert several.code == 2
    assert "1 (cpu, active), 2 (gpu, active)" in several.err
    assert fairbank("statement").code == 2
    assert fairbank("statement", "-A", "chem_qmc", "-r", "storage").code == 3


def test_paged_statement_equals_the_unpaged_one(
    fairbank: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete = json.loads(fairbank("statement", "1", "-S", "2026-01-01", "--json").out)
    monkeypatch.setattr("fairbank.cli.framework.context.PAGE", 3)
    assert (
        json.loads(fairbank("statement", "1", "-S", "2026-01-01", "--limit", "all", "--json").out)
        == complete
    )
    assert len(json.loads(fairbank("jobs", "-a", "--limit", "all", "--json").out)["data"]) == 12


@pytest.mark.parametrize("limit", [2, 3, 4, 5])
def test_statement_limit_keeps_the_newest_entries(
    fairbank: Run, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """The limit may be at the end of a page or not. The sums are those before the first entry
    shown, and those of now.
    """
    complete = json.loads(fairbank("statement", "1", "-S", "2026-01-01", "--json").out)
    monkeypatch.setattr("fairbank.cli.framework.context.PAGE", 3)
    few = fairbank("statement", "1", "-S", "2026-01-01", "--limit", limit, "--json")
    part = json.loads(few.out)
    assert part["data"] == complete["data"][-limit:]
    assert (part["whole"], complete["whole"]) == (False, True)
    assert part["closing"] == complete["closing"]
    assert part["opening"]["available"] == complete["data"][-limit - 1]["available"]
    assert f"There are more; this shows {limit}." in " ".join(few.err.split())


def test_limit_equal_to_the_number_of_entries_hides_nothing(fairbank: Run) -> None:
    complete = json.loads(fairbank("statement", "1", "-S", "2026-01-01", "--json").out)
    just = fairbank(
        "statement", "1", "-S", "2026-01-01", "--limit", len(complete["data"]), "--json"
    )
    assert json.loads(just.out) == complete
    assert "There are more" not in just.err


def test_statement_states_the_times_of_its_sums(fairbank: Run) -> None:
    part = fairbank("statement", "1", "-S", "2026-07-01", "-E", "2026-09-01")
    assert (
        "(opening): the sums before 2026-07-01 00:00:00. (closing): those before 2026-09-01"
        " 00:00:00." in " ".join(part.err.split())
    )
    assert "those of now" in fairbank("statement", "1", "-S", "2026-07-01").err
    few = fairbank("statement", "1", "-S", "2026-07-01", "--limit", "3")
    assert [line.split()[0] for line in few.out.splitlines() if line.startswith("(")] == [
        "(before)",
        "(closing)",
    ]
    assert "(before): the sums before entry 33; there are earlier entries." in few.err


def test_statement_totals_add_up(fairbank: Run) -> None:
    """In the unit of the table: 36.24 + 4.35 + 59.40 = 99.99, so held is 4.36."""
    notes = fairbank("statement", "1", "--units", "k").err.splitlines()
    assert notes[-1] == ("ok  used 36.24 + held 4.35 + remaining 59.41 = granted 100 thousand SU")


def test_statement_shows_job_and_reason_of_a_refusal(fairbank: Run) -> None:
    (row,) = [
        row
        for row in json.loads(fairbank("statement", "2", "-l", "--json").out)["data"]
        if row["kind"] == "refusal"
    ]
    assert (row["job_id"], row["cluster"]) == (812_350, "darwin")
    (line,) = [
        line for line in fairbank("statement", "2", "-l").out.splitlines() if " refusal " in line
    ]
    assert "812350" in line
    assert "not enough credit" in line


def statement_entry(
    kind: str, amount: int, sign: int | None, details: dict[str, Any], **more: Any
) -> dict[str, Any]:
    sums = {"deposited": 600, "charged": 0, "held": 0, "remaining": 600}
    row = {
        "kind": kind,
        "amount": amount,
        "sign": sign,
        "details": details,
        "owner": "ayla",
        "comment": None,
        "changed": None,
    }
    moved = {"credit_in": 0, "credit_out": 0}
    return {**row, **sums, **moved, "returned": 0, **more}


@pytest.mark.parametrize(
    ("entry", "out", "reason"),
    [
        (statement_entry("cap", 300, None, {"cap": 300}), "", "cap of ayla: 5 SU"),
        (statement_entry("cap", 0, None, {"cap": 0}), "", "cap of ayla: 0 SU"),
        (
            statement_entry("cap", 0, None, {"cap": None}, comment="she left"),
            "",
            "cap of ayla: none; she left",
        ),
        (
            statement_entry("declined", 300_000, None, {"message": "not enough unused credit"}),
            "",
            "not enough unused credit: requested 5000 SU",
        ),
        (statement_entry("terms", 0, None, {}, changed={"shared": True}), "", "shared yes"),
        (
            statement_entry("charge", 6, 1, {"written_off": 101}, credit_out=6),
            "0.10",
            "0.10 used; 1.68 written off",
        ),
        (statement_entry("charge", 1, 1, {}, credit_out=1), "0.02", "0.02 used"),
    ],
)
def test_reason_of_an_entry_agrees_with_its_amount(
    entry: dict[str, Any], out: str, reason: str
) -> None:
    shown = {column.head: column for column in COLUMNS}
    assert (
        shown["OUT"].cell(entry, DisplayFormat()),
        shown["REASON"].cell(entry, DisplayFormat()),
    ) == (out, reason)
    assert shown["IN"].cell(entry, DisplayFormat()) == ""
    exact = {column.head: column for column in with_minutes(COLUMNS)}["OUT-MINUTES"]
    assert exact.cell(entry, DisplayFormat(exact=True)) == (str(entry["amount"]) if out else "")


def test_charge_is_the_same_figure_as_in_jobs() -> None:
    """Use 20 minutes of a hold of 60, 0.33 of 1 SU. REMAINING goes from 98.67 to 99.33."""
    entry = statement_entry("charge", 20, 1, {}, credit_in=40, returned=40)
    shown = {column.head: column.cell(entry, DisplayFormat()) for column in COLUMNS}
    assert (shown["IN"], shown["REASON"]) == ("0.67", "0.33 used of 1 held")
    (charged,) = (column for column in job_rows.COLUMNS if column.head == "SU")
    assert charged.cell({"cost": 20}, DisplayFormat()) == "0.33"


def test_balance_of_a_statement_is_what_balance_calls_remaining(changing: Run) -> None:
    """Of a frozen allocation nothing is available, and all remains."""
    assert changing("alloc", "freeze", 2, "--reason", "audit").code == 0
    row = json.loads(changing("balance", "-A", "chem_qmc", "-r", "gpu", "--json").out)["data"][0]
    assert (row["available"], row["remaining"]) == (0, 262 * 60)
    shown = changing("statement", 2, "-S", "2026-07-01").out.splitlines()
    head = next(line for line in shown if line.startswith("TIME")).split()
    closing = next(line for line in shown if line.startswith("(closing)")).split()
    assert ("AVAILABLE" in head, "REMAINING" in head, closing[1]) == (False, True, "262")


def test_period_that_begins_in_the_future_is_refused(fairbank: Run) -> None:
    result = fairbank("statement", "1", "-S", "now+1day")
    assert (result.code, "the period begins in the future" in result.err) == (2, True)
    assert "  field: -S\n" in result.err


def test_in_and_out_are_also_in_json(fairbank: Run) -> None:
    period = ("-S", "2026-07-01")
    document = json.loads(fairbank("statement", 1, *period, "--json").out)
    table = fairbank("statement", 1, *period, "-P", "-n", "-o", "IN,OUT").out.splitlines()
    texts = [
        [row["display"][name] for name in ("credit_in", "credit_out")] for row in document["data"]
    ]
    assert ["|".join("" if text == "0" else text for text in pair) for pair in texts] == table
    assert {tuple(cell != "" for cell in line.split("|")) for line in table} >= {
        (True, False),
        (False, True),
    }
