"""Usage by any column, over a period, with its notes."""

from __future__ import annotations

import csv
import json
import time

import pytest

from fairbank.cli.commands.bank.usage import remarks
from fairbank.core.time import DAY, parse_instant
from fairbank.report.usage import permille
from tests.cli.conftest import Run
from tests.cli.site import AYLA, DANA, JORGE, MINH


def test_usage_of_several_users_is_their_sum(fairbank: Run) -> None:
    def charged(*words: object) -> dict[str, int]:
        rows = json.loads(
            fairbank("usage", "-S", "2026-01-01", "--by", "month", "--json", *words).out
        )["data"]
        return {f"{row['group']} {row['resource_name']}": row["charged"] for row in rows}

    both, first, second = charged("-u", f"{AYLA},{MINH}"), charged("-u", AYLA), charged("-u", MINH)
    assert both == {month: first.get(month, 0) + second.get(month, 0) for month in first | second}


@pytest.mark.parametrize("command", [("usage",), ("report", "centre")])
def test_answer_names_its_period(fairbank: Run, command: tuple[str, ...]) -> None:
    """Without -S it begins 30 days ago: of usage by the clock of this host, else by the bank's."""

    def named(*words: str) -> tuple[int, str]:
        document = json.loads(fairbank(*command, *words, "--json").out)
        period = document["totals"] if command == ("report", "centre") else document
        return parse_instant(period["since"]), period["until"]

    september = ("-S", "2026-09-01", "-E", "2026-10-01")
    assert named(*september) == (parse_instant("2026-09-01T04:00Z"), "2026-10-01T04:00:00Z")
    period = "2026-09-01 00:00:00 .. 2026-10-01 00:00:00"
    assert fairbank(*command, *september).out.splitlines()[1] == period
    before = int(time.time())
    since, until = named()
    # What ended in this second counts as used.
    assert until == "2026-11-21T12:30:13Z"
    if command == ("usage",):
        assert before <= since + 30 * DAY <= int(time.time())
    else:
        assert since + 30 * DAY == parse_instant(until)


def test_usage_by_anything(fairbank: Run) -> None:
    for by, group in (
        ("user", "61001"),
        ("day", "2026-07-10"),
        ("month", "2026-07"),
        ("partition", "idle-std"),
        ("allocation", "1"),
        ("project", "chem_qmc"),
        ("resource", "gpu"),
        ("cluster", "darwin"),
        ("category", "research"),
        ("week", "2026-W28"),
        ("job", "darwin/812301"),
        ("qos", "normal"),
    ):
        rows = json.loads(fairbank("usage", "-S", "2026-01-01", "--by", by, "--json").out)["data"]
        assert group in {str(row["group"]) for row in rows}, [row["group"] for row in rows]
    mine = json.loads(fairbank("usage", "--me", "-S", "2026-01-01", "--json", "--as", MINH).out)[
        "data"
    ]
    assert [(row["group"], row["resource_name"], row["charged"]) for row in mine] == [
        (MINH, "cpu", 8_939 * 60),
        (MINH, "gpu", 610 * 60),
    ]


STORY = """
cpu: ayla 9,000 in July, 9,000 in August and 301 in November; jorge 9,000 in September; minh 8,939
in October. jorge's 120 of November were refunded.       18,301 + 9,000 + 8,939 = 36,240
gpu: jorge 4,000, minh 610 (both chem_qmc), dana 310 (bio_fold).   4,000 + 610 + 310 = 4,920
"""


def test_usage_of_two_resources_has_two_totals(fairbank: Run) -> None:
    """The rows are those of STORY; 36,240 SU of CPUs and 4,920 of GPUs are never added."""
    query = ("usage", "-S", "2026-01-01", "-o", "USER,RESOURCE,JOBS,SU,SHARE%")
    lines = [" ".join(line.split()) for line in fairbank(*query).out.splitlines()[3:]]
    assert [line.rstrip("# ") for line in lines] == [
        "USER RESOURCE JOBS SU SHARE%",
        f"{AYLA} cpu 3 18301 50.5%",
        f"{JORGE} cpu 2 9000 24.8%",
        f"{MINH} cpu 1 8939 24.7%",
        f"{JORGE} gpu 1 4000 81.3%",
        f"{MINH} gpu 1 610 12.4%",
        f"{DANA} gpu 1 310 6.3%",
        "TOTAL cpu 6 36240 100.0%",
        "TOTAL gpu 3 4920 100.0%",
    ]
    assert "SU of cpu and gpu cannot be added." in fairbank(*query).err
    assert "cannot be added" not in fairbank(*query, "-r", "cpu").err
    answer = json.loads(fairbank(*query, "--json").out)
    assert [(row["resource_name"], row["charged"]) for row in answer["totals"]] == [
        ("cpu", 36_240 * 60),
        ("gpu", 4_920 * 60),
    ]


