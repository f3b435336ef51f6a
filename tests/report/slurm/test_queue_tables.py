"""squeue and sinfo: tables as a real Slurm printed them, and read back by the parsers."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.time import parse_instant
from fairbank.report.slurm import sinfo, squeue
from fairbank.report.slurm.job_rows import NO_LIMIT, JobLine
from fairbank.report.slurm.layout import (
    Columns,
    SlurmColumn,
    lines,
    parse_letters,
    parse_names,
    table,
)
from fairbank.report.slurm.machine_rows import PartitionLine
from fairbank.report.slurm.notation import (
    JOB_FLAGS,
    JOB_STATES,
    RELATIVE,
    Notation,
    date_line,
    time,
)
from fairbank.report.slurm.sinfo import Counts, NodeGroup
from fairbank.slurm.parsers import squeue as parser
from fairbank.slurm.parsers.squeue import HeldJob, StartingJob, WaitingJob
from fairbank.slurm.parsers.values import PendingOwner, QueuedJob

GOLDEN = Path(__file__).parents[2] / "golden"
HERE = Notation()
MORNING = parse_instant("2026-11-21T07:30:27")


def printed(rows: list[JobLine], form: str, *, header: bool = False) -> str:
    parse = parse_letters if "%" in form else parse_names
    made = lines(rows, parse(form, squeue.COLUMNS), HERE, header=header)
    return "".join(f"{line}\n" for line in made)


# --- as recorded ---

JOBS = [
    JobLine(25, "after", "alice", partition="cpu", reason="Dependency", limit=600),
    JobLine(21, "render", "bob", partition="cpu", reason="Resources", node_count=6, limit=300),
    JobLine(
        23, "qc", "dave", partition="cpu", reason="JobHeldUser", limit=600,
        array_job=23, tasks_left="1-6%2",
    ),
    JobLine(
        18, "fit", "alice", partition="cpu", state="RUNNING", elapsed=38, limit=600,
        node_count=2, nodes="c[01-02]",
    ),
    JobLine(22, "fold", "carol", partition="gpu", reason="Resources", node_count=4, limit=7200),
    JobLine(
        19, "align", "bob", partition="gpu", state="RUNNING", elapsed=69, limit=1800, nodes="g01"
    ),
]  # fmt: skip

# Printed by Slurm 22.05 (docs/howto/develop.md); the form of 24.11 is the same.
DEFAULT = """\
             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
                25       cpu    after    alice PD       0:00      1 (Dependency)
                21       cpu   render      bob PD       0:00      6 (Resources)
        23_[1-6%2]       cpu       qc     dave PD       0:00      1 (JobHeldUser)
                18       cpu      fit    alice  R       0:38      2 c[01-02]
                22       gpu     fold    carol PD       0:00      4 (Resources)
                19       gpu    align      bob  R       1:09      1 g01
"""
LONG = """\
             JOBID PARTITION     NAME     USER    STATE       TIME TIME_LIMI  NODES NODELIST(REASON)
                25       cpu    after    alice  PENDING       0:00     10:00      1 (Dependency)
                21       cpu   render      bob  PENDING       0:00      5:00      6 (Resources)
        23_[1-6%2]       cpu       qc     dave  PENDING       0:00     10:00      1 (JobHeldUser)
                18       cpu      fit    alice  RUNNING       0:38     10:00      2 c[01-02]
                22       gpu     fold    carol  PENDING       0:00   2:00:00      4 (Resources)
                19       gpu    align      bob  RUNNING       1:09     30:00      1 g01
"""
START = """\
             JOBID PARTITION     NAME     USER ST          START_TIME  NODES SCHEDNODES\
           NODELIST(REASON)
                21       cpu   render      bob PD 2026-11-21T07:35:59      6 c[03-08]\
             (Resources)
                25       cpu    after    alice PD                 N/A      1 (null)\
               (Dependency)
