"""Why a job waits and when it is likely to start: for people in lines, for programs in an object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from fairbank.report.cells import folded, plain
from fairbank.values.time import iso, show_duration


class Check(Protocol):
    """Something that must be so before the job starts, and what was found."""

    @property
    def what(self) -> str: ...
    @property
    def ok(self) -> bool: ...
    @property
    def evidence(self) -> str: ...


class Likely(Protocol):
    """From when to when it started in eight of ten of so many rehearsals."""

    @property
    def earliest(self) -> int: ...
    @property
    def latest(self) -> int | None: ...
    @property
    def runs(self) -> int: ...
    @property
    def started(self) -> int: ...


class Suggestion(Protocol):
    """What sbatch is told, and when the job would start then."""

    @property
    def option(self) -> str: ...
    @property
    def at(self) -> int: ...


class Why(Protocol):
    """The answer; instants are seconds since 1970."""

    @property
    def number(self) -> int: ...
    @property
    def code(self) -> str: ...
    @property
    def headline(self) -> str: ...
    @property
    def checks(self) -> Sequence[Check]: ...
    @property
    def position(self) -> int | None: ...
    @property
    def ahead(self) -> Sequence[int]: ...
    @property
    def waiting(self) -> int: ...
    @property
    def expected(self) -> int | None: ...
    @property
    def likely(self) -> Likely | None: ...
    @property
    def suggestion(self) -> Suggestion | None: ...


class Waiting(Protocol):
    """A job that waits, as of some instant. `facts` are what there is to say of it, by their names; `started`: when it started in the end,
    where somebody knows."""

    @property
    def why(self) -> Why: ...
    @property
    def facts(self) -> Mapping[str, object]: ...
    @property
    def submitted(self) -> int: ...
    @property
    def as_of(self) -> int: ...
    @property
    def started(self) -> int | None: ...


AHEAD = 10
"""So many of those ahead are told one by one; --json tells all."""
HEAD = 10


def lines(job: Waiting, room: int) -> Iterator[str]:
    """For people, in lines of at most `room` characters where words allow it."""
    why = job.why
    facts = ", ".join(f"{name} {value}" for name, value in job.facts.items() if value not in (None, ""))
    yield from folded(plain(f"Job {why.number} ({facts})"), room)
    yield from folded(f"Came {iso(job.submitted)}, waiting for {show_duration(job.as_of - job.submitted)} as of {iso(job.as_of)}", room)
    yield from folded(plain(why.headline), room)
    yield ""
    for check in why.checks:
        yield from _behind(
            "Checks" if check is why.checks[0] else "", f"{'ok' if check.ok else 'x '}  {check.what}: {check.evidence}", room
        )
    if why.position is not None:
        yield from _behind("Queue", f"{_th(why.position)} of {why.waiting}; {_ahead(why.ahead)}", room)
    yield from _behind("Start", _start(why), room)
    if why.suggestion is not None:
        yield from _behind("Sooner", f"with {why.suggestion.option} it would start by {iso(why.suggestion.at)}, as things stand", room)
    if job.started is not None:
        yield from _behind(
            "In fact", f"under this policy it started at {iso(job.started)}, after {show_duration(job.started - job.submitted)}", room
        )


def _behind(head: str, text: str, room: int) -> Iterator[str]:
    for line in folded(plain(text), max(room - HEAD, 20)):
        yield f"{head:<{HEAD}}{line}"
        head = ""


def _th(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _ahead(numbers: Sequence[int]) -> str:
    if not numbers:
        return "nobody is ahead"
    more = f" and {len(numbers) - AHEAD} more" if len(numbers) > AHEAD else ""
    return f"ahead: {', '.join(map(str, numbers[:AHEAD]))}{more}"


def _start(why: Why) -> str:
    found, expected = why.likely, why.expected
    if found is None:
        return (
            "nobody can say" if expected is None else f"{iso(expected)} if everybody uses the whole time limit and nobody comes before it"
        )
    until = "a time that nobody can tell" if found.latest is None else iso(found.latest)
    return f"likely from {iso(found.earliest)} to {until} (8 of 10 of {found.runs} rehearsals)"


def data(job: Waiting) -> dict[str, Any]:
    """For programs."""
    why = job.why
    likely, suggestion = why.likely, why.suggestion
    return {
        "job": why.number,
        **job.facts,
        "submitted": iso(job.submitted),
        "code": why.code,
        "headline": why.headline,
        "checks": [{"what": each.what, "ok": each.ok, "evidence": each.evidence} for each in why.checks],
        "position": why.position,
        "waiting": why.waiting,
        "ahead": list(why.ahead),
        "expected": _iso(why.expected),
        "likely": likely
        and {"earliest": iso(likely.earliest), "latest": _iso(likely.latest), "rehearsals": likely.runs, "started": likely.started},
        "suggestion": suggestion and {"option": suggestion.option, "start": iso(suggestion.at)},
        "started": _iso(job.started),
    }


def _iso(instant: int | None) -> str | None:
    return None if instant is None else iso(instant)
