"""Why a job waits, in lines and as an object: what is left out where nobody knows, and what is cut short."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fairbank.report.waiting import data, lines


class Check(NamedTuple):
    what: str
    ok: bool
    evidence: str


class Likely(NamedTuple):
    earliest: int
    latest: int | None
    runs: int
    started: int


class Suggestion(NamedTuple):
    option: str
    at: int


class Why(NamedTuple):
    number: int = 7
    code: str = "Priority"
    headline: str = "Job 7 waits behind job 6 (Priority)."
    checks: tuple[Check, ...] = (Check("its turn", False, "ahead is job 6"), Check("credit", True, "enough"))
    position: int | None = 2
    ahead: tuple[int, ...] = (6,)
    waiting: int = 3
    expected: int | None = None
    likely: Likely | None = None
    suggestion: Suggestion | None = None


class Job(NamedTuple):
    why: Why = Why()
    facts: Mapping[str, object] = {"user": "ann", "account": ""}
    submitted: int = 0
    as_of: int = 90_061
    started: int | None = None


def told(job: Job, room: int = 120) -> list[str]:
    return list(lines(job, room))


def test_what_there_is_to_say() -> None:
    assert told(Job()) == [
        "Job 7 (user ann)",
        "Came 1970-01-01T00:00:00Z, waiting for 1-01:01:01 as of 1970-01-02T01:01:01Z",
        "Job 7 waits behind job 6 (Priority).",
        "",
        "Checks    x   its turn: ahead is job 6",
        "          ok  credit: enough",
        "Queue     2nd of 3; ahead: 6",
        "Start     nobody can say",
    ]


def test_a_start_is_told_as_far_as_it_is_known() -> None:
    def start(**known: Any) -> str:
        return told(Job(Why()._replace(**known)))[7]

    assert start(expected=60) == "Start     1970-01-01T00:01:00Z if everybody uses the whole time limit and nobody comes before it"
    both = Likely(60, 120, 100, 100)
    assert start(likely=both) == "Start     likely from 1970-01-01T00:01:00Z to 1970-01-01T00:02:00Z (8 of 10 of 100 rehearsals)"
    assert "to a time that nobody can tell" in start(likely=both._replace(latest=None))


def test_a_job_without_a_place_and_one_behind_many() -> None:
    assert not [line for line in told(Job(Why(position=None))) if line.startswith("Queue")]
    assert told(Job(Why(ahead=(), position=1)))[6] == "Queue     1st of 3; nobody is ahead"
    many = told(Job(Why(ahead=tuple(range(1, 23)), position=23, waiting=111)))[6]
    assert many == "Queue     23rd of 111; ahead: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 12 more"
    places = [told(Job(Why(position=place)))[6].split()[1] for place in (3, 4, 11, 12, 13, 21, 101, 111)]
    assert places == ["3rd", "4th", "11th", "12th", "13th", "21st", "101st", "111th"]


def test_what_came_of_it() -> None:
    assert told(Job(Why(suggestion=Suggestion("-n 4", 0)), started=3_600))[-2:] == [
        "Sooner    with -n 4 it would start by 1970-01-01T00:00:00Z, as things stand",
        "In fact   under this policy it started at 1970-01-01T01:00:00Z, after 01:00:00",
    ]


def test_lines_fit_the_terminal_and_do_nothing_to_it() -> None:
    long = Job(Why(headline="word " * 40, checks=(Check("its turn", False, "word " * 60),)), {"user": "\x1b[31mann"})
    found = told(long, 60)
    assert max(map(len, found)) <= 60
    assert not [line for line in found if "\x1b" in line]
    checks = found[found.index("") + 1 :]
    assert checks[0].startswith("Checks    x   its turn: word")
    assert checks[1].startswith("              word")


def test_programs_are_told_all() -> None:
    whole = Job(Why(expected=60, likely=Likely(60, None, 50, 20), suggestion=Suggestion("-t 00:10:00", 0)), started=3_600)
    found = data(whole)
    assert found["ahead"] == [6]
    assert found["likely"] == {"earliest": "1970-01-01T00:01:00Z", "latest": None, "rehearsals": 50, "started": 20}
    assert found["suggestion"] == {"option": "-t 00:10:00", "start": "1970-01-01T00:00:00Z"}
    assert (found["expected"], found["started"], found["user"]) == ("1970-01-01T00:01:00Z", "1970-01-01T01:00:00Z", "ann")
    assert data(Job())["likely"] is None