"""


@pytest.mark.parametrize(
    ("form", "text"), [(squeue.FORMAT, DEFAULT), (squeue.LONG_FORMAT, LONG)], ids=["short", "long"]
)
def test_queue_is_printed_as_squeue_prints_it(form: str, text: str) -> None:
    assert printed(JOBS, form, header=True) == text


def test_expected_starts_are_printed_as_squeue_prints_them() -> None:
    after, render, *_ = JOBS
    starts = [render._replace(started=MORNING + 332, planned_nodes="c[03-08]"), after]
    assert printed(starts, squeue.START_FORMAT, header=True) == START
    assert date_line(MORNING + 70, HERE) == "Sat Nov 21 07:31:37 2026"


CPU = PartitionLine("cpu", is_default=True, max_time=7 * 86_400)
GPU = PartitionLine("gpu", max_time=7 * 86_400)
GROUPS = [
    NodeGroup(CPU, "ALLOCATED", "c[01-08]", node_counts=Counts(8, 0, 0, 8)),
    NodeGroup(CPU, "IDLE", "c[09-12]", node_counts=Counts(0, 4, 0, 4)),
    NodeGroup(GPU, "PLANNED", "g[02-04]", node_counts=Counts(0, 3, 0, 3)),
    NodeGroup(GPU, "MIXED", "g01", node_counts=Counts(1, 0, 0, 1)),
]
NODES = [
    NodeGroup(
        CPU, "ALLOCATED", "c01", node_counts=Counts(1, 0, 0, 1), cpus=(32, 32), sockets=(2, 2),
        cores=(16, 16), memory=(192_000, 192_000), features="cpu",
    ),
    NodeGroup(
        GPU, "PLANNED", "g02", node_counts=Counts(0, 1, 0, 1), cpus=(48, 48), sockets=(2, 2),
        cores=(24, 24), memory=(512_000, 512_000), weight=(10, 10), features="gpu",
    ),
]  # fmt: skip
SINFO = {
    sinfo.FORMAT: """\
PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
cpu*         up 7-00:00:00      8  alloc c[01-08]
cpu*         up 7-00:00:00      4   idle c[09-12]
gpu          up 7-00:00:00      3   plnd g[02-04]
gpu          up 7-00:00:00      1    mix g01
""",
    sinfo.LONG_NODE_FORMAT: """\
NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON\
              \n\
c01            1      cpu*   allocated 32     2:16:1 192000        0      1      cpu none\
                \n\
