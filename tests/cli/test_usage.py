"""Usage by any column, over a period, with its notes."""

from __future__ import annotations

import csv
import json
import time

import pytest

from fairbank.cli.commands.bank.usage import remarks, same_exit
from tests.cli.conftest import Run
from tests.cli.site import AYLA, DANA, MINH


def test_usage_of_several_users_is_their_sum(fairbank: Run) -> None:
    def charged(*words: object) -> dict[str, int]:
        rows = json.loads(
            fairbank("usage", "-S", "2026-01-01", "--by", "month", "--json", *words).out
        )["data"]
        return {row["group"]: row["charged"] for row in rows}

    both, first, second = charged("-u", f"{AYLA},{MINH}"), charged("-u", AYLA), charged("-u", MINH)
    assert both == {month: first.get(month, 0) + second.get(month, 0) for month in first | second}


def test_usage_by_anything(fairbank: Run) -> None:
    for by, group in (
        ("user", "61001"),
        ("day", "2026-07-10"),
        ("month", "2026-07"),
        ("partition", "idle-std"),
        ("allocation", "1"),
        ("job", "darwin/812301"),
        ("qos", "normal"),
    ):
        rows = json.loads(fairbank("usage", "-S", "2026-01-01", "--by", by, "--json").out)["data"]
        assert group in {str(row["group"]) for row in rows}, [row["group"] for row in rows]
    mine = json.loads(fairbank("usage", "--me", "-S", "2026-01-01", "--json", "--as", MINH).out)[
        "data"
    ]
    assert [(row["group"], row["charged"]) for row in mine] == [(MINH, 9_549 * 60)]


def test_invalid_time_is_reported_with_valid_examples(fairbank: Run) -> None:
    for time_text, words in (
        ("yesterday", "now-7days, today"),
        ("25:00", "now-7days, today"),
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
    assert fairbank(*query, "-u", MINH).out == f"{MINH}|12%|8403.11|00:10:00\n"
    assert fairbank(*query, "-u", DANA).out == f"{DANA}|||00:10:00\n"
    table = fairbank("usage", "-S", "2026-01-01", "-u", f"{MINH},{DANA}")
    assert [line.split()[-2:] for line in table.out.splitlines() if line.startswith("61")] == [
        ["!", "8403.11"],
        ["-", "-"],
    ]
    assert "WASTED = charged but idle" in table.err
    assert "WASTED" not in fairbank("usage", "-S", "2026-01-01", "-u", DANA).err


def test_users_with_many_early_failures_are_reported() -> None:
    row = {"name": "minh", "runs": 9, "failed_early": 7, "early_exit_code": 127, "cpu_given": 0}
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


def test_exit_code_is_shown_only_if_all_are_equal() -> None:
    none, not_found, killed = (
        {"failed_early": n, "early_exit_code": code} for n, code in ((0, None), (2, 127), (1, 9))
    )
    assert [
        same_exit(none, not_found),
        same_exit(not_found, not_found),
        same_exit(not_found, killed),
        same_exit(none, none),
    ] == [*(127, 127), *(None, None)]


@pytest.mark.parametrize("zone", ["Europe/Rome", "America/New_York", "Australia/Sydney", "UTC"])
def test_months_of_usage_lie_in_the_period_in_every_zone(
    fairbank: Run, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        words = ("usage", "-S", "2026-07-01", "-E", "2026-08-01", "--by", "month", "--json")
        answer = json.loads(fairbank(*words).out)
        in_utc = json.loads(fairbank(*words, "--utc").out)
        as_csv = fairbank(*words[:-1], "--csv").out
        parsable = fairbank(*words[:-1], "-P", "-o", "month,zone").out
    finally:
        monkeypatch.undo()
        time.tzset()
    assert ([row["group"] for row in answer["data"]], answer["zone"]) == (["2026-07"], zone)
    assert in_utc["zone"] == "UTC"
    assert [row["ZONE"] for row in csv.DictReader(as_csv.splitlines())] == [zone]
    assert parsable == f"MONTH|ZONE\n2026-07|{zone}\n"
