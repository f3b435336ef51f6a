"""Tests of `fairbank undo`: an entry is undone once, by its printed number; a dry run shows the
result first.
"""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import CommandResult, Run
from tests.cli.output_values import available, entry_number, output_of
from tests.cli.site import CPU, FOLD, GPU, JORGE, MINH

pytestmark = pytest.mark.usefixtures("changing")


def test_moved_credit_is_undone_once(changing: Run) -> None:
    before = available(changing, GPU), available(changing, FOLD)
    entries = [
        entry_number(changing("deposit", GPU, "500", "--reason", "x")),
        entry_number(changing("withdraw", GPU, "30m", "--reason", "x", "--yes")),
        entry_number(changing("transfer", FOLD, GPU, "10.5", "--reason", "x")),
    ]
    assert "undo of entry" in output_of(
        changing("undo", entries[0], "--reason", "a slip", "--dry-run")
    )
    for number in entries:
        output = output_of(changing("undo", number, "--reason", "a slip", "--yes"))
        assert f"undo of entry {number}: " in output
        # Of a transfer's two allocations, the one whose credit is shown is named.
        assert output.endswith(f" SU in allocation {GPU}\nbank fairbank\n") == (
            number == entries[2]
        )
    after = available(changing, GPU), available(changing, FOLD)
    assert after == before
    for number in entries:
        assert f"entry {number} was undone by entry " in " ".join(
            output_of(changing("undo", number, "--reason", "a slip", "--yes"), 7).split()
        )
    assert (available(changing, GPU), available(changing, FOLD)) == before
    assert f"undo of entry {entries[2]}: a slip" in changing("statement", FOLD, "-l").out
    listed = output_of(changing("statement", GPU, "-P", "--noheader", "-o", "ENTRY,REASON"))
    reasons = dict(line.split("|") for line in listed.splitlines())
    for number in entries[:2]:
        (undoing,) = (
            entry for entry, text in reasons.items() if text.startswith(f"undo of entry {number}:")
        )
        assert reasons[str(number)] == f"x; undone by entry {undoing}"
    shown = {
        row["id"]: row["undone_by"]
        for allocation in (GPU, FOLD)
        for row in json.loads(changing("statement", allocation, "--json").out)["data"]
    }
    # The statement of each side of the transfer names the entry that is in it.
    (received,) = (number for number in shown if number == entries[2] + 1)
    assert all(shown[number] in shown for number in (*entries, received))
    assert shown[received] != shown[entries[2]]


def test_undo_of_a_refund_charges_again(changing: Run) -> None:
    before = available(changing, GPU)
    refund = entry_number(changing("refund", 701_001, "100", "--reason", "the wrong job"))
    assert available(changing, GPU) == before + 6_000
    shown = output_of(changing("undo", refund, "--reason", "a slip", "--dry-run"))
    assert "recharge" in shown
    assert "job 701001" in shown
    output = output_of(changing("undo", refund, "--reason", "a slip", "--yes"))
    assert (
        f"undo of entry {refund}: recharge of 100 SU of job 701001, allocation 2 (chem_qmc/gpu);"
        " remaining 262 SU" in output
    )
    assert available(changing, GPU) == before
    assert "refunded" not in changing("jobs", "-j", 701_001).out
    assert "was undone by entry" in " ".join(
        output_of(changing("undo", refund, "--reason", "twice", "--yes"), 7).split()
    )
    again = entry_number(CommandResult(0, output, ""))
    assert "recharge" in changing("statement", GPU, "-S", "2026-11-21").out
    assert "undone by entry" in " ".join(changing("statement", GPU, "-S", "2026-11-21").out.split())
    restored = entry_number(changing("undo", again, "--reason", "it was right", "--yes"))
    assert available(changing, GPU) == before + 6_000
    output_of(changing("undo", restored, "--reason", "it was not", "--yes"))
    assert available(changing, GPU) == before


def terms(changing: Run) -> dict[str, object]:
    row = json.loads(changing("alloc", "show", FOLD, "--json").out)["data"][0]
    return {key: row[key] for key in ("start", "end", "state", "shared", "credit_limit")}


