"""Stories of people who change the books: staff, a PI, and those who may not."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.cli.centre import AYLA, CPU, DANA, FOLD, GPU, JORGE, MINH
from tests.cli.conftest import Run, Said
from tests.cli.served import Bank
from tests.cli.telling import available, entry_of, told

pytestmark = pytest.mark.usefixtures("changing")


def test_a_project_from_nothing_to_a_balance(changing: Run) -> None:
    assert told(changing("project", "create", "lab7", "--gid", 50_007)).endswith(": project lab7: number 3, group lab7 (50007)\n")
    assert "lab7" in told(changing("project", "add-user", "lab7", AYLA, "--role", "pi"))
    period = ("--start", "2026-11-01", "--end", "2027-11-01")
    words = ("alloc", "create", "-A", "lab7", "-r", "cpu", *period, "--amount", "2k", "--reason", "call 3")
    made = told(changing(*words))
    assert made.partition(": ")[2] == "allocation 4: lab7/cpu, 2026-11-01 .. 2027-11-01, active, 2000 SU available\n"
    assert entry_of(Said(0, made, "")) > 0
    assert "lab7    cpu         2000" in told(changing("balance", "-A", "lab7", "--as", AYLA))
    again = changing(*words)
    assert again.code == 7
    assert "overlaps" in again.err
    assert "61001" in told(changing("project", "users", "lab7"))
    told(changing("project", "remove-user", "lab7", AYLA))
    assert changing("balance", "-A", "lab7", "--as", AYLA).code == 3


def test_deposits_withdrawals_and_transfers_move_what_they_say(changing: Run) -> None:
    before = available(changing, GPU)
    assert told(changing("deposit", GPU, "500", "--reason", "committee")).endswith("available 762 SU\n")
    told(changing("withdraw", GPU, "30m", "--reason", "correction"))
    told(changing("transfer", FOLD, GPU, "10.5", "--reason", "joint runs"))
    assert available(changing, GPU) == before + 500 * 60 - 30 + 630
    told(changing("transfer", GPU, FOLD, "10.5", "--reason", "back"))
    told(changing("withdraw", GPU, "499.5", "--reason", "back"))
    assert available(changing, GPU) == before


def test_a_dry_run_is_refused_what_the_bank_would_refuse(changing: Run) -> None:
    before = available(changing, GPU)
    for words, no in (
        (("withdraw", GPU, 9_999_999), "there is not so much unused credit to take out"),
        (("transfer", GPU, FOLD, 9_999_999), "there is not so much unused credit to take out"),
        (("transfer", CPU, GPU, 1), "credit moves only between allocations of one resource"),
    ):
        dry, real = changing(*words, "--reason", "x", "--dry-run"), changing(*words, "--reason", "x")
        assert (dry.code, dry.out, no in " ".join(dry.err.split())) == (real.code, "", True), dry
        assert dry.err == real.err
    assert changing("deposit", GPU, 1, "--reason", "x", "--dry-run", "--as", AYLA).code == 4
    assert available(changing, GPU) == before


def test_a_dry_run_tells_the_entries_that_the_bank_would_write(changing: Run) -> None:
    left = {number: available(changing, number) for number in (GPU, FOLD)}
    rows = json.loads(told(changing("transfer", FOLD, GPU, "10.5", "--reason", "x", "--dry-run", "--json")))["data"]
    assert [(row["kind"], row["allocation"], row["account"], row["amount"], row["available"]) for row in rows] == [
        ("transfer-out", FOLD, "bio_fold", 630, left[FOLD] - 630),
        ("transfer-in", GPU, "chem_qmc", 630, left[GPU] + 630),
    ]
    keyed = ("deposit", GPU, 1, "--reason", "x", "--idempotency-key", "dry-17")
    told(changing(*keyed))
    assert "this was carried out before, under the same key" in " ".join(changing(*keyed, "--dry-run").err.split())
    told(changing("withdraw", GPU, 1, "--reason", "back"))


def test_credit_that_nobody_can_draw_on_is_deposited_with_a_warning(changing: Run) -> None:
    told(changing("project", "create", "lab8", "--gid", 50_008))
    period = ("--start", "2025-11-01", "--end", "2025-12-01")
    number = json.loads(told(changing("alloc", "create", "-A", "lab8", "-r", "cpu", *period, "--reason", "x", "--json")))["data"]["id"]
    late = changing("deposit", number, 5, "--reason", "late charge")
    assert (late.code, f"! allocation {number} ended 2025-12-01" in late.err) == (0, True)
    said = changing("deposit", number, 5, "--reason", "late charge", "--json")
    (warning,) = json.loads(told(said))["warnings"]
    assert f"fairbank alloc reopen {number} --end" in warning
    told(changing("alloc", "freeze", FOLD, "--reason", "x"))
    assert "is frozen" in changing("deposit", FOLD, 5, "--reason", "x", "--dry-run").err
    assert changing("withdraw", FOLD, 5, "--reason", "x", "--dry-run").err == ""
    told(changing("alloc", "thaw", FOLD, "--reason", "x"))
    assert changing("deposit", FOLD, 5, "--reason", "x", "--dry-run").err == ""


def test_a_credit_limit_is_not_among_what_will_be_lost(changing: Run) -> None:
    told(changing("project", "create", "lab9", "--gid", 50_009))
    terms = ("--start", "2026-01-01", "--end", "2026-12-01", "--amount", 30, "--credit-limit", 50)
    told(changing("alloc", "create", "-A", "lab9", "-r", "cpu", *terms, "--reason", "x"))
    assert "80  " in changing("balance", "-A", "lab9").out
    assert "! 30 " in changing("balance", "-A", "lab9").out
    (row,) = json.loads(changing("balance", "-A", "lab9", "--json").out)["data"]
    assert (row["available"], row["left_over"]) == (80 * 60, 30 * 60)


def test_what_is_over_is_shown_so_and_opened_again_with_a_new_end(changing: Run) -> None:
    told(changing("project", "create", "lab10", "--gid", 50_010))
    of_it = ("-A", "lab10", "-r", "cpu")
    period = ("--start", "2025-11-01", "--end", "2025-12-01")
    number = json.loads(told(changing("alloc", "create", *of_it, *period, "--reason", "x", "--json")))["data"]["id"]
    next_one = json.loads(
        told(changing("alloc", "create", *of_it, "--start", "2090-01-01", "--end", "2091-01-01", "--reason", "x", "--json"))
    )
    assert next_one["data"]["state"] == "planned"
    listed = {row["id"]: row["state"] for row in json.loads(changing("alloc", "list", *of_it, "--json").out)["data"]}
    assert listed == {number: "ended", next_one["data"]["id"]: "planned"}
    for state in ("planned", "active", "ended"):
        rows = json.loads(changing("alloc", "list", *of_it, "--state", state, "--json").out)["data"]
        assert [row["id"] for row in rows] == [each for each, stands in listed.items() if stands == state]
    assert "state      ended" in changing("alloc", "show", number).out
    no = " ".join(told(changing("alloc", "reopen", number, "--reason", "x"), 7).split())
    assert f"fairbank alloc reopen {number} --end ... --reason" in no
    for words in (("set", number, "--end"), ("extend", number)):
        no = " ".join(told(changing("alloc", *words, "2089-01-01", "--reason", "x"), 7).split())
        assert "does not" in no
        assert f"fairbank alloc reopen {number} --end" in no
    assert "--end 2089-01-01" in no  # the words to type instead
    assert "active" in told(changing("alloc", "reopen", number, "--end", "2089-06-01", "--reason", "x"))


def test_what_was_frozen_when_it_ended_is_shown_as_ended_and_thawed_for_what_is_told_late(changing: Run) -> None:
    told(changing("project", "create", "lab19", "--gid", 50_019))
    of_it = ("-A", "lab19", "-r", "cpu", "--start", "2026-01-01", "--end", "2089-01-01", "--reason", "x")
    number = json.loads(told(changing("alloc", "create", *of_it, "--json")))["data"]["id"]
    told(changing("alloc", "freeze", number, "--reason", "x"))
    assert ", ended, " in told(changing("alloc", "end", number, "--reason", "x"))
    assert ", ended, " in told(changing("alloc", "thaw", number, "--reason", "x"))
    assert ", active, " in told(changing("alloc", "reopen", number, "--end", "2089-01-01", "--reason", "x"))


def test_a_no_says_which_name_or_state_it_was(changing: Run) -> None:
    told(changing("project", "create", "lab9", "--gid", 50_009))
    taken = told(changing("project", "create", "lab9b", "--gid", 50_009), 7)
    assert "has gid 50009" in " ".join(taken.split())
    thaw = told(changing("alloc", "thaw", CPU, "--reason", "x"), 7)
    assert f"allocation {CPU} is active, and only frozen allows thaw" in " ".join(thaw.split())


@pytest.mark.parametrize("words", [("withdraw", CPU, "--reason", "x", "--", "-5"), ("alloc", "cap", CPU, AYLA, "--", "-5")])
def test_less_than_nothing_gets_the_rule_and_no_foreign_advice(changing: Run, words: tuple[object, ...]) -> None:
    said = told(changing(*words), 2)
    assert "-5 SU is too small an amount" in said
    assert "withdraw" not in said


def test_a_dry_run_changes_nothing(changing: Run) -> None:
    before = available(changing, CPU)
    for words in (
        ("deposit", CPU, 10, "--reason", "x"),
        ("withdraw", CPU, 10, "--reason", "x"),
        ("transfer", GPU, FOLD, 10, "--reason", "x"),
        ("refund", 812_301, "--reason", "x"),
        ("alloc", "set", CPU, "--end", "2027-09-01", "--reason", "x"),
        ("alloc", "freeze", CPU, "--reason", "x"),
        ("alloc", "cap", CPU, MINH, 100),
        ("alloc", "create", "-A", "chem_qmc", "-r", "storage", "--end", "2027-09-01", "--reason", "x"),
        ("project", "create", "nothing", "--gid", 1),
        ("project", "add-user", "chem_qmc", DANA),
        ("project", "remove-user", "chem_qmc", AYLA),
        ("token", "create", "x"),
        ("token", "revoke", 1),
    ):
        assert told(changing(*words, "--dry-run")).startswith("Nothing is changed. This would be posted:\n")
        kept = json.loads(told(changing(*words, "--dry-run", "--json")))
        assert kept["schema"] == "fairbank.entry/1"
        assert all(entry["kind"] for entry in kept["data"])
    assert available(changing, CPU) == before
    assert "active" in changing("alloc", "show", CPU).out
    assert changing("project", "show", "nothing").code == 3


def test_the_same_key_is_carried_out_once(changing: Run) -> None:
    before = available(changing, FOLD)
    words = ("deposit", FOLD, 5, "--reason", "once", "--idempotency-key", "corr-17")
    first, second = changing(*words), changing(*words)
    assert first.out == second.out
    assert "carried out before" in second.err
    assert available(changing, FOLD) == before + 300
    other = changing("deposit", FOLD, 6, "--reason", "once", "--idempotency-key", "corr-17")
    assert other.code == 7
    assert "idempotency key" in other.err
    told(changing("withdraw", FOLD, 5, "--reason", "back"))


def test_projects_and_members_take_keys_too(changing: Run) -> None:
    made = ("project", "create", "lab11", "--gid", 50_011, "--idempotency-key", "p-1")
    assert told(changing(*made)) == told(changing(*made))
    assert "idempotency key" in told(changing("project", "create", "lab12", "--gid", 50_012, "--idempotency-key", "p-1"), 7)
    add = ("project", "add-user", "lab11", MINH, "--idempotency-key", "m-1")
    remove = ("project", "remove-user", "lab11", MINH, "--idempotency-key", "m-2")
    for words in (add, remove, add):
        told(changing(*words))
    assert json.loads(changing("project", "show", "lab11", "--json").out)["data"] == [], "carried out before: not again"
    other = told(changing("project", "add-user", "lab11", MINH, "--role", "pi", "--idempotency-key", "m-1"), 7)
    assert "idempotency key" in other


def test_a_job_is_refunded_by_its_number(changing: Run) -> None:
    said = told(changing("refund", 701_002, "10", "--reason", "node failed"))
    assert "refund of 10 SU of job 701002 to allocation 2 (chem_qmc/gpu)" in said
    assert "10 refunded" in changing("jobs", "-j", 701_002).out
    more = changing("refund", 701_002, "601", "--reason", "all and more")
    assert more.code == 5
    assert "asked 601 SU, left of its charge 600 SU" in " ".join(more.err.split())
    assert "refund at most 600" in more.err
    assert "kept as" not in more.err  # it is no job that was refused, and in no list
    assert "701002" not in changing("jobs", "--refused", "-a").out
    assert "there is no job 1 that you may see" in told(changing("refund", 1, "--reason", "x"), 3)
    assert "job 812330 still runs" in told(changing("refund", 812_330, "--reason", "x"), 7)
    told(changing("refund", 700_001, "--reason", "x"))
    assert "no charge of a job 700001 is left" in told(changing("refund", 700_001, "--reason", "x"), 3)


def test_terms_change_and_the_allocation_lives_on(changing: Run) -> None:
    assert "2027-09-01" in told(changing("alloc", "set", CPU, "--end", "2027-09-01", "--reason", "extended"))
    assert "credit limit 500 SU" in told(changing("alloc", "set", CPU, "--credit-limit", 500, "--shared", "--reason", "bridging"))
    assert told(changing("alloc", "freeze", CPU, "--reason", "asked")).count("frozen") == 1
    assert told(changing("alloc", "thaw", CPU, "--reason", "asked")).count("active") == 1
    told(changing("alloc", "set", CPU, "--credit-limit", 0, "--not-shared", "--end", "2027-07-01", "--reason", "back"))
    assert changing("alloc", "thaw", CPU, "--reason", "twice").code == 7
    assert changing("alloc", "set", CPU, "--reason", "nothing").code == 2


def test_a_statement_names_the_credit_limit_where_it_proves_its_figures(changing: Run) -> None:
    def heading_and_proof() -> tuple[str, str]:
        said = changing("statement", CPU)
        return " ".join(said.out.partition("\n\n")[0].split()), said.err.splitlines()[-1]

    granted = heading_and_proof()[0].partition(" granted ")[2]
    assert heading_and_proof()[1].endswith(f"= granted {granted}")
    told(changing("alloc", "set", CPU, "--credit-limit", 5, "--reason", "bridging"))
    heading, proof = heading_and_proof()
    assert heading.endswith(f"granted {granted} credit limit 5")
    assert proof.startswith("ok  used")
    assert proof.endswith(f"= granted {granted} + limit 5")
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
    said, changed = newest("set", CPU, "--credit-limit", 0, "--shared", "--end", "2027-08-01T00:00Z")
    assert changed == {"credit_limit": 0, "shared": True, "end": "2027-08-01T00:00:00Z"}
    assert said == "end 2027-07-31T20:00:00-04:00, shared, credit limit 0; why"
    told(changing("undo", json.loads(changing("statement", CPU, "--json").out)["data"][-1]["id"], "--reason", "back"))
    assert "not shared, credit limit 5; undo of entry" in changing("statement", CPU, "--csv").out
    assert newest("set", CPU, "--credit-limit", 0)[1] == {"credit_limit": 0}


def test_an_allocation_is_extended_and_closed(changing: Run) -> None:
    assert "2028-09-01" in told(changing("alloc", "extend", CPU, "2028-09-01", "--reason", "renewed"))
    shorter = told(changing("alloc", "extend", CPU, "2028-08-01", "--reason", "renewed"), 2)
    assert "alloc set 1 --end 2028-08-01" in " ".join(shorter.split())
    shown = changing("alloc", "set", CPU, "--end", "2027-07-01", "--credit-limit", "5", "--shared", "--reason", "x", "--dry-run").out
    for each in ("end 2027-07-01 00:00:00", "credit_limit 5 SU", "shared yes"):
        assert each in shown
    told(changing("alloc", "set", CPU, "--end", "2027-07-01", "--reason", "back"))
    closed = entry_of(changing("alloc", "close", GPU, "--reason", "over"))
    assert "ended" in changing("alloc", "show", GPU).out
    told(changing("undo", closed, "--reason", "not over"))


def test_caps_are_set_and_lifted(changing: Run) -> None:
    assert "has a cap of 5000 SU in allocation 1" in told(changing("alloc", "cap", CPU, JORGE, "5k"))
    assert "5000" in changing("alloc", "users", CPU).out
    assert "has no cap" in told(changing("alloc", "cap", CPU, JORGE, "none"))


def test_whoever_may_not_is_told_so(changing: Run) -> None:
    assert changing("deposit", CPU, 1, "--reason", "mine", "--as", AYLA).code == 4
    assert changing("alloc", "freeze", CPU, "--reason", "x", "--as", JORGE).code == 4
    assert changing("deposit", FOLD, 1, "--reason", "x", "--as", AYLA).code == 3  # there is no such thing for her
    assert changing("project", "add-user", "chem_qmc", DANA, "--as", JORGE).code == 4


def test_a_reason_is_needed_and_kept(changing: Run) -> None:
    missing = changing("deposit", CPU, 1)
    assert missing.code == 2
    assert "--reason" in missing.err
    assert changing("deposit", CPU, 1, "--reason", " ").code == 2
    assert changing("deposit", CPU, 1, "--reason", "two\nlines").code == 2
    told(changing("deposit", CPU, 1, "--reason", "for the record"))
    assert "for the record" in changing("statement", CPU, "-l", "-S", "2026-11-21").out
    told(changing("withdraw", CPU, 1, "--reason", "back"))


@pytest.mark.parametrize("amount", ["0", "-5", "0.001", "1e3", "nan", "10000000000000000", "5q", "", "'1'"])
def test_an_amount_that_is_none_is_told_with_its_field(changing: Run, amount: str) -> None:
    said = changing("deposit", CPU, "--reason", "x", "--", amount)
    assert said.code == 2
    assert "field: AMOUNT" in said.err or "AMOUNT" in said.err


def test_a_token_signs_in_over_the_network(changing: Run, own_bank: Bank, tmp_path: Path, surroundings: pytest.MonkeyPatch) -> None:
    place = tmp_path / "token"
    assert "its secret is in" in told(changing("token", "create", "laptop", "--scopes", "read", "-u", AYLA, "--output", place))
    assert place.stat().st_mode & 0o777 == 0o600
    assert changing("token", "create", "other", "--output", place).code == 7
    surroundings.setenv("FAIRBANK_TOKEN_FILE", str(place))
    assert "(61001)" in told(changing("whoami", "--server", own_bank.http))
    assert changing("deposit", CPU, 1, "--reason", "x", "--server", own_bank.http).code == 4
    shown = changing("token", "list", "--json")
    assert place.read_text().strip() not in shown.out
    number = next(row["id"] for row in json.loads(changing("token", "list", "-u", AYLA, "--json").out)["data"] if row["label"] == "laptop")
    told(changing("token", "revoke", number))
    assert changing("whoami", "--server", own_bank.http).code == 4


def test_a_new_secret_is_alone_on_stdout(changing: Run) -> None:
    said = changing("token", "create", "portal")
    assert said.out.startswith("fbk_")
    assert len(said.out.split()) == 1
    assert "is good until" in said.err


def test_a_refund_that_is_repeated_is_one_more_unless_under_one_key(changing: Run) -> None:
    keyed = ("refund", 701_001, "10", "--reason", "node failed", "--idempotency-key", "incident-17")
    first, second = changing(*keyed), changing(*keyed)
    assert (told(first), first.err) == (second.out, "")
    assert second.err == "This was carried out before; nothing more was done.\n"
    again = changing("refund", 701_001, "10", "--reason", "node failed")
    assert "! 10 of its 4000 SU were refunded before; this is one refund more" in " ".join(again.err.split())
    assert "20 refunded" in changing("jobs", "-j", 701_001).out
    page = " ".join(changing("refund", "--help").out.split())
    assert "each time again, unless under one key" in page
    assert "without a key each time" in page
    assert "--idempotency-key incident-17" in page


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("deposit", CPU, 1, "--reason", "x", "--as", "nosuchuser"), "--as"),
        (("balance", "--as=nosuchuser"), "--as"),
        (("alloc", "create", "--project", "nope", "-r", "cpu", "--end", "2030-01-01", "--reason", "x"), "--project"),
        (("alloc", "create", "-A", "nope", "-r", "cpu", "--end", "2030-01-01", "--reason", "x"), "-A"),
        (("alloc", "create", "--account=999", "-r", "cpu", "--end", "2030-01-01", "--reason", "x"), "--account"),
        (("alloc", "create", "-A", "chem_qmc", "-r", "CPU", "--end", "2030-01-01", "--reason", "x"), "-r"),
        (("project", "create", "g", "--gid", 5, "--parent", "999"), "--parent"),
        (("project", "create", "9g", "--gid", 5), "GROUP"),
        (("project", "show", "nope"), "PROJECT"),
        (("project", "show", "999"), "PROJECT"),
        (("alloc", "show", 999), "ALLOC"),
        (("token", "create", "x", "--scopes", "fly"), "--scopes"),
        (("token", "create", ""), "LABEL"),
        (("transfer", 999, CPU, 1, "--reason", "x"), "FROM"),
        (("transfer", CPU, 999, 1, "--reason", "x"), "TO"),
        (("token", "create", "x", "--days", 100_000), "--days"),
        (("token", "revoke", 999), "ID"),
        (("quote", "-A", "chem_qmc", "-p", "nosuch", "-t", "60", "-M", "darwin"), "-p"),
        (("quote", "-A", "chem_qmc", "-p", "idle-std", "-t", "60", "--cluster", "nosuch"), "--cluster"),
    ],
)
def test_what_the_bank_will_not_have_is_named_as_it_was_typed(changing: Run, words: tuple[object, ...], field: str) -> None:
    said = changing(*words)
    assert said.code in (2, 3)
    assert f"  field: {field}\n" in said.err


def test_whoever_may_not_act_as_another_reads_of_the_option_not_of_a_header(
    changing: Run, own_bank: Bank, surroundings: pytest.MonkeyPatch
) -> None:
    surroundings.setenv("FAIRBANK_TOKEN_FILE", own_bank.token_file)  # ayla's, who is no staff
    said = changing("balance", "--server", own_bank.http, "--as", JORGE)
    assert (said.code, "  field: --as\n  try: ask in your own name\n" in said.err) == (4, True)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("alloc", "create", "-A", "chem_qmc", "-r", "fpga", "--start", "2028-01-01", "--end", "2027-01-01", "--reason", "x"), "--end"),
        (("alloc", "create", "-A", "chem_qmc", "-r", "fpga", "--end", "2020-01-01", "--reason", "x"), "--end"),
        (("alloc", "set", CPU, "--end", "2020-01-01", "--reason", "x"), "--end"),
        (("alloc", "set", CPU, "--start", "2028-01-01", "--reason", "x"), "--start"),
    ],
)
@pytest.mark.parametrize("dry", [True, False])
def test_an_allocation_that_would_end_before_it_starts(changing: Run, words: tuple[object, ...], field: str, dry: bool) -> None:
    said = changing(*words, *(["--dry-run"] if dry else []))
    assert (said.code, said.out) == (2, "")
    assert "would end before it starts" in said.err
    assert f"  field: {field}\n" in said.err


def test_csv_and_json_are_exact(changing: Run) -> None:
    """A third of an hour has no end in decimals: the figures in SU are for people, those in minutes are the bank's."""
    told(changing("deposit", CPU, "20m", "--reason", "x"))
    left = available(changing, CPU)
    (line,) = changing("balance", "-A", "chem_qmc", "-r", "cpu", "--csv", "-n", "-o", "AVAILABLE,AVAILABLE-MINUTES").out.splitlines()
    assert line == f"{left // 60}.33,{left}"
    (entry,) = [row for row in changing("statement", CPU, "--csv").out.splitlines() if row.endswith(f",{left}")]
    assert ",20," in entry
    told(changing("withdraw", CPU, "20m", "--reason", "back"))


