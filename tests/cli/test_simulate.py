"""`fairbank simulate`: the table that people see, the figures that programs read, what is left out, and what cannot be."""

from __future__ import annotations

import gzip
import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from fairbank.compose import Works
from fairbank.simulator.centre import Centre, Pool
from fairbank.simulator.job_line import SwfJob
from fairbank.simulator.swf import read, write
from fairbank.simulator.workload import month
from fairbank.values.time import iso, show_duration
from tests.cli.conftest import Run, Said

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "simulate"
HEAD = "; MaxProcs: 8\n"
STORIES = {
    "two-policies": "simulate week.swf --policy fcfs --policy easy",
    "all-policies": "simulate week.swf --policy fifo --policy fcfs --policy easy --policy conservative --policy slurm",
    "policy-files": "simulate week.swf --policy slurm --policy fairer.toml --policy calm.toml",
    "bank": "simulate week.swf --policy easy --policy slurm --grant 70 --periods 3",
    "bank-last": "simulate week.swf --policy easy --policy credit.toml --grant 70 --periods 3 --unpaid last --staggered",
    "shares-and-fair-starts": "simulate week.swf --shares shares.csv --by group --fair-starts 5",
    "parsable": "simulate week.swf --policy easy --policy fcfs -P",
    "json": "simulate week.swf --shares shares.csv --by group --json",
    "dirt": "simulate dirt.swf",
    "accounting": "simulate sacct.txt --procs 8 --shares accounts.csv --by group",
}