@pytest.mark.parametrize(
    "words",
    [
        ("set", FOLD, "--end", "2027-03-01", "--credit-limit", "50", "--shared"),
        ("set", FOLD, "--start", "2026-02-01"),
        ("set", FOLD, "--end", "2026-11-01"),
        ("freeze", FOLD),
        ("end", FOLD),
    ],
)
def test_undo_restores_the_terms(changing: Run, words: tuple[object, ...]) -> None:
    before = terms(changing)
    entry = entry_number(changing("alloc", *words, "--reason", "x", "--yes"))
    assert terms(changing) != before
    assert "back to" in output_of(changing("undo", entry, "--reason", "a slip", "--yes"))
    assert terms(changing) == before
    assert f"entry {entry} was undone by entry" in " ".join(
        output_of(changing("undo", entry, "--reason", "x", "--yes"), 7).split()
    )


def test_undo_of_an_end_restores_the_frozen_state(changing: Run) -> None:
    frozen = entry_number(changing("alloc", "freeze", FOLD, "--reason", "x"))
    before = terms(changing)
    ended = entry_number(changing("alloc", "end", FOLD, "--reason", "x", "--yes"))
    assert "end 2027-01-15" in output_of(
        changing("undo", ended, "--reason", "a slip", "--dry-run")
    )  # still frozen after the end
    assert "back to end 2027-01-15" in output_of(
        changing("undo", ended, "--reason", "a slip", "--yes")
    )
    assert terms(changing) == before
    output_of(changing("undo", frozen, "--reason", "a slip", "--yes"))


def test_later_change_must_be_undone_first(changing: Run) -> None:
    before = terms(changing)
    first = entry_number(changing("alloc", "set", FOLD, "--credit-limit", "5", "--reason", "x"))
    second = entry_number(changing("alloc", "freeze", FOLD, "--reason", "x"))
    message = " ".join(output_of(changing("undo", first, "--reason", "x", "--yes"), 7).split())
    assert f"entry {second} changed it after entry {first}" in message
    assert "undo that first: fairbank undo ENTRY" in message
    assert "back to state active" in output_of(changing("undo", second, "--reason", "x", "--yes"))
    output_of(changing("undo", first, "--reason", "x", "--yes"))
    assert terms(changing) == before


def test_undo_restores_the_cap(changing: Run) -> None:
    first = entry_number(changing("alloc", "cap", CPU, JORGE, "5k", "--idempotency-key", "cap-1"))
    assert (
        entry_number(changing("alloc", "cap", CPU, JORGE, "5k", "--idempotency-key", "cap-1"))
        == first
    )
    second = entry_number(changing("alloc", "cap", CPU, JORGE, "7k"))
    assert f"entry {second} changed it" in " ".join(
        output_of(changing("undo", first, "--reason", "x", "--yes"), 7).split()
    )
    assert "back to 5,000 SU" in output_of(changing("undo", second, "--reason", "x", "--yes"))
    assert "back to none" in output_of(changing("undo", first, "--reason", "x", "--yes"))
    assert "5000" not in changing("alloc", "users", CPU).out


def test_some_entries_cannot_be_undone(changing: Run) -> None:
    moved = entry_number(changing("transfer", FOLD, GPU, "1", "--reason", "x"))
    assert "the entry that gave it" in " ".join(
        output_of(changing("undo", moved + 1, "--reason", "x", "--yes"), 7).split()
    )
    rows = json.loads(changing("statement", CPU, "-l", "-S", "2026-01-01", "--json").out)["data"]
    charge = next(row for row in rows if row["kind"] == "charge")
    refused = output_of(changing("undo", charge["id"], "--reason", "x", "--yes"), 7)
    assert f"fairbank refund --id {charge['run']} " in refused
    for kind, instead in (("hold", "with its job"), ("open", f"fairbank alloc end {CPU}")):
        number = next(row["id"] for row in rows if row["kind"] == kind)
        output = " ".join(output_of(changing("undo", number, "--reason", "x", "--yes"), 7).split())
        assert instead in output
        assert f"an entry of this kind cannot be undone: {kind}." in output
    assert "there is no entry 999999" in output_of(
        changing("undo", 999_999, "--reason", "x", "--yes"), 3
    )
    assert changing("undo", moved, "--reason", "x", "--as", MINH, "--yes").code in (3, 4)
    output_of(changing("undo", moved, "--reason", "back", "--yes"))