g02            1       gpu     planned 48     2:24:1 512000        0     10      gpu none\
                \n""",
    sinfo.REASON_FORMAT: "REASON               USER      TIMESTAMP           NODELIST\n",
}


@pytest.mark.parametrize(
    ("form", "groups"),
    [(sinfo.FORMAT, GROUPS), (sinfo.LONG_NODE_FORMAT, NODES), (sinfo.REASON_FORMAT, [])],
    ids=["default", "nodes", "reasons"],
)
def test_nodes_are_printed_as_sinfo_prints_them(form: str, groups: list[NodeGroup]) -> None:
    made = lines(groups, sinfo.default_format(form, groups), HERE)
    assert "".join(f"{line}\n" for line in made) == SINFO[form]


def test_long_partition_widens_the_default_columns_only() -> None:
    groups = [NodeGroup(PartitionLine("a-long-partition", is_default=True))]
    first, second = lines(groups, sinfo.default_format(sinfo.SUMMARY_FORMAT, groups), HERE)
    assert first.startswith("PARTITION         AVAIL")
    assert second.startswith("a-long-partition*    up")
    (cut,) = lines(groups, parse_letters("%6P|%.6P|%R", sinfo.COLUMNS), HERE, header=False)
    assert cut == "a-lon*|a-lon*|a-long-partition"


def test_groups_of_different_nodes_show_their_range() -> None:
    group = NodeGroup(
        PartitionLine("x", min_nodes=0, max_nodes=4, sharing="FORCE:4"), "DOWN*",
        cpus=(2048, 4096), memory=(1000, 2000), load=(5, 250), cpu_counts=Counts(1, 2, 3, 6),
    )  # fmt: skip
    form = parse_letters("%c %m %O %e %C %s %h %t %T %l %L %E %u %H", sinfo.COLUMNS)
    assert list(lines([group], form, HERE, header=False)) == [
        "2K+ 1000+ 0.05-2.50 N/A 1/2/3/6 1-4 FORCE:4 down* down* infinite n/a none Unknown Unknown"
    ]


@pytest.mark.parametrize(
    "file", sorted(GOLDEN.glob("slurm-*/squeue-runs.txt")), ids=lambda file: str(file.parent.name)
)
def test_recorded_queue_is_printed_again(file: Path) -> None:
    rows = [
        JobLine(
            job.job_id,
            submitted=job.submitted,
            **{"flag" if job.state in JOB_FLAGS else "state": job.state},  # type: ignore[arg-type]
        )
        for job in parser.QUEUE.read(file.read_text()).rows
    ]
    assert printed(rows, parser.QUEUE_FORMAT) == file.read_text()


def test_recorded_waiting_jobs_are_printed_again() -> None:
    text = (GOLDEN / "slurm-22.05" / "waiting" / "waiting.txt").read_text()
    read = parser.read_waiting_jobs(text)
    assert read.unreadable == ()
    rows = [_waiting_line(job) for job in read.rows]
    parts = [line.partition("cpu=") for line in text.splitlines()]
    rows = [  # with the sentences and TRES that the parser shortens
        row._replace(requested_tres=f"cpu={tres.rstrip()}", description=before[-64:].rstrip())
        for row, (before, _, tres) in zip(rows, parts, strict=True)
    ]
    assert printed(rows, parser.WAITING_JOBS_FORMAT) == text


def _waiting_line(job: WaitingJob) -> JobLine:
    array, _, task = job.name.partition("_")
    return JobLine(
        job.job_id,
        user=job.user,
        account=job.account,
        partition=",".join(job.partitions),
        qos=job.qos,
        priority=job.priority,
        limit=NO_LIMIT if job.limit_seconds is None else job.limit_seconds,
        submitted=job.submitted,
        started=job.expected,
        reason=job.reason,
        array_job=int(array),
        task=int(task) if task.isdecimal() else None,
        tasks_left=task.strip("[]") if task.startswith("[") else "",
    )


# --- read back ---

NAMES = st.text("abcxyz_.-0129", min_size=1, max_size=40).map(lambda text: f"a{text}")
INSTANTS = st.integers(86_400, 2**32)
LIMITS = st.one_of(st.just(NO_LIMIT), st.integers(0, 365 * 86_400))


@st.composite
def jobs(draw: st.DrawFn) -> JobLine:
    job, task = draw(st.integers(1, 2**26)), draw(st.integers(0, 4_000))
    array = draw(
        st.sampled_from(
            [
                {},
                {"array_job": job, "task": task},
                {"array_job": job, "tasks_left": f"{task}-{task + 3}%2"},
            ]
        )
    )
    size = draw(st.tuples(*(st.integers(1, 9_999) for _ in range(3))))
    return JobLine(
        job,
        **array,  # type: ignore[arg-type]
        user=draw(NAMES),
        account=draw(NAMES),
        partition=draw(st.lists(NAMES, min_size=1, max_size=3).map(",".join)),
        qos=draw(NAMES),
        priority=draw(st.integers(0, 2**32 - 1)),
        limit=draw(LIMITS),
        submitted=draw(INSTANTS),
        started=draw(st.one_of(st.none(), INSTANTS)),
        reason=draw(st.sampled_from(["Resources", "Priority", "Allocation_exhausted"])),
        requested_tres="cpu={},mem=1000M,node={},billing=3,gres/gpu={}".format(*size),
        is_batch=draw(st.booleans()),
        admin_comment=draw(st.sampled_from([None, "Fairbank: ask your PI", "Fairbankers"])),
    )


def _finite(limit: int | None) -> int | None:
    return None if limit == NO_LIMIT else limit


@given(st.lists(jobs(), max_size=5))
def test_waiting_jobs_are_read_back(rows: list[JobLine]) -> None:
    read = parser.read_waiting_jobs(printed(rows, parser.WAITING_JOBS_FORMAT))
    assert read.unreadable == ()
    assert [
        (job.job_id, job.name, job.user, job.account, job.partitions, job.qos, job.priority)
        for job in read.rows
    ] == [
        (row.job_id, row.label, row.user, row.account, tuple(row.partition.split(",")), row.qos,
         row.priority)
        for row in rows
    ]  # fmt: skip
    assert [
        (job.limit_seconds, job.submitted, job.expected, job.reason, job.cpus, job.nodes, job.gpus)
        for job in read.rows
    ] == [(_finite(row.limit), row.submitted, row.started, row.reason, *_size(row)) for row in rows]


def _size(row: JobLine) -> tuple[int, ...]:
    counts = dict(part.split("=") for part in (row.requested_tres or "").split(","))
    return tuple(int(counts[name]) for name in ("cpu", "node", "gres/gpu"))


@given(st.lists(jobs(), max_size=5))
def test_queue_and_owners_are_read_back(rows: list[JobLine]) -> None:
    queue = parser.QUEUE.read(printed(rows, parser.QUEUE_FORMAT))
    assert list(queue.rows) == [
        QueuedJob(row.job_id, row.submitted or 0, row.shown_state) for row in rows
    ]
    owners = parser.WAITING.read(printed(rows, parser.WAITING_FORMAT))
    assert list(owners.rows) == [
        PendingOwner(row.job_id, row.account or "", row.qos or "", row.submitted or 0)
        for row in rows
    ]


@given(jobs())
def test_starting_and_held_jobs_are_read_back(row: JobLine) -> None:
    tres = (row.requested_tres or "").replace("billing=3,", "")
    assert parser.read_starting_job(printed([row], parser.STARTING_FORMAT)) == StartingJob(
        submitted=row.submitted or 0,
        start=row.started or row.submitted or 0,
        limit_seconds=_finite(row.limit),
        batch=row.is_batch,
        qos=row.qos,
        tres=tres,
    )
    held = parser.read_held_jobs(printed([row], parser.HELD_FORMAT))
    is_held = (row.reason, row.admin_comment) == (
        "Allocation_exhausted",
        "Fairbank: ask your PI",
    ) and not row.tasks_left
    assert list(held.rows) == [
        HeldJob(
            name=row.label,
            account=row.account or "",
            partition=row.partition,
            qos=row.qos,
            limit_seconds=limit,
            tres=tres,
            uid=row.uid,
        )
        for limit in [_finite(row.limit)]
        if is_held and limit is not None
    ]


# --- columns and formats ---


@pytest.mark.parametrize(
    ("columns", "row"),
    [(squeue.COLUMNS, JobLine(7)), (sinfo.COLUMNS, GROUPS[0])],
    ids=["squeue", "sinfo"],
)
def test_every_column_has_a_header_and_a_cell(columns: Columns, row: JobLine | NodeGroup) -> None:
    form = parse_names(",".join(f"{name.upper()}:0|" for name in columns), columns)
    heads, cells = (line.split("|") for line in lines([row], form, HERE))
    assert form.unknown == ()
    assert len(cells) == len(heads) == len(columns) + 1
    assert all(heads[:-1])


def test_letters_of_the_manual_are_known() -> None:
    """Letters of squeue(1) and sinfo(1), 24.11."""
    for columns, letters in (
        (squeue.COLUMNS, "AaBbCcDdEeFfGgHhIiJjKkLlMmNnOoPpQqRrSTtUuVvWwXxYyZz"),
        (sinfo.COLUMNS, "AaBbCcDdEeFfGgHhIiLlMmNnOoPpRrSsTtUuVvwXYzZ"),
    ):
        assert {column.letter for column in columns.values()} - {""} == set(letters)
        assert len(parse_letters("%all", columns).cells) == len(letters)


@pytest.mark.parametrize("state", [*JOB_STATES, *JOB_FLAGS])
def test_each_state_has_a_short_form(state: str) -> None:
    row = JobLine(1, flag=state) if state in JOB_FLAGS else JobLine(1, state=state)
    long, short = printed([row], "%T %t").split()
    assert (long, short) == (state, (JOB_STATES | JOB_FLAGS)[state])


def test_unknown_column_stands_for_itself_and_is_reported() -> None:
    form = parse_letters("<%i %5! %", squeue.COLUMNS)
    assert form.unknown == ("!",)
    assert list(lines([JobLine(7)], form, HERE, header=False)) == ["<7 %5! "]
    names = parse_names("JobID:4,speed:9 x,State", squeue.COLUMNS)
    assert names.unknown == ("speed",)
    assert list(lines([JobLine(7)], names, HERE)) == [
        "JOBI xSTATE               ",
        "7    xPENDING             ",
    ]


def test_wide_columns_and_formats_without_any_are_printed() -> None:
    assert printed([JobLine(7)], "%10000i|") == f"{7:<10000}|\n"
    assert printed([JobLine(7)], "JobID:.10000|") == f"{7:>10000}|\n"
    for form in ("", "text"):
        empty = lines([JobLine(7)], parse_letters(form, squeue.COLUMNS), HERE)
        assert list(empty) == [form, form]  # the header, too


def test_value_that_rows_share_is_written_once() -> None:
    written = list[object]()

    def write(value: str, notation: Notation) -> str:
        written.append(value)
        return value

    column = SlurmColumn("User", "user", write, letter="u")
    rows = [JobLine(number, user=user) for number, user in enumerate(("bob", "eve") * 100)]
    made = lines(rows, parse_letters("%.5u|", table(column)), HERE, header=False)
    assert [*made] == ["  bob|", "  eve|"] * 100
    assert written == ["bob", "eve"]


def test_pair_from_json_is_printed_as_one_from_the_core() -> None:
    for pair in ((3, 9), [3, 9]):
        row = JobLine(1)._replace(exit_code=pair)  # type: ignore[arg-type]
        assert printed([row], "exit_code:.5") == "  3:9\n"


def test_widths_count_bytes_and_cut_no_character() -> None:
    row = JobLine(7, "größer", user="zoë")
    assert printed([row], "%.4j|%4j|%.6u|%6u|%0u|") == "grö|grö|  zoë|zoë  |zoë|\n"
    assert printed([row], "%.3j|%3j") == " gr|gr \n"


def test_times_and_hosts_widen_a_right_column_but_no_left_one() -> None:
    row = JobLine(7, state="RUNNING", elapsed=90_061, limit=NO_LIMIT, nodes="c[01-12]")
    assert printed([row], "%.4M|%4M|%.4N|%4N|%.4l|%L") == (
        "1-01:01:01|1-01|c[01-12]|c[01|UNLI|UNLIMITED\n"
    )
    waits = JobLine(8, description="Nodes required are DOWN")
    assert printed([waits], "%.8R|%R|%r|%l|%S|%e") == (
        "(Nodes r|(Nodes required are DOWN)|Nodes required are DOWN|NOT_SET|N/A|N/A\n"
    )


def test_reason_is_shown_for_what_waits_or_failed_and_nodes_otherwise() -> None:
    for state, flag, shown in (
        ("PENDING", "", "(Priority)"),
        ("FAILED", "", "(Priority)"),
        ("FAILED", "COMPLETING", "c1"),
        ("COMPLETED", "", "c1"),
        ("RUNNING", "STAGE_OUT", "(Priority)"),
    ):
        row = JobLine(1, state=state, flag=flag, reason="Priority", nodes="c1")
        assert printed([row], "%R") == f"{shown}\n"


def test_sizes_take_the_largest_unit_that_keeps_them() -> None:
    sizes = {0: "0", 1000: "1000M", 1024: "1G", 2560: "2.50G", 1_048_576: "1T", 65_535: "65535M"}
    for size, text in sizes.items():
        assert printed([JobLine(1, least_memory=size)], "%m") == f"{text}\n"
    (whole,) = lines(
        [JobLine(1, least_memory=2048, least_cpus=2048)],
        parse_letters("%m %c", squeue.COLUMNS),
        Notation(shortens=False),
        header=False,
    )
    assert whole == "2048M 2048"


def test_times_have_the_zone_and_form_of_the_user() -> None:
    zone = datetime.fromisoformat("2026-11-21T00:00+02:00").tzinfo
    assert zone is not None
    form = parse_letters("%V", squeue.COLUMNS)
    row = JobLine(1, submitted=MORNING)
    assert list(lines([row], form, Notation(zone), header=False)) == ["2026-11-21T09:30:27"]
    assert list(lines([row], form, Notation(zone, "%H:%M"), header=False)) == ["09:30"]


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (0, "07:30:27"), (-1, "Ystday 07:30"), (1, "Tomorr 07:30"), (3, "Tue 07:30"),
        (7, "28 Nov 07:30"), (-20, "1 Nov 07:30"), (400, "26 Dec 2027"),
    ],
    ids=str,
)  # fmt: skip
def test_relative_times_leave_out_what_is_near(days: int, text: str) -> None:
    form = Notation(time_format=RELATIVE, now=MORNING + 3600)
    assert time(MORNING + days * 86_400, form) == text


def test_tables_need_no_package_but_the_standard_library() -> None:
    program = (
        "import sys; before = set(sys.modules);"
        "from fairbank.report.slurm import sacct, scontrol, sinfo, sprio, squeue, sshare;"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    command = [sys.executable, "-c", program]
    new = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert set(new) - sys.stdlib_module_names == {"fairbank"}
    assert not {"asyncio", "argparse", "fractions"} & set(new)