def test_limit_shows_the_largest_rows_and_sums_up_the_others(fairbank: Run) -> None:
    query = ("usage", "-S", "2026-01-01", "-n", "-P", "-o", "RESOURCE,SU,SHARE%")
    assert fairbank(*query, "--by", "user", "--limit", "1", "-o", "+USER").code == 0
    first = f"USER,{query[-1]}"
    assert fairbank(*query[:-1], first, "--limit", "1").out.splitlines() == [
        f"{AYLA}|cpu|18301|50.5%",
        "(others)|cpu|17939|49.5%",
        f"{JORGE}|gpu|4000|81.3%",
        "(others)|gpu|920|18.7%",
    ]
    # Two projects are two requests: the rows are added before the largest are chosen.
    both = (*query[:-1], first, "--limit", "1", "-A", "chem_qmc,bio_fold", "-r", "gpu")
    assert fairbank(*both).out.splitlines() == [f"{JORGE}|gpu|4000|81.3%", "(others)|gpu|920|18.7%"]
    # Of months the latest ones are shown.
    months = (*query[:-1], "MONTH,SU", "--by", "month", "-r", "cpu", "--limit", "2")
    assert fairbank(*months).out.splitlines() == ["2026-10|8939", "2026-11|301", "(others)|27000"]


@pytest.mark.parametrize(
    "words", ["--limit -1", "--limit NaN", "--limit 1e3", f"--limit {'9' * 20}", "--by colour"]
)
def test_invalid_option_of_usage_is_refused(fairbank: Run, words: str) -> None:
    result = fairbank("usage", *words.split())
    assert (result.code, result.out) == (2, "")
    assert words.split()[0] in result.err


def test_percentages_add_up() -> None:
    assert permille([1, 1, 1], 3) == [334, 333, 333]
    assert permille([2, 1, 0], 3) == [667, 333, 0]
    assert permille([], 0) == []
    assert permille([0, 0], 0) == [0, 0]


def test_invalid_time_is_reported_with_valid_examples(fairbank: Run) -> None:
    for time_text, words in (
        ("yesterday", "now-7days, now+1year, today"),
        ("25:00", "now-7days, now+1year, today"),
        ("now+99999999weeks", "the years 1970 to 9999"),
    ):
        result = fairbank("usage", "-S", time_text)
        assert (result.code, words in " ".join(result.err.split())) == (2, True)


@pytest.mark.parametrize("words", ["usage", "statement 1", "jobs -a", "jobs --refused -a"])
def test_period_that_ends_before_it_begins_is_refused(fairbank: Run, words: str) -> None:
    result = fairbank(*words.split(), "-S", "2026-11-02", "-E", "2026-11-01")
    assert result.code == 2
    assert "ends before it begins" in result.err
    assert "  field: -S\n  try: exchange -S and -E\n" in result.err
    assert fairbank(*words.split(), "-S", "tomorrow", "-E", "now-1days").code == 2
    assert fairbank(*words.split(), "-S", "2026-11-01", "-E", "2026-11-01").code == 0


@pytest.mark.parametrize("words", ["usage", "statement 1"])
def test_period_without_a_start_is_refused_with_the_default(fairbank: Run, words: str) -> None:
    result = fairbank(*words.split(), "--endtime", "2026-01-01")
    assert result.code == 2
    assert "(default: from now-30days on)" in " ".join(result.err.split())
    assert "  field: --endtime\n  try: name its start with -S\n" in result.err