@pytest.fixture
def ask(fairbank: Run, surroundings: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """A folder with a week of work on 32 processors, and one with every kind of dirt."""
    surroundings.chdir(tmp_path)
    centre = Centre(pools=(Pool("cpu", 32),), projects=3, users=6, jobs=150, days=4, node_failures=0)
    (tmp_path / "week.swf").write_text("".join(write(*month(centre, seed=5))))
    (tmp_path / "shares.csv").write_text("account,shares\n1,50\n2,30\n3,20\n")
    (tmp_path / "dirt.swf").write_text(HEAD + "".join(DIRT))
    (tmp_path / "fairer.toml").write_text(FAIRER)
    (tmp_path / "credit.toml").write_text('base = "slurm"\n[site_factor]\nweight = 20000\n')
    (tmp_path / "calm.toml").write_text('base = "easy"\n')
    (tmp_path / "sacct.txt").write_text(ACCOUNTING)
    (tmp_path / "accounts.csv").write_text("account,shares\nastro,60\nbio,40\n")

    def call(words: str) -> Said:
        return fairbank(*words.split(), works=Works())

    return call


def line(number: int, submit: int = 0, run: int = 10, given: int = -1, wanted: int = 1, limit: int = 20, status: int = 1) -> str:
    return f"{number} {submit} -1 {run} {given} -1 -1 {wanted} {limit} -1 {status} 7 7 -1 1 1 -1 -1\n"


DIRT = (
    line(1),
    line(2, run=-1),
    line(3, given=-1, wanted=-1),
    line(4, given=3, wanted=-1),
    line(5, wanted=9),
    line(6, status=2),
    line(7, run=0),
    line(8, limit=-1),
    line(9, run=30),
)


FAIRER = """
base = "slurm"

[scheduler]
bf_interval = 300
bf_max_job_user = 2

[priority]
half_life = "1-0"
fair_share = "classic"

[priority.weights]
fairshare = 100000
"""


ACCOUNTING = """\
JobID|Submit|Start|End|Elapsed|State|User|Account|Timelimit|AllocCPUS|Suspended
1|2026-11-21T08:00:00|2026-11-21T08:00:00|2026-11-21T09:00:00|01:00:00|COMPLETED|alice|astro|02:00:00|4|00:00:00
1.batch|2026-11-21T08:00:00|2026-11-21T08:00:00|2026-11-21T09:00:00|01:00:00|COMPLETED|||| 4|
2_1|2026-11-21T08:00:01|2026-11-21T08:10:00|2026-11-21T08:40:00|00:20:00|TIMEOUT|bob|bio|00:10:00|8|00:10:00
2_2|2026-11-21T08:00:01|2026-11-21T08:10:00|2026-11-21T08:09:00|00:20:00|COMPLETED|bob|bio|00:10:00|8|00:00:00
2_3|2026-11-21T08:00:01|2026-11-21T08:10:00|2026-11-21T08:20:00|-1|COMPLETED|bob|bio|00:10:00|8|00:00:00
3|2026-11-21T08:00:02|Unknown|Unknown|00:00:00|PENDING|carol|bio|UNLIMITED|1|00:00:00
4|2026-11-21T08:00:00|2026-11-21T08:00:00|2026-11-21T08:05:00|00:05:00|FAILED|carol|bio|UNLIMITED|2|00:00:00
4|2026-11-21T08:05:00|2026-11-21T08:06:00|2026-11-21T08:07:00|00:01:00|COMPLETED|carol|bio|UNLIMITED|2|00:00:00
"""


@pytest.mark.parametrize("name", STORIES)
def test_what_people_see(name: str, ask: Run) -> None:
    said = ask(STORIES[name])
    talk = f"--- stderr\n{said.err}" if said.err else ""
    told = f"$ fairbank {STORIES[name]}\n{said.out}{talk}--- exit {said.code}\n"
    kept = GOLDEN / f"{name}.txt"
    if os.environ.get("WRITE_GOLDEN"):
        kept.write_text(told)
    assert told == kept.read_text()


def test_starts_are_written_in_the_order_of_the_queue(ask: Run, tmp_path: Path) -> None:
    """Two jobs of eight processors, and a small one that goes before the second; the numbers are those of the trace."""
    jobs = [line(30, 0, run=10, wanted=6), line(10, 1, run=10, wanted=8), line(20, 2, run=5, limit=8, wanted=2)]
    (tmp_path / "three.swf").write_text(HEAD + "".join(jobs))
    assert ask("simulate three.swf --policy easy --starts easy.txt -q").code == 0
    assert (tmp_path / "easy.txt").read_text() == "30 0\n10 10\n20 2\n"
    ask("simulate three.swf --policy fcfs --starts fcfs.txt -q")
    assert (tmp_path / "fcfs.txt").read_text() == "30 0\n10 10\n20 20\n"


@pytest.mark.parametrize("policy", ["fifo", "fcfs", "easy", "conservative"])
def test_accounting_gives_the_schedule_of_the_same_jobs_in_a_trace(policy: str, ask: Run, tmp_path: Path) -> None:
    """A week as the Standard Workload Format has it, and as sacct prints it: in other columns, later lines first, compressed."""
    with (tmp_path / "week.swf").open("rb") as file:
        header, jobs = read(file)
        told = [accounted(job, header.unix_start_time or 0) for job in jobs]
    heads = "State|ReqTRES|JobIDRaw|Elapsed|Submit|TimelimitRaw|User|Account|Partition|AllocTRES\n"
    (tmp_path / "week.txt.gz").write_bytes(gzip.compress((heads + "".join(told[75:] + told[:75])).encode()))
    ask(f"simulate week.swf --policy {policy} --starts trace.txt -q")
    assert ask(f"simulate week.txt.gz --procs 32 --policy {policy} --starts sacct.txt -q").code == 0
    starts = [each.split() for each in (tmp_path / "sacct.txt").read_text().splitlines()]
    since = header.unix_start_time or 0
    assert [f"{name} {int(at) - since}" for name, at in starts] == (tmp_path / "trace.txt").read_text().splitlines()


def accounted(job: SwfJob, unix_start_time: int) -> str:
    """A job of a trace as sacct would print it."""
    tres = f"billing={job.processors},cpu={job.processors},node=1"
    state = "CANCELLED by 1000" if job.run_time < 0 else "COMPLETED"
    when = iso(unix_start_time + job.submit_time).removesuffix("Z")
    limit = "UNLIMITED" if job.time_limit is None else job.time_limit // 60
    elapsed = show_duration(max(job.run_time, 0))
    who = f"user{job.user}|group{job.group}|p{job.partition}"
    return f"{state}|{tres}|{job.number}|{elapsed}|{when}|{limit}|{who}|{tres if job.run_time >= 0 else ''}\n"


def test_who_is_left_out_is_listed_in_full_for_programs(ask: Run) -> None:
    answer = json.loads(ask("simulate dirt.swf --json").out)
    assert answer["excluded"] == {
        "never_ran": [2],
        "no_size": [3],
        "too_wide": [5],
        "part": [6],
    }
    assert (answer["data"][0]["jobs"], answer["data"][0]["left_out"]) == (5, 4)


def test_the_size_of_the_machine_is_the_traces_or_as_told(ask: Run, tmp_path: Path) -> None:
    (tmp_path / "no-size.swf").write_text(line(1))
    said = ask("simulate no-size.swf")
    assert said.code != 0
    assert "MaxProcs" in said.err
    assert "--procs" in said.err
    assert ask("simulate no-size.swf --procs 4").code == 0
    assert json.loads(ask("simulate dirt.swf --procs 9 --json").out)["data"][0]["jobs"] == 6


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("simulate nothing.swf", "cannot read nothing.swf"),
        ("simulate week.swf --policy ezzy", "there is no policy 'ezzy'"),
        ("simulate week.swf --policy none.toml", "cannot read none.toml"),
        ("simulate week.swf --policy week.swf.toml", "week.swf.toml: base is missing"),
        ("simulate week.swf --policy calm.toml --policy ./calm.toml", "two policies are called 'calm'"),
        ("simulate week.swf --periods 2", "add --grant PERCENT"),
        ("simulate week.swf --grant 50 --periods 1001", "a number from 1 to 1000"),
        ("simulate week.swf --grant 50 --fair-starts 2", "leave out --fair-starts or --grant"),
        ("simulate week.swf --policy credit.toml", "grant credit: --grant PERCENT"),
        ("simulate nothing.swf --grant 50", "cannot read nothing.swf"),
        ("simulate week.swf --procs 0", "argument --procs: at least 1"),
        ("simulate week.swf --policy easy --policy fcfs --starts s.txt", "one schedule"),
        ("simulate week.swf --starts no/such/folder", "cannot write"),
        ("simulate week.swf --starts ./week.swf", "is the trace itself"),
        ("simulate week.swf --shares none.csv", "cannot read none.csv"),
        ("simulate week.swf --shares dirt.swf", "line 2"),
        ("simulate week.swf --shares accounts.csv", "account 'astro': this trace knows users and groups by numbers"),
        ("simulate sacct.txt", "--procs"),
        ("simulate heads.txt --procs 8", "line 1: no column tells how long it ran"),
        ("simulate headless.txt --procs 8", "line 1: '1|2026-11-21T08:00:00|COMPLETED', expected the heads"),
        ("simulate week.swf --plots week.swf/figures", "cannot write"),
        ("simulate short.swf", "line 2: 3 columns"),
        ("simulate unsorted.swf", "line 3: submit time 4 comes after submit time 5"),
        ("simulate negative.swf", "line 2: submit time is -5"),
    ],
)
def test_what_cannot_be_is_told_with_its_place(ask: Run, tmp_path: Path, words: str, told: str) -> None:
    (tmp_path / "week.swf.toml").write_text("")
    (tmp_path / "short.swf").write_text(HEAD + "1 2 3\n")
    (tmp_path / "unsorted.swf").write_text(HEAD + line(1, 5) + line(2, 4))
    (tmp_path / "heads.txt").write_text("JobID|Submit|State|AllocTRES\n")
    (tmp_path / "headless.txt").write_text("1|2026-11-21T08:00:00|COMPLETED\n")
    (tmp_path / "negative.swf").write_text(HEAD + line(1, -5))
    said = ask(words)
    assert said.code != 0
    assert said.out == ""
    assert told in said.err


