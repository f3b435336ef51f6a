"""Stories of people who look: what they may see, how they may have it, and the exit codes that scripts live by."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairbank.cli.idle import remarks, same_exit
from fairbank.rest.client import Client
from tests.cli.centre import AYLA, DANA, JORGE, MINH, STRANGER
from tests.cli.conftest import Run, Said
from tests.cli.served import Bank, served
from tests.support.munge import Munged

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
def test_every_list_can_be_had_in_every_form(fairbank: Run, name: str) -> None:
    words = READING[name]
    found = json.loads(fairbank(*words, "--json").out)
    assert found["schema"].startswith("fairbank.")
    assert found["schema"].endswith("/1")
    assert found["data"]
    assert "." not in "".join(str(value) for row in found["data"] for value in row.values() if isinstance(value, float))
    heads = fairbank(*words, "-P", "--helpformat").out.split()
    lines = fairbank(*words, "-P", "-l").out.splitlines()
    assert lines[0].split("|") == heads
    assert {line.count("|") for line in lines} == {len(heads) - 1}
    table = list(csv.reader(io.StringIO(fairbank(*words, "--csv", "-l").out)))
    assert table[0] == fairbank(*words, "--csv", "--helpformat").out.split()
    assert {len(row) for row in table} == {len(heads)}
    assert fairbank(*words, "-P", "-n").out.count("\n") == len(table) - 1
    assert fairbank(*words, "--yaml").out.startswith('schema: "fairbank.')


def test_without_floats_anywhere(fairbank: Run) -> None:
    def refuse(said: str) -> float:
        raise AssertionError(f"a float in JSON: {said}")

    for words in READING.values():
        json.loads(fairbank(*words, "--json").out, parse_float=refuse)


def test_everybody_sees_their_own(fairbank: Run) -> None:
    assert json.loads(fairbank("alloc", "list", "--json", "--as", AYLA).out)["data"][0]["account"] == "chem_qmc"
    assert {row["account"] for row in json.loads(fairbank("balance", "--json", "--as", JORGE).out)["data"]} == {"chem_qmc", "bio_fold"}
    stranger = fairbank("balance", "--as", STRANGER)
    assert (stranger.code, stranger.out) == (0, "")
    assert "no active allocation" in stranger.err
    assert fairbank("statement", "1", "--as", DANA).code == 3


def test_an_account_that_is_none_is_told_with_what_was_meant(fairbank: Run) -> None:
    for words in (["balance"], ["usage"], ["jobs"], ["statement"], ["alloc", "list"]):
        said = fairbank(*words, "-A", "chem_qm", "--as", AYLA)
        assert said.code == 3, words
        assert "did you mean chem_qmc?" in said.err
    assert "did you mean" not in fairbank("balance", "-A", "bio_fold", "--as", AYLA).err  # not hers: no hint that it is there


def test_a_threshold_is_an_exit_code(fairbank: Run) -> None:
    assert fairbank("balance", "-A", "chem_qmc", "-r", "cpu", "--threshold", "59408").code == 0
    short = fairbank("balance", "-A", "chem_qmc", "-r", "cpu", "--threshold", "59409", "-q")
    assert (short.code, short.err) == (5, "")
    assert fairbank("balance", "--threshold", "1", "--as", STRANGER).code == 5


def test_what_i_drew_myself_is_asked_for_only_when_it_is_shown(fairbank: Run, surroundings: pytest.MonkeyPatch) -> None:
    def mine(*words: object) -> list[list[str]]:
        return [line.split("|") for line in fairbank("balance", *words, "-n", "-P", "-o", "ALLOC,MINE").out.splitlines()]

    assert mine("--as", 61_002) == [["3", "0"], ["1", "9000"], ["2", "4000"]]
    surroundings.setenv("COLUMNS", "200")
    assert " MINE\n" in fairbank("balance").out
    surroundings.setenv("COLUMNS", "80")
    assert "MINE" not in fairbank("balance").out
    assert "mine" not in fairbank("balance", "--json").out


def test_a_link_under_a_short_name_is_that_command(bank: Bank, tmp_path: Path) -> None:
    link = tmp_path / "sbalance"
    link.symlink_to(Path(sys.executable).parent / "fairbank")
    environment = {"FAIRBANK_SERVER": bank.unix, "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    done = subprocess.run([str(link), "-n", "-P", "-o", "PROJECT"], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["bio_fold", "chem_qmc", "chem_qmc"]


def test_jobs_that_failed_and_how_long_they_had_waited(fairbank: Run) -> None:
    rows = json.loads(fairbank("jobs", "-a", "--failed", "--json").out)["data"]
    assert [(row["job_id"], row["outcome"], row["waited"]) for row in rows] == [(812_222, "NODE_FAIL", 600), (700_004, "FAILED", 600)]
    one = fairbank("jobs", "-a", "--failed", "--limit", 1, "-n", "-P", "-o", "JOBID,WAITED")
    assert (one.out, "There are more" in one.err) == ("812222|00:10:00\n", True)
    assert fairbank("jobs", "-a", "--failed", "--limit", 2, "-n").err == ""
    assert fairbank("jobs", "--failed", "--running").code == 2


def test_jobs_are_mine_unless_somebody_else_is_named(fairbank: Run) -> None:
    def jobs(*words: object) -> set[int]:
        return {row["job_id"] for row in json.loads(fairbank("jobs", "--json", *words).out)["data"]}

    assert jobs("--as", MINH) == {700_004, 701_002}
    assert jobs("-u", MINH, "--as", AYLA) == {700_004, 701_002}
    assert jobs("--running", "-a") == {812_300, 812_330, 812_344}
    assert jobs("-p", "gpu-v100", "--running", "-a") == {812_330}
    assert jobs("-j", 812_301) == {812_301}
    assert jobs("-a", "-S", "2026-11-21", "-E", "2026-11-21T05:00") == {812_330}
    assert jobs("-a", "--limit", 2) == {812_344, 812_330}
    assert len(jobs("-a", "--limit", 0)) == 12
    assert "There are more" in fairbank("jobs", "-a", "--limit", 2).err


def test_refusals_come_with_what_would_help(fairbank: Run) -> None:
    said = fairbank("jobs", "--refused", "--as", JORGE)
    assert "overdrawn" in said.out
    assert "-A bio_fold (11690 SU available)" in " ".join(said.err.split())
    assert fairbank("jobs", "--refused", "-j", 812_350, "-a").out.count("812350") == 1
    assert "No such job of yours was refused; -a shows all" in fairbank("jobs", "--refused", "--as", DANA).err


def test_a_statement_is_found_by_project_and_resource(fairbank: Run) -> None:
    by_name = fairbank("statement", "-A", "chem_qmc", "-r", "gpu", "-S", "2026-01-01", "--csv")
    assert by_name == fairbank("statement", "2", "-S", "2026-01-01", "--csv")
    several = fairbank("statement", "-A", "chem_qmc")
    assert several.code == 2
    assert "1 (cpu), 2 (gpu)" in several.err
    assert fairbank("statement").code == 2
    assert fairbank("statement", "-A", "chem_qmc", "-r", "storage").code == 3


def test_a_statement_in_pages_is_the_same_statement(fairbank: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = json.loads(fairbank("statement", "1", "-S", "2026-01-01", "--json").out)
    monkeypatch.setattr("fairbank.cli.statement.PAGE", 3)
    monkeypatch.setattr("fairbank.cli.desk.PAGE", 3)
    assert json.loads(fairbank("statement", "1", "-S", "2026-01-01", "--limit", "0", "--json").out) == whole
    few = fairbank("statement", "1", "-S", "2026-01-01", "--limit", "3", "--json")
    assert len(json.loads(few.out)["data"]) == 3
    assert "There are more" in few.err
    assert (json.loads(few.out)["whole"], whole["whole"]) == (False, True)
    assert len(json.loads(fairbank("jobs", "-a", "--limit", "0", "--json").out)["data"]) == 12


def test_a_statement_says_which_moments_its_sums_belong_to(fairbank: Run) -> None:
    part = fairbank("statement", "1", "-S", "2026-07-01", "-E", "2026-09-01")
    assert "(opening): the sums before 2026-07-01 00:00:00. (closing): those before 2026-09-01 00:00:00." in " ".join(part.err.split())
    assert "those of now" in fairbank("statement", "1", "-S", "2026-07-01").err
    few = fairbank("statement", "1", "-S", "2026-07-01", "--limit", "3")
    last = few.out.splitlines()[-1]
    assert last.startswith("(so far)")
    assert "more entries follow" in " ".join(few.err.split())
    assert "(closing)" not in few.out


def test_the_proof_of_a_statement_is_in_figures_that_add_up(fairbank: Run) -> None:
    proof = fairbank("statement", "1", "--units", "k").err.splitlines()[-1]
    assert proof.startswith("ok  used 2174400 + held 261120")
    assert proof.endswith("= granted 6000000 SU-minutes")


def test_a_statement_tells_the_job_and_the_reason_of_a_refusal(fairbank: Run) -> None:
    (row,) = [row for row in json.loads(fairbank("statement", "2", "--json").out)["data"] if row["kind"] == "refusal"]
    assert (row["job_id"], row["cluster"]) == (812_350, "darwin")
    (line,) = [line for line in fairbank("statement", "2", "-l").out.splitlines() if " refusal " in line]
    assert "812350" in line
    assert "there is too little left" in line


def numbers(said: Said) -> list[int]:
    return [row["job_id"] for row in json.loads(said.out)["data"]]


def test_lists_name_several_as_in_slurm(fairbank: Run) -> None:
    assert numbers(fairbank("jobs", "-j", "812301,812344,812301", "--json")) == [812_344, 812_301]
    both, one, other = (numbers(fairbank("jobs", "-u", users, "--limit", "0", "--json")) for users in (f"{AYLA},{MINH}", AYLA, MINH))
    assert sorted(both) == sorted(one + other)
    assert len(numbers(fairbank("jobs", "-u", f"{AYLA},{MINH}", "--limit", "2", "--json"))) == 2
    assert numbers(fairbank("jobs", "--refused", "-j", "1,812350", "--json")) == [812_350]
    balance = json.loads(fairbank("balance", "-A", "bio_fold,chem_qmc", "-r", "gpu", "--json", "--as", JORGE).out)["data"]
    assert [(row["account"], row["resource"]) for row in balance] == [("bio_fold", "gpu"), ("chem_qmc", "gpu")]
    allocations = json.loads(fairbank("alloc", "list", "-r", "gpu,cpu", "--json").out)["data"]
    assert {row["resource"] for row in allocations} == {"cpu", "gpu"}


def test_usage_of_several_is_their_sum(fairbank: Run) -> None:
    def charged(*words: object) -> dict[str, int]:
        rows = json.loads(fairbank("usage", "-S", "2026-01-01", "--by", "month", "--json", *words).out)["data"]
        return {row["group"]: row["charged"] for row in rows}

    both, one, other = charged("-u", f"{AYLA},{MINH}"), charged("-u", AYLA), charged("-u", MINH)
    assert both == {month: one.get(month, 0) + other.get(month, 0) for month in one | other}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["jobs", "-j", "1,,2"], "words with commas between them"),
        (["jobs", "-j", "1,x"], "whole number from 0 on"),
        (["balance", "-A", "chem_qmc,nosuch"], "no project with the account 'nosuch'"),
        (["balance", "-A", "nosuch,chem"], "no project with the account 'nosuch'"),
        (["jobs", "-j", ",".join(map(str, range(300)))], "too many"),
    ],
)
def test_lists_that_are_none(fairbank: Run, words: list[str], said: str) -> None:
    told = fairbank(*words)
    assert (told.code == 0) == (said == "")
    assert said in " ".join(told.err.split())


@pytest.mark.parametrize(
    "command",
    [["balance", "--threshold", "100"], ["usage", "-S", "2026-01-01"], ["alloc", "list"], ["jobs"], ["jobs", "--refused"]],
    ids=" ".join,
)
def test_every_name_of_a_list_is_one_that_the_bank_knows(fairbank: Run, command: list[str]) -> None:
    assert fairbank(*command, "-A", "chem_qmc,bio_fold").code in (0, 5)
    told = fairbank(*command, "-A", "chem_qmc,nosuch")
    assert (told.code, told.out) == (3, "")
    assert "no project with the account 'nosuch'" in " ".join(told.err.split())
    if "jobs" in command:
        return
    assert fairbank(*command, "-r", "cpu,gpu").code in (0, 5)
    for resources in ("bogus", "cpu,bogus"):
        told = fairbank(*command, "-r", resources)
        assert (told.code, told.out) == (3, "")
        assert "there is no resource 'bogus'" in " ".join(told.err.split())
        assert "one of cpu, gpu" in told.err


@pytest.mark.parametrize("spelling", ["-M", "--clusters", "--cluster"])
def test_a_cluster_is_named_in_either_spelling(fairbank: Run, spelling: str) -> None:
    assert len(numbers(fairbank("jobs", "-a", spelling, "darwin", "--json"))) == 12
    unknown = fairbank("jobs", "-a", spelling, "nosuch", "--json")
    assert (unknown.code, "there is no cluster 'nosuch'" in unknown.err) == (3, True)
    assert fairbank("quote", "-A", "chem_qmc", "-p", "idle-std", "-t", "60", spelling, "darwin").code == 0
    assert "--cluster " not in fairbank("jobs", "--help").out


def test_usage_by_anything(fairbank: Run) -> None:
    for by, group in (
        ("user", "61001"),
        ("day", "2026-07-10"),
        ("month", "2026-07"),
        ("partition", "idle-std"),
        ("allocation", "1"),
        ("job", "darwin/"),
        ("qos", "normal"),
    ):
        assert group in fairbank("usage", "-S", "2026-01-01", "--by", by).out
    mine = json.loads(fairbank("usage", "--me", "-S", "2026-01-01", "--json", "--as", MINH).out)["data"]
    assert [(row["group"], row["charged"]) for row in mine] == [(MINH, 9_549 * 60)]


def test_quotes_read_a_batch_script(fairbank: Run, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH -A chem_qmc -p idle-std\n#SBATCH -n 4 -c 2 --mem=64G -t 12:00:00 --exclusive\nsrun x\n")
    said = fairbank("quote", script, "--as", AYLA)
    assert (said.code, "384 SU" in said.out, "enough for what is priced" in said.out) == (1, True, True)
    assert "fits" not in said.out
    assert "not priced: --exclusive (all of each node); the price may be higher" in said.err
    told = json.loads(fairbank("quote", script, "--json", "--as", AYLA).out)
    assert (told["quote"]["fits"], told["not_read"]) == (None, ["--exclusive"])
    assert told["warnings"][-1].startswith("not priced: --exclusive")
    assert fairbank("quote", script, "--tres", "cpu=64", "--as", AYLA).code == 0  # what it holds is said
    longer = fairbank("quote", script, "-t", "100-0", "--as", AYLA)
    assert longer.code == 5
    assert "the longest that fits" in longer.err
    assert fairbank("quote", script, "-A", "bio_fold", "--as", AYLA).code == 3
    assert fairbank("quote", tmp_path / "none").code == 3


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["-p", "idle-std"], "time"),
        (["-t", "1"], "partition"),
        (["-t", "never", "-p", "x"], "field: -t"),
        (["-t", "99999-0", "-p", "x"], "at most 3660-00:00:00"),
        (["-c", "0"], "field: -c"),
    ],
)
def test_a_quote_says_what_it_misses(fairbank: Run, words: list[str], named: str) -> None:
    said = fairbank("quote", "-A", "chem_qmc", *words)
    assert said.code == 2
    assert named in said.err


@pytest.mark.parametrize(
    ("content", "why"), [(b"", "it is empty"), (b"\n  \n", "it is empty"), (b"\x7fELF\2\1\0\0", "it is a binary file")]
)
def test_what_is_no_batch_script_is_not_read_as_one(
    fairbank: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, why: str
) -> None:
    script = tmp_path / "job.sh"
    script.write_bytes(content)
    for name in (script, "-"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))
        said = fairbank("quote", name, "-A", "chem_qmc", "-p", "idle-std", "-t", "60")
        assert (said.code, f"is not a batch script: {why}" in " ".join(said.err.split())) == (2, True)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe"), "utf-8"))
    assert "is not a batch script" in " ".join(fairbank("quote", "-").err.split())


def test_a_price_is_of_one_partition(fairbank: Run) -> None:
    said = fairbank("quote", "-A", "chem_qmc", "-p", "idle-std,gpu-v100", "-t", "60")
    assert (said.code, "one partition only" in said.err, "name one of them: -p idle-std\n" in said.err) == (2, True, True)


def test_the_banks_only_cluster_need_not_be_named(fairbank: Run, surroundings: pytest.MonkeyPatch) -> None:
    surroundings.delenv("FAIRBANK_CLUSTER")
    said = fairbank("quote", "-A", "chem_qmc", "-p", "idle-std", "-t", "60", "--as", AYLA)
    assert (said.code, "darwin/idle-std" in said.out) == (0, True)


def test_a_quote_says_what_it_does_not_price(fairbank: Run) -> None:
    job = ("quote", "-A", "chem_qmc", "-p", "idle-std", "-t", "60", "--as", AYLA, "-q", "hihg", "--tres", "cpu=1,gres/gpu:v100=4")
    said = fairbank(*job).err
    assert "note: QOS hihg has no price factor" in said
    assert "note: gres/gpu:v100: no price in partition idle-std" in said
    assert len(json.loads(fairbank(*job, "--json").out)["warnings"]) == 2


def test_who_pays_is_guessed_only_when_it_is_sure(fairbank: Run, surroundings: pytest.MonkeyPatch) -> None:
    job = ("quote", "-p", "idle-std", "-t", "60")
    assert "chem_qmc/cpu" in fairbank(*job, "--as", AYLA).out
    two = fairbank(*job, "--as", JORGE)
    assert (two.code, "chem_qmc, bio_fold" in two.err) == (2, True)
    surroundings.setenv("SBATCH_ACCOUNT", "chem_qmc")
    assert fairbank(*job, "--as", JORGE).code == 0


def test_the_bank_is_asked_in_as_few_words_as_it_takes(fairbank: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    answer = Client._ask

    def noting(self: Client, method: str, target: str, *rest: object) -> dict[str, object]:
        asked.append(target.partition("?")[0])
        return answer(self, method, target, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Client, "_ask", noting)
    fairbank("balance")
    assert asked == ["/balance"]
    asked.clear()
    fairbank()
    assert asked == ["/whoami", "/balance", "/job", "/failure"]


def test_usual_columns_of_ones_own(fairbank: Run, surroundings: pytest.MonkeyPatch) -> None:
    surroundings.setenv("FAIRBANK_FORMAT_BALANCE", "PROJECT,AVAILABLE%12")
    assert fairbank("balance", "-r", "cpu").out.splitlines()[2:] == ["PROJECT      AVAILABLE", "chem_qmc         59408"]
    assert fairbank("balance", "-P").out.startswith("PROJECT|RESOURCE|GRANTED|")  # scripts get what they always got
    assert fairbank("balance", "-o", "ALLOC", "-n").out.split() == ["3", "1", "2"]


def test_who_is_named_twice_is_counted_once(fairbank: Run) -> None:
    assert numbers(fairbank("jobs", "-u", f"{AYLA},0{AYLA}", "--json")) == numbers(fairbank("jobs", "-u", AYLA, "--json"))
    once, twice = (fairbank("usage", "-u", users, "-S", "2026-01-01", "--csv").out for users in (AYLA, f"{AYLA},0{AYLA}"))
    assert twice == once


def test_refusals_of_one_cluster(fairbank: Run) -> None:
    assert "812350" in fairbank("jobs", "--refused", "-a", "-M", "darwin").out
    assert fairbank("jobs", "--refused", "-a", "-M", "hopper").out == ""
    assert fairbank("jobs", "--refused", "-a", "-p", "gpu-v100").code == 2


def test_status_and_whoami(fairbank: Run, bank: Bank) -> None:
    assert fairbank("status").out.startswith(f"bank ok at {bank.unix}")
    said = fairbank("whoami", "--as", JORGE).out
    assert "61002" in said
    assert "member of chem_qmc, member of bio_fold" in said
    assert json.loads(fairbank("whoami", "--json", "--as", AYLA).out)["data"][0]["roles"] == [{"project": 1, "role": "pi"}]


def test_status_waits_for_a_bank_that_is_about_to_answer(
    fairbank: Run, bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = tmp_path / "late.sock"
    monkeypatch.setattr("fairbank.cli.status.time.sleep", lambda seconds: late.symlink_to(bank.unix.removeprefix("unix:")))
    assert fairbank("status", "--server", f"unix:{late}").code == 6
    assert fairbank("status", "--server", f"unix:{late}", "--wait", "0").code == 6
    assert fairbank("status", "--server", f"unix:{late}", "--wait").out.startswith("bank ok at")


def test_over_the_network_with_a_token(fairbank: Run, bank: Bank, surroundings: pytest.MonkeyPatch) -> None:
    surroundings.setenv("FAIRBANK_TOKEN_FILE", bank.token_file)
    assert "61001" in fairbank("whoami", "--server", bank.http).out
    assert fairbank("balance", "--server", bank.http).out.count("chem_qmc") == 2
    assert "bio_fold" not in fairbank("--server", bank.http).out


def test_over_the_network_with_neither_token_nor_munge(fairbank: Run, bank: Bank, surroundings: pytest.MonkeyPatch) -> None:
    surroundings.setenv("FAIRBANK_LIBMUNGE", "libnosuch.so")
    told = fairbank("balance", "--server", bank.http)
    said = " ".join(told.err.split())
    assert told.code == 6
    assert "field: token_file" in said
    assert "FAIRBANK_TOKEN_FILE; fairbank token create makes one" in said
    assert "install libmunge2" in said


def test_whether_the_bank_answers_is_told_to_anybody(fairbank: Run, bank: Bank, surroundings: pytest.MonkeyPatch) -> None:
    surroundings.setenv("FAIRBANK_LIBMUNGE", "libnosuch.so")
    assert fairbank("status", "--server", bank.http).out.startswith(f"bank ok at {bank.http}")


def test_a_time_that_is_none_is_told_with_the_words_that_commands_take(fairbank: Run) -> None:
    for said in ("yesterday", "25:00", "now+99999999weeks"):
        told = fairbank("usage", "-S", said)
        assert (told.code, "now-7days, today" in " ".join(told.err.split())) == (2, True)


def test_over_the_network_with_munge(fairbank: Run, munged: Munged, surroundings: pytest.MonkeyPatch) -> None:
    surroundings.setenv("FAIRBANK_MUNGE_SOCKET", str(munged.socket))
    surroundings.setenv("FAIRBANK_LIBMUNGE", str(munged.libmunge))
    with served(CENTRE_MUNGE=str(munged.socket), CENTRE_LIBMUNGE=str(munged.libmunge)) as other:
        assert "superuser" in fairbank("whoami", "--server", other.http).out
        surroundings.setenv("FAIRBANK_SERVER_NAME", "another-bank")
        wrong = fairbank("whoami", "--server", other.http)
        assert wrong.code == 4
        assert "server name" in wrong.err


@pytest.mark.parametrize("words", ["usage", "statement 1", "jobs -a", "jobs --refused -a"])
def test_a_period_that_ends_before_it_begins_is_wrong_usage(fairbank: Run, words: str) -> None:
    said = fairbank(*words.split(), "-S", "2026-11-02", "-E", "2026-11-01")
    assert said.code == 2
    assert "ends before it begins" in said.err
    assert "  field: -S\n  try: exchange -S and -E\n" in said.err
    assert fairbank(*words.split(), "-S", "tomorrow", "-E", "now-1days").code == 2
    assert fairbank(*words.split(), "-S", "2026-11-01", "-E", "2026-11-01").code == 0


@pytest.mark.parametrize("words", ["usage", "statement 1"])
def test_a_period_of_which_only_the_end_is_said_tells_where_it_begins(fairbank: Run, words: str) -> None:
    said = fairbank(*words.split(), "--endtime", "2026-01-01")
    assert said.code == 2
    assert "(usual: from now-30days on)" in " ".join(said.err.split())
    assert "  field: --endtime\n  try: say where it begins: -S\n" in said.err


def test_jobs_are_told_by_name_size_limit_and_exit(fairbank: Run) -> None:
    columns = "NAME,LIMIT,NODES,QOS,TRES,EXIT"
    said = fairbank("jobs", "-a", "-j", "700004,812300", "-n", "-P", "-o", columns).out.splitlines()
    assert said == ["relax_w64|1-07:00:00|2|normal|cpu=128,mem=512G,node=2|", "=fit|12:00:00|12|normal|cpu=744,mem=2976G,node=12|127:0"]
    (name, *_), *_ = csv.reader(io.StringIO(fairbank("jobs", "-a", "-j", "700004", "-n", "--csv", "-o", columns).out))
    assert name == "'=fit"  # no formula for a spreadsheet


def test_usage_tells_who_lets_processors_idle_and_how_long_jobs_waited(fairbank: Run) -> None:
    query = ("usage", "-S", "2026-01-01", "-n", "-P", "-o", "USER,EFF%,WASTED,AVG-WAIT")
    assert fairbank(*query, "-u", MINH).out == f"{MINH}|12%|8403.12|00:10:00\n"
    assert fairbank(*query, "-u", DANA).out == f"{DANA}|||00:10:00\n"
    table = fairbank("usage", "-S", "2026-01-01", "-u", f"{MINH},{DANA}")
    assert [line.split()[-2:] for line in table.out.splitlines() if line.startswith("61")] == [["!", "8403.12"], ["-", "-"]]
    assert "WASTED = charged but idle" in table.err
    assert "WASTED" not in fairbank("usage", "-S", "2026-01-01", "-u", DANA).err


def test_users_most_of_whose_jobs_fail_early_are_told_of() -> None:
    row = {"name": "minh", "runs": 9, "failed_early": 7, "early_exit_code": 127, "cpu_given": 0}
    assert remarks([row], "user") == [
        "minh: 7 of 9 jobs failed within 2 minutes of start (exit 127): fairbank jobs -u minh --failed",
    ]
    assert "exit" not in remarks([{**row, "early_exit_code": None}], "user")[0]
    assert remarks([{**row, "failed_early": 4}], "user") == remarks([{**row, "runs": 2, "failed_early": 2}], "user") == []
    assert remarks([{**row, "name": "2026-11"}], "month") == []


def test_exits_of_several_answers_are_one_only_if_they_are_the_same() -> None:
    none, not_found, killed = ({"failed_early": n, "early_exit_code": code} for n, code in ((0, None), (2, 127), (1, 9)))
    assert [same_exit(none, not_found), same_exit(not_found, not_found), same_exit(not_found, killed), same_exit(none, none)] == [
        *(127, 127),
        *(None, None),
    ]