@pytest.mark.parametrize(
    "words",
    [
        ("deposit", GPU, "5", "--reason", "x"),
        ("withdraw", GPU, "5", "--reason", "x"),
        ("transfer", FOLD, GPU, "5", "--reason", "x"),
        ("refund", 701_001, "5", "--reason", "x"),
        ("alloc", "set", FOLD, "--shared", "--reason", "x"),
        ("alloc", "freeze", FOLD, "--reason", "x"),
        ("alloc", "cap", CPU, JORGE, "5k"),
        ("project", "add-user", "chem_qmc", 4_711),
        ("project", "remove-user", "chem_qmc", MINH),
    ],
)
def test_printed_entry_numbers_can_be_undone(changing: Run, words: tuple[object, ...]) -> None:
    """The dry run shows the entries that undo writes later, and is refused with the same exit code
    and message.
    """
    number = entry_number(changing(*words, "--yes"))
    dry = ("undo", number, "--reason", "a slip", "--dry-run", "--json")
    *_, planned = json.loads(output_of(changing(*dry)))["data"]
    assert planned["details"]["undoes"] == number
    assert planned["comment"] == f"undo of entry {number}: a slip"
    undone = entry_number(changing("undo", number, "--reason", "a slip", "--yes"))
    if planned["allocation"] is not None:
        rows = json.loads(
            changing("statement", planned["allocation"], "-l", "--limit", "all", "--json").out
        )["data"]
        written = next(
            row for row in rows if row["details"] and row["details"].get("undoes") == number
        )
        for same in (
            "kind",
            "comment",
            "deposited",
            "charged",
            "held",
            "credit_limit",
            "available",
        ):
            assert written[same] == planned[same], same
    real, dry_result = changing("undo", number, "--reason", "a slip", "--yes"), changing(*dry)
    assert f"entry {number} was undone by entry" in " ".join(dry_result.err.split())
    assert (real.code, real.err) == (dry_result.code, dry_result.err) == (7, real.err)
    redone = entry_number(changing("undo", undone, "--reason", "right after all", "--yes"))
    output_of(changing("undo", redone, "--reason", "back", "--yes"))


def test_dry_run_of_undo_considers_later_entries(changing: Run) -> None:
    first = entry_number(changing("project", "add-user", "chem_qmc", 4_712))
    second = entry_number(
        changing("project", "add-user", "chem_qmc", 4_712, "--role", "coordinator")
    )
    for more in (("--dry-run",), ()):
        message = changing("undo", first, "--reason", "x", *more)
        assert message.code == 7
        assert f"entry {second} changed it after entry {first}" in " ".join(message.err.split())
    before = changing("project", "users", "chem_qmc", "--csv").out
    shown = output_of(changing("undo", second, "--reason", "x", "--dry-run"))
    assert "role member" in " ".join(shown.split())
    assert (
        json.loads(output_of(changing("undo", second, "--reason", "x", "--dry-run", "--json")))[
            "data"
        ][0]["account"]
        == "chem_qmc"
    )
    assert changing("project", "users", "chem_qmc", "--csv").out == before
    assert "the role of 4712 in chem_qmc back to member" in " ".join(
        output_of(changing("undo", second, "--reason", "x", "--yes")).split()
    )
    assert "back to none" in output_of(changing("undo", first, "--reason", "x", "--yes"))
    assert "4712" not in changing("project", "users", "chem_qmc").out