@pytest.mark.parametrize("unpaid", ["refuse", "last"])
@pytest.mark.parametrize("policy", ["fifo", "fcfs", "easy", "conservative", "slurm"])
def test_with_credit_enough_the_bank_changes_no_start(policy: str, unpaid: str, ask: Run, tmp_path: Path) -> None:
    """A hold may be far above the charge: of the credit ten times as much is granted as jobs use."""
    ask(f"simulate week.swf --policy {policy} --starts without.txt -q")
    said = ask(f"simulate week.swf --policy {policy} --starts with.txt --grant 1000 --periods 1 --unpaid {unpaid} --json")
    assert (tmp_path / "with.txt").read_bytes() == (tmp_path / "without.txt").read_bytes()
    row = json.loads(said.out)["data"][0]
    assert (row["refused_jobs"], row["unpaid_jobs"]) == (0, 0)
    assert row["charged_minutes"] + row["expired_minutes"] == row["granted_minutes"]


def test_credit_of_accounts_goes_by_their_names(ask: Run) -> None:
    """Two accounts of sacct: what the lines say that they used, and what that costs with none of it granted."""
    found = json.loads(ask("simulate sacct.txt --procs 8 --grant 100 --json").out)["credit"]
    assert {each["account"]: each["granted_minutes"] for each in found} == {"astro": 240, "bio": 172}
    none = json.loads(ask("simulate sacct.txt --procs 8 --grant 0 --unpaid last --json").out)
    assert {each["account"]: each["unpaid_minutes"] for each in none["credit"]} == {"astro": 240, "bio": 172}
    assert none["data"][0]["unpaid_jobs"] == none["data"][0]["jobs"]


