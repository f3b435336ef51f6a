"""HADM's command: its subcommands, filters, detail, order and output formats."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairbank.cli import main
from fairbank.cli.commands.bank import sproject
from tests.cli.conftest import Run, heads, runner
from tests.cli.site import AYLA, JORGE, MINH, STRANGER
from tests.support.conditions import wait_until
from tests.support.server import create_bank


def rows(hadm: Run, *words: object) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = json.loads(hadm(*words, "--json").out)["data"]
    return data


def test_subcommands_are_listed(hadm: Run) -> None:
    verbs = ["projects", "allocations", "jobs", "failures"]
    assert [verb for verb in verbs if f"\n  {verb} " in hadm().out] == verbs
    assert hadm("project").code == 2
    assert "did you mean projects" in hadm("project").err


def test_filters_by_group_account_resource_user_and_activity(hadm: Run) -> None:
    assert [row["account"] for row in rows(hadm, "projects", "-g", "biofold")] == ["bio_fold"]
    assert [row["account"] for row in rows(hadm, "projects", "-g", "50002")] == ["bio_fold"]
    assert [row["account"] for row in rows(hadm, "projects", "-A", "chem_qmc")] == ["chem_qmc"]
    assert [row["id"] for row in rows(hadm, "allocations", "-r", "gpu")] == [2, 3]
    assert [row["id"] for row in rows(hadm, "allocations", "-a", "-g", "biofold")] == [3]
    assert {row["job_id"] for row in rows(hadm, "jobs", "-g", "biofold")} == {702_001}
    assert {row["job_id"] for row in rows(hadm, "jobs", "-r", "gpu", "-u", JORGE)} == {
        701_001,
        812_330,
    }
    assert [row["job_id"] for row in rows(hadm, "failures", "-a", "-r", "gpu")] == [812_350]
    assert rows(hadm, "failures", "-r", "cpu") == []
    assert [row["id"] for row in rows(hadm, "allocations", "--as", AYLA)] == [1, 2]
    assert hadm("allocations", "--as", STRANGER).out == ""


def test_tables_of_amounts_name_their_unit(hadm: Run) -> None:
    assert hadm("allocations", "--detail").out.splitlines()[0].endswith("   unit SU")
    shown = hadm("jobs", "--units", "m").out
    assert (shown.splitlines()[0].endswith("   unit SU-minutes"), shown.count("SU-min")) == (
        True,
        1,
    )
    assert "unit" not in hadm("projects").out


def test_projects_by_resource_and_activity(hadm: Run) -> None:
    assert {row["account"] for row in rows(hadm, "projects", "-r", "gpu")} == {
        "chem_qmc",
        "bio_fold",
    }
    assert [
        row["account"] for row in rows(hadm, "projects", "-r", "cpu", "-a", "-A", "chem_qmc")
    ] == ["chem_qmc"]
    assert [row["account"] for row in rows(hadm, "projects", "-r", "cpu", "-g", "biofold")] == []
    assert {row["resource"] for row in rows(hadm, "projects", "-r", "gpu", "--detail")} == {"gpu"}
    assert len(rows(hadm, "projects", "-a")) <= len(rows(hadm, "projects"))


@pytest.mark.parametrize("verb", ["jobs", "failures", "allocations", "projects"])
def test_unknown_filter_value_is_an_error(hadm: Run, verb: str) -> None:
    for words, field in (
        (("-g", "99999"), "-g"),
        (("-A", "nope"), "-A"),
        (("-r", "nosuch"), "-r"),
        (("--category", "nope"), "--category"),
    ):
        result = hadm(verb, *words)
        assert (result.code, result.out) == (3, "")
        assert f"field: {field}" in result.err
        assert "try: " in result.err


def test_remedies_name_sproject_commands(hadm: Run, fairbank: Run) -> None:
    for words in (("projects", "-A", "nope"), ("jobs", "-g", "nope")):
        assert "try: list yours with: sproject projects\n" in hadm(*words).err
    assert "try: list yours with: fairbank project list\n" in fairbank("balance", "-A", "nope").err


def test_detail_adds_credit_running_and_completed_debit_and_balance(hadm: Run) -> None:
    header = hadm("allocations", "--detail", "-P").out.splitlines()[0].split("|")
    assert header[-4:] == ["CREDIT", "RUN+CMPLT", "DEBIT", "BALANCE"]
    line = (
        hadm("allocations", "--detail", "-P", "-n", "-g", "chem_qmc", "-r", "cpu")
        .out.strip()
        .split("|")
    )
    assert line[-4:] == ["100000", "4352", "36240", "59408"]
    projects = [
        line.split("|")
        for line in hadm("projects", "--detail", "-P", "-n", "-g", "chem_qmc").out.splitlines()
    ]
    assert [line[4:] for line in projects if line[4] == "cpu"] == [
        ["cpu", "100000", "4352", "36240", "59408"]
    ]
    assert heads(hadm("jobs", "--detail", "--helpformat"))[-1] == "DEBIT"
    assert heads(hadm("failures", "--detail", "--helpformat"))[-1] == "SHORT"


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("BALANCE", [2, 3, 1]),
        ("-BALANCE", [1, 3, 2]),
        ("resource,-credit", [1, 3, 2]),
        ("-end", [1, 2, 3]),
    ],
)
def test_sort_order(hadm: Run, sort: str, order: list[int]) -> None:
    assert [row["id"] for row in rows(hadm, "allocations", "--detail", "--sort", sort)] == order


def test_unknown_sort_column_is_reported(hadm: Run) -> None:
    result = hadm("allocations", "--sort", "NOPE")
    assert result.code == 2
    assert "BALANCE" not in result.err  # a column of --detail only
    assert "ALLOC-ID" in result.err


def test_states_are_named_as_in_hadm(hadm: Run) -> None:
    assert {row["status"] for row in rows(hadm, "jobs")} == {"executing", "completed"}
    assert "not enough credit" in " ".join(hadm("failures", "-l").out.split())


def test_times_in_messages_of_failures_are_in_the_zone_of_the_table(hadm: Run) -> None:
    """In New York it is 5 hours earlier than in UTC."""
    (row,) = rows(hadm, "failures")
    assert "which ends by 2026-11-21T21:00:00Z at the latest" in row["detail"]
    shown = hadm("failures", "-o", "MESSAGE%250").out
    assert "which ends by 2026-11-21 16:00:00 at the latest" in shown


def test_charges_by_user_in_a_time_window(hadm: Run) -> None:
    """Allocation 1 (cpu): ayla 9,000 in July, 9,000 in August, 301 on 21 November; jorge 9,000 in
    September (120 of November were refunded), minh 8,939 in October. The user debits of HADM's
    schema 5 add up to the DEBIT of the allocation, 36,240.
    """
    by_user = ("allocations", "--by-user", "-P", "-n", "-g", "chem_qmc", "-r", "cpu")
    lines = hadm(*by_user, "--sort", "-DEBIT").out.splitlines()
    users = [(cells[-3], cells[-2], cells[-1]) for cells in (line.split("|") for line in lines)]
    assert users == [(str(AYLA), "3", "18301"), (str(JORGE), "2", "9000"), (str(MINH), "1", "8939")]
    summer = hadm(*by_user, "-S", "2026-07-01", "-E", "2026-09-01").out.splitlines()
    assert [line.split("|")[-3:] for line in summer] == [[str(AYLA), "2", "18000"]]
    refused = hadm("allocations", "-S", "2026-07-01")
    assert (refused.code, "add --by-user" in refused.err) == (2, True)


def test_charges_by_user_of_all_allocations_are_one_request(
    clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two jobs on one allocation, one on another, and measured use of storage, which has no user.
    The log of the bank has each request.
    """
    with create_bank() as bank:
        bank.start()
        clean_env.setenv("FAIRBANK_SERVER", f"unix:{bank.socket}")
        fairbank, hadm = runner(main.run, capsys), runner(sproject.run, capsys)
        measured = bank.folder / "storage.csv"
        measured.write_text("day,account,tib_days\n2026-11-20,chem,2\n")
        terms = ("--start", "2026-11-01", "--end", "now+9days", "--amount", 100, "--reason", "x")
        job = ("-A", "chem", "-S", "now-2hours", "-E", "now-1hours")
        for words in (
            ("project", "create", "chem", "--gid", 7_001),
            *(("alloc", "create", "-A", "chem", "-r", one, *terms) for one in RESOURCES),
            ("charge", 1, *job, "-p", "cpu", "-u", AYLA, "--tres", "cpu=1"),
            ("charge", 2, *job, "-p", "cpu", "-u", JORGE, "--tres", "cpu=3"),
            ("charge", 3, *job, "-p", "gpu", "-u", JORGE, "--tres", "gres/gpu=1"),
            ("storage", "import", measured),
        ):
            done = fairbank(*words)
            assert done.code == 0, done.err
        before = bank.log.read_text().count(USAGE)
        rows = json.loads(hadm("allocations", "--by-user", "--json").out)["data"]
        # The log may be a moment behind the answer.
        wait_until(lambda: bank.log.read_text().count(USAGE) > before, "the line of the request")
        assert bank.log.read_text().count(USAGE) == before + 1
    assert [(row["id"], row["owner_uid"], row["runs"], row["charged"]) for row in rows] == [
        (1, AYLA, 1, 60),
        (1, JORGE, 1, 180),
        (2, JORGE, 1, 60),
        (3, None, 0, 120),
    ]


