"""Reading and writing of traces: each value of a trace reaches the reader."""

from __future__ import annotations

import gzip
import re
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.time import LAST_INSTANT
from fairbank.simulator.traces.header import (
    LABEL_LIMIT,
    NAMES,
    NUMBERS,
    PROCESSORS_MAX,
    TEXTS,
    Header,
)
from fairbank.simulator.traces.job_line import LARGEST, Status, SwfJob
from fairbank.simulator.traces.swf import NumberedLines, read, write

A_DAY_AT_A_SMALL_CENTRE = b"""\
; Version: 2.2
; Computer: two racks
;   in the cellar
; Acknowledge: Ada
; Acknowledge: Grace
; UnixStartTime: 843466800
; MaxNodes: 50 (two processors each)
; MaxProcs: 100
; MaxRuntime: UNKNOWN
; MaxQueues: 2
; Queue: 1 short (one hour)
; Queue: 2 long
; Partition: 1 cpu
; NodeFailures: 3
; Note: the first
;
; Note: and the second

  1   0    5  3477    4 3000    -1  4  3600 2048 1 12 7 1 1 1 -1 -1
  2   0   -1    -1   -1   -1    -1 16   600   -1 5 12 7 1 1 1 -1 -1
; the power came back
  3  60    0   120    8   -1    -1 -1    -1   -1 0 14 8 2 2 1  1 30
"""


def test_trace_is_a_header_and_its_jobs() -> None:
    header, jobs = read(BytesIO(A_DAY_AT_A_SMALL_CENTRE))
    assert header == Header(
        version="2.2",
        computer="two racks",
        acknowledge="Ada; Grace",
        unix_start_time=843_466_800,
        max_nodes=50,
        max_procs=100,
        queues={1: "short (one hour)", 2: "long"},
        partitions={1: "cpu"},
        node_failures=frozenset({3}),
        notes=("the first", "and the second"),
    )
    first, second, third = jobs
    assert first == SwfJob(1, 0, 5, 3477, 4, 3000, -1, 4, 3600, 2048, 1, 12, 7, 1, 1, 1, -1, -1)
    assert (first.processors, first.time_limit, first.start_time, first.end_time) == (
        4,
        3600,
        5,
        3482,
    )
    assert second.status == Status.CANCELLED
    assert (second.processors, second.start_time, second.end_time) == (16, 0, None)
    assert (third.processors, third.time_limit, third.end_time) == (8, None, 180)
    assert (third.preceding_job, third.think_time) == (1, 30)


def line(**columns: int | str) -> bytes:
    """Return a valid job line with other values in the given columns."""
    job = dict(
        zip(SwfJob._fields, "1 0 0 60 4 -1 -1 4 600 -1 1 1 1 -1 1 1 -1 -1".split(), strict=True)
    )
    return " ".join(str(value) for value in (job | columns).values()).encode() + b"\n"


def only(trace: bytes) -> SwfJob:
    (job,) = read(BytesIO(trace)).jobs
    return job


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (line(run_time="59.4"), {"run_time": 59}),
        (line(run_time="59.5"), {"run_time": 60}),
        (
            line(submit_time="0.", average_cpu_time="12.75", used_memory="0.5"),
            {"average_cpu_time": 13, "used_memory": 1},
        ),
        (line(run_time=-1_359_980_917), {"run_time": -1}),
        (line(wait_time=-7, think_time="-2.5"), {"wait_time": -1, "think_time": -1}),
        (
            line(requested_processors=-1, allocated_processors=-1),
            {"requested_processors": -1, "allocated_processors": -1},
        ),
        (line(user=LARGEST), {"user": LARGEST}),
        (line().replace(b" ", b"\t").replace(b"\n", b"\r\n"), {}),
        (line().rstrip(), {}),
    ],
)
def test_standard_forms_are_accepted(written: bytes, meant: dict[str, int]) -> None:
    assert only(written) == only(line())._replace(**meant)


def test_job_with_no_processors_says_so() -> None:
    assert only(line(requested_processors=-1, allocated_processors=0)).processors is None


def test_parts_of_a_run_are_distinguished_from_the_whole() -> None:
    parts = [status for status in Status if only(line(status=status)).is_part]
    assert parts == [Status.PART, Status.LAST_PART_COMPLETED, Status.LAST_PART_FAILED]