PICTURES = {"utilisation", "queue", "waits", "shares", "beyond-shares"}


def test_pictures_are_drawn_of_all_policies(ask: Run, tmp_path: Path) -> None:
    """The same bytes each time; without shares there is nothing to tell of them."""
    words = "simulate week.swf --policy fcfs --policy easy --shares shares.csv --by group -q --json"
    said = json.loads(ask(f"{words} --plots one").out)
    assert {Path(each) for each in said["plots"]} == {Path("one", f"{name}.svg") for name in PICTURES}
    for each in said["plots"]:
        drawn = (tmp_path / each).read_text()
        assert "fcfs" in drawn
        assert "easy" in drawn
    ask(f"{words} --plots two")
    assert all((tmp_path / each).read_bytes() == (tmp_path / each.replace("one", "two")).read_bytes() for each in said["plots"])
    bare = json.loads(ask("simulate week.swf --plots bare --png --json").out)
    assert {Path(each).name for each in bare["plots"]} == {"utilisation.png", "queue.png", "waits.png"}
    assert all((tmp_path / each).read_bytes().startswith(b"\x89PNG") for each in bare["plots"])


def test_a_policy_may_be_called_as_anything(ask: Run, tmp_path: Path) -> None:
    """As the other columns of the table too."""
    for name in ("measure", "change"):
        (tmp_path / f"{name}.toml").write_text('base = "easy"\n')
    said = ask("simulate week.swf --policy measure.toml --policy change.toml").out.splitlines()
    assert said[2].split() == ["MEASURE", "MEASURE", "CHANGE", "CHANGE"]
    assert said[3].startswith("mean wait (h)")
    assert said[3].endswith("+0.0%")


def test_looking_changes_no_schedule(ask: Run) -> None:
    def fingerprint(words: str) -> str:
        return str(json.loads(ask(f"simulate week.swf {words} --json").out)["data"][0]["fingerprint"])

    assert fingerprint("--plots figures") == fingerprint("")


def test_a_trace_of_nobody_is_no_error(ask: Run, tmp_path: Path) -> None:
    (tmp_path / "nobody.swf").write_text(HEAD + line(1, run=-1))
    said = ask("simulate nobody.swf")
    assert said.code == 0
    assert "No job of this trace can be simulated" in said.err
    assert "never ran" in said.err
    assert ask("simulate nobody.swf --plots figures").code == 0
    assert not (tmp_path / "figures").exists()


def test_progress_is_told_when_asked_for(ask: Run, tmp_path: Path) -> None:
    (tmp_path / "long.swf").write_text(HEAD + "".join(line(number, number) for number in range(1, 20_000)))
    said = ask("simulate long.swf --progress plain")
    tenths = [each for each in said.err.splitlines() if each.startswith("easy ")]
    assert len(tenths) >= 8


def test_a_trace_from_a_pipe_is_read_once(ask: Run, tmp_path: Path) -> None:
    """As `zcat week.swf.gz | fairbank simulate /dev/stdin` does."""
    text = (tmp_path / "week.swf").read_bytes()

    def piped(words: str) -> Said:
        os.mkfifo(tmp_path / "pipe.swf")
        with ThreadPoolExecutor(1) as writer:
            writing = writer.submit(_poured, tmp_path / "pipe.swf", text)
            said = ask(words)
            writing.result()
        (tmp_path / "pipe.swf").unlink()
        return said

    assert piped("simulate pipe.swf --policy easy -P --progress plain").out == ask("simulate week.swf --policy easy -P").out
    twice = piped("simulate pipe.swf --policy easy --policy fcfs --procs 32")
    assert (twice.code, "can be read only once" in twice.err) == (2, True)


def _poured(pipe: Path, text: bytes) -> None:
    with suppress(BrokenPipeError):  # nobody reads it to its end where it is refused
        pipe.write_bytes(text)
