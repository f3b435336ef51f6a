"""Lists: visibility, output formats, and the exit codes that scripts depend on."""

from __future__ import annotations

import csv
import io
import json

import pytest

from fairbank.cli import main
from tests.cli.conftest import Run, heads, runner
from tests.cli.output_values import fold, job_numbers
from tests.cli.served_site import serve_site
from tests.cli.site import AYLA, DANA, JORGE, MINH, STRANGER
from tests.support.json_schemas import schema_file

READING = {
    "balance": ["balance"],
    "usage": ["usage", "-S", "2026-01-01"],
    "statement": ["statement", "1", "-S", "2026-01-01"],
    "jobs": ["jobs", "-a"],
    "refused": ["jobs", "--refused", "-a"],
    "alloc": ["alloc", "list"],
    "users": ["alloc", "users", "2"],
    "projects": ["project", "list"],
    "members": ["project", "show", "chem_qmc"],
    "quote": ["quote", "-A", "chem_qmc", "-p", "idle-std", "-t", "60"],
    "whoami": ["whoami"],
    "tokens": ["token", "list", "-u", str(AYLA)],
}


@pytest.mark.parametrize("name", READING)
def test_every_list_has_every_format(fairbank: Run, name: str) -> None:
    words = READING[name]
    data = json.loads(fairbank(*words, "--json").out)
    assert schema_file(data["schema"]).exists()
    there = heads(fairbank(*words, "-P", "--helpformat"))
    lines = fairbank(*words, "-P", "-l").out.splitlines()
    assert lines[0].split("|") == there
    assert {line.count("|") for line in lines} == {len(there) - 1}
    table = list(csv.reader(io.StringIO(fairbank(*words, "--csv", "-l").out)))
    assert table[0] == heads(fairbank(*words, "--csv", "--helpformat"))
    assert {len(row) for row in table} == {len(there)}
    assert fairbank(*words, "-P", "--noheader", "-l").out.count("\n") == len(table) - 1


def test_json_has_no_floats(fairbank: Run) -> None:
    def refuse(message: str) -> float:
        raise AssertionError(f"a float in JSON: {message}")

    for words in READING.values():
        json.loads(fairbank(*words, "--json").out, parse_float=refuse)


def test_users_see_their_own_jobs(fairbank: Run) -> None:
    assert (
        json.loads(fairbank("alloc", "list", "--json", "--as", AYLA).out)["data"][0]["account"]
        == "chem_qmc"
    )
    assert {
        row["account"]
        for row in json.loads(fairbank("balance", "--json", "--as", JORGE).out)["data"]
    } == {"chem_qmc", "bio_fold"}
    stranger = fairbank("balance", "--as", STRANGER)
    assert (stranger.code, stranger.out) == (0, "")
    assert "There is no allocation that you may see." in stranger.err
    assert fairbank("statement", "1", "--as", DANA).code == 3


def test_empty_list_names_its_bank(fairbank: Run) -> None:
    for words in (["balance"], ["jobs"], ["jobs", "--refused"], ["alloc", "list"], ["usage"]):
        empty = fairbank(*words, "--as", STRANGER)
        assert (empty.code, empty.out) == (0, ""), words
        assert "   bank fairbank" in empty.err, words


def test_unknown_account_gets_a_suggestion(fairbank: Run) -> None:
    for words in (["balance"], ["usage"], ["jobs"], ["statement"], ["alloc", "list"]):
        result = fairbank(*words, "-A", "chem_qm", "--as", AYLA)
        assert result.code == 3, words
        assert "did you mean chem_qmc?" in result.err
    assert (
        "did you mean" not in fairbank("balance", "-A", "bio_fold", "--as", AYLA).err
    )  # not visible to her: no hint that it exists


def test_threshold_sets_the_exit_code(fairbank: Run) -> None:
    assert fairbank("balance", "-A", "chem_qmc", "-r", "cpu", "--threshold", "59408").code == 0
    short = fairbank("balance", "-A", "chem_qmc", "-r", "cpu", "--threshold", "59409", "-q")
    assert (short.code, short.err) == (5, "")
    assert fairbank("balance", "--threshold", "1", "--as", STRANGER).code == 5


