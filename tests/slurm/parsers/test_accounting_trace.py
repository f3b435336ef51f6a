"""Traces from sacct output: columns in any order, with every value that Slurm and its users
write.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.simulator.traces.fast_reader import FastTrace
from fairbank.simulator.traces.swf import NumberedLines
from fairbank.slurm.parsers.traces import sacct_trace
from fairbank.slurm.parsers.traces.sacct_trace import is_accounting, read_accounting_trace

GOLDEN = Path(__file__).parents[2] / "golden" / "slurm-22.05"
HEADER = (
    "JobIDRaw|Submit|Start|End|ElapsedRaw|State|User|Account|Partition|TimelimitRaw|"
    "AllocTRES|ReqTRES"
)
TIMES = "2026-11-21T08:00:00|2026-11-21T08:00:10|2026-11-21T08:01:10"
VALID = f"7|{TIMES}|60|COMPLETED|alice|astro|cpu|30|billing=4,cpu=4,mem=4G,node=1|cpu=2,mem=4G"
EIGHT_OCLOCK = 1_795_248_000  # 2026-11-21T08:00:00Z


def read_trace(*rows: str, header: str = HEADER) -> FastTrace:
    return read_accounting_trace(NumberedLines(BytesIO("\n".join([header, *rows, ""]).encode())))


def changed_row(**cells: str) -> str:
    """Return the valid line with changed cells."""
    row = dict(zip(HEADER.split("|"), VALID.split("|"), strict=True)) | cells
    return "|".join(row.values())


def test_job_has_its_recorded_values() -> None:
    """The row has job id, submit time, run time, CPUs and limit, then user, account and partition
    as numbers of this trace.
    """
    trace = read_trace(VALID)
    assert list(trace.jobs) == [(7, EIGHT_OCLOCK, 60, 4, 4, 1800, -1, 1, 1, 1)]
    assert trace.names is not None
    assert (trace.names.users.name(1), trace.names.groups.name(1)) == ("alice", "astro")
    assert (trace.notes.omitted, trace.notes.corrections) == ({}, {})


@pytest.mark.parametrize(
    ("header", "line"),
    [
        (
            "Submit|State|JobID|Elapsed|NCPUS|Timelimit|User|Account|Partition",
            "2026-11-21T08:00:00|COMPLETED|7|00:01:00|4|00:30:00|alice|astro|cpu",
        ),
        (
            "User|JobName|JobID|JobIDRaw|Submit|Start|End|State|Timelimit|AllocCPUS|Group|QOS|"
            "Partition",
            "alice|wrap|5_2|7|1795248000|2026-11-21T08:00:10|2026-11-21T08:01:10|TIMEOUT|"
            "0-00:30:00|4|astro|high|cpu",
        ),
        (f"{HEADER}|", f"{VALID}|"),
        (HEADER.replace("|", "\x1f"), VALID.replace("|", "\x1f")),
        (HEADER.replace("|", "~~"), VALID.replace("|", "~~")),
    ],
    ids=[
        "few columns",
        "other columns",
        "parsable",
        "a control character as delimiter",
        "a long delimiter",
    ],
)
def test_header_names_the_columns(header: str, line: str) -> None:
    assert list(read_trace(line, header=header).jobs) == [
        (7, EIGHT_OCLOCK, 60, 4, 4, 1800, -1, 1, 1, 1)
    ]


@pytest.mark.parametrize(
    ("cells", "run", "sizes"),
    [
        ({"ElapsedRaw": "0"}, 0, (4, 4, 1800)),
        ({"State": "CANCELLED by 1000", "ElapsedRaw": "0", "AllocTRES": ""}, -1, (-1, 2, 1800)),
        ({"State": "CANCELLED by 1000", "ElapsedRaw": "0"}, 0, (4, 4, 1800)),
        (
            {
                "State": "PENDING",
                "Start": "Unknown",
                "End": "Unknown",
                "ElapsedRaw": "0",
                "AllocTRES": "",
            },
            -1,
            (-1, 2, 1800),
        ),
        ({"State": "RUNNING", "End": "Unknown"}, -1, (4, 4, 1800)),
        (
            {"State": "CANCELLED", "Start": "None", "ElapsedRaw": "0", "AllocTRES": ""},
            -1,
            (-1, 2, 1800),
        ),
        ({"State": "REQUEUED"}, 60, (4, 4, 1800)),
        ({"TimelimitRaw": "UNLIMITED"}, 60, (4, 4, -1)),
        ({"TimelimitRaw": "Partition_Limit"}, 60, (4, 4, -1)),
        ({"TimelimitRaw": ""}, 60, (4, 4, -1)),
        ({"AllocTRES": "", "ReqTRES": ""}, 60, (-1, -1, 1800)),
        ({"AllocTRES": "billing=1,node=1"}, 60, (-1, 2, 1800)),
        ({"JobIDRaw": "7", "User": "", "Account": "", "Partition": ""}, 60, (4, 4, 1800)),
    ],
)
def test_missing_values_are_unknown(
    cells: dict[str, str], run: int, sizes: tuple[int, int, int]
) -> None:
    [job] = read_trace(changed_row(**cells)).jobs
    assert (job[2], job[3:6]) == (run, sizes)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"ElapsedRaw": "-60"}, "ElapsedRaw cannot be read"),
        ({"ElapsedRaw": "1e3"}, "ElapsedRaw cannot be read"),
        ({"ElapsedRaw": "99999999999"}, "ElapsedRaw cannot be read"),
        ({"Submit": "Unknown"}, "Submit cannot be read"),
        ({"Submit": "yesterday"}, "Submit cannot be read"),
        ({"JobIDRaw": "seven"}, "JobIDRaw cannot be read"),
        ({"JobIDRaw": "99999999999"}, "JobIDRaw cannot be read"),
        ({"State": "done"}, "State cannot be read"),
        ({"AllocTRES": "cpu=many"}, "AllocTRES cannot be read"),
        ({"AllocTRES": "cpu=0.5"}, "AllocTRES cannot be read"),
        ({"TimelimitRaw": "-5"}, "TimelimitRaw cannot be read"),
        ({"End": "2026-11-21T08:00:05"}, "ended before it started"),
        ({"Start": "2026-11-21T07:59:59"}, "started before it was submitted"),
        ({"ElapsedRaw": "61"}, "ran longer than from its start to its end"),
        ({"User": "al|ice"}, "number of cells differs from the header"),
    ],
)
def test_impossible_rows_are_omitted_with_their_line(cells: dict[str, str], reason: str) -> None:
    trace = read_trace(VALID, changed_row(**cells), changed_row(JobIDRaw="8"))
    assert [job[0] for job in trace.jobs] == [7, 8]
    assert trace.notes.omitted == {reason: [3]}


def test_name_with_line_end_gives_two_broken_lines() -> None:
    trace = read_trace(changed_row(User="al\nice"), changed_row(JobIDRaw="8"))
    assert [job[0] for job in trace.jobs] == [8]
    assert trace.notes.omitted == {"number of cells differs from the header": [2, 3]}


def test_suspension_is_not_run_time() -> None:
    """The job ran for 20 of the 60 s; Slurm's Elapsed excludes the suspension."""
    trace = read_trace(f"{changed_row(ElapsedRaw='20')}|00:00:40", header=f"{HEADER}|Suspended")
    assert [job[2] for job in trace.jobs] == [20]
    assert trace.notes.corrections == {"suspended for a while: simulated without the pause": 1}


