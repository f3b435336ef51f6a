"""The fast reader gives the same jobs and refuses the same lines as the full reader, with the same
messages.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.time import LAST_INSTANT
from fairbank.core.units import AMOUNT_MAX
from fairbank.simulator.traces.fast_reader import BLOCK, ROUNDED, FastLine, fast_line, read_fast
from fairbank.simulator.traces.header import Header
from fairbank.simulator.traces.job_line import SwfJob
from fairbank.simulator.traces.swf import REMARK_LIMIT, read, write

unknown_or = st.one_of(st.just(-1), st.integers(0, 100), st.integers(0, 2**33))
jobs = st.lists(
    st.builds(
        lambda number, submit, rest: SwfJob(number, submit, *rest),
        st.integers(0, 2**33),
        st.integers(0, 2**33),
        st.lists(unknown_or.filter(lambda n: n < 2**20), min_size=16, max_size=16),
    ),
    max_size=8,
).map(lambda drawn: sorted(drawn, key=lambda job: job.submit_time))


PLAIN = "1 0 -1 10 4 -1 -1 4 20 -1 1 7 7 -1 1 1 -1 -1"


@pytest.fixture(scope="module", params=[BLOCK, 50], autouse=True)
def block(request: pytest.FixtureRequest) -> Iterator[int]:
    """Set the block size to this number of bytes: all lines in one block, or a line and a part of
    the next.
    """
    size: int = request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairbank.simulator.traces.fast_reader.BLOCK", size)
        yield size


def skimmed(text: str) -> list[FastLine]:
    return list(read_fast(BytesIO(text.encode())).jobs)


@given(jobs)
def test_fast_reader_equals_full_reader(drawn: list[SwfJob]) -> None:
    text = "".join(write(Header(max_procs=8), drawn))
    assert skimmed(text) == [fast_line(job) for job in read(BytesIO(text.encode())).jobs]


def fully(text: bytes) -> Iterator[FastLine]:
    """Yield the columns of the jobs of the full reader."""
    yield from map(fast_line, read(BytesIO(text)).jobs)


def fast(text: bytes) -> Iterator[FastLine]:
    yield from read_fast(BytesIO(text)).jobs


def gone_through(jobs: Iterator[FastLine]) -> tuple[list[FastLine], str | None]:
    """Return the jobs up to the first refused line, and the message."""
    result: list[FastLine] = []
    try:
        result.extend(jobs)
    except InvalidInput as bad:
        return result, f"{bad.field}: {bad}; {bad.remedy}"
    return result, None


def corrected_line(places: list[int], new: list[str]) -> str:
    """Return a valid line with other words in some columns."""
    result = PLAIN.split()
    for at, word in zip(places, new, strict=False):
        result[at] = word
    return " ".join(result)


BORDERS = [2**31, 10**7, 10**9, 10**10, 10**11, 2**53, 60 * AMOUNT_MAX, LAST_INSTANT, 10**30]
DIRT = [
    "-0",
    "007",
    "-01",
    "5-",
    "--5",
    "1-0",
    "-",
    "+1",
    "1_0",
    "1.4",
    "1.5",
    "-0.6",
    ".5",
    "1e3",
    "nan",
    "ten",
    "\u00e9",
    "\0",
    "-1 -1",
    "",
]
WEIGHTY = [1, 2, 3, 4, 7, 8]
"""Places of times and processors: what they come to together is judged too."""
large = st.sampled_from(BORDERS).flatmap(lambda border: st.integers(border - 2, border + 2))
words = st.one_of(st.integers(-2, 30).map(str), large.map(str), st.sampled_from(DIRT))
numbers = st.one_of(st.integers(0, 30), st.sampled_from(BORDERS[:-3])).map(str)
drawn_lines = st.one_of(
    st.builds(
        corrected_line,
        st.lists(st.integers(0, 17), max_size=3),
        st.lists(words, min_size=3, max_size=3),
    ),
    st.builds(
        corrected_line,
        st.lists(st.sampled_from(WEIGHTY)),
        st.lists(numbers, min_size=3, max_size=3),
    ),
    st.sampled_from(
        [
            "; a remark",
            "",
            f"{PLAIN}\r",
            f"{PLAIN} ;",
            PLAIN.replace(" ", "\t"),
            PLAIN.replace(" ", "\x0b"),
            f" {PLAIN}",
        ]
    ),
)
heads = st.sampled_from(
    [
        "",
        "; UnixStartTime: 5\n",
        f"; UnixStartTime: {LAST_INSTANT - 40}\n",
        f"; UnixStartTime: {LAST_INSTANT - 10**11}\n",
    ]
)


@settings(max_examples=500)
@given(st.sampled_from(["", "\ufeff"]), heads, st.lists(drawn_lines, min_size=1, max_size=4))
def test_fast_reader_corrects_faults_like_the_full_reader(
    mark: str, head: str, dirty: list[str]
) -> None:
    text = (mark + head + "\n".join(dirty)).encode()
    assert gone_through(fast(text)) == gone_through(fully(text))


@pytest.mark.parametrize(
    ("before", "among"),
    [(REMARK_LIMIT, 1), (REMARK_LIMIT // 2, REMARK_LIMIT // 2 + 1), (0, REMARK_LIMIT)],
)
def test_remarks_before_the_jobs_and_among_them_count_together(before: int, among: int) -> None:
    text = b";\n" * (before // 2) + f"{PLAIN}\n".encode() + b"\n" * (among + 1)
    reading = gone_through(fast_line(job) for job in read(BytesIO(text)).jobs)
    assert reading[1] is not None
    assert gone_through(read_fast(BytesIO(text)).jobs) == reading


def test_lines_with_decimals_are_read_as_fast_as_integers(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader of single lines is not used. Times are rounded half up, as it does."""
    lines = [
        "1 0.4 1.5 10.5 4 10.123456789 3.0 4 20.4999 2.5 1 7 7 -1 1 1 -1 2.5",
        "2 0.5 -1 10. 4 -1 -1 4 20.0 -1 1 7 7 -1 1 1 -1 -1",
        "3 7 1.25 10 4 -1 0.5 4 20 -1 1 7 7 -1 1 1 -1 -1",
        "4 9999999998.4999 -1 999999999.5 4 -1 -1 4 -1 -1 1 7 7 -1 1 1 -1 -1",
    ]
    text = "".join(f"{line}\n" for line in lines).encode()
    expected = list(fully(text))
    trace = read_fast(BytesIO(text))
    monkeypatch.delattr("fairbank.simulator.traces.fast_reader.parse_job")
    assert list(trace.jobs) == expected
    assert trace.notes.corrections == {ROUNDED: 3}


