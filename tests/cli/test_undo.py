"""Tests of `fairbank undo`: an entry is undone once, by its printed number; a dry run shows the
result first.
"""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run, Said
from tests.cli.output_values import available, entry_of, told
from tests.cli.site import CPU, FOLD, GPU, JORGE, MINH

pytestmark = pytest.mark.usefixtures("changing")


def test_what_was_moved_is_undone_once(changing: Run) -> None:
    before = available(changing, GPU), available(changing, FOLD)
    entries = [
        entry_of(changing("deposit", GPU, "500", "--reason", "x")),
        entry_of(changing("withdraw", GPU, "30m", "--reason", "x")),
        entry_of(changing("transfer", FOLD, GPU, "10.5", "--reason", "x")),
    ]
    assert "undo of entry" in told(changing("undo", entries[0], "--reason", "a slip", "--dry-run"))
    for number in entries:
        assert f"undo of entry {number}: " in told(changing("undo", number, "--reason", "a slip"))
    after = available(changing, GPU), available(changing, FOLD)
    assert after == before
    for number in entries:
        assert f"entry {number} was undone by entry " in " ".join(
            told(changing("undo", number, "--reason", "a slip"), 7).split()
        )
    assert (available(changing, GPU), available(changing, FOLD)) == before
    assert f"undo of entry {entries[2]}: a slip" in changing("statement", FOLD, "-l").out


def test_a_refund_is_taken_back_by_charging_again(changing: Run) -> None:
    before = available(changing, GPU)
    refund = entry_of(changing("refund", 701_001, "100", "--reason", "the wrong job"))
    assert available(changing, GPU) == before + 6_000
    shown = told(changing("undo", refund, "--reason", "a slip", "--dry-run"))
    assert "recharge" in shown
    assert "job 701001" in shown
    output = told(changing("undo", refund, "--reason", "a slip"))
    assert (
        f"undo of entry {refund}: recharge of 100 SU of job 701001, allocation 2 (chem_qmc/gpu);"
        " available 262 SU" in output
    )
    assert available(changing, GPU) == before
    assert "refunded" not in changing("jobs", "-j", 701_001).out
    assert "was undone by entry" in " ".join(
        told(changing("undo", refund, "--reason", "twice"), 7).split()
    )
    again = entry_of(Said(0, output, ""))
    assert "recharge" in changing("statement", GPU, "-S", "2026-11-21").out
    restored = entry_of(changing("undo", again, "--reason", "it was right"))
    assert available(changing, GPU) == before + 6_000
    told(changing("undo", restored, "--reason", "it was not"))
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
def test_new_terms_are_taken_back(changing: Run, words: tuple[object, ...]) -> None:
    before = terms(changing)
    entry = entry_of(changing("alloc", *words, "--reason", "x"))
    assert terms(changing) != before
    assert "back to" in told(changing("undo", entry, "--reason", "a slip"))
    assert terms(changing) == before
    assert f"entry {entry} was undone by entry" in " ".join(
        told(changing("undo", entry, "--reason", "x"), 7).split()
    )


def test_a_frozen_allocation_that_was_ended_is_frozen_again(changing: Run) -> None:
    frozen = entry_of(changing("alloc", "freeze", FOLD, "--reason", "x"))
    before = terms(changing)
    ended = entry_of(changing("alloc", "end", FOLD, "--reason", "x"))
    assert "end 2027-01-15" in told(
        changing("undo", ended, "--reason", "a slip", "--dry-run")
    )  # the freeze outlived the end
    assert "back to end 2027-01-15" in told(changing("undo", ended, "--reason", "a slip"))
    assert terms(changing) == before
    told(changing("undo", frozen, "--reason", "a slip"))


def test_what_was_changed_again_is_taken_back_in_its_order(changing: Run) -> None:
    before = terms(changing)
    first = entry_of(changing("alloc", "set", FOLD, "--credit-limit", "5", "--reason", "x"))
    second = entry_of(changing("alloc", "freeze", FOLD, "--reason", "x"))
    no = " ".join(told(changing("undo", first, "--reason", "x"), 7).split())
    assert f"entry {second} changed it after entry {first}" in no
    assert "undo that first: fairbank undo ENTRY" in no
    assert "back to state active" in told(changing("undo", second, "--reason", "x"))
    told(changing("undo", first, "--reason", "x"))
    assert terms(changing) == before


def test_a_cap_is_taken_back(changing: Run) -> None:
    first = entry_of(changing("alloc", "cap", CPU, JORGE, "5k", "--idempotency-key", "cap-1"))
    assert (
        entry_of(changing("alloc", "cap", CPU, JORGE, "5k", "--idempotency-key", "cap-1")) == first
    )
    second = entry_of(changing("alloc", "cap", CPU, JORGE, "7k"))
    assert f"entry {second} changed it" in " ".join(
        told(changing("undo", first, "--reason", "x"), 7).split()
    )
    assert "back to 5000 SU" in told(changing("undo", second, "--reason", "x"))
    assert "back to none" in told(changing("undo", first, "--reason", "x"))
    assert "5000" not in changing("alloc", "users", CPU).out


