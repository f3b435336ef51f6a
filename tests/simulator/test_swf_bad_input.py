"""Bad traces: a message with the line, the expected form and the remedy, for any bytes; and little
memory.
"""

from __future__ import annotations

import gzip
import subprocess
import tracemalloc
import zlib
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.simulator.traces.job_line import SORTING
from fairbank.simulator.traces.swf import LINE_LIMIT, REMARK_LIMIT, ByteStream, NumberedLines, read

GOOD = b"1 50 0 60 4 -1 -1 4 600 -1 1 1 1 -1 1 1 -1 -1\n"


def drain(stream: ByteStream) -> int:
    return sum(1 for _ in read(stream).jobs)


def changed(column: int, word: str) -> bytes:
    """Return a valid line with another word in `column`, counted from 1."""
    words = GOOD.decode().split()
    words[column - 1] = word
    return " ".join(words).encode() + b"\n"


@pytest.mark.parametrize(
    ("second_line", "message", "field", "remedy"),
    [
        (b"1 2 3\n", "3 columns, expected 18", None, "fill the columns"),
        (GOOD[:-7] + b"\n", "16 columns, expected 18", None, "fill the columns"),
        (GOOD.strip() + b" node7\n", "19 columns, expected 18", None, "keep the first 18"),
        (GOOD.strip() + b" " + GOOD, "36 columns, expected 18", None, "keep the first 18"),
        (changed(2, "-1"), "submit time is -1, expected 0 or more", "submit time", "count from 0"),
        (changed(2, "-7"), "submit time is -7, expected 0 or more", "submit time", "count from 0"),
        (
            changed(1, "-1"),
            "job number is -1, expected 0 or more",
            "job number",
            "number jobs from 0",
        ),
        (
            changed(2, "49"),
            "submit time 49 comes after submit time 50, expected submit times in order",
            "submit time",
            "sort the jobs: (grep '^ *;' FILE; grep -v '^ *;' FILE | sort -s -n -k2,2) > SORTED",
        ),
        (
            changed(5, "-2"),
            "allocated processors is -2, expected -1 (unknown), or 0 to",
            "allocated processors",
            "correct the line",
        ),
        (
            changed(5, "4.0"),
            "allocated processors is '4.0', expected a whole number",
            "allocated processors",
            "correct the line",
        ),
        (
            changed(12, "alice"),
            "user is 'alice', expected a whole number",
            "user",
            "correct the line",
        ),
        (changed(4, "1e3"), "run time is '1e3', expected a number", "run time", "correct the line"),
        (changed(4, "nan"), "run time is 'nan', expected a number", "run time", "correct the line"),
        (changed(4, "--5"), "run time is '--5', expected a number", "run time", "correct the line"),
        (changed(4, "5-"), "run time is '5-', expected a number", "run time", "correct the line"),
        (changed(4, "+5"), "run time is '+5', expected a number", "run time", "correct the line"),
        (
            changed(4, "1_000"),
            "run time is '1_000', expected a number",
            "run time",
            "correct the line",
        ),
        (
            changed(8, str(2**53)),
            "requested processors is 9007199254740992, expected -1",
            "requested processors",
            "correct the line",
        ),
        (
            changed(8, "9" * 5_000),  # more digits than int() takes
            "requested processors is 99999999999999999999..., expected -1",
            "requested processors",
            "correct the line",
        ),
        (changed(9, str(10**12)), "the job ends after the year 9999", None, "UnixStartTime"),
        (
            changed(4, "60\0"),
            "byte 0x00 at place 10, expected plain text",
            None,
            "Standard Workload Format",
        ),
        (
            changed(12, "é"),
            "byte 0xc3 at place 30, expected plain text",
            None,
            "Standard Workload Format",
        ),
        (b"\x1f\x8b\x08\0", "this is gzip-compressed, expected text", None, "gunzip"),
        (b"# a comment of another kind\n", "6 columns, expected 18", None, "fill the columns"),
        (b"1" * (LINE_LIMIT + 1), f"longer than {LINE_LIMIT} bytes", None, "one job a line"),
    ],
)
def test_bad_line_is_named(
    second_line: bytes, message: str, field: str | None, remedy: str
) -> None:
    jobs = read(BytesIO(GOOD + second_line)).jobs
    assert next(jobs).number == 1
    with pytest.raises(InvalidInput) as error:
        next(jobs)
    assert error.value.message.startswith(f"line 2: {message}")
    assert error.value.field == field
    assert remedy in (error.value.remedy or "")


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        (b"; MaxProcs: 12O", "line 2: MaxProcs is '12O', expected a whole number"),
        (
            b"; UnixStartTime: 999999999999999999",
            (
                "line 2: UnixStartTime is '999999999999999999', expected a whole number up to"
                " 253402300799"
            ),
        ),
        (
            b"; UnixStartTime: abc",
            "line 2: UnixStartTime is 'abc', expected a whole number up to 253402300799",
        ),
        (b"; UnixStartTime: Mon Nov 5 1996", "line 2: UnixStartTime is 'Mon'"),
        (b"; MaxNodes: -5", "line 2: MaxNodes is '-5'"),
        (b"; NodeFailures: 1 two 3", "line 2: NodeFailures is 'two'"),
        ("; Queue: \u0663 long".encode(), "line 2: Queue is '\u0663'"),
    ],
)
def test_bad_number_in_the_header_is_named(comment: bytes, message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        read(BytesIO(b"; Version: 2\n" + comment + b"\n" + GOOD))
    assert error.value.message.startswith(message)
    assert error.value.remedy == "correct the header comment, or remove the line"


@pytest.mark.parametrize("label", ["MaxProcs", "MaxNodes"])
def test_machine_in_the_header_is_at_most_as_large_as_a_machine_may_be(label: str) -> None:
    text = f"; {label}: {2**31}\n".encode()
    assert 2**31 in read(BytesIO(text + GOOD)).header
    with pytest.raises(InvalidInput, match=f"'{2**31 + 1}', expected a whole number up to {2**31}"):
        read(BytesIO(f"; {label}: {2**31 + 1}\n".encode() + GOOD))


@pytest.mark.parametrize(
    "line",
    [
        b"04/15/2026 00:00:05;E;12.server;user=ada group=x queue=batch\n",
        b'[{"job": 1},\n',
        b"{\n",
        b"<!DOCTYPE html>\n",
        b"%PDF-1.4\n",
        b"# JobID SubmitTime WaitTime RunTime\n",
        b"0 10 5 100 1 -1 -1 1 -1 -1 1 U1 G1 X1 Q0 P0 O1 N1 -1 -1 -1 -1\n",
        b"job;submit;run;procs\n",
        b"1;0;10;4\n",
        b"1,0,10,4\n",
        b"Dear colleague,\n",
    ],
)
@pytest.mark.parametrize("before", [b"", b"\n", b"; MaxProcs: 8\n"])
def test_first_line_of_another_format_is_no_trace(line: bytes, before: bytes) -> None:
    with pytest.raises(InvalidInput) as error:
        read(BytesIO(before + line + GOOD))
    assert error.value.message == f"line {1 + bool(before)} is not a job: this is not a trace"
    assert error.value.field == "FILE"


@pytest.mark.parametrize("before", [b"", b"; MaxProcs: 8\r"])
def test_carriage_returns_between_lines_are_named(before: bytes) -> None:
    with pytest.raises(InvalidInput, match="line 1 has carriage returns between lines") as error:
        read(BytesIO(before + 2 * GOOD.replace(b"\n", b"\r")))
    assert error.value.remedy == r"convert the file: tr '\r' '\n' < FILE > CONVERTED"


def test_remedy_for_unsorted_jobs_keeps_the_header_first(tmp_path: Path) -> None:
    (tmp_path / "FILE").write_bytes(
        b";MaxProcs: 128\n; UnixStartTime: 7\n" + changed(2, "90") + changed(2, "9")
    )
    command = SORTING.partition(": ")[2]
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    with (tmp_path / "SORTED").open("rb") as stream:
        trace = read(stream)
        assert (trace.header.max_procs, trace.header.unix_start_time) == (128, 7)
        assert [job.submit_time for job in trace.jobs] == [9, 90]


@pytest.mark.parametrize("label", ["MaxProcs", "MaxNodes", "UnixStartTime"])
def test_header_that_contradicts_itself_is_refused(label: str) -> None:
    comments = f"; {label}: 16\n; {label}: 16\n; {label}: UNKNOWN\n"
    assert 16 in read(BytesIO(comments.encode() + GOOD)).header
    with pytest.raises(InvalidInput) as error:
        read(BytesIO(comments.encode() + f"; {label}: 4\n".encode() + GOOD))
    assert (error.value.message, error.value.field) == (
        f"line 4: {label} is 4, and 16 further up",
        label,
    )
    assert error.value.remedy == "remove the header comment that is wrong"


def test_header_may_say_that_it_does_not_know() -> None:
    header = read(
        BytesIO(
            b"; MaxProcs: UNKNOWN\n; MaxNodes:\n; MaxRuntime: -1\n; UnixStartTime: unknown\n;"
            b" Queue: see below\n"
        )
    ).header
    assert (header.max_procs, header.max_nodes, header.max_runtime, header.unix_start_time) == (
        None,
        None,
        None,
        None,
    )
    assert header.queues == {}


def test_header_cannot_send_terminal_controls() -> None:
    header = read(BytesIO(b"; Computer: \x1b[2Jred\0rum \xff\n")).header
    assert header.computer == "[2Jred rum \N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.99])
def test_truncated_gzip_file_names_the_line_it_reached(cut: float) -> None:
    whole = gzip.compress(b"".join(b"%d " % n + GOOD[2:] for n in range(20_000)))
    reached: list[int] = []
    with (
        gzip.open(BytesIO(whole[: int(len(whole) * cut)])) as stream,
        pytest.raises(InvalidInput) as error,
    ):
        reached.extend(job.number for job in read(stream).jobs)
    assert reached == list(range(len(reached)))
    assert error.value.message.startswith(
        f"line {len(reached) + 1}: the compressed data end here, too early, or are damaged"
    )
    assert error.value.remedy == "fetch the file again; gzip -t tests it"


def test_damaged_compression_is_malformed() -> None:
    packed = bytearray(gzip.compress(GOOD * 1_000))
    packed[30:40] = b"\xff" * 10
    with gzip.open(BytesIO(packed)) as stream, pytest.raises(InvalidInput, match=r"line \d+: "):
        drain(stream)
    with (
        gzip.open(BytesIO(GOOD)) as stream,
        pytest.raises(InvalidInput, match=r"line 1: the compressed data"),
    ):
        drain(stream)


def test_disk_that_fails_is_not_a_malformed_trace() -> None:
    class Dying:
        def readline(self, size: int, /) -> bytes:
            raise OSError(5, "Input/output error")

        read1 = readline

    with pytest.raises(OSError, match="Input/output error"):
        read(Dying())


def bomb(unit: bytes, mebibytes: int) -> bytes:
    """Return `unit` repeated and compressed: some thousand times smaller than its content."""
    chunk = unit * (2**20 // len(unit))
    packer = zlib.compressobj(level=1, wbits=31)
    return b"".join(packer.compress(chunk) for _ in range(mebibytes)) + packer.flush()


BOMBS = {
    "one endless line": (b"1", f"line 1: longer than {LINE_LIMIT} bytes"),
    "one endless comment": (b";", f"line 1: longer than {LINE_LIMIT} bytes"),
    "zeros": (b"\0", f"line 1: longer than {LINE_LIMIT} bytes"),
    "empty lines": (
        b"\n",
        f"line {REMARK_LIMIT + 1}: more than {REMARK_LIMIT} bytes of comments and blank lines",
    ),
    "one note after another": (
        b"; Note: x\n",
        f"more than {REMARK_LIMIT} bytes of comments and blank lines",
    ),
    "node failures": (
        b"; NodeFailures: 1 2 3 4 5 6 7\n",
        f"more than {REMARK_LIMIT} bytes of comments and blank lines",
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_gzip_bomb_is_refused_in_little_memory(name: str) -> None:
    unit, message = BOMBS[name]
    packed = bomb(unit, 64)
    with (
        gzip.open(BytesIO(packed)) as stream,
        peak_below(8 * 2**20),
        pytest.raises(InvalidInput) as error,
    ):
        drain(stream)
    assert message in error.value.message


def test_comments_among_the_jobs_are_bounded_too() -> None:
    with pytest.raises(InvalidInput, match="bytes of comments and blank lines"):
        drain(BytesIO(GOOD + b";\n" * REMARK_LIMIT))


def test_long_trace_takes_no_more_memory_than_a_short_one() -> None:
    packed = bomb(GOOD, 1)
    with gzip.open(BytesIO(packed)) as stream, peak_below(2**20):
        assert drain(stream) > 20_000


class peak_below:  # noqa: N801 - reads as a phrase
    """Fail if the block ever uses more than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def __enter__(self) -> None:
        tracemalloc.start()

    def __exit__(self, *_: object) -> None:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < self.limit, f"{peak} bytes at the peak, allowed {self.limit}"


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (
            b"1 100 0 10 99999999999999 -1 -1 99999999999999 100000000 -1 1 1 1 1 1 1 -1 -1\n",
            "requested processors",
        ),
        (b"1 100 0 60000 1000000000001 -1 -1 -1 -1 -1 1 1 1 1 1 1 -1 -1\n", "allocated processors"),
    ],
)
def test_job_that_costs_more_than_the_bank_counts(line: bytes, field: str) -> None:
    with pytest.raises(
        InvalidInput,
        match="line 2: .* processors for .* at most 1000000000000000 processor-minutes",
    ) as bad:
        drain(BytesIO(GOOD + line))
    assert bad.value.field == field


def test_most_expensive_countable_job_is_accepted() -> None:
    assert drain(BytesIO(b"1 100 0 60000 1000000000000 -1 -1 -1 -1 -1 1 1 1 1 1 1 -1 -1\n")) == 1


def test_lines_are_as_long_as_the_caller_allows() -> None:
    assert list(NumberedLines(BytesIO(b"ab\nc"), limit=3)) == [(1, b"ab\n"), (2, b"c")]
    with pytest.raises(InvalidInput, match="line 1: longer than 2 bytes"):
        list(NumberedLines(BytesIO(b"ab\nc"), limit=2))


words = st.sampled_from(
    [
        b"-1",
        b"0",
        b"7",
        b"600",
        b"1.5",
        b"-",
        b".",
        b"\0",
        b"nan",
        b"9" * 30,
        b";",
        b"\xff",
        b"; MaxProcs: 1",
    ]
)
nearly = st.lists(st.lists(words, min_size=16, max_size=20).map(b" ".join), max_size=6).map(
    b"\n".join
)


@given(st.binary(max_size=300) | nearly | nearly.map(lambda tail: GOOD + tail))
def test_any_bytes_are_a_trace_or_malformed(data: bytes) -> None:
    readable(BytesIO(data))


@given(st.binary(max_size=40), st.integers(0, 200))
def test_any_compressed_bytes_are_a_trace_or_malformed(noise: bytes, at: int) -> None:
    packed = gzip.compress(GOOD * 20, mtime=0)
    with gzip.open(BytesIO(packed[:at] + noise + packed[at + len(noise) :])) as stream:
        readable(stream)


def readable(stream: ByteStream) -> None:
    """Read to the end. Any fault is reported in one printable sentence with its line and the
    remedy.
    """
    wrong: InvalidInput | None = None
    try:
        drain(stream)
    except InvalidInput as bad:
        wrong = bad
    assert wrong is None or (
        wrong.message.startswith("line ") and wrong.message.isprintable() and wrong.remedy
    )