def test_undo_under_a_key_is_applied_once_and_dry_run_says_so(changing: Run) -> None:
    number = entry_number(changing("deposit", GPU, "5", "--reason", "x"))
    words = ("undo", number, "--reason", "a slip", "--idempotency-key", "slip-1", "--yes")
    first = entry_number(changing(*words))
    assert json.loads(output_of(changing(*words, "--dry-run", "--json")))["data"] == []
    assert "Nothing would be posted" in changing(*words, "--dry-run").err
    again = changing(*words)
    assert entry_number(again) == first
    assert "carried out before" in again.err


def test_projects_and_tokens_cannot_be_undone(changing: Run) -> None:
    number = entry_number(changing("project", "create", "lab9", "--gid", 50_009))
    for more in (("--dry-run",), ()):
        message = " ".join(output_of(changing("undo", number, "--reason", "x", *more), 7).split())
        assert "an entry of this kind cannot be undone: project." in message
        assert "project remove" in message
    again = changing("project", "create", "lab9", "--gid", 50_009)
    assert again.out.startswith("project lab9 exists already: ")
    created = changing("token", "create", "laptop")
    bank, sentence, *_ = created.err.splitlines()
    assert bank == "bank fairbank", "the secret stands alone on stdout"
    token = sentence.split()[1]
    assert f"to take it back: fairbank token revoke {token}" in " ".join(created.err.split())
    assert "that is not undone" in output_of(changing("token", "revoke", token, "--yes"))


def test_refused_undo_can_be_retried(changing: Run) -> None:
    deposited = entry_number(changing("deposit", GPU, "1", "--reason", "x"))
    left = available(changing, GPU)
    output_of(changing("withdraw", GPU, f"{left}m", "--reason", "x", "--yes"))
    message = output_of(changing("undo", deposited, "--reason", "x", "--yes"), 5)
    assert "not enough unused credit" in message
    assert "nothing can be withdrawn or transferred now" in " ".join(message.split())
    output_of(changing("deposit", GPU, f"{left}m", "--reason", "x"))
    assert "undo of entry" in output_of(changing("undo", deposited, "--reason", "x", "--yes"))


@pytest.mark.parametrize(
    ("words", "undo_asks"),
    [
        (("deposit", GPU, "5", "--reason", "x"), True),
        (("refund", 701_001, "5", "--reason", "x"), True),
        (("withdraw", GPU, "5", "--reason", "x"), False),
        (("transfer", FOLD, GPU, "5", "--reason", "x"), False),
        (("alloc", "extend", FOLD, "2027-04-01", "--reason", "x"), True),
        (("alloc", "end", FOLD, "--reason", "x"), False),
        (("alloc", "freeze", FOLD, "--reason", "x"), False),
        (("alloc", "cap", CPU, JORGE, "5k"), False),
        (("project", "add-user", "chem_qmc", 4_713), True),
        (("project", "remove-user", "chem_qmc", MINH), False),
    ],
)
def test_undo_that_takes_out_ends_or_removes_needs_yes_without_terminal(
    changing: Run, words: tuple[object, ...], undo_asks: bool
) -> None:
    number = entry_number(changing(*words, "--yes"))
    undo = ("undo", number, "--reason", "a slip")
    first = changing(*undo)
    assert first.code == (2 if undo_asks else 0)
    assert ("there is no terminal to ask on" in first.err) == undo_asks
    if undo_asks:
        output_of(changing(*undo, "--yes"))


def test_undo_that_ends_or_removes_again_needs_yes_without_terminal(changing: Run) -> None:
    terms = ("--start", "2026-01-01", "--end", "2027-01-01", "--reason", "x")
    made = changing("alloc", "create", "-A", "bio_fold", "-r", "npu", *terms, "--json")
    number = json.loads(output_of(made))["data"]["id"]
    for verb in ("remove", "end"):
        entry = entry_number(changing("alloc", verb, number, "--reason", "x", "--yes"))
        undone = entry_number(changing("undo", entry, "--reason", "x"))
        assert "--yes" in output_of(changing("undo", undone, "--reason", "x"), 2)