def test_steps_are_left_out() -> None:
    batch = changed_row(JobIDRaw="7.batch", User="", Partition="", TimelimitRaw="", ReqTRES="")
    trace = read_trace(VALID, batch, changed_row(JobIDRaw="7.0"))
    assert [job[0] for job in trace.jobs] == [7]
    assert trace.notes.corrections == {"steps of jobs: left out": 2}


def test_each_restart_is_an_execution() -> None:
    again = changed_row(
        Submit="2026-11-21T08:01:10",
        Start="2026-11-21T08:02:00",
        End="2026-11-21T08:02:05",
        ElapsedRaw="5",
    )
    trace = read_trace(changed_row(State="NODE_FAIL"), again)
    assert [(job[0], job[1], job[2]) for job in trace.jobs] == [
        (7, EIGHT_OCLOCK, 60),
        (7, EIGHT_OCLOCK + 70, 5),
    ]


def resized_records(*, from_the_start: bool) -> list[str]:
    """Return three records: 60 s with 4 CPUs, 30 s with 8, 10 s with 2."""
    rows, at = [], 10
    for seconds, cpus, state in ((60, 4, "RESIZING"), (30, 8, "RESIZING"), (10, 2, "COMPLETED")):
        start = 10 if from_the_start else at
        rows.append(
            changed_row(
                Submit=f"@{EIGHT_OCLOCK + (0 if at == 10 else at)}",
                Start=f"@{EIGHT_OCLOCK + start}",
                End=f"@{EIGHT_OCLOCK + at + seconds}",
                ElapsedRaw=str(at + seconds - start),
                State=state,
                AllocTRES=f"cpu={cpus}",
            )
        )
        at += seconds
    return rows