def test_usage_reports_idle_processors_and_waiting_times(fairbank: Run) -> None:
    query = ("usage", "-S", "2026-01-01", "-n", "-P", "-o", "USER,EFF%,WASTED,AVG-WAIT")
    # 12 % used of 8,939 SU on CPUs: 88 % idle are 7,866.32. Of 610 on GPUs: 536.80.
    assert fairbank(*query, "-u", MINH).out.splitlines() == [
        f"{MINH}|12%|7866.32|00:10:00",
        f"{MINH}|12%|536.80|00:10:00",
    ]
    assert fairbank(*query, "-u", DANA).out == f"{DANA}|||00:10:00\n"
    table = fairbank("usage", "-S", "2026-01-01", "-u", f"{MINH},{DANA}", "-r", "gpu")
    assert [line.split()[-2:] for line in table.out.splitlines() if line.startswith("61")] == [
        ["12%", "536.80"],
        ["-", "-"],
    ]
    assert "WASTED = charged but idle" in table.err
    assert "WASTED" not in fairbank("usage", "-S", "2026-01-01", "-u", DANA).err


def test_users_with_many_early_failures_are_reported() -> None:
    row: dict[str, object] = {
        "name": "minh",
        "runs": 9,
        "failed_early": 7,
        "early_exit_code": 127,
        "cpu_given": 0,
    }
    row |= {"group": 61_003, "resource_name": "cpu"}
    assert remarks([row], "user") == [
        "minh: 7 of 9 jobs failed within 2 minutes of start (exit 127): fairbank jobs -u minh"
        " --failed"
    ]
    assert "exit" not in remarks([{**row, "early_exit_code": None}], "user")[0]
    assert (
        remarks([{**row, "failed_early": 4}], "user")
        == remarks([{**row, "runs": 2, "failed_early": 2}], "user")
        == []
    )
    assert remarks([{**row, "name": "2026-11"}], "month") == []


@pytest.mark.parametrize(
    ("zone", "day"),
    [("Europe/Rome", 10), ("America/New_York", 10), ("Australia/Sydney", 11), ("UTC", 10)],
)
def test_months_and_days_of_usage_lie_in_the_period_in_every_zone(
    fairbank: Run, monkeypatch: pytest.MonkeyPatch, zone: str, day: int
) -> None:
    """The only job of July ended at 20:00 UTC, when the next day had begun in Sydney."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        words = ("usage", "-S", "2026-07-01", "-E", "2026-08-01", "--by", "month", "--json")
        answer = json.loads(fairbank(*words).out)
        in_utc = json.loads(fairbank(*words, "--utc").out)
        as_csv = fairbank(*words[:-1], "--csv").out
        parsable = fairbank(*words[:-1], "-P", "-o", "month,zone").out
        period = ("-S", f"2026-07-{day}", "-E", f"2026-07-{day + 1}")
        days = fairbank("usage", *period, "--by", "day", "-P", "-o", "day").out
    finally:
        monkeypatch.undo()
        time.tzset()
    assert ([row["group"] for row in answer["data"]], answer["zone"]) == (["2026-07"], zone)
    assert in_utc["zone"] == "UTC"
    assert [row["ZONE"] for row in csv.DictReader(as_csv.splitlines())] == [zone]
    assert parsable == f"MONTH|ZONE\n2026-07|{zone}\n"
    assert days == f"DAY\n2026-07-{day}\n"


@pytest.mark.parametrize(
    ("unit", "header"),
    [("h", "SU"), ("m", "SU (SU-minutes)"), ("k", "SU (thousand SU)"), ("M", "SU (million SU)")],
)
def test_lines_for_programs_name_the_unit_of_their_amounts(
    fairbank: Run, unit: str, header: str
) -> None:
    """A million SU is shown with two decimals, so the exact minutes stand beside it in CSV."""
    words = ("usage", "-S", "2026-01-01", "--units", unit)
    (first, *_) = csv.DictReader(fairbank(*words, "--csv").out.splitlines())
    assert (header in first, int(first["SU-MINUTES"]) > 0) == (True, True)
    assert header in fairbank(*words, "-P").out.splitlines()[0].split("|")


def test_units_that_cannot_be_added_are_named_with_the_reason() -> None:
    """Two prices of one resource make two units, as two resources do."""
    names = ("cpu@alpha", "cpu@beta", "debug")
    rows = [{"resource_name": name, "cpu_given": 0} for name in names]
    assert remarks(rows, "project") == [
        "SU of cpu@alpha, cpu@beta and debug cannot be added: the clusters have different prices of"
        " cpu."
    ]
    assert remarks(rows[2:], "project") == []
