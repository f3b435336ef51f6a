"""sacct and sstat: tables as a real Slurm printed them, and read back by the parsers."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.final_state import FINAL_STATES, LOST
from fairbank.core.time import parse_instant
from fairbank.report.slurm import accounting_json, sacct
from fairbank.report.slurm.job_rows import NO_LIMIT
from fairbank.report.slurm.layout import Columns, cells_of, field_lines, field_list, parse_fields
from fairbank.report.slurm.notation import NONE, NONE_ASSIGNED, Notation
from fairbank.report.slurm.sacct import SACCT, SSTAT, AccountingLine, TaskUsage
from fairbank.slurm.parsers import sacct as parser
from fairbank.slurm.parsers.columns import DELIMITER, Table
from fairbank.slurm.parsers.values import JobEnd, JobGroup
from fairbank.slurm.parsers.words import length_seconds

GOLDEN = Path(__file__).parents[2] / "golden"
HERE = Notation()


def table(rows: list[AccountingLine], form: str, columns: Columns = SACCT, **options: Any) -> str:
    fields = parse_fields(form, columns)
    made = field_lines(cells_of(rows, fields, HERE), fields, **options)
    return "".join(f"{line}\n" for line in made)


# --- as recorded ---

ALIGN = AccountingLine(
    9, "9", name="align", partition="gpu", account="wg_bio", cpus=16, state="COMPLETED"
)
BATCH = AccountingLine(9, "9", "batch", name="batch", account="wg_bio", cpus=16, state="COMPLETED")
PADDED = """\
JobID           JobName  Partition    Account  AllocCPUS      State ExitCode\x20
------------ ---------- ---------- ---------- ---------- ---------- --------\x20
9                 align        gpu     wg_bio         16  COMPLETED      0:0\x20
9.batch           batch                wg_bio         16  COMPLETED      0:0\x20
"""
BARS = """\
JobID|JobName|Partition|Account|AllocCPUS|State|ExitCode
9|align|gpu|wg_bio|16|COMPLETED|0:0
9.batch|batch||wg_bio|16|COMPLETED|0:0
"""


def test_jobs_are_printed_as_sacct_prints_them() -> None:
    assert table([ALIGN, BATCH], sacct.FORMAT) == PADDED
    assert table([ALIGN, BATCH], sacct.FORMAT, delimiter="|") == BARS
    ended = BARS.replace("\n", "|\n")
    assert table([ALIGN, BATCH], sacct.FORMAT, delimiter="|", is_ended=True) == ended
    assert table([ALIGN], sacct.BRIEF_FORMAT, header=False) == "9             COMPLETED      0:0 \n"


def _recordings() -> Iterator[tuple[str, Path]]:
    """Yield the command and the file of each recording in columns."""
    for folder in sorted(GOLDEN.glob("slurm-*")):
        for line in (folder / "QUESTIONS").read_text().splitlines():
            name, _, command = line.partition(": ")
            if name.startswith("sacct") and "--json" not in command:
                yield ast.literal_eval(command), folder / f"{name}.txt"


@pytest.mark.parametrize(
    ("command", "file"),
    [pytest.param(*pair, id=f"{pair[1].parent.name}-{pair[1].stem}") for pair in _recordings()],
)
def test_recorded_accounting_is_printed_again(command: str, file: Path) -> None:
    form = command.partition("--format=")[2].partition(" ")[0]
    header = "--noheader" not in command
    delimiter = DELIMITER if "--delimiter" in command else "|"
    lines = file.read_text().splitlines()[header:]
    names = form.split(",")
    rows = [
        _line_of(dict(zip(names, cells, strict=True)))
        for line in lines
        if len(cells := line.split(delimiter)) == len(names)
    ]
    assert len(rows) > 30
    made = table(rows, form, delimiter=delimiter, header=header).splitlines()[header:]
    # Names and comments with delimiters or line ends break a line.
    assert made == [line for line in lines if line.count(delimiter) == len(names) - 1]


def _line_of(cells: Mapping[str, str]) -> AccountingLine:
    """Return the row of a line with these cells by column."""

    def number(name: str) -> int | None:
        return int(cells[name]) if cells.get(name) else None

    def at(name: str) -> int | None:
        text = cells[name]
        return None if text in ("", "Unknown", NONE) else parse_instant(text)

    job, _, step = cells["JobIDRaw"].partition(".")
    state, _, user = cells["State"].partition(" by ")
    status, _, signal = cells.get("ExitCode", "0:0").partition(":")  # none of a running step
    limit = cells["TimelimitRaw"]
    return AccountingLine(
        int(job),
        cells.get("JobID", job).partition(".")[0],
        step,
        name=cells.get("JobName"),
        user=cells["User"],
        uid=number("UID"),
        group=cells.get("Group"),
        gid=number("GID"),
        account=cells["Account"],
        partition=cells["Partition"],
        qos=cells["QOS"],
        state=state,
        cancelled_by=int(user) if user else None,
        exit_code=(int(status), int(signal)) if status else None,
        submitted=at("Submit"),
        eligible=at("Eligible") if "Eligible" in cells else None,
        started=at("Start"),
        ended=at("End"),
        elapsed=int(cells["ElapsedRaw"]),
        suspended=length_seconds(cells.get("Suspended", "00:00:00"), "Suspended"),
        limit=int(limit) * 60 if limit.isdecimal() else NO_LIMIT if limit == "UNLIMITED" else None,
        allocated_tres=cells["AllocTRES"],
        requested_tres=cells["ReqTRES"],
        nodes="" if cells.get("NodeList") == NONE_ASSIGNED else cells.get("NodeList", ""),
        reason=cells.get("Reason"),
        comment=cells.get("Comment"),
        admin_comment=cells.get("AdminComment"),
        db_index=number("DBIndex"),
        flags=cells.get("Flags"),
        cluster=cells.get("Cluster"),
    )


# --- read back ---

NAMES = st.text("abcxyz_.-0129", min_size=1, max_size=20).map(lambda text: f"a{text}")
INSTANTS = st.integers(86_400, 2**32)
STATES = ["PENDING", "RUNNING", *(state for state in FINAL_STATES if state != LOST)]


@st.composite
def runs(draw: st.DrawFn) -> AccountingLine:
    start, tres = draw(st.one_of(st.none(), INSTANTS)), f"cpu={draw(st.integers(1, 99))},node=1"
    return AccountingLine(
        draw(st.integers(1, 2**26)),
        "7",
        user=draw(NAMES),
        uid=draw(st.integers(1, 2**31)),
        gid=draw(st.integers(0, 2**31)),
        account=draw(NAMES),
        partition=draw(NAMES),
        qos=draw(NAMES),
        state=draw(st.sampled_from(STATES)),
        cancelled_by=draw(st.one_of(st.none(), st.integers(0, 2**31))),
        submitted=draw(INSTANTS),
        started=start,
        ended=None if start is None else start + draw(st.integers(0, 10**6)),
        elapsed=draw(st.integers(0, 10**6)),
        limit=draw(
            st.one_of(st.none(), st.just(NO_LIMIT), st.integers(1, 10**6).map(lambda m: m * 60))
        ),
        exit_code=(draw(st.integers(0, 127)), draw(st.integers(0, 127))),
        requested_tres=tres,
        allocated_tres=None if start is None else tres,
        total_cpu=draw(st.one_of(st.just(0), st.integers(1, 10**9))),
    )


def _printed_for(table_: Table[Any], rows: list[AccountingLine]) -> str:
    return table(rows, ",".join(table_.columns), delimiter=table_.delimiter, header=False)


@given(st.lists(runs(), max_size=5))
def test_runs_are_read_back(rows: list[AccountingLine]) -> None:
    read = parser.JOBS.read(_printed_for(parser.JOBS, rows))
    assert read.unreadable == ()
    assert [job.gaps for job in read.rows] == [()] * len(rows)
    for job, row in zip(read.rows, rows, strict=True):
        assert (job.job_id, job.user, job.owner, job.account, job.partition, job.qos) == (
            row.job_id, row.user, row.uid, row.account, row.partition, row.qos,
        )  # fmt: skip
        assert (job.state, job.submitted, job.start, job.end, job.elapsed) == (
            row.state, row.submitted, row.started, row.ended, row.elapsed,
        )  # fmt: skip
        assert job.limit_seconds == (None if row.limit == NO_LIMIT else row.limit)
        assert job.has_own_limit == (row.limit is not None)
        assert job.tres == row.requested_tres


@given(st.lists(runs(), max_size=5))
def test_runs_are_read_back_from_json_as_from_text(rows: list[AccountingLine]) -> None:
    text = parser.JOBS.read(_printed_for(parser.JOBS, rows)).rows
    read = parser.read_json(accounting_json.accounting(rows).encode())
    assert read.unreadable == ()
    # JSON has no uids, but the count of restarts.
    expected = [msgspec.structs.replace(job, owner=None, restart=0) for job in text]
    assert list(read.rows) == expected


@given(st.lists(runs(), max_size=5))
def test_ends_and_groups_are_read_back(rows: list[AccountingLine]) -> None:
    steps = [row._replace(step="batch") for row in rows]
    ends = parser.JOB_ENDS.read(_printed_for(parser.JOB_ENDS, [*rows, *steps]))
    assert list(ends.rows) == [
        JobEnd(
            job_id=row.job_id,
            submitted=row.submitted or 0,
            exit_code=row.exit_code,
            # sacct prints no fractions from an hour on
            cpu_seconds=((cpu + 500) // 1000 if cpu < 3_600_000 else cpu // 1000) if cpu else None,
        )
        for row in rows
        for cpu in [row.total_cpu or 0]
    ]
    groups = parser.JOB_GROUPS.read(_printed_for(parser.JOB_GROUPS, rows))
    assert list(groups.rows) == [JobGroup(row.job_id, row.gid or 0) for row in rows]


# --- columns and formats ---

USED = TaskUsage(4_194_304, "c01", 3, 1_048_576)
STEP = AccountingLine(
    7, "7", "0", name="mping", state="RUNNING", tasks=4, processor=TaskUsage(61, "c02", 1, 90),
    virtual=USED, resident=USED, pids="301,302", nodes="c[01-02]",
)  # fmt: skip


def test_usage_of_steps_is_shown_with_units() -> None:
    form = "mincpu,avecpu,maxrss,maxrssnode,maxrsstask,maxpages,consumedenergyraw,ntasks"
    assert table([STEP], form, delimiter="|", header=False) == ("00:01:01|00:01:30|4M|c01|3||0|4\n")
    form = "jobid,maxrss,nodelist,pids"
    assert table([STEP], form, SSTAT, delimiter="|", header=False) == ("7.0|4M|c[01-02]|301,302\n")
    assert table([ALIGN], "maxrss,mincpu,avecpufreq", delimiter="|", header=False) == "||\n"


@pytest.mark.parametrize(
    ("columns", "forms"),
    [
        (SACCT, (sacct.FORMAT, sacct.BRIEF_FORMAT, sacct.LONG_FORMAT)),
        (SSTAT, (sacct.STAT_FORMAT, sacct.PIDS_FORMAT)),
    ],
    ids=["sacct", "sstat"],
)
def test_default_formats_name_columns_that_show_any_row(
    columns: Columns, forms: tuple[str, ...]
) -> None:
    for form in (*forms, "all"):
        for row in (STEP, ALIGN, AccountingLine(7, "7")):
            heads, cells = table([row], form, columns, delimiter="|").splitlines()
            assert heads.count("|") == cells.count("|")
            _, dashes, line = table([row], form, columns).splitlines()
            assert len(line) >= len(dashes)
    assert len(parse_fields("ALL", columns)) == len(columns)


def test_list_of_columns_has_four_in_a_line() -> None:
    first, *_, last = field_list(SACCT).splitlines()
    assert (
        first == "Account             AdminComment        AllocCPUS           AllocNodes         "
    )
    assert last == "WCKeyID             WorkDir            "
    assert (len(SACCT), len(SSTAT)) == (118, 51)


def test_names_may_be_cut_short_and_have_a_width() -> None:
    fields = parse_fields("jobn%5,state%-12,,time,MaxRSS%20x", SACCT)
    assert [(field.name, field.width) for field in fields] == [
        ("JobName", 5), ("State", -12), ("Timelimit", 10), ("MaxRSS", 20),
    ]  # fmt: skip
    row = ALIGN._replace(name="alignment", limit=90_000)
    assert table([row], "jobn%5,state%-12,time", header=False) == (
        "alig+ COMPLETED    1-01:00:00 \n"
    )


def test_format_without_columns_prints_empty_lines() -> None:
    assert table([ALIGN], "") == "\n\n\n"
    assert table([ALIGN], ",", delimiter="|", header=False) == "\n"


def test_unknown_column_is_refused_in_the_words_of_sacct() -> None:
    with pytest.raises(InvalidInput, match='Invalid field requested: "speed"'):
        parse_fields("jobid,speed%20", SACCT)


def test_text_is_cut_with_a_plus_a_time_without_and_numbers_widen() -> None:
    row = ALIGN._replace(
        state="CANCELLED", cancelled_by=1000, submitted=1_000_000_000, elapsed=90_061, cpus=123_456
    )
    assert table([row], "state,submit%10,elapsed%5,alloccpus%3", header=False) == (
        "CANCELLED+ 2001-09-09 1-01:01:01 123456 \n"
    )


def test_cells_tell_what_is_not_known_from_what_never_was() -> None:
    form = "start,end,nodelist,timelimit,timelimitraw,exitcode"
    waits = AccountingLine(1, "1")
    never = waits._replace(state="CANCELLED", ended=1_000_000_000, limit=NO_LIMIT)
    step = waits._replace(step="0", exit_code=(130, 0))
    assert table([waits, never, step], form, delimiter="|", header=False) == (
        "Unknown|Unknown|None assigned|Partition_Limit|Partition_Limit|0:0\n"
        "None|2001-09-09T01:46:40|None assigned|UNLIMITED|UNLIMITED|0:0\n"
        "Unknown|Unknown||||2:0\n"
    )


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "00:00:00"), (61_250, "01:01.250"), (61_000, "00:01:01"), (3_600_250, "01:00:00"),
     (90_061_000, "1-01:01:01")],
    ids=str,
)  # fmt: skip
def test_processor_time_has_a_fraction_below_an_hour(milliseconds: int, text: str) -> None:
    row = ALIGN._replace(total_cpu=milliseconds)
    assert table([row], "totalcpu", delimiter="|", header=False) == f"{text}\n"