@pytest.mark.parametrize("from_the_start", [True, False])
def test_records_of_a_resized_job_are_one_execution(from_the_start: bool) -> None:
    rows = resized_records(from_the_start=from_the_start)
    other = changed_row(JobIDRaw="8", Submit=f"@{EIGHT_OCLOCK + 5}")
    for order in (rows, rows[::-1], [rows[0], other, *rows[1:]]):
        trace = read_trace(*order)
        assert next(trace.jobs)[:6] == (7, EIGHT_OCLOCK, 100, 8, 8, 1800)
        assert [job[0] for job in trace.jobs] == [8] * (other in order)
        assert (trace.notes.omitted, trace.notes.corrections) == ({}, {sacct_trace.RESIZED: 1})


@pytest.mark.parametrize("from_the_start", [True, False])
def test_resized_job_in_two_files_counts_once(from_the_start: bool) -> None:
    rows = resized_records(from_the_start=from_the_start)
    running = rows[2].replace("COMPLETED", "RUNNING").replace(f"@{EIGHT_OCLOCK + 110}", "Unknown")
    trace = read_trace(*rows[:2], running, HEADER, *rows)
    assert [(job[0], job[2]) for job in trace.jobs] == [(7, 100)]
    assert sorted(trace.notes.omitted[sacct_trace.TWICE]) == [4, 6, 7]


def test_resized_job_without_its_last_record_is_omitted() -> None:
    trace = read_trace(*resized_records(from_the_start=True)[:2])
    assert (list(trace.jobs), trace.notes.omitted) == (
        [],
        {"resized, and the record of the rest is missing": [2]},
    )


def test_files_of_two_months_may_overlap() -> None:
    """A job that ran over midnight is in both files, once as running; one that ended that day is in
    both with the same values. The second file has its own header.
    """
    late = changed_row(
        JobIDRaw="9",
        Submit="2026-11-21T09:00:00",
        Start="2026-11-21T09:00:00",
        End="2026-11-21T09:01:00",
    )
    running = late.replace("COMPLETED", "RUNNING").replace("2026-11-21T09:01:00", "Unknown")
    trace = read_trace(VALID, running, HEADER, VALID, late)
    assert [(job[0], job[2]) for job in trace.jobs] == [(7, 60), (9, -1), (9, 60)]
    assert trace.notes.omitted == {"the same execution once more": [5]}


def test_jobs_are_sorted_by_submission() -> None:
    """Slurm numbers array tasks when they start, so they stand after jobs that were submitted
    later. Jobs of the same second keep the order of the file.
    """
    rows = [
        changed_row(JobIDRaw=str(number), Submit=f"2026-11-21T08:00:0{second}")
        for number, second in [(1, 5), (2, 0), (3, 5), (4, 2)]
    ]
    assert [job[0] for job in read_trace(*rows).jobs] == [2, 4, 1, 3]