def test_own_usage_is_requested_only_if_its_column_is_shown(
    fairbank: Run, clean_env: pytest.MonkeyPatch
) -> None:
    def mine(*words: object) -> list[list[str]]:
        return [
            line.split("|")
            for line in fairbank("balance", *words, "-n", "-P", "-o", "ALLOC,MINE").out.splitlines()
        ]

    assert mine("--as", 61_002) == [["3", "0"], ["1", "9000"], ["2", "4000"]]
    clean_env.setenv("COLUMNS", "200")
    assert " MINE\n" in fairbank("balance").out
    clean_env.setenv("COLUMNS", "80")
    assert "MINE" not in fairbank("balance").out
    assert "mine" not in fairbank("balance", "--json").out


def test_list_options_accept_several_values(fairbank: Run) -> None:
    assert job_numbers(fairbank("jobs", "-j", "812301,812344,812301", "--json")) == [
        812_344,
        812_301,
    ]
    both, first, second = (
        job_numbers(fairbank("jobs", "-u", users, "--limit", "all", "--json"))
        for users in (f"{AYLA},{MINH}", AYLA, MINH)
    )
    assert sorted(both) == sorted(first + second)
    assert len(job_numbers(fairbank("jobs", "-u", f"{AYLA},{MINH}", "--limit", "2", "--json"))) == 2
    assert job_numbers(fairbank("jobs", "--refused", "-j", "1,812350", "--json")) == [812_350]
    balance = json.loads(
        fairbank("balance", "-A", "bio_fold,chem_qmc", "-r", "gpu", "--json", "--as", JORGE).out
    )["data"]
    assert [(row["account"], row["resource"]) for row in balance] == [
        ("bio_fold", "gpu"),
        ("chem_qmc", "gpu"),
    ]
    allocations = json.loads(fairbank("alloc", "list", "-r", "gpu,cpu", "--json").out)["data"]
    assert {row["resource"] for row in allocations} == {"cpu", "gpu"}


MANY = ",".join(map(str, range(1, 300)))


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["jobs", "-j", "1,,2"], 2, "words with commas between them"),
        (["jobs", "-j", "1,x"], 2, "whole number from 1 on"),
        (["jobs", "-j", "0"], 2, "whole number from 1 on"),
        (["jobs", "-j", "4294967296"], 2, "at most 4294967295"),
        (["balance", "-A", "chem_qmc,nosuch"], 3, "no project with the account 'nosuch'"),
        (["balance", "-A", "nosuch,chem"], 3, "no project with the account 'nosuch'"),
        (["jobs", "-j", MANY], 2, "299 requests for the listed values are too many field: -j"),
        (["jobs", "--jobs", MANY], 2, "field: --jobs try: name fewer at a time"),
        (["jobs", "-u", MANY], 2, "field: -u"),
        (
            ["usage", "-u", MANY],
            2,
            "owner_uid is given 299 times field: -u try: give it at most 200 times",
        ),
        (["balance", "-A", MANY], 2, "field: -A"),
    ],
)
def test_invalid_list_is_reported(fairbank: Run, words: list[str], code: int, message: str) -> None:
    result = fairbank(*words)
    assert (result.code, result.out) == (code, "")
    assert message in " ".join(result.err.split())


@pytest.mark.parametrize(
    "command",
    [
        ["balance", "--threshold", "100"],
        ["usage", "-S", "2026-01-01"],
        ["alloc", "list"],
        ["jobs"],
        ["jobs", "--refused"],
    ],
    ids=" ".join,
)
def test_unknown_name_in_a_list_is_reported(fairbank: Run, command: list[str]) -> None:
    assert fairbank(*command, "-A", "chem_qmc,bio_fold").code in (0, 5)
    result = fairbank(*command, "-A", "chem_qmc,nosuch")
    assert (result.code, result.out) == (3, "")
    assert "no project with the account 'nosuch'" in " ".join(result.err.split())
    if "jobs" in command:
        return
    assert fairbank(*command, "-r", "cpu,gpu").code in (0, 5)
    for resources in ("bogus", "cpu,bogus"):
        result = fairbank(*command, "-r", resources)
        assert (result.code, result.out) == (3, "")
        assert "there is no resource 'bogus'" in " ".join(result.err.split())
        assert "one of cpu, debug, gpu" in result.err