@pytest.mark.parametrize(
    "lines",
    [
        "1 0 -1 10.4 4 -1 -1 4 20 -1 1 7 7 -1 1 1 -1 -1",
        "1 0 -5 -5 4 -1 -1 4 20 -1 1 7 7 -1 1 1 -1 -5",
        f"{PLAIN}\n; a remark among jobs\n\n{PLAIN}",
    ],
)
def test_unusual_line_goes_to_the_full_reader(lines: str) -> None:
    assert skimmed(lines) == [fast_line(job) for job in read(BytesIO(lines.encode())).jobs]


@pytest.mark.parametrize(
    "lines",
    [
        f"{PLAIN} 5",
        PLAIN.removesuffix(" -1"),
        PLAIN.replace("10", "1-0"),
        PLAIN.replace("10", "ten"),
        f"-{PLAIN}",
        PLAIN.replace(" 10 ", f" {2**60} "),
        PLAIN.replace("1 0 ", "1 5 ") + "\n" + PLAIN,
    ],
)
def test_fast_reader_refuses_with_the_same_message(lines: str) -> None:
    with pytest.raises(InvalidInput) as reading:
        list(read(BytesIO(lines.encode())).jobs)
    with pytest.raises(InvalidInput) as skimming:
        skimmed(lines)
    assert str(skimming.value) == str(reading.value)