def test_not_everything_is_undone(changing: Run) -> None:
    moved = entry_of(changing("transfer", FOLD, GPU, "1", "--reason", "x"))
    assert "the entry that gave it" in " ".join(
        told(changing("undo", moved + 1, "--reason", "x"), 7).split()
    )
    rows = json.loads(changing("statement", CPU, "-S", "2026-01-01", "--json").out)["data"]
    charge = next(row["id"] for row in rows if row["kind"] == "charge")
    assert "fairbank refund 7" in told(changing("undo", charge, "--reason", "x"), 7)
    for kind, instead in (("hold", "with its job"), ("open", f"fairbank alloc end {CPU}")):
        number = next(row["id"] for row in rows if row["kind"] == kind)
        output = " ".join(told(changing("undo", number, "--reason", "x"), 7).split())
        assert instead in output
        assert f"an entry of this kind cannot be undone: {kind}." in output
    assert "there is no entry 999999" in told(changing("undo", 999_999, "--reason", "x"), 3)
    assert changing("undo", moved, "--reason", "x", "--as", MINH).code in (3, 4)
    told(changing("undo", moved, "--reason", "back"))


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
    number = entry_of(changing(*words))
    dry = ("undo", number, "--reason", "a slip", "--dry-run", "--json")
    *_, planned = json.loads(told(changing(*dry)))["data"]
    assert planned["details"]["undoes"] == number
    assert planned["comment"] == f"undo of entry {number}: a slip"
    undone = entry_of(changing("undo", number, "--reason", "a slip"))
    if planned["allocation"] is not None:
        rows = json.loads(changing("statement", planned["allocation"], "--limit", 0, "--json").out)[
            "data"
        ]
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
    real, foretold = changing("undo", number, "--reason", "a slip"), changing(*dry)
    assert f"entry {number} was undone by entry" in " ".join(foretold.err.split())
    assert (real.code, real.err) == (foretold.code, foretold.err) == (7, real.err)
    redone = entry_of(changing("undo", undone, "--reason", "right after all"))
    told(changing("undo", redone, "--reason", "back"))


def test_dry_run_of_undo_considers_later_entries(changing: Run) -> None:
    first = entry_of(changing("project", "add-user", "chem_qmc", 4_712))
    second = entry_of(changing("project", "add-user", "chem_qmc", 4_712, "--role", "coordinator"))
    for more in (("--dry-run",), ()):
        no = changing("undo", first, "--reason", "x", *more)
        assert no.code == 7
        assert f"entry {second} changed it after entry {first}" in " ".join(no.err.split())
    before = changing("project", "users", "chem_qmc", "--csv").out
    shown = told(changing("undo", second, "--reason", "x", "--dry-run"))
    assert "role member" in " ".join(shown.split())
    assert (
        json.loads(told(changing("undo", second, "--reason", "x", "--dry-run", "--json")))["data"][
            0
        ]["account"]
        == "chem_qmc"
    )
    assert changing("project", "users", "chem_qmc", "--csv").out == before
    assert "the role of 4712 in chem_qmc back to member" in " ".join(
        told(changing("undo", second, "--reason", "x")).split()
    )
    assert "back to none" in told(changing("undo", first, "--reason", "x"))
    assert "4712" not in changing("project", "users", "chem_qmc").out


def test_undo_under_a_key_is_applied_once_and_dry_run_says_so(changing: Run) -> None:
    number = entry_of(changing("deposit", GPU, "5", "--reason", "x"))
    words = ("undo", number, "--reason", "a slip", "--idempotency-key", "slip-1")
    first = entry_of(changing(*words))
    assert json.loads(told(changing(*words, "--dry-run", "--json")))["data"] == []
    assert "Nothing would be posted" in changing(*words, "--dry-run").err
    again = changing(*words)
    assert entry_of(again) == first
    assert "carried out before" in again.err


def test_a_project_and_a_token_are_not_undone_and_the_commands_say_so(changing: Run) -> None:
    number = entry_of(changing("project", "create", "lab9", "--gid", 50_009))
    for more in (("--dry-run",), ()):
        no = " ".join(told(changing("undo", number, "--reason", "x", *more), 7).split())
        assert "an entry of this kind cannot be undone: project." in no
        assert "project remove" in no
    assert changing("project", "create", "lab9", "--gid", 50_009).out.startswith("project lab9: ")
    made = changing("token", "create", "laptop")
    token = made.err.split()[1]
    assert f"to take it back: fairbank token revoke {token}" in " ".join(made.err.split())
    assert "that is not undone" in told(changing("token", "revoke", token))


def test_an_undo_that_was_refused_may_be_tried_again(changing: Run) -> None:
    deposited = entry_of(changing("deposit", GPU, "1", "--reason", "x"))
    left = available(changing, GPU)
    told(changing("withdraw", GPU, f"{left}m", "--reason", "x"))
    no = told(changing("undo", deposited, "--reason", "x"), 5)
    assert "not enough unused credit" in no
    assert "nothing can be withdrawn now" in " ".join(no.split())
    told(changing("deposit", GPU, f"{left}m", "--reason", "x"))
    assert "undo of entry" in told(changing("undo", deposited, "--reason", "x"))