def test_balance_leaves_out_the_credit_limit(
    clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """100 SU are granted, with a limit of 50: 30 are charged and 90 held, as the view `balances`
    has it.
    """
    with create_bank() as bank:
        bank.start()
        clean_env.setenv("FAIRBANK_SERVER", f"unix:{bank.socket}")
        fairbank, hadm = runner(main.run, capsys), runner(sproject.run, capsys)
        credit = ("--amount", 100, "--credit-limit", 50, "--reason", "x")
        terms = ("--start", "now-1days", "--end", "now+9days", *credit)
        job = ("-A", "chem", "-M", "local", "-p", "cpu", "-u", AYLA, "-S", "now-1hours")
        for words in (
            ("project", "create", "chem", "--gid", 7_001),
            ("alloc", "create", "-A", "chem", "-r", "cpu", *terms),
            ("charge", 1, *job, "-E", "now", "--tres", "cpu=30"),
            ("hold", 2, *job, "-t", "1:00:00", "--tres", "cpu=90"),
        ):
            done = fairbank(*words)
            assert done.code == 0, done.err
        for verb in ("allocations", "projects"):
            line = hadm(verb, "--detail", "-P", "-n").out.strip()
            assert line.split("|")[-4:] == ["100", "90", "30", "-20"]


RESOURCES, USAGE = ("cpu", "gpu", "storage"), '"path":"/usage"'
DEAR = """
[clusters.dear.partitions.cpu]
resource = "cpu"
weights = "CPU=2"
"""


def test_charges_by_user_at_two_prices_name_their_clusters(
    clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One processor for an hour, on each cluster: 1 SU and 2 SU."""
    with create_bank() as bank:
        bank.config.write_text(bank.config.read_text() + DEAR)
        bank.start()
        clean_env.setenv("FAIRBANK_SERVER", f"unix:{bank.socket}")
        fairbank = runner(main.run, capsys)
        terms = ("--start", "now-1days", "--end", "now+9days", "--amount", 100, "--reason", "x")
        assert fairbank("project", "create", "chem", "--gid", 7_001).code == 0
        assert fairbank("alloc", "create", "-A", "chem", "-r", "cpu", *terms).code == 0
        for number, cluster in enumerate(("local", "dear"), 1):
            job = (number, "-A", "chem", "-M", cluster, "-p", "cpu", "-u", AYLA, "--tres", "cpu=1")
            made = fairbank("charge", *job, "-S", "now-2hours", "-E", "now-1hours")
            assert made.code == 0, made.err
        hadm = runner(sproject.run, capsys)
        by_user = hadm("allocations", "--by-user", "-P", "-n").out
        document = json.loads(hadm("allocations", "--by-user", "--json").out)
        whole = json.loads(fairbank("report", "centre", "--json").out)["data"][0]
    cells = [line.split("|") for line in sorted(by_user.splitlines())]
    assert [(row[4], row[-1]) for row in cells] == [("cpu@dear", "2"), ("cpu@local", "1")]
    assert document["schema"] == "fairbank.allocation-user/1"  # not the fields of an allocation
    assert {row["resource_name"]: row["charged"] for row in document["data"]} == {
        "cpu@dear": 120,
        "cpu@local": 60,
    }
    assert (whole["several_prices"], whole["used"], whole["display"].get("used")) == (
        True,
        None,
        None,
    )


def test_lists_are_limited_to_a_window_a_number_and_a_category(hadm: Run) -> None:
    window = ("-S", "2026-09-01", "-E", "2026-10-01")
    assert [row["job_id"] for row in rows(hadm, "jobs", *window)] == [701_002, 701_001, 700_003]
    assert [row["job_id"] for row in rows(hadm, "jobs", *window, "--limit", "2")] == [
        701_002,
        701_001,
    ]
    largest = rows(hadm, "jobs", "--sort", "-AMOUNT", "--limit", "1")
    assert [row["job_id"] for row in largest] == [700_003]  # the newest of three
    assert [row["id"] for row in rows(hadm, "allocations", "--limit", "2")] == [1, 2]
    assert "There are more; this shows 2." in hadm("allocations", "--limit", "2").err
    assert rows(hadm, "failures", "-S", "2026-11-22") == []
    for verb in ("projects", "allocations", "jobs", "failures"):
        assert rows(hadm, verb, "--category", "research") == rows(hadm, verb)
        for bad in (("--limit", "-1"), ("--limit", "NaN"), ("--category", "")):
            assert hadm(verb, *bad).code == 2


def test_projects_of_a_category_show_its_balances_only(
    changing: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """chem_qmc has research credit for cpu and gpu, and 30 SU of another category."""
    hadm = runner(sproject.run, capsys)
    terms = ("--start", "2026-01-01", "--end", "2027-01-01", "--amount", 30, "--reason", "x")
    words = ("alloc", "create", "-A", "chem_qmc", "-r", "disk", "--category", "teaching")
    assert changing(*words, *terms).code == 0
    teaching = rows(hadm, "projects", "--category", "teaching", "--detail")
    assert [(row["resource"], row["remaining"]) for row in teaching] == [("disk", 1_800)]
    research = rows(hadm, "projects", "-A", "chem_qmc", "--category", "research", "--detail")
    assert [row["resource"] for row in research] == ["cpu", "gpu"]


@pytest.mark.parametrize("verb", ["projects", "allocations", "jobs", "failures"])
def test_help_of_detail_names_its_columns(hadm: Run, verb: str) -> None:
    _, text, _ = hadm(verb, "--help")
    view = sproject.VIEWS[verb]
    added = [column.head for column in view.columns if column.extra]
    added += [column.head for column in view.detail]
    line = " ".join(text.split("\n  --detail")[1].split("\n  -")[0].split())
    assert line == f"also {', '.join(added[:-1])} and {added[-1]}"