def test_nothing_at_all_is_a_trace_of_no_jobs() -> None:
    for nothing in (b"", b"\n", b"; MaxProcs: 4"):
        assert list(read(BytesIO(nothing)).jobs) == []


def test_jobs_are_read_when_they_are_asked_for() -> None:
    jobs = read(BytesIO(line() + line(number=2) + b"nonsense\n")).jobs
    assert [next(jobs).number, next(jobs).number] == [1, 2]
    with pytest.raises(InvalidInput, match="line 3"):
        next(jobs)


def test_compressed_trace_reads_the_same() -> None:
    packed = BytesIO(gzip.compress(A_DAY_AT_A_SMALL_CENTRE))
    with gzip.open(packed) as stream:
        assert list(read(stream).jobs) == list(read(BytesIO(A_DAY_AT_A_SMALL_CENTRE)).jobs)


@pytest.mark.parametrize("text", ["", " padded", "two\nlines", "bell\a", "x" * (LABEL_LIMIT + 1)])
def test_text_that_would_break_a_header_is_not_written(text: str) -> None:
    with pytest.raises(
        InvalidInput, match=r"Computer: .* cannot stand in a header comment"
    ) as error:
        list(write(Header(computer=text), []))
    assert re.fullmatch(
        r"write one line of printable characters, at most 1000, with no blanks around it",
        error.value.remedy or "",
    )


def test_nothing_is_written_that_could_not_be_read() -> None:
    late = only(line(submit_time=9))
    with pytest.raises(InvalidInput, match="line 3: submit time 0 comes after submit time 9"):
        list(write(Header(max_procs=4), [late, late._replace(number=2, submit_time=0)]))
    with pytest.raises(InvalidInput, match="line 1: run time is -2"):
        list(write(Header(), [late._replace(run_time=-2)]))


word = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=15)
text = st.lists(word, min_size=1, max_size=3).map(" ".join)
count = st.integers(0, LAST_INSTANT)
names = st.dictionaries(count, text, max_size=4)
headers = st.builds(
    Header,
    **dict.fromkeys(TEXTS.values(), st.none() | text),
    **dict.fromkeys(NUMBERS.values(), st.none() | st.integers(0, PROCESSORS_MAX)),
    **dict.fromkeys(NAMES.values(), names),
    node_failures=st.frozensets(count, max_size=50),
    notes=st.lists(text, max_size=3).map(tuple),
)
column = st.integers(-1, 20) | st.integers(-1, 2**36)
processors = st.integers(-1, 20) | st.integers(
    -1, 2**19
)  # for 2**36 s each they still cost what the bank can count
columns = dict.fromkeys(SwfJob._fields, column) | {
    "number": count,
    "submit_time": st.integers(0, 2**36),
}
columns |= {"allocated_processors": processors, "requested_processors": processors}
rows = st.lists(st.builds(SwfJob, **columns), max_size=20)


@given(headers, rows)
def test_written_trace_reads_back(header: Header, some: list[SwfJob]) -> None:
    some.sort(key=lambda job: job.submit_time)
    trace = read(BytesIO("".join(write(header, some)).encode()))
    assert trace.header == header
    assert list(trace.jobs) == some


def test_mark_that_some_editors_begin_a_file_with_is_passed_over() -> None:
    assert read(BytesIO(b"\xef\xbb\xbf; MaxProcs: 8\n")).header.max_procs == 8


@given(
    st.lists(st.sampled_from([b"", b"1", b"22 22", b"; a long remark\r"])),
    st.booleans(),
    st.integers(1, 40),
)
def test_lines_in_blocks_are_the_lines_one_by_one(
    lines: list[bytes], ended: bool, size: int
) -> None:
    text = b"\xef\xbb\xbf" + b"\n".join([b"the first", *lines]) + b"\n" * ended
    one_by_one, many = list(NumberedLines(BytesIO(text))), NumberedLines(BytesIO(text))
    first = next(many)
    many.put_back(first[1])
    blocks = [list(many.each_of(number, block)) for number, block in many.blocks(size)]
    assert [line for block in blocks for line in block] == one_by_one
    assert first == one_by_one[0]
