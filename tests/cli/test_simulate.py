"""Tests of `fairbank simulate`: its table, its JSON, omitted jobs and invalid input."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from fairbank.cli.framework.exit_codes import NO_ANSWER
from fairbank.core.time import iso, show_duration
from fairbank.report.plots.figures import GroupFigure, LineFigure
from fairbank.report.plots.simulations import figures
from fairbank.service.simulation.simulation_files import read_shares
from fairbank.service.simulation.trace_files import in_file
from fairbank.simulator.comparison import simulate_each
from fairbank.simulator.engine.policies import POLICIES
from fairbank.simulator.engine.simulation import SimulationPlan
from fairbank.simulator.traces.job_line import SwfJob
from fairbank.simulator.traces.swf import read
from tests.cli.conftest import CommandResult, Run, session
from tests.cli.workloads import HEAD, line
from tests.support.golden import GOLDEN, kept
from tests.support.plots import checked

FOLDER = GOLDEN / "simulate"
STORIES = {
    "two-policies": "simulate week.swf --policy fcfs --policy easy",
    "all-policies": (
        "simulate week.swf --policy fifo --policy fcfs --policy easy --policy conservative --policy"
        " slurm"
    ),
    "policy-files": "simulate week.swf --policy slurm --policy fairer.toml --policy calm.toml",
    "shares-and-fair-starts": "simulate week.swf --shares shares.csv --by group --fair-starts 5",
    "parsable": "simulate week.swf --policy easy --policy fcfs -P",
    "json": "simulate week.swf --shares shares.csv --by group --json",
    "dirt": "simulate dirt.swf",
    "accounting": "simulate sacct.txt --procs 8 --shares accounts.csv --by group",
}


@pytest.mark.parametrize("name", STORIES)
def test_output_matches_the_golden_file(name: str, run: Run) -> None:
    lines = session(f"fairbank {STORIES[name]}", run(STORIES[name]))
    assert lines == kept(FOLDER / f"{name}.txt", lines)


def test_columns_beside_those_of_policies_are_explained(run: Run) -> None:
    shown = run("simulate week.swf --policy easy --policy fcfs").out
    assert {"MEASURE", "EASY", "FCFS", "CHANGE"} <= set(shown.split())
    explained = run("simulate --helpformat").out.split()
    assert {"MEASURE", "CHANGE", "POLICY"} <= set(explained)
    assert "MEASURE" not in run("simulate --csv --helpformat").out


def test_starts_are_written_in_queue_order(run: Run, tmp_path: Path) -> None:
    """Two jobs of eight processors and a small one that starts before the second; the numbers are
    those of the trace.
    """
    jobs = [
        line(30, 0, run=10, requested=6),
        line(10, 1, run=10, requested=8),
        line(20, 2, run=5, limit=8, requested=2),
    ]
    (tmp_path / "three.swf").write_text(HEAD + "".join(jobs))
    assert run("simulate three.swf --policy easy --starts easy.txt -q").code == 0
    assert (tmp_path / "easy.txt").read_text() == "30 0\n10 10\n20 2\n"
    run("simulate three.swf --policy fcfs --starts fcfs.txt -q")
    assert (tmp_path / "fcfs.txt").read_text() == "30 0\n10 10\n20 20\n"


def test_start_table_contains_all_policies(run: Run, tmp_path: Path) -> None:
    """The jobs of the test above: 20 starts before 10 under EASY. The trace does not name the user
    of job 20.
    """
    jobs = [
        line(30, 0, run=10, requested=6),
        line(10, 1, run=10, requested=8),
        line(20, 2, run=5, limit=8, requested=2).replace(" 7 7 ", " -1 -1 "),
    ]
    (tmp_path / "three.swf").write_text(HEAD + "".join(jobs))
    (tmp_path / "=1+1.toml").write_text('base = "fcfs"\n')
    result = run("simulate three.swf --policy easy --policy =1+1.toml --starts starts.csv -q")
    assert result.code == 0
    assert (tmp_path / "starts.csv").read_text().splitlines() == [
        "policy,job,user,group,submitted,started,ended,processors,wait_seconds",
        "easy,30,7,7,0,0,10,6,0",
        "easy,10,7,7,1,10,20,8,9",
        "easy,20,,,2,2,7,2,0",
        "'=1+1,30,7,7,0,0,10,6,0",
        "'=1+1,10,7,7,1,10,20,8,9",
        "'=1+1,20,,,2,20,25,2,18",
    ]
    assert run("simulate three.swf --policy easy --policy =1+1.toml -q").out == result.out


def test_start_table_has_names_from_accounting(run: Run, tmp_path: Path) -> None:
    """Names may look like formulas. Times are in seconds since 1970."""
    header = "JobID|Submit|Start|End|Elapsed|State|User|Account|AllocCPUS\n"
    row = (
        "9|2026-11-21T08:00:00|2026-11-21T08:00:10|2026-11-21T08:00:40|00:00:30|COMPLETED|{}|{}|4\n"
    )
    (tmp_path / "two.txt").write_text(
        header + row.format("=cmd()", "bio,x") + row.format("ada", "").replace("9|", "10|", 1)
    )
    assert run("simulate two.txt --procs 4 --starts starts.csv -q").code == 0
    with (tmp_path / "starts.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["job"], first["user"], first["group"], first["wait_seconds"]) == (
        "9",
        "'=cmd()",
        "bio,x",
        "0",
    )
    assert (second["job"], second["user"], second["group"], second["wait_seconds"]) == (
        "10",
        "ada",
        "",
        "30",
    )
    assert int(second["ended"]) - int(second["started"]) == 30


def test_start_table_agrees_with_start_lines(run: Run, tmp_path: Path) -> None:
    run("simulate week.swf --policy slurm --starts starts.txt -q")
    run("simulate week.swf --policy easy --policy slurm --starts starts.csv -q")
    with (tmp_path / "starts.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["policy"] == "slurm"]
    assert [f"{row['job']} {row['started']}" for row in rows] == (
        tmp_path / "starts.txt"
    ).read_text().splitlines()


@pytest.mark.parametrize("policy", ["fifo", "fcfs", "easy", "conservative"])
def test_accounting_and_trace_of_the_same_jobs_give_the_same_schedule(
    policy: str, run: Run, tmp_path: Path
) -> None:
    """The same week in the Standard Workload Format and as sacct prints it: other columns, another
    order, compressed.
    """
    with (tmp_path / "week.swf").open("rb") as file:
        header, jobs = read(file)
        output = [sacct_line(job, header.unix_start_time or 0) for job in jobs]
    columns = (
        "State|ReqTRES|JobIDRaw|Elapsed|Submit|TimelimitRaw|User|Account|Partition|AllocTRES\n"
    )
    (tmp_path / "week.txt.gz").write_bytes(
        gzip.compress((columns + "".join(output[75:] + output[:75])).encode())
    )
    run(f"simulate week.swf --policy {policy} --starts trace.txt -q")
    assert run(f"simulate week.txt.gz --procs 32 --policy {policy} --starts sacct.txt -q").code == 0
    starts = [line.split() for line in (tmp_path / "sacct.txt").read_text().splitlines()]
    since = header.unix_start_time or 0
    assert [f"{name} {int(at) - since}" for name, at in starts] == (
        tmp_path / "trace.txt"
    ).read_text().splitlines()


def sacct_line(job: SwfJob, unix_start_time: int) -> str:
    """Return a job of a trace as sacct prints it."""
    tres = f"billing={job.processors},cpu={job.processors},node=1"
    state = "CANCELLED by 1000" if job.run_time < 0 else "COMPLETED"
    when = iso(unix_start_time + job.submit_time).removesuffix("Z")
    limit = "UNLIMITED" if job.time_limit is None else job.time_limit // 60
    elapsed = show_duration(max(job.run_time, 0))
    who = f"user{job.user}|group{job.group}|p{job.partition}"
    allocated = tres if job.run_time >= 0 else ""
    return f"{state}|{tres}|{job.number}|{elapsed}|{when}|{limit}|{who}|{allocated}\n"


def test_omitted_users_are_listed_in_json(run: Run) -> None:
    answer = json.loads(run("simulate dirt.swf --json").out)
    assert answer["excluded"] == {"never_ran": [2], "no_size": [3], "too_wide": [5], "part": [6]}
    assert (answer["data"][0]["jobs"], answer["data"][0]["left_out"]) == (5, 4)


def test_duplicate_job_number_is_reported(run: Run, tmp_path: Path) -> None:
    """Numbers may come in any order, and partial runs have the number of the whole job."""
    (tmp_path / "order.swf").write_text(
        HEAD + "".join(map(line, (7, 3, 4, 9, 1))) + line(9, status=2)
    )
    assert (
        json.loads(run("simulate order.swf --json").out)["data"][0]["corrected"]["same_number"] == 0
    )
    (tmp_path / "twice.swf").write_text(HEAD + "".join(map(line, (7, 3, 3, 9, 7, 3))))
    result = run("simulate twice.swf")
    assert "corrected: 3 jobs had the number of an earlier one: simulated all the same" in " ".join(
        (result.out + result.err).split()
    )
    assert "had the number" not in run("simulate sacct.txt --procs 8").out


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ("01:00:00|COMPLETED|00:00:00", None),
        ("00:59:59|COMPLETED|00:00:00", None),
        ("00:20:00|TIMEOUT|00:40:00", None),
        ("00:20:00|CANCELLED by 1000|", None),
        (
            "00:59:00|COMPLETED|00:10:00",
            "ran and was suspended for longer than from its start to its end",
        ),
        (
            "00:00:06|COMPLETED|00:00:00",
            "ran shorter than from its start to its end, and was not suspended for the rest",
        ),
        ("01:00:00|BANANA|00:00:00", "State cannot be read"),
        ("01:00:00|LOST|00:00:00", "State cannot be read"),
    ],
)
def test_contradictory_accounting_is_omitted(
    run: Run, tmp_path: Path, cells: str, message: str | None
) -> None:
    row = f"1|2026-11-21T08:00:00|2026-11-21T08:00:10|2026-11-21T09:00:10|{cells}|4"
    (tmp_path / "one.txt").write_text(
        f"JobID|Submit|Start|End|Elapsed|State|Suspended|AllocCPUS\n{row}\n"
    )
    result = run("simulate one.txt --procs 8 --json")
    if message is None:
        assert json.loads(result.out)["data"][0]["jobs"] == 1
    else:
        assert result.code == 2
        assert f"left out: 1 line, {message} (line 2)" in " ".join(result.err.split())


def test_accounts_with_shares_but_without_jobs_are_named(run: Run, tmp_path: Path) -> None:
    """An account counts as present even if all its jobs are omitted. Shares of accounts that the
    changed workload lacks are no error.
    """
    (tmp_path / "two.swf").write_text(HEAD + line(1) + line(2, run=-1).replace(" 7 7 ", " 8 8 "))
    (tmp_path / "some.csv").write_text("\ufeffaccount,shares\n7,5\n8,1\n999,4\n")
    for words in (
        "simulate two.swf",
        "whatif two.swf --add-procs 1",
        "simulate two.swf --grant 80",
    ):
        result = run(f"{words} --shares some.csv")
        assert result.code == 0
        assert (
            "shares of 1 account without a job in this trace, which count all the same (999)"
            in " ".join(result.err.split())
        )
    assert json.loads(run("simulate two.swf --shares some.csv --json").out)[
        "unmatched_accounts"
    ] == ["999"]
    (tmp_path / "one.csv").write_text("7,5\n")
    assert "without a job" not in run("simulate two.swf --shares one.csv").err
    assert run("whatif two.swf --drop-user 7 --shares one.csv").code == 0


def test_rounded_decimals_are_counted(run: Run, tmp_path: Path) -> None:
    (tmp_path / "decimals.swf").write_text(HEAD + line(1) + line(2).replace(" 10 ", " 10.7 "))
    assert "corrected: 1 line, submit time, run time or requested time with decimals" in " ".join(
        run("simulate decimals.swf").err.split()
    )
    assert 1 in json.loads(run("simulate decimals.swf --json").out)["data"][0]["corrected"].values()


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("; MaxJobs: 2\n", False),
        ("; MaxJobs: 4000\n", True),
        ("; MaxJobs: 4000\n; MaxRecords: 2\n", False),
        ("; MaxJobs: 2\n; MaxRecords: 4000\n", True),
        ("; MaxJobs: 1\n", False),
        ("; MaxJobs: unknown\n", False),
    ],
)
def test_truncated_trace_is_reported(run: Run, tmp_path: Path, head: str, message: bool) -> None:
    """The number of lines is compared with the header, including omitted ones; a cleaned log has
    fewer lines than jobs.
    """
    (tmp_path / "cut.swf").write_text(HEAD + head + line(1) + line(2, run=-1))
    for words in ("simulate cut.swf", "whatif cut.swf --add-procs 1"):
        result = run(words)
        assert result.code == 0
        assert (
            "the header speaks of 4,000 jobs, and there are 2" in " ".join(result.err.split())
        ) is message
    announced = json.loads(run("simulate cut.swf --json").out)["announced_jobs"]
    assert (announced == 4_000) is message


def test_machine_size_comes_from_the_trace_or_the_option(run: Run, tmp_path: Path) -> None:
    (tmp_path / "no-size.swf").write_text(line(1))
    result = run("simulate no-size.swf")
    assert result.code != 0
    assert "MaxProcs" in result.err
    assert "--procs" in result.err
    assert run("simulate no-size.swf --procs 4").code == 0
    assert json.loads(run("simulate dirt.swf --procs 9 --json").out)["data"][0]["jobs"] == 6


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("simulate nothing.swf", "cannot read nothing.swf"),
        ("simulate week.swf --policy ezzy", "there is no policy 'ezzy'"),
        ("simulate week.swf --policy none.toml", "cannot read none.toml"),
        ("simulate week.swf --policy week.swf.toml", "week.swf.toml: base is missing"),
        (
            "simulate week.swf --policy calm.toml --policy ./calm.toml",
            "two policies are called 'calm'",
        ),
        ("simulate week.swf --procs 0", "'0' is not a whole number from 1 on\n  field: --procs"),
        ("simulate week.swf --policy easy --policy fcfs --starts s.txt", "one schedule"),
        ("simulate week.swf --starts no/such/folder", "cannot write"),
        (
            "simulate week.swf --policy easy --policy fcfs --starts no/such/folder.csv",
            "cannot write",
        ),
        ("simulate week.swf --starts ./week.swf", "is the trace itself"),
        ("simulate week.swf --shares none.csv", "cannot read none.csv"),
        (
            "simulate week.swf --shares utf16.csv",
            "cannot read utf16.csv: byte 0xff at place 1 is no UTF-8",
        ),
        (
            "simulate week.swf --shares unmatched.csv",
            "no account of the shares is in this trace: 999, 998",
        ),
        (
            "simulate week.swf --shares unmatched.csv --grant 80",
            "no account of the shares is in this trace: 999, 998",
        ),
        (
            "whatif week.swf --shares unmatched.csv --add-procs 8",
            "no account of the shares is in this trace: 999, 998",
        ),
        (
            "simulate sacct.txt --procs 8 --shares accounts.csv",
            "no account of the shares is in this trace: astro, bio",
        ),
        ("simulate week.swf --shares dirt.swf", "line 1"),
        (
            "simulate week.swf --shares accounts.csv",
            "account 'astro': this trace knows users and groups by numbers",
        ),
        ("simulate sacct.txt", "accounting does not tell how many processors the machine has"),
        (
            "whatif sacct.txt --add-procs 8",
            "accounting does not tell how many processors the machine has",
        ),
        ("simulate empty.swf", "the file is empty"),
        ("simulate /dev/null --procs 8", "the file is empty"),
        ("simulate picture.png", "line 1: byte 0x89 at place 1: this is not a trace"),
        ("simulate bytes --procs 8", "line 1: byte 0x07 at place 5: this is not a trace"),
        ("simulate letter.txt", "line 1 is neither a job nor column names: this is not a trace"),
        ("simulate twice.gz", "line 1: this is gzip-compressed"),
        ("simulate columns.swf", "line 1: 3 columns, expected 18"),
        ("simulate heads.txt --procs 8", "line 1: no column has how long it ran"),
        (
            "simulate headless.txt --procs 8",
            "line 1: '1|2026-11-21T08:00:00|COMPLETED', expected the names",
        ),
        ("simulate week.swf --plots week.swf/figures", "week.swf is not a directory"),
        ("simulate week.swf --plots /proc/figures", "cannot write in /proc"),
        ("simulate week.swf --starts /proc/starts", "cannot write /proc/starts"),
        ("simulate week.swf --png", "--png says how pictures are drawn, and none are"),
        (
            "simulate week.swf --by group",
            "--by says whose shares or credit are meant, and there are neither",
        ),
        (
            "simulate week.swf --fair-starts 0",
            "'0' is not a whole number from 1 on\n  field: --fair-starts",
        ),
        (
            "simulate week.swf --starts -",
            "- is not a file: name one, or /dev/stdout\n  field: --starts",
        ),
        (
            "simulate --jobs 40 --save -",
            "- is not a file: name one, or /dev/stdout\n  field: --save",
        ),
        ("simulate short.swf", "line 2: 3 columns"),
        ("simulate unsorted.swf", "line 3: submit time 4 comes after submit time 5"),
        ("simulate negative.swf", "line 2: submit time is -5"),
    ],
)
def test_invalid_value_is_reported_with_its_place(
    run: Run, tmp_path: Path, words: str, message: str
) -> None:
    (tmp_path / "week.swf.toml").write_text("")
    (tmp_path / "utf16.csv").write_bytes("1,5\n".encode("utf-16"))
    (tmp_path / "unmatched.csv").write_text("999,5\n998,5\n")
    (tmp_path / "empty.swf").write_bytes(gzip.compress(b""))
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n|\n")
    (tmp_path / "bytes").write_bytes(b"Job|\x07State\n")
    (tmp_path / "twice.gz").write_bytes(gzip.compress(gzip.compress(b"", mtime=0)))
    (tmp_path / "columns.swf").write_text("1 2 3\n")
    (tmp_path / "letter.txt").write_text("Dear all\n")
    (tmp_path / "short.swf").write_text(HEAD + "1 2 3\n")
    (tmp_path / "unsorted.swf").write_text(HEAD + line(1, 5) + line(2, 4))
    (tmp_path / "heads.txt").write_text("JobID|Submit|State|AllocTRES\n")
    (tmp_path / "headless.txt").write_text("1|2026-11-21T08:00:00|COMPLETED\n")
    (tmp_path / "negative.swf").write_text(HEAD + line(1, -5))
    result = run(words)
    assert result.code != 0
    assert result.out == ""
    assert message in result.err


PICTURES = {"utilisation", "queue", "waits", "shares", "beyond-shares"}


def test_figures_contain_all_policies(run: Run, tmp_path: Path) -> None:
    """The same command gives the same bytes. Without shares there is no fair-share figure."""
    words = "simulate week.swf --policy fcfs --policy easy --shares shares.csv --by group -q --json"
    data = json.loads(run(f"{words} --plots figures").out)
    assert {Path(path) for path in data["plots"]} == {
        Path("figures", f"{name}.svg") for name in PICTURES
    }
    drawn = {path: (tmp_path / path).read_text() for path in data["plots"]}
    for text in drawn.values():
        assert "fcfs" in text
        assert "easy" in text
        assert "Source: trace week.swf" in text
        assert "Command: fairbank simulate week.swf --policy fcfs --policy easy" in text
    assert re.search(
        r"mean [\d.]+, \d+ in the worst [\d.]+ h", drawn[str(Path("figures", "queue.svg"))]
    )
    run(f"{words} --plots figures")
    assert {path: (tmp_path / path).read_text() for path in drawn} == drawn
    bare = json.loads(run("simulate week.swf --plots bare --png --json").out)
    assert {Path(path).name for path in bare["plots"]} == {
        "utilisation.png",
        "queue.png",
        "waits.png",
    }
    assert all((tmp_path / path).read_bytes().startswith(b"\x89PNG") for path in bare["plots"])


def test_figures_show_the_measures_of_the_simulation(run: Run, tmp_path: Path) -> None:
    """The test's directory is the current one, because of `run`."""
    outcomes = simulate_each(
        partial(in_file, Path("week.swf")),
        [POLICIES["fcfs"], POLICIES["easy"]],
        SimulationPlan(by_group=True, has_time_series=True),
        holdings=read_shares(Path("shares.csv")),
    )
    drawn = dict(figures(outcomes, "trace week.swf", "fairbank simulate week.swf"))
    assert set(drawn) == PICTURES
    texts = {name: checked(figure) for name, figure in drawn.items()}
    time = "time since the first submission (days)"
    assert [texts[name].labels for name in ("utilisation", "queue", "beyond-shares")] == [
        ["processors (%)", time, "processors (%)"],
        ["jobs (number)", time, "jobs (number)"],
        ["delivered (% of the week)", time, "delivered (% of the week)"],
    ]
    measures = [outcome.figures for outcome in outcomes]
    assert texts["utilisation"].legend == [
        f"{name}: mean {100 * measure.utilisation:.1f} %"
        for name, measure in zip(("fcfs", "easy"), measures, strict=True)
        if measure is not None
    ]
    utilisation, waits, shares = (drawn[name] for name in ("utilisation", "waits", "shares"))
    assert isinstance(utilisation, LineFigure)
    for panel in utilisation.panels:
        (series,) = panel.series
        assert max(value for _, value in series.points) <= 100
        assert series.points[0][0] == 0
    assert isinstance(waits, GroupFigure)
    assert texts["waits"].legend[:2] == ["fcfs", "easy"]
    jobs = sum(int(group.remark.split()[0]) for group in waits.groups)
    assert [measure.jobs for measure in measures if measure] == [jobs, jobs]
    assert isinstance(shares, GroupFigure)
    assert {group.name: group.values[1] for group in shares.groups} == {
        str(row.account): pytest.approx(100 * row.delivered) for row in outcomes[1].delivered
    }
    assert {group.name: group.line for group in shares.groups} == {
        str(row.account): pytest.approx(100 * row.due) for row in outcomes[1].delivered
    }


