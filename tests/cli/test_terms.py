"""Terms of an allocation, changed by staff: its period, state, limit and caps."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests.cli.conftest import Run
from tests.cli.output_values import entry_number, fold, output_of
from tests.cli.site import CPU, FOLD, GPU, JORGE, STRANGER


def test_credit_limit_is_not_counted_as_expiring(changing: Run) -> None:
    output_of(changing("project", "create", "lab9", "--gid", 50_009))
    terms = ("--start", "2026-01-01", "--end", "2026-12-01", "--amount", 30, "--credit-limit", 50)
    output_of(changing("alloc", "create", "-A", "lab9", "-r", "cpu", *terms, "--reason", "x"))
    assert "80  " in changing("balance", "-A", "lab9").out
    assert "! ~30 " in changing("balance", "-A", "lab9").out
    (row,) = json.loads(changing("balance", "-A", "lab9", "--json").out)["data"]
    assert (row["available"], row["left_over"]) == (80 * 60, 30 * 60)


def test_overview_of_all_rows_has_the_state_of_each(changing: Run) -> None:
    """Nine planned allocations: the overview shows 7 rows, and with --all all of them."""
    output_of(changing("project", "create", "aaa9", "--gid", 50_119))
    period = ("--start", "2090-01-01", "--end", "2091-01-01")
    for number in range(9):
        terms = ("-A", "aaa9", "-r", f"r{number}", *period, "--reason", "x")
        output_of(changing("alloc", "create", *terms))
    assert changing().out.count(": planned, begins") == 7
    assert changing("--all").out.count(": planned, begins") == 9
    warnings = json.loads(changing("--json").out)["warnings"]
    assert warnings == json.loads(changing("balance", "--json").out)["warnings"]
    assert sum(": planned, begins" in warning for warning in warnings) == 9


def test_start_after_that_of_running_jobs_is_reported(changing: Run) -> None:
    words = ("alloc", "set", CPU, "--reason", "x", "--dry-run", "--start")
    assert "Jobs that began before" in changing(*words, "now").err
    assert "Jobs that began before" not in changing(*words, "2026-01-01").err


def test_ended_allocation_is_reopened_with_a_new_end(changing: Run) -> None:
    output_of(changing("project", "create", "lab10", "--gid", 50_010))
    filters = ("-A", "lab10", "-r", "cpu")
    period = ("--start", "2025-11-01", "--end", "2025-12-01")
    number = json.loads(
        output_of(changing("alloc", "create", *filters, *period, "--reason", "x", "--json"))
    )["data"]["id"]
    next_one = json.loads(
        output_of(
            changing(
                "alloc",
                "create",
                *filters,
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
        for row in json.loads(changing("alloc", "list", *filters, "--json").out)["data"]
    }
    assert listed == {number: "ended", next_one["data"]["id"]: "planned"}
    for state in ("planned", "active", "ended"):
        rows = json.loads(changing("alloc", "list", *filters, "--state", state, "--json").out)[
            "data"
        ]
        assert [row["id"] for row in rows] == [
            number for number, stands in listed.items() if stands == state
        ]
    assert "state      ended" in changing("alloc", "show", number).out
    message = " ".join(output_of(changing("alloc", "reopen", number, "--reason", "x"), 7).split())
    assert f"fairbank alloc reopen {number} --end ... --reason" in message
    for words in (("set", number, "--end"), ("extend", number)):
        message = " ".join(
            output_of(changing("alloc", *words, "2089-01-01", "--reason", "x"), 7).split()
        )
        assert "does not" in message
        assert f"fairbank alloc reopen {number} --end" in message
    assert "--end 2089-01-01" in message  # the suggested option
    assert "active" in output_of(
        changing("alloc", "reopen", number, "--end", "2089-06-01", "--reason", "x")
    )


def test_frozen_allocation_past_its_end_accepts_late_reports(changing: Run) -> None:
    output_of(changing("project", "create", "lab19", "--gid", 50_019))
    filters = (
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
    number = json.loads(output_of(changing("alloc", "create", *filters, "--json")))["data"]["id"]
    output_of(changing("alloc", "freeze", number, "--reason", "x"))
    assert ", ended, " in output_of(changing("alloc", "end", number, "--reason", "x", "--yes"))
    assert ", ended, " in output_of(changing("alloc", "thaw", number, "--reason", "x"))
    assert ", active, " in output_of(
        changing("alloc", "reopen", number, "--end", "2089-01-01", "--reason", "x")
    )


def test_refusal_names_the_conflicting_value(changing: Run) -> None:
    output_of(changing("project", "create", "lab9", "--gid", 50_009))
    taken = output_of(changing("project", "create", "lab9b", "--gid", 50_009), 7)
    assert "has gid 50009" in " ".join(taken.split())
    thaw = output_of(changing("alloc", "thaw", CPU, "--reason", "x"), 7)
    assert f"allocation {CPU} is active already" in " ".join(thaw.split())


def test_times_of_a_refusal_are_those_of_the_users_zone(changing: Run) -> None:
    """The other allocation of chem_qmc/gpu begins and ends at midnight in New York, 04:00 UTC."""
    term = ("--start", "2026-09-01", "--end", "2026-10-01", "--reason", "x")
    words = ("alloc", "create", "-A", "chem_qmc", "-r", "gpu", *term)
    for utc, period in (
        ((), "2026-07-01 00:00:00 to 2027-07-01 00:00:00"),
        (("--utc",), "2026-07-01 04:00:00 to 2027-07-01 04:00:00"),
    ):
        assert f"allocation {GPU} is for {period}." in fold(output_of(changing(*words, *utc), 7))
    detail = json.loads(changing(*words, "--json").out)["detail"]
    assert "2026-07-01T04:00:00Z to 2027-07-01T04:00:00Z" in detail


def test_terms_can_be_changed(changing: Run) -> None:
    assert ".. 2027-08-31" in output_of(
        changing("alloc", "set", CPU, "--end", "2027-09-01", "--reason", "extended")
    )
    assert "credit limit 500 SU" in output_of(
        changing("alloc", "set", CPU, "--credit-limit", 500, "--shared", "--reason", "bridging")
    )
    assert output_of(changing("alloc", "freeze", CPU, "--reason", "asked")).count("frozen") == 1
    assert output_of(changing("alloc", "thaw", CPU, "--reason", "asked")).count("active") == 1
    output_of(
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
            "--yes",
        )
    )
    assert changing("alloc", "thaw", CPU, "--reason", "twice").code == 7
    assert changing("alloc", "set", CPU, "--reason", "nothing").code == 2


def test_statement_totals_include_the_credit_limit(changing: Run) -> None:
    def heading_and_proof() -> tuple[str, str]:
        result = changing("statement", CPU)
        return " ".join(result.out.partition("\nAs of ")[0].split()), result.err.splitlines()[-1]

    granted = heading_and_proof()[0].partition(" granted ")[2]
    assert heading_and_proof()[1].endswith(f"= granted {granted} SU")
    output_of(changing("alloc", "set", CPU, "--credit-limit", 5, "--reason", "bridging"))
    heading, proof = heading_and_proof()
    assert heading.endswith(f"granted {granted} credit limit 5")
    assert proof.startswith("ok  used")
    assert proof.endswith(f"= granted {granted} + limit 5 SU")
    output_of(changing("alloc", "set", CPU, "--credit-limit", 0, "--reason", "back"))


NO_LIMIT = {"credit_limit": 0, "display": {"credit_limit": "0"}}


def test_statement_shows_changed_terms(changing: Run) -> None:
    def newest(*words: object) -> tuple[str, dict[str, object]]:
        number = entry_number(changing("alloc", *words, "--reason", "why"))
        rows = csv.DictReader(io.StringIO(changing("statement", CPU, "-l", "--csv").out))
        entry = json.loads(changing("statement", CPU, "-l", "--json").out)["data"][-1]
        assert entry["id"] == number
        return next(row["REASON"] for row in rows if row["ENTRY"] == str(number)), entry["changed"]

    assert newest("freeze", CPU) == ("state frozen; why", {"state": "frozen"})
    assert newest("thaw", CPU) == ("state active; why", {"state": "active"})
    assert newest("set", CPU, "--credit-limit", 5) == (
        "credit limit 5 SU; why",
        {"credit_limit": 300, "display": {"credit_limit": "5"}},
    )
    output, changed = newest(
        "set", CPU, "--credit-limit", 0, "--shared", "--end", "2027-08-01T00:00Z"
    )
    assert changed == {**NO_LIMIT, "shared": True, "end": "2027-08-01T00:00:00Z"}
    assert output == "end 2027-07-31T20:00:00-04:00, shared yes, credit limit 0 SU; why"
    output_of(
        changing(
            "undo",
            json.loads(changing("statement", CPU, "-l", "--json").out)["data"][-1]["id"],
            "--reason",
            "back",
            "--yes",
        )
    )
    assert (
        "shared no, credit limit 5 SU; undo of entry"
        in changing("statement", CPU, "-l", "--csv").out
    )
    assert newest("set", CPU, "--credit-limit", 0)[1] == NO_LIMIT


def test_allocation_is_extended_and_closed(changing: Run) -> None:
    assert ".. 2028-08-31" in output_of(
        changing("alloc", "extend", CPU, "2028-09-01", "--reason", "renewed")
    )
    shorter = output_of(changing("alloc", "extend", CPU, "2028-08-01", "--reason", "renewed"), 2)
    assert "alloc set 1 --end 2028-08-01" in " ".join(shorter.split())
    assert "valid longer already: to 2028-09-01 00:00:00" in shorter
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
    for text in ("end 2027-07-01 00:00:00", "credit limit 5 SU", "shared yes"):
        assert text in shown
    output_of(changing("alloc", "set", CPU, "--end", "2027-07-01", "--reason", "back", "--yes"))
    closed = entry_number(changing("alloc", "end", GPU, "--reason", "over", "--yes"))
    assert "ended" in changing("alloc", "show", GPU).out
    output_of(changing("undo", closed, "--reason", "not over", "--yes"))


def test_caps_are_set_and_lifted(changing: Run) -> None:
    assert "has a cap of 5,000 SU in allocation 1" in output_of(
        changing("alloc", "cap", CPU, JORGE, "5k")
    )
    assert "5000" in changing("alloc", "users", CPU).out
    assert "has no cap" in output_of(changing("alloc", "cap", CPU, JORGE, "none"))


def test_cap_of_a_user_who_is_no_member_warns(changing: Run) -> None:
    warning = f"user {STRANGER} is not a member of chem_qmc"
    capped = changing("alloc", "cap", CPU, STRANGER, "5k")
    assert (capped.code, warning in " ".join(capped.err.split())) == (0, True)
    (shown,) = json.loads(changing("alloc", "cap", CPU, STRANGER, "6k", "--json").out)["warnings"]
    assert warning in shown
    for words in ((CPU, JORGE, "5k"), (CPU, JORGE, "none"), (CPU, STRANGER, "none")):
        assert changing("alloc", "cap", *words).err == "", words


def test_term_of_minutes_or_months_is_not_guessed(changing: Run) -> None:
    """A grant of 6 months would be over after 6 minutes."""
    words = ("alloc", "create", "-A", "chem_qmc", "-r", "test", "--reason", "test", "--end")
    result = changing(*words, "now+6M")
    assert (result.code, result.out) == (2, "")
    assert "field: --end\n  try: write now+6minutes or now+6months\n" in result.err


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
def test_period_that_would_end_before_it_starts_is_refused(
    changing: Run, words: tuple[object, ...], field: str, dry: bool
) -> None:
    result = changing(*words, *(["--dry-run"] if dry else []))
    assert (result.code, result.out) == (2, "")
    assert "would not end after it starts" in result.err
    assert f"  field: {field}\n" in result.err


# --- allocations by project and resource ---

X = ("--reason", "x", "--yes")
FOLDING = ("-A", "bio_fold", "-r", "gpu")


@pytest.mark.parametrize(
    "words",
    [
        ("alloc", "show", *FOLDING),
        ("alloc", "users", *FOLDING),
        ("deposit", *FOLDING, 5, *X),
        ("withdraw", *X, 1, *FOLDING),
        ("alloc", "set", *FOLDING, "--shared", *X),
        ("alloc", "extend", *FOLDING, "2089-01-01", *X),
        ("alloc", "cap", "-A", "bio_fold", JORGE, 5),
        ("alloc", "freeze", *FOLDING, *X),
        ("alloc", "thaw", *FOLDING, *X),
        ("alloc", "end", *FOLDING, *X),
        ("alloc", "reopen", *FOLDING, "--end", "2089-01-01", *X),
    ],
    ids=lambda words: " ".join(map(str, words)),
)
def test_allocation_is_named_by_project_and_resource(
    changing: Run, words: tuple[object, ...]
) -> None:
    """A project with one allocation needs no -r."""
    document = json.loads(output_of(changing(*words, "--json")))["data"]
    if words[:2] != ("alloc", "users"):
        (row,) = document if isinstance(document, list) else [document]
        assert row.get("allocation", row.get("id")) == FOLD


def test_transfer_names_both_projects(changing: Run) -> None:
    words = ("transfer", "-A", "bio_fold", "--to", "chem_qmc", "-r", "gpu", 5, *X)
    assert f"from allocation {FOLD} (bio_fold/gpu) to allocation {GPU} (chem_qmc/gpu)" in (
        " ".join(output_of(changing(*words)).split())
    )
    missing = output_of(changing("transfer", "-A", "bio_fold", 5, *X), 2)
    assert "the argument TO is missing" in missing


def test_several_allocations_are_refused_with_their_list(changing: Run) -> None:
    deposit = ("deposit", 5, *X)
    listed = f"chem_qmc has 2 allocations: {CPU} (cpu, active), {GPU} (gpu, active)"
    several = " ".join(output_of(changing(*deposit, "-A", "chem_qmc"), 2).split())
    assert listed in several
    assert "field: --resource try: give the number, or the resource with -r" in several
    for start, end in (("2026-01-01", "2027-01-01"), ("2027-01-01", "2028-01-01")):
        terms = ("-A", "bio_fold", "-r", "npu", "--start", start, "--end", end)
        output_of(changing("alloc", "create", *terms, *X))
    both = " ".join(output_of(changing(*deposit, "-A", "bio_fold", "-r", "npu"), 2).split())
    assert "(npu, active)" in both
    assert "(npu, planned)" in both
    assert both.endswith("field: ALLOC try: give the number bank: fairbank")
    # A command that reads chooses among the active ones first, but -r may name any.
    output_of(changing("alloc", "freeze", GPU, *X))
    reading = " ".join(output_of(changing("statement", "-A", "bio_fold"), 2).split())
    assert all(state in reading for state in ("(npu, active)", "(npu, planned)"))
    output_of(changing("alloc", "thaw", GPU, *X))
    transfer = ("transfer", "-A", "bio_fold", "--to", "chem_qmc", "-r", "npu", 5, *X)
    moved = " ".join(output_of(changing(*transfer), 2).split())
    assert moved.endswith("field: FROM try: give the number bank: fairbank")
    twice = output_of(changing("deposit", FOLD, 5, "-A", "bio_fold", *X), 2)
    assert f"the allocation is named twice: {FOLD} and -A bio_fold" in " ".join(twice.split())


def test_shared_credit_of_a_parent_is_not_the_projects_own(changing: Run) -> None:
    output_of(changing("project", "create", "child", "--gid", 9_001, "--parent", "chem_qmc"))
    output_of(changing("alloc", "set", CPU, "--shared", *X))
    assert f'"id": {CPU}' in output_of(changing("balance", "-A", "child", "--json"))
    refused = output_of(changing("deposit", "-A", "child", "-r", "cpu", 5, *X), 3)
    assert "child has no allocation of cpu" in " ".join(refused.split())


def test_planned_allocation_that_staff_ended_is_ended_everywhere(changing: Run) -> None:
    """It is neither "not started" in RUNS-OUT nor "cancelled" in a refusal."""
    terms = ("-A", "bio_fold", "-r", "gpu", "--start", "2090-01-01", "--end", "2091-01-01", *X)
    made = json.loads(output_of(changing("alloc", "create", *terms, "--json")))["data"]["id"]
    output_of(changing("alloc", "end", made, "--yes", *X))
    rows = json.loads(output_of(changing("balance", "-A", "bio_fold", "-a", "--json")))["data"]
    (row,) = (row for row in rows if row["id"] == made)
    assert (row["state"], row["outlook"]) == ("ended", "ended")
    refused = changing("transfer", 3, made, "1", "--yes", *X)
    assert f"allocation {made} is ended." in " ".join(refused.err.split())


# --- corrections of a wrong grant ---


def test_wrong_grant_is_set_right_and_removed(changing: Run) -> None:
    """A grant of the wrong resource and category, and one that is not to be there at all."""
    terms = ("-A", "bio_fold", "-r", "tpu", "--start", "2026-01-01", "--end", "2027-01-01", *X)
    made = json.loads(output_of(changing("alloc", "create", *terms, "--json")))["data"]["id"]
    words = ("alloc", "set", made, "--new-resource", "vpu", "--category", "startup", *X)
    assert f"allocation {made}: bio_fold/vpu" in output_of(changing(*words))
    shown = json.loads(output_of(changing("alloc", "show", made, "--json")))["data"][0]
    assert (shown["resource"], shown["category"]) == ("vpu", "startup")
    charged = " ".join(output_of(changing("alloc", "set", CPU, "--category", "x", *X), 7).split())
    assert f"jobs were charged to allocation {CPU}, or hold credit of it" in charged
    deposited = output_of(changing("alloc", "remove", GPU, "--yes"), 7)
    assert f"credit has moved in allocation {GPU}" in " ".join(deposited.split())
    assert f"end it: fairbank alloc end {GPU}" in " ".join(deposited.split())
    ended = entry_number(changing("alloc", "end", GPU, "--yes", *X))
    over = " ".join(output_of(changing("alloc", "remove", GPU, "--yes"), 7).split())
    assert "nothing is to do: it has ended, so no job that starts now can use it" in over
    output_of(changing("undo", ended, "--yes", *X))
    gone = changing("alloc", "remove", made, "--yes", "--reason", "it was & is wrong")
    entries = output_of(changing("statement", made, "-l", "-P", "-n", "-o", "REASON"))
    assert entries.endswith("it was & is wrong\n")
    assert f"bring it back: fairbank undo {entry_number(gone)}" in " ".join(gone.out.split())
    assert f" {made} " not in output_of(changing("alloc", "list", "-A", "bio_fold", "-n"))
    assert f"{made}|removed" in output_of(
        changing("alloc", "list", "--state", "removed", "-n", "-P", "-o", "ALLOC,STATE")
    )
    output_of(changing("undo", entry_number(gone), "--reason", "it was right", "--yes"))
    assert "active" in output_of(changing("alloc", "show", made))
    assert changing("alloc", "set", made, "--new-resource", "Not A Name", *X).code == 2
    assert changing("alloc", "remove", made, "--yes", "--as", JORGE).code in (3, 4)


NO_PARTITION = (
    "bills 'gpu' field: --partition try: these do: gpu-v100; add it to the bank's settings"
)
NO_RESERVATION = (
    "is not the name of a reservation field: --reservation try: 1 to 255 bytes of printable text"
    " without blanks , = or quotes"
)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        *(
            ("--partition", name, f"no partition {name!r} {NO_PARTITION}")
            for name in ("", "nowhere", "idle-std", "gpu-v100,idle-std")
        ),
        *(
            ("--reservation", name, f"{name!r} {NO_RESERVATION}")
            for name in ("", "course 5", "course,lab", '"course"')
        ),
        *(
            (option, "x" * 256, f"255 characters field: {option} try: at most 255 characters")
            for option in ("--partition", "--reservation")
        ),
    ],
)
def test_wrong_terms_of_a_short_term_allocation_are_refused(
    changing: Run, option: str, value: str, message: str
) -> None:
    words = ("-A", "chem_qmc", "-r", "gpu", "--start", "2090-01-01", "--end", "2091-01-01")
    before = changing("alloc", "list", "-a", "--json").out
    made = changing("alloc", "create", *words, "--amount", 5, "--reason", "x", option, value)
    assert message in fold(output_of(made, 2))
    assert changing("alloc", "list", "-a", "--json").out == before