def test_a_project_gets_other_names_is_removed_and_comes_back(changing: Run) -> None:
    told(changing("project", "create", "lab30", "--gid", 50_030))
    said = told(changing("project", "set", "lab30", "--gid", 50_031, "-A", "lab31", "--parent", "chem_qmc", "--reason", "moved"))
    assert said.endswith(" is changed\n")
    changed = entry_of(Said(0, said, ""))
    assert "an entry of this kind is not taken back: project" in changing("undo", changed, "--reason", "x", "--yes").err
    again = changing("project", "set", "lab31", "--gid", 50_031)
    assert (again.out.startswith("project "), "carried out before" in again.err) == (True, True)
    assert "removed" not in changing("project", "show", "lab31").err
    assert "nothing is to change" in told(changing("project", "set", "lab31"), 2)
    assert entry_of(changing("project", "remove", "lab31")) > changed
    assert "lab31" not in told(changing("project", "list"))
    assert "lab31" in told(changing("project", "list", "-a"))
    assert "removed" in changing("project", "show", "lab31").err
    assert "the project is still in use" in told(changing("project", "remove", "chem_qmc"), 7)
    assert "has, or had, an allocation" in told(changing("project", "set", "chem_qmc", "-A", "chem"), 7)
    told(changing("project", "set", "lab31", "--restore"))
    assert "lab31" in told(changing("project", "list"))