def test_figures_without_matplotlib_fail_before_simulating(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("simulate week.swf --plots figures")
    assert (result.code, result.out) == (NO_ANSWER, "")
    assert "figures need matplotlib, which is not installed here" in result.err
    assert "pip install 'matplotlib>=3.10'" in " ".join(result.err.split())
    assert not (tmp_path / "figures").exists()
    assert run("simulate week.swf").code == 0


PROGRAM = shlex.join(
    [sys.executable, "-c", "from fairbank.cli.main import main; raise SystemExit(main())"]
)


@pytest.mark.parametrize("through", ["cat week.swf | ", "< week.swf "])
def test_trace_can_be_read_from_stdin(run: Run, tmp_path: Path, through: str) -> None:
    process = subprocess.run(
        ["sh", "-c", f"{through}{PROGRAM} simulate - -q"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        timeout=60,
    )
    assert process.stdout.decode() == run("simulate week.swf -q").out


@pytest.mark.parametrize("through", ["> out", "| cat > out"])
def test_starts_can_be_written_to_stdout(run: Run, tmp_path: Path, through: str) -> None:
    run("simulate week.swf --starts starts.txt -q")
    table = run("simulate week.swf -q").out
    words = f"{PROGRAM} simulate week.swf -q --starts /dev/stdout {through}"
    subprocess.run(["sh", "-c", words], cwd=tmp_path, check=True, timeout=60)
    assert (tmp_path / "out").read_text() == (tmp_path / "starts.txt").read_text() + table


def test_unwritable_figure_does_not_lose_the_table(run: Run, tmp_path: Path) -> None:
    (tmp_path / "figures" / "queue.svg").mkdir(parents=True)
    result = run("simulate week.swf --plots figures")
    assert result.code != 0
    assert "mean wait (h)" in result.out
    assert "queue.svg" in result.err


def test_unwritable_starts_do_not_lose_the_table(run: Run) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    result = run("simulate week.swf --starts /dev/full")
    assert result.code != 0
    assert "mean wait (h)" in result.out
    assert "cannot write /dev/full: the disk is full" in result.err


def test_policy_may_have_the_name_of_a_column(run: Run, tmp_path: Path) -> None:
    """A policy may even have the name of another column of the table."""
    for name in ("measure", "change"):
        (tmp_path / f"{name}.toml").write_text('base = "easy"\n')
    output = run("simulate week.swf --policy measure.toml --policy change.toml").out.splitlines()
    assert output[2].split() == ["MEASURE", "MEASURE", "CHANGE", "CHANGE"]
    assert output[3].startswith("mean wait (h)")
    assert output[3].endswith("+0.0%")


def test_figures_do_not_change_the_schedule(run: Run) -> None:
    def fingerprint(words: str) -> str:
        return str(
            json.loads(run(f"simulate week.swf {words} --json").out)["data"][0]["fingerprint"]
        )

    assert fingerprint("--plots figures") == fingerprint("")


def test_refusal_says_if_no_project_can_pay(run: Run) -> None:
    result = run("simulate week.swf --grant 0")
    refused = next(
        line
        for line in result.out.splitlines()
        if line.startswith("jobs refused for lack of credit")
    )
    assert (result.code, refused.split()[-1]) == (0, "100.00")
    output = " ".join((result.out + result.err).split())
    jobs = json.loads(run("simulate week.swf --grant 0 --json").out)["data"][0]["refused_jobs"]
    assert (
        f"no job ran, {jobs} jobs refused for lack of credit: grant more, or let them run last"
        " (--unpaid last)" in output
    )
    assert "no job ran" in run("whatif week.swf --grant 0 --add-procs 8").err
    assert "no job ran" not in run("simulate week.swf --grant 0 --unpaid last").err


@pytest.mark.parametrize("job", ["", line(1, run=-1)], ids=["empty trace", "job never ran"])
@pytest.mark.parametrize(
    "words",
    [
        "simulate nobody.swf",
        "simulate nobody.swf --plots figures",
        "simulate nobody.swf --json",
        "whatif nobody.swf --add-procs 8",
    ],
)
def test_trace_without_a_job_to_simulate_is_an_error(
    run: Run, tmp_path: Path, words: str, job: str
) -> None:
    (tmp_path / "nobody.swf").write_text(HEAD + job)
    result = run(words)
    assert (result.code, "data" in result.out) == (2, False)
    assert "no job of this trace can be simulated" in result.err
    assert ("never ran" in result.err) is bool(job)
    assert not (tmp_path / "figures").exists()


def test_synthetic_workload_without_a_job_to_simulate_names_its_options(run: Run) -> None:
    result = run("simulate --jobs 1 --procs 1")
    assert (result.code, "no job of this workload can be simulated" in result.err) == (2, True)
    assert (
        "  field: --jobs\n  try: more jobs: --jobs N; or more processors: --procs N" in result.err
    )


def test_saved_workload_replaces_a_file_only_with_force(run: Run, tmp_path: Path) -> None:
    (tmp_path / "month.swf").write_text("mine")
    result = run("simulate --jobs 40 --save month.swf")
    assert result.code == 7
    assert "there is a file month.swf already" in result.err
    assert (tmp_path / "month.swf").read_text() == "mine"
    assert run("simulate --jobs 40 --save month.swf --force").code == 0
    assert (tmp_path / "month.swf").read_text() != "mine"
    assert run("simulate week.swf --force").code == 2


@pytest.mark.parametrize(
    ("begin", "program"),
    [(b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh91AY", "bzip2"), (b"\xfd7zXZ\0", "xz")],
)
def test_other_compression_than_gzip_is_refused_by_name(
    run: Run, tmp_path: Path, begin: bytes, program: str
) -> None:
    (tmp_path / "week.swf.packed").write_bytes(begin + bytes(40))
    result = run("simulate week.swf.packed")
    output = " ".join(result.err.split())
    assert result.code == 2
    assert f"is compressed by {program}; gzip is the only compression that is read" in output
    assert f"decompress it first: {program} -d" in output


def test_ignored_policy_settings_are_reported_once(run: Run, tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(
        'base = "slurm"\n[scheduler]\nbf_continue = true\nbf_licenses = true\nbf_max_time = 60\n'
    )
    remarks = [
        "policy site: changes nothing here: bf_continue, bf_max_time",
        "policy site: not simulated, and passed over: bf_licenses",
    ]
    result = run("simulate week.swf --policy slurm --policy site.toml")
    assert [line for line in result.err.splitlines() if line.startswith("policy ")] == remarks
    assert json.loads(run("simulate week.swf --policy site.toml --json").out)["remarks"] == remarks
    result = run("whatif week.swf --policy site.toml --add-procs 8")
    assert [line for line in result.err.splitlines() if line.startswith("policy ")] == remarks
    assert "policy " not in run("simulate week.swf --policy fairer.toml").err


def test_help_names_all_policies(run: Run) -> None:
    for command in ("simulate", "whatif"):
        assert f"{', '.join(POLICIES)}, or a file FILE.toml" in " ".join(
            run(f"{command} --help").out.split()
        )


def test_progress_is_reported_if_requested(run: Run, tmp_path: Path) -> None:
    (tmp_path / "long.swf").write_text(
        HEAD + "".join(line(number, number) for number in range(1, 10_500))
    )
    result = run("simulate long.swf --progress plain")
    tenths = [line for line in result.err.splitlines() if line.startswith("easy ")]
    assert len(tenths) >= 8


def test_trace_from_a_pipe_is_read_once(run: Run, tmp_path: Path) -> None:
    """`zcat week.swf.gz | fairbank simulate /dev/stdin` reads such a pipe."""
    text = (tmp_path / "week.swf").read_bytes()

    def run_with_pipe(words: str) -> CommandResult:
        os.mkfifo(tmp_path / "pipe.swf")
        with ThreadPoolExecutor(1) as writer:
            writing = writer.submit(write_to_pipe, tmp_path / "pipe.swf", text)
            output = run(words)
            writing.result()
        (tmp_path / "pipe.swf").unlink()
        return output

    assert (
        run_with_pipe("simulate pipe.swf --policy easy -P --progress plain").out
        == run("simulate week.swf --policy easy -P").out
    )
    twice = run_with_pipe("simulate pipe.swf --policy easy --policy fcfs --procs 32")
    assert (twice.code, "can be read only once" in twice.err) == (2, True)
    granted = run_with_pipe("simulate pipe.swf --policy easy --grant 90 --procs 32")
    assert (granted.code, "can be read only once" in granted.err) == (2, True)


def write_to_pipe(pipe: Path, text: bytes) -> None:
    with suppress(BrokenPipeError):  # a refused trace is not read to its end
        pipe.write_bytes(text)


def test_shares_affect_only_policies_with_fair_share(run: Run, tmp_path: Path) -> None:
    """Three users submit at once, and the first of them has no shares."""
    of_users = [
        line(number).replace(" 7 7 ", f" {user} {user} ")
        for number, user in enumerate((5, 6, 7), start=1)
    ]
    (tmp_path / "three.swf").write_text(HEAD + "".join(of_users))
    (tmp_path / "some.csv").write_text("6,1\n7,99\n")
    order = {}
    for policy in ("slurm", "fcfs"):
        for shares in ("", "--shares some.csv"):
            assert (
                run(
                    f"simulate three.swf --procs 1 --policy {policy} --starts starts.txt {shares}"
                ).code
                == 0
            )
            begun = dict(row.split() for row in (tmp_path / "starts.txt").read_text().splitlines())
            order[policy, shares != ""] = sorted(begun, key=lambda job: int(begun[job]))
    assert order.pop(("slurm", True)) == ["2", "3", "1"]
    assert set(map(tuple, order.values())) == {("1", "2", "3")}
    (tmp_path / "huge.csv").write_text("6,9999999999\n")
    result = run("simulate three.swf --procs 1 --policy slurm --shares huge.csv")
    assert (result.code, "Slurm takes no such shares" in result.err, result.out) == (2, True, "")
