"""Deposits, withdrawals, transfers and refunds, as dry runs and applied once."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run
from tests.cli.output_values import available, entry_number, output_of
from tests.cli.site import AYLA, CPU, DANA, FOLD, GPU


def test_deposit_withdrawal_and_transfer_move_the_stated_amount(changing: Run) -> None:
    before = available(changing, GPU)
    assert output_of(changing("deposit", GPU, "500", "--reason", "committee")).endswith(
        "remaining 762 SU\nbank fairbank\n"
    )
    output_of(changing("withdraw", GPU, "30m", "--reason", "correction", "--yes"))
    assert output_of(changing("transfer", FOLD, GPU, "10.5", "--reason", "joint runs")).endswith(
        f" SU in allocation {FOLD}\nbank fairbank\n"
    )
    assert available(changing, GPU) == before + 500 * 60 - 30 + 630
    output_of(changing("transfer", GPU, FOLD, "10.5", "--reason", "back"))
    output_of(changing("withdraw", GPU, "499.5", "--reason", "back", "--yes"))
    assert available(changing, GPU) == before


def test_deposit_on_unusable_allocation_warns(changing: Run) -> None:
    output_of(changing("project", "create", "lab8", "--gid", 50_008))
    period = ("--start", "2025-11-01", "--end", "2025-12-01")
    number = json.loads(
        output_of(
            changing(
                "alloc", "create", "-A", "lab8", "-r", "cpu", *period, "--reason", "x", "--json"
            )
        )
    )["data"]["id"]
    late = changing("deposit", number, 5, "--reason", "late charge")
    assert (late.code, f"! allocation {number} ended 2025-11-30:" in late.err) == (0, True)
    output = changing("deposit", number, 5, "--reason", "late charge", "--json")
    (warning,) = json.loads(output_of(output))["warnings"]
    assert f"fairbank alloc reopen {number} --end" in warning
    output_of(changing("alloc", "freeze", FOLD, "--reason", "x"))
    assert "is frozen" in changing("deposit", FOLD, 5, "--reason", "x", "--dry-run").err
    assert changing("withdraw", FOLD, 5, "--reason", "x", "--dry-run").err == ""
    output_of(changing("alloc", "thaw", FOLD, "--reason", "x"))
    assert changing("deposit", FOLD, 5, "--reason", "x", "--dry-run").err == ""


@pytest.mark.parametrize(
    "words",
    [("withdraw", CPU, "--reason", "x", "--", "-5"), ("alloc", "cap", CPU, AYLA, "--", "-5")],
)
def test_negative_amount_is_refused_without_unrelated_advice(
    changing: Run, words: tuple[object, ...]
) -> None:
    output = output_of(changing(*words), 2)
    assert "-5 SU is too small an amount" in output
    assert "withdraw" not in output


def test_request_with_the_same_key_is_applied_once(changing: Run) -> None:
    before = available(changing, FOLD)
    words = ("deposit", FOLD, 5, "--reason", "once", "--idempotency-key", "corr-17")
    first, second = changing(*words), changing(*words)
    assert first.out == second.out
    assert "carried out before" in second.err
    assert available(changing, FOLD) == before + 300
    conflict = changing("deposit", FOLD, 6, "--reason", "once", "--idempotency-key", "corr-17")
    assert conflict.code == 7
    assert "idempotency key" in conflict.err
    output_of(changing("withdraw", FOLD, 5, "--reason", "back", "--yes"))


def test_refund_by_job_number(changing: Run) -> None:
    output = output_of(changing("refund", 701_002, "10", "--reason", "node failed"))
    assert (
        "refund of 10 SU of job 701002 of cluster darwin to allocation 2 (chem_qmc/gpu)" in output
    )
    assert "10 refunded" in changing("jobs", "-j", 701_002).out
    more = changing("refund", 701_002, "601", "--reason", "all and more")
    assert more.code == 5
    assert "requested 601 SU, left of its charge 600 SU" in " ".join(more.err.split())
    assert "refund at most 600" in more.err
    assert "kept as" not in more.err  # a refused refund is not a refused job and in no list
    assert "701002" not in changing("jobs", "--refused", "-a").out
    assert "there is no job 1 that you may see" in output_of(
        changing("refund", 1, "--reason", "x"), 3
    )
    assert "job 812330 still runs" in output_of(changing("refund", 812_330, "--reason", "x"), 7)
    output_of(changing("refund", 700_001, "--reason", "x"))
    again = changing("refund", 700_001, "--reason", "x")
    assert "nothing is left of the charge of the run" in " ".join(output_of(again, 5).split())
    (run,) = json.loads(changing("jobs", "-j", 700_001, "--json").out)["data"]
    assert changing("refund", "--id", run["id"], "--reason", "x") == again
    for words in ([f"darwin/{run['id']}"], [run["id"], "-M", "darwin"]):
        refused = output_of(changing("refund", "--id", *words, "--reason", "x"), 2)
        assert "the bank's number of a run has no cluster" in " ".join(refused.split())


def test_reason_is_required_and_stored(changing: Run) -> None:
    missing = changing("deposit", CPU, 1)
    assert missing.code == 2
    assert "--reason" in missing.err
    assert changing("deposit", CPU, 1, "--reason", " ").code == 2
    assert changing("deposit", CPU, 1, "--reason", "two\nlines").code == 2
    output_of(changing("deposit", CPU, 1, "--reason", "for the record"))
    assert "for the record" in changing("statement", CPU, "-l", "-S", "2026-11-21").out
    output_of(changing("withdraw", CPU, 1, "--reason", "back", "--yes"))


@pytest.mark.parametrize(
    "amount", ["0", "-5", "0.001", "1e3", "nan", "10000000000000000", "5q", "", "'1'"]
)
def test_invalid_amount_is_reported_with_its_field(changing: Run, amount: str) -> None:
    result = changing("deposit", CPU, "--reason", "x", "--", amount)
    assert result.code == 2
    assert "  field: AMOUNT\n" in result.err


def test_repeated_refund_is_applied_again_unless_it_has_the_same_key(changing: Run) -> None:
    keyed = ("refund", 701_001, "10", "--reason", "node failed", "--idempotency-key", "incident-17")
    first, second = changing(*keyed), changing(*keyed)
    assert (output_of(first), first.err) == (second.out, "")
    assert second.err == "This was carried out before; nothing more was done.\n"
    again = changing("refund", 701_001, "10", "--reason", "node failed")
    assert "! 10 of its 4,000 SU were refunded before; this is one refund more" in " ".join(
        again.err.split()
    )
    assert "20 refunded" in changing("jobs", "-j", 701_001).out
    page = " ".join(changing("refund", "--help").out.split())
    assert "repeated, it refunds again, unless under one key" in page
    assert "--idempotency-key incident-17" in page


def test_csv_and_json_are_exact(changing: Run) -> None:
    """A third of an hour has no finite decimal form: CSV and JSON count in minutes, tables in
    SU.
    """
    output_of(changing("deposit", CPU, "20m", "--reason", "x"))
    left = available(changing, CPU)
    (line,) = changing(
        "balance", "-A", "chem_qmc", "-r", "cpu", "--csv", "-n", "-o", "AVAILABLE,AVAILABLE-MINUTES"
    ).out.splitlines()
    assert line == f"{left // 60}.33,{left}"
    (entry,) = [
        row
        for row in changing("statement", CPU, "--csv").out.splitlines()
        if row.endswith(f",{left}")
    ]
    assert ",20," in entry
    output_of(changing("withdraw", CPU, "20m", "--reason", "back", "--yes"))


def test_amount_that_is_not_exact_in_su_is_shown_in_minutes_too(changing: Run) -> None:
    assert (
        "deposit of 0.02 SU (1 minute) into"
        in changing("deposit", "1", "0.02", "--reason", "t").out
    )
    assert "deposit of 0.05 SU into" in changing("deposit", "1", "3m", "--reason", "t").out


def test_sentence_names_the_unit_of_its_amounts(changing: Run) -> None:
    """Before them 2,000 SU are paid in, so that 2 thousand SU more are available than at first."""
    before = available(changing, FOLD)
    x = ("--reason", "x", "--yes")
    output_of(changing("deposit", FOLD, "2k", *x))
    left = f"{round((before + 120_000) / 600) / 100:.2f}"
    minutes = f"{before + 120_000:,} SU-minutes"
    for words, sentence in (
        (("deposit", FOLD, "0.5", *x, "--units", "m"), "deposit of 30 SU-minutes into"),
        (("withdraw", FOLD, "30m", *x, "--units", "m"), f"remaining {minutes}"),
        (("withdraw", FOLD, "1000", *x, "--units", "k"), "withdrawal of 1 thousand SU out of"),
        (("deposit", FOLD, "1000", *x, "--units", "k"), f"remaining {left} thousand SU"),
        (
            ("withdraw", FOLD, "2000.5", *x, "--units", "k"),
            "withdrawal of 2 thousand SU (120,030 minutes) out of",
        ),
    ):
        assert sentence in " ".join(output_of(changing(*words)).split()), words
    single = ("deposit", FOLD, "1m", *x, "--units", "m")
    assert "deposit of 1 SU-minute into" in output_of(changing(*single))
    entry = entry_number(changing("deposit", FOLD, "30m", *x, "--units", "M"))
    undone = output_of(changing("undo", entry, *x, "--units", "k", "--yes"))
    assert "withdraw of <0.01 thousand SU (30 minutes)" in undone
    capped = output_of(changing("alloc", "cap", FOLD, DANA, "2500", "--units", "k"))
    assert "has a cap of 2.50 thousand SU" in capped
    output_of(changing("alloc", "cap", FOLD, DANA, "none"))
    for verb in ("freeze", "thaw"):
        state = output_of(changing("alloc", verb, FOLD, *x, "--units", "m")).splitlines()[0]
        assert state.endswith("SU-minutes remaining")


def test_unit_is_in_the_caption_or_in_the_header(changing: Run) -> None:
    deposit = ("deposit", FOLD, "1000", "--reason", "x", "--dry-run", "--units", "k")
    assert changing(*deposit).out.splitlines()[0].endswith("   unit thousand SU")
    assert "|AMOUNT (thousand SU)|" in changing(*deposit, "-P").out
    shown = changing("alloc", "show", FOLD, "-o", "ALLOC,GRANTED", "--units", "m").out
    assert "GRANTED (SU-minutes)" in shown
    assert "(SU-minutes)" not in changing("balance", "--units", "m").out