def lines_of(jobs: int) -> list[str]:
    """Return valid lines, submitted one second apart, that fill more than a block."""
    return [PLAIN.replace("1 0 ", f"{number} {number} ", 1) for number in range(jobs)]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_trace_of_many_blocks(block: int, mark: str, end: str) -> None:
    text = mark + "\n".join(lines_of(1_000)) + end
    assert len(text) > 2 * block
    assert skimmed(text) == [fast_line(job) for job in read(BytesIO(text.encode())).jobs]
    assert [job[0] for job in skimmed(text)] == list(range(1_000))


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("700 700 -1 10 4", "line 701: 5 columns, expected 18"),
        (PLAIN.replace("1 0 ", "700 698 "), "line 701: "),  # submitted before the last one
        (PLAIN.replace("1 0 ", "700 700 ").replace("10", "ten"), "line 701"),
    ],
)
def test_refused_line_in_a_later_block_has_its_number(line: str, what: str) -> None:
    text = "\n".join([*lines_of(1_000)[:700], line, *lines_of(1_000)[701:]]).encode()
    result, refused = gone_through(read_fast(BytesIO(text)).jobs)
    assert (result, refused) == gone_through(fast_line(job) for job in read(BytesIO(text)).jobs)
    assert len(result) == 700
    assert refused is not None
    assert what in refused


def test_submissions_that_fall_are_refused_wherever_a_block_begins() -> None:
    lines = lines_of(500)
    for at in range(2, 500):
        changed = PLAIN.replace("1 0 ", f"{at} {at - 2} ", 1)
        with pytest.raises(InvalidInput, match=f"^line {at + 1}: "):
            skimmed("\n".join([*lines[:at], changed, *lines[at + 1 :]]))


def test_unusual_line_in_a_later_block_goes_to_the_full_reader() -> None:
    lines = lines_of(1_000)
    lines[700] = lines[700].replace(" 10 ", " 10.4 ")
    lines.insert(800, "; a remark")
    text = "\n".join(lines)
    assert skimmed(text) == [fast_line(job) for job in read(BytesIO(text.encode())).jobs]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (PLAIN.replace(" 10 ", " 10.4 "), 1),
        (PLAIN.replace(" 10 ", " 10.7 ").replace(" 20 ", " 20.5 "), 1),
        (PLAIN.replace("1 0 ", "1 0.25 "), 1),
        (PLAIN.replace(" 10 ", " 10.00 ").replace(" 20 ", " 20. "), 0),
        (
            PLAIN.replace("4 -1 -1 4", "4 3.7 -1 4"),
            0,
        ),  # average CPU time: no schedule depends on it
        (PLAIN, 0),
    ],
)
def test_times_that_are_rounded_are_counted(line: str, expected: int) -> None:
    result = read_fast(BytesIO(f"{line}\n{PLAIN}\n; a remark of 1.5\n".encode()))
    assert len(list(result.jobs)) == 2
    assert result.notes.corrections == ({ROUNDED: expected} if expected else {})


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [
        ("0.6", "0.4", "submit time 0.4 comes after submit time 0.6"),
        ("5", "3.2", "submit time 3.2 comes after submit time 5"),
        ("7.9", "2", "submit time 2 comes after submit time 7.9"),
        ("-3.7", "2", "submit time is -3.7"),
    ],
)
def test_refusal_quotes_the_file(first: str, then: str, expected: str) -> None:
    text = "".join(PLAIN.replace("1 0 ", f"1 {word} ") + "\n" for word in (first, then))
    _, reading = gone_through(fast_line(job) for job in read(BytesIO(text.encode())).jobs)
    assert reading is not None
    assert expected in reading
    assert gone_through(read_fast(BytesIO(text.encode())).jobs)[1] == reading


@pytest.mark.parametrize("kept", [0.5, 0.9, 0.999])
def test_gzip_that_was_cut_is_refused_at_the_same_line(kept: float) -> None:
    packed = gzip.compress("\n".join(lines_of(20_000)).encode(), mtime=0)
    cut = packed[: int(len(packed) * kept)]
    with gzip.open(BytesIO(cut)) as stream:
        jobs, refused = gone_through(fast_line(job) for job in read(stream).jobs)
    with gzip.open(BytesIO(cut)) as stream:
        result, output = gone_through(read_fast(stream).jobs)
    assert refused is not None
    assert "the compressed data end here, too early" in refused
    assert output == refused
    assert result == jobs[: len(result)]
    assert len(result) > 0