@pytest.mark.parametrize("spelling", ["-M", "--clusters", "--cluster"])
def test_cluster_option_has_several_spellings(fairbank: Run, spelling: str) -> None:
    assert len(job_numbers(fairbank("jobs", "-a", spelling, "darwin", "--json"))) == 12
    unknown = fairbank("jobs", "-a", spelling, "nosuch", "--json")
    assert (unknown.code, "there is no cluster 'nosuch'" in unknown.err) == (3, True)
    assert (
        fairbank("quote", "-A", "chem_qmc", "-p", "idle-std", "-t", "60", spelling, "darwin").code
        == 0
    )
    assert "--cluster " not in fairbank("jobs", "--help").out


def test_default_columns_can_be_configured(fairbank: Run, clean_env: pytest.MonkeyPatch) -> None:
    clean_env.setenv("FAIRBANK_FORMAT_BALANCE", "PROJECT,AVAILABLE%12")
    assert fairbank("balance", "-r", "cpu").out.splitlines()[2:] == [
        "PROJECT      AVAILABLE",
        "chem_qmc         59408",
    ]
    assert fairbank("balance", "-P").out.startswith(
        "PROJECT|RESOURCE|STATE|GRANTED|"
    )  # scripts keep the same columns
    assert fairbank("balance", "-o", "ALLOC", "-n").out.split() == ["3", "1", "2"]


def test_user_named_twice_is_counted_once(fairbank: Run) -> None:
    assert job_numbers(fairbank("jobs", "-u", f"{AYLA},0{AYLA}", "--json")) == job_numbers(
        fairbank("jobs", "-u", AYLA, "--json")
    )
    once, twice = (
        fairbank("usage", "-u", users, "-S", "2026-01-01", "--csv").out
        for users in (AYLA, f"{AYLA},0{AYLA}")
    )
    assert twice == once


@pytest.mark.parametrize(
    ("command", "option", "message"),
    [
        ("project list", "-A", "you have no project with the account 'nope'"),
        ("project list", "-g", "you have no project with the group 'nope'"),
        ("alloc list", "-g", "you have no project with the group 'nope'"),
        ("alloc list", "--category", "there is no category 'nope' that you may see"),
        ("eff 700004", "-M", "there is no cluster 'nope' that you may see"),
        ("jobs -a", "-p", "there is no partition 'nope' that you may see"),
        ("usage", "-u", "there is no user 'nope' on this host"),
    ],
)
def test_unknown_name_in_a_filter_is_refused(
    fairbank: Run, command: str, option: str, message: str
) -> None:
    result = fairbank(*command.split(), option, "nope")
    assert (result.code, result.out) == (3, "")
    assert message in fold(result.err)


def test_configured_category_without_allocations_has_an_empty_list(
    clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve_site(SITE_CATEGORIES="research startup") as bank:
        clean_env.setenv("FAIRBANK_SERVER", bank.unix)
        fairbank = runner(main.run, capsys)
        startup = ("alloc", "list", "--category", "startup")
        table = fairbank(*startup, "--csv")
        assert (table.code, len(table.out.splitlines())) == (0, 1)
        assert json.loads(fairbank(*startup, "--json", "--as", AYLA).out)["data"] == []
        result = fairbank("alloc", "list", "--category", "nope", "--csv")
        assert (result.code, result.out) == (3, "")
        assert "one of research, startup" in fold(result.err)


@pytest.mark.parametrize("command", ["usage", "jobs", "jobs --refused"])
def test_unknown_allocation_in_a_filter_is_refused(fairbank: Run, command: str) -> None:
    result = fairbank(*command.split(), "--alloc", "4711")
    assert (result.code, result.out) == (3, "")
    assert "there is no allocation 4711 that you may see" in fold(result.err)
    assert fairbank(*command.split(), "--alloc", "1").code == 0