def test_late_submission_is_reported_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sacct_trace, "WINDOW", 2)
    rows = [
        changed_row(JobIDRaw=str(number), Submit=f"2026-11-21T08:00:0{9 - number}")
        for number in range(1, 6)
    ]
    with pytest.raises(
        InvalidInput, match="line 5: submitted before a job that stands more than 2 lines ahead"
    ) as error:
        list(read_trace(*rows).jobs)
    assert "sort -s -t '|' -k 2,2" in (error.value.remedy or "")


def test_memory_does_not_grow_with_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sacct_trace, "WINDOW", 64)

    def endless() -> Iterator[tuple[int, bytes]]:
        yield 1, HEADER.encode()
        for number in range(2, 12_000):
            yield (
                number,
                changed_row(
                    JobIDRaw=str(number), Submit=f"@{EIGHT_OCLOCK + number}", Start="", End=""
                ).encode(),
            )

    tracemalloc.start()
    count = sum(1 for _ in read_accounting_trace(endless()).jobs)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 11_998
    assert peak < 1 << 20


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (HEADER.replace("Submit|", ""), "no column has when it was submitted"),
        (
            HEADER.replace("JobIDRaw|", ""),
            r"no column has the id of the job \(JobIDRaw, or JobID\)",
        ),
        (HEADER.replace("|State", ""), "no column has how it ended"),
        (
            "JobID|Submit|State|Start|AllocTRES",
            r"no column has how long it ran \(ElapsedRaw, or Elapsed, or Start and End\)",
        ),
        ("JobID|Submit|State|Elapsed", "no column has how many CPUs it had"),
        (f"{HEADER}|State", "a column is listed twice"),
        (VALID, "expected the names of columns"),
        ("JobID           JobName  Partition", "expected the names of columns"),
    ],
)
def test_incomplete_header_is_refused(header: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=f"line 1: .*{message}") as error:
        read_trace(VALID, header=header)
    assert "--parsable2" in (error.value.remedy or "")


@pytest.mark.parametrize(
    ("line", "accounting"),
    [
        (HEADER, True),
        (VALID, True),
        ("Submit,JobID,State", True),
        ("JobID           JobName  Partition", True),
        ("; Version: 2.2", False),
        ("; Note: a|b JobID", False),
        ("1 0 -1 10 4 -1 -1 4 20 -1 1 7 7 -1 1 1 -1 -1", False),
        ("", False),
    ],
)
def test_format_is_detected_from_the_first_line(line: str, accounting: bool) -> None:
    assert is_accounting(line.encode()) is accounting


def test_recorded_output_is_read() -> None:
    """The recording has names and comments with pipes and line ends, a component of a heterogeneous
    job, arrays, and requeued, failed, suspended and pending jobs.
    """
    with (GOLDEN / "sacct-duplicates.txt").open("rb") as file:
        trace = read_accounting_trace(NumberedLines(file))
        jobs = list(trace.jobs)
    assert [job[0] for job in jobs if job[2] == -1] == [19, 31, 32, 34, 35, 36, 38]
    assert [(job[0], job[2]) for job in jobs if job[0] in (19, 20, 21)] == [
        (19, 0),
        (20, 32),
        (21, 32),
        (19, -1),
        (21, 0),
    ]
    assert trace.notes.omitted == {
        "number of cells differs from the header": [3, 25, 26, 27, 28, 29]
    }
    assert trace.notes.corrections == {"suspended for a while: simulated without the pause": 1}


def test_recorded_steps_change_nothing() -> None:
    def jobs(name: str) -> list[tuple[int, ...]]:
        with (GOLDEN / name).open("rb") as file:
            return list(read_accounting_trace(NumberedLines(file)).jobs)

    alone = {job[0]: job for job in jobs("sacct.txt")}
    with_steps = {job[0]: job for job in jobs("sacct-steps.txt")}
    assert {number: job for number, job in with_steps.items() if number in alone} == alone
